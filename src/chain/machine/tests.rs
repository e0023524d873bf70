//! Tables for each branch, and the promise: a crash anywhere loses and doubles nothing.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::event::Standing;
use super::simulator::{Run, opening, step, wide_shape};
use super::*;
use crate::chain::evidence::{Note, Word};
use crate::chain::shape::{Class, Shape, Writer};
use crate::chain::verdict::{BlockReason, ReworkTarget, Verdict};
use crate::ids::{JobId, StepId};
use crate::ports::{ClaimAnswer, Commit, Restored};

fn running() -> ChainState {
    let mut log = vec![ChainEvent::Opened(Box::new(opening(wide_shape())))];
    log.extend([
        ChainEvent::Poured,
        ChainEvent::RootHeld,
        ChainEvent::TreeReady { path: "/tree".into(), branch: "feature/x".into(), head: "c0".into(), reused: false },
    ]);
    fold(&log).expect("begins with Opened")
}

fn after(mut chain: ChainState, inputs: Vec<ChainInput>) -> ChainState {
    for input in inputs {
        chain = decide(&chain, input).iter().fold(chain, evolve);
    }
    chain
}

fn ready(steps: &[&str]) -> ChainInput {
    ChainInput::ReadyListed(steps.iter().map(|step| StepId::from(*step)).collect())
}

fn claimed(step: &str, epoch: u32) -> ChainInput {
    ChainInput::ClaimAnswered { step: step.into(), epoch, answer: ClaimAnswer::Claimed }
}

fn settled(step: &str, epoch: u32, outcome: Outcome) -> ChainInput {
    ChainInput::JobSettled { step: step.into(), epoch, outcome }
}

fn answered(verdict: Verdict) -> Outcome {
    Outcome::Answered { verdict, summary: "said so".into() }
}

fn made(head: &str, refused: &[&str]) -> Work {
    let refused = refused.iter().map(|path| (*path).to_owned()).collect();
    Work::Committed(Commit::Made { head: head.into(), paths: vec!["src/a".into()], refused })
}

fn work(step: &str, epoch: u32, work: Work) -> ChainInput {
    ChainInput::WorkSettled { step: step.into(), epoch, work }
}

/// A step taken from ready to settled work.
fn walk(step: &str, epoch: u32, verdict: Verdict, done: Work) -> Vec<ChainInput> {
    vec![ready(&[step]), claimed(step, epoch), settled(step, epoch, answered(verdict)), work(step, epoch, done)]
}

fn closed(step: &str, epoch: u32) -> Vec<ChainInput> {
    let step = StepId::from(step);
    vec![ChainInput::EvidenceNoted { step: step.clone(), epoch }, ChainInput::StepClosed { step }]
}

/// A chain whose executor has passed with commit c1.
fn executor_done() -> ChainState {
    let chain = after(running(), walk("executor", 1, Verdict::Passed { remark: None }, made("c1", &[])));
    after(chain, closed("executor", 1))
}

fn blocked_code(chain: &ChainState, step: &str) -> Option<String> {
    match &chain.steps[&StepId::from(step)].phase {
        Phase::Blocked { why, .. } => Some(why.code.clone()),
        Phase::Pending | Phase::Active(_) | Phase::Closed => None,
    }
}

#[test]
fn a_writers_turn_is_judged_by_its_commit() {
    let rework = Verdict::Rework { target: ReworkTarget::PrimaryWriter, findings: "bug in src/a".into() };
    for (case, verdict, done, expected) in [
        ("success with a commit passes", Verdict::Passed { remark: None }, made("c1", &[]), Ok(Activity::Noting)),
        (
            "success without a diff is not believed",
            Verdict::Passed { remark: None },
            Work::Committed(Commit::Nothing { refused: vec![] }),
            Err("empty_diff"),
        ),
        (
            "a refusing hook blocks",
            Verdict::Passed { remark: None },
            Work::Committed(Commit::HookRefused { output: "no".into() }),
            Err("hook_refused"),
        ),
        (
            "HEAD off the branch blocks",
            Verdict::Passed { remark: None },
            Work::Committed(Commit::OffBranch { found: "main".into() }),
            Err("off_branch"),
        ),
        ("partial twice blocks", Verdict::Again { why: "half done".into() }, made("c1", &[]), Err("incomplete")),
        ("a writer with nobody above it to fix", rework, made("c1", &[]), Err("no_writer_to_fix")),
    ] {
        let chain = after(running(), walk("executor", 1, verdict, done));
        match expected {
            Ok(activity) => assert_eq!(chain.steps[&"executor".into()].activity(), Some(&activity), "{case}"),
            Err(code) => assert_eq!(blocked_code(&chain, "executor").as_deref(), Some(code), "{case}"),
        }
    }
}

#[test]
fn a_reader_that_changed_the_tree_has_its_verdict_voided() {
    let restored = Restored { paths: vec!["src/a".into()], rescue_ref: "refs/sp/rescue/j".into() };
    let chain =
        after(executor_done(), walk("seconder", 1, Verdict::Passed { remark: None }, Work::Compared(Some(restored))));
    assert_eq!(blocked_code(&chain, "seconder").as_deref(), Some("reader_changed_tree"));
    assert!(chain.remarks.contains(&("reader_changed_tree".into(), Some("seconder".into()))));
}

#[test]
fn a_secondary_writer_in_production_paths_sends_the_primary_writer_back() {
    let chain = after(executor_done(), walk("seconder", 1, Verdict::Passed { remark: None }, Work::Compared(None)));
    let chain = after(chain, closed("seconder", 1));
    let chain = after(chain, walk("tests", 1, Verdict::Passed { remark: None }, made("c2", &["src/a"])));
    let reopening = chain.reopening.expect("a round is on its way");
    assert_eq!(reopening.to, "executor".into());
    assert!(reopening.findings.contains("src/a"));
}

#[test]
fn a_failing_gate_reopens_the_writer_and_all_that_is_not_open_below_it() {
    let mut chain = after(executor_done(), vec![ready(&["seconder", "obligations"]), claimed("obligations", 1)]);
    let rework = Verdict::Rework { target: ReworkTarget::PrimaryWriter, findings: "off by one".into() };
    chain = after(chain, vec![claimed("seconder", 1), settled("seconder", 1, answered(rework))]);
    chain = after(chain, vec![work("seconder", 1, Work::Compared(None))]);

    let reopening = chain.reopening.clone().expect("a round is on its way");
    assert_eq!(reopening.steps, ["executor", "seconder", "obligations"].map(StepId::from));
    let effects = outstanding(&chain);
    assert!(effects.contains(&ChainEffect::Note { step: "seconder".into(), epoch: 1, kind: NoteKind::Failed }));
    let job = chain.job_of(&"obligations".into(), 1);
    assert!(effects.contains(&ChainEffect::StopJob { step: "obligations".into(), epoch: 1, job }));
    assert!(
        !effects.iter().any(|effect| matches!(effect, ChainEffect::Reopen { .. })),
        "a running job is stopped first"
    );

    chain = after(chain, vec![settled("obligations", 1, Outcome::Stopped), ChainInput::RoundNoted { round: 2 }]);
    assert_eq!(outstanding(&chain), [ChainEffect::Reopen { round: 2 }]);
    chain = after(chain, vec![ChainInput::RoundReopened { round: 2 }]);
    assert_eq!(chain.expected_ready(), BTreeSet::from(["executor".into()]));
    assert_eq!(chain.steps[&"executor".into()].findings.as_deref(), Some("off by one"));
    assert_eq!(chain.steps[&"executor".into()].round, 2);
    assert_ne!(chain.job_of(&"executor".into(), 2), chain.job_of(&"executor".into(), 1));
}

#[test]
fn the_third_failing_gate_goes_to_people() {
    let rework = Verdict::Rework { target: ReworkTarget::PrimaryWriter, findings: "still wrong".into() };
    let mut chain = executor_done();
    for round in 2..=3 {
        chain = after(chain, walk("seconder", round - 1, rework.clone(), Work::Compared(None)));
        chain = after(chain, vec![ChainInput::RoundNoted { round }, ChainInput::RoundReopened { round }]);
        chain =
            after(chain, walk("executor", round, Verdict::Passed { remark: None }, made(&format!("c{round}"), &[])));
        chain = after(chain, closed("executor", round));
    }
    chain = after(chain, walk("seconder", 3, rework, Work::Compared(None)));
    assert_eq!(blocked_code(&chain, "seconder").as_deref(), Some("fix_loops_exhausted"));
    chain = after(chain, vec![ChainInput::BlockNoted { step: "seconder".into() }]);
    assert_eq!(chain.status, Status::Blocked);

    // The operator's note opens a round beyond the bound, from the step that it names.
    chain = after(chain, vec![ChainInput::Resumed { note: "use a loop".into(), from: Some("executor".into()) }]);
    let reopening = chain.reopening.expect("a round is on its way");
    assert_eq!((reopening.round, reopening.findings.as_str()), (4, "use a loop"));
    assert_eq!(reopening.steps, ["executor", "seconder"].map(StepId::from));
}

#[test]
fn an_activation_that_fails_is_tried_once_more_and_then_blocks() {
    let crash = || Outcome::Failed { retry: true, code: "agent_crashed".into(), detail: "exit 1".into() };
    let fatal = Outcome::Failed { retry: false, code: "unauthorized".into(), detail: "401".into() };
    let started = after(running(), vec![ready(&["executor"]), claimed("executor", 1)]);

    let once = after(started.clone(), vec![settled("executor", 1, crash())]);
    assert_eq!(outstanding(&once), [ChainEffect::Claim { step: "executor".into(), epoch: 2 }]);
    let again = after(once, vec![claimed("executor", 2)]);
    let job = again.job_of(&"executor".into(), 1);
    let last = ChainEffect::StartJob { step: "executor".into(), epoch: 2, job, last_try: true };
    assert_eq!(outstanding(&again), [last]);
    let twice = after(again, vec![settled("executor", 2, crash())]);
    assert_eq!(blocked_code(&twice, "executor").as_deref(), Some("agent_crashed"));

    let at_once = after(started, vec![settled("executor", 1, fatal)]);
    assert_eq!(blocked_code(&at_once, "executor").as_deref(), Some("unauthorized"));
}

#[test]
fn gastown_909_a_late_word_of_an_older_epoch_changes_nothing() {
    let crash = Outcome::Failed { retry: true, code: "agent_crashed".into(), detail: "exit 1".into() };
    let chain = after(running(), vec![ready(&["executor"]), claimed("executor", 1), settled("executor", 1, crash)]);
    let chain = after(chain, vec![claimed("executor", 2)]);
    for late in [
        settled("executor", 1, answered(Verdict::Passed { remark: None })),
        work("executor", 1, made("c1", &[])),
        claimed("executor", 1),
        ChainInput::EvidenceNoted { step: "executor".into(), epoch: 1 },
        ChainInput::StepClosed { step: "executor".into() },
    ] {
        assert_eq!(decide(&chain, late.clone()), [], "{late:?}");
    }
}

#[test]
fn two_writers_never_hold_the_tree_at_once() {
    let shape = Shape {
        steps: vec![
            step("first", &[], Some(Writer::Primary), Class::Step),
            step("second", &[], Some(Writer::Primary), Class::Step),
        ],
        ..wide_shape()
    };
    let log = [
        ChainEvent::Opened(Box::new(opening(shape))),
        ChainEvent::Poured,
        ChainEvent::RootHeld,
        ChainEvent::TreeReady { path: "/tree".into(), branch: "b".into(), head: "c0".into(), reused: false },
    ];
    let chain = after(fold(&log).expect("begins with Opened"), vec![ready(&["first", "second"])]);
    assert_eq!(outstanding(&chain), [ChainEffect::Claim { step: "first".into(), epoch: 1 }]);
}

#[test]
fn a_difference_between_bd_and_the_graph_is_remarked_once_and_bd_decides() {
    let chain = running();
    let events = decide(&chain, ready(&["executor", "reviewer"]));
    assert!(matches!(&events[0], ChainEvent::Remarked { code, step: Some(step), .. }
        if code == "readiness_divergence" && *step == "reviewer".into()));
    assert!(events.contains(&ChainEvent::StepClaiming { step: "reviewer".into(), epoch: 1 }));
    let lost = ChainInput::ClaimAnswered {
        step: "reviewer".into(),
        epoch: 1,
        answer: ClaimAnswer::NotReady { status: "blocked".into() },
    };
    let chain = after(events.iter().fold(chain, evolve), vec![lost]);
    let again = decide(&chain, ready(&["reviewer"]));
    assert!(!again.iter().any(|event| matches!(event, ChainEvent::Remarked { .. })), "{again:?}");
}

#[test]
fn a_step_closed_by_hand_counts_unless_it_is_a_mandatory_gate() {
    let view = |closed: &[&str]| {
        let status = |id: &StepId| if closed.contains(&id.as_str()) { "closed" } else { "open" };
        ChainInput::BeadsRead(BeadsView {
            root: Some("in_progress".into()),
            molecule: Some("open".into()),
            steps: running()
                .steps
                .keys()
                .map(|id| (id.clone(), StepView { status: status(id).into(), assignee: None }))
                .collect(),
        })
    };
    let chain = after(running(), vec![ChainInput::Started { incarnation: 2 }, view(&["executor", "seconder"])]);
    assert_eq!(chain.steps[&"executor".into()].phase, Phase::Closed);
    assert!(chain.steps[&"executor".into()].by_operator);
    assert_eq!(blocked_code(&chain, "seconder").as_deref(), Some("closed_by_hand"));

    let chain = after(chain, vec![ChainInput::BlockNoted { step: "seconder".into() }]);
    assert_eq!(chain.status, Status::Blocked);
    let chain = after(chain, vec![ChainInput::Accepted { step: "seconder".into() }]);
    assert_eq!(chain.status, Status::Running);
    let chain = after(chain, closed("seconder", 0));
    assert_eq!((&chain.steps[&"seconder".into()].phase, chain.status), (&Phase::Closed, Status::Running));
}

#[test]
fn a_contract_bead_closed_by_somebody_else_cancels_the_chain() {
    for (case, root, molecule) in [
        ("the contract bead is closed", Some("closed"), Some("open")),
        ("the molecule is closed", Some("in_progress"), Some("closed")),
        ("the molecule is gone", Some("in_progress"), None),
    ] {
        let view = BeadsView {
            root: root.map(str::to_owned),
            molecule: molecule.map(str::to_owned),
            steps: std::collections::BTreeMap::new(),
        };
        let chain = after(running(), vec![ChainInput::Started { incarnation: 2 }, ChainInput::BeadsRead(view)]);
        assert_eq!(chain.status, Status::Cancelled { why: case.into() });
        assert_eq!(outstanding(&chain), []);
    }
}

#[test]
fn beads_that_we_closed_before_the_crash_do_not_cancel_what_closed_them() {
    let closed = |bead: &str| BeadsView {
        root: Some(if bead == "both" { "closed" } else { "in_progress" }.to_owned()),
        molecule: Some("closed".to_owned()),
        steps: std::collections::BTreeMap::new(),
    };
    let again = |chain, view| after(chain, vec![ChainInput::Started { incarnation: 2 }, ChainInput::BeadsRead(view)]);
    let ready = after(executor_done(), Vec::new());
    let ready = evolve(evolve(ready, &ChainEvent::ChainReady { tip: "c1".into() }), &ChainEvent::PublishRequested);
    let published = again(ready, closed("both"));
    assert_eq!((published.status.clone(), outstanding(&published)), (Status::Ready, vec![ChainEffect::ClosePublished]));

    let given_up = after(running(), vec![ChainInput::AbandonAsked { reason: "no".into() }]);
    assert_eq!(outstanding(&again(given_up, closed("molecule"))), [ChainEffect::FreeRoot]);
}

#[test]
fn a_stop_ends_running_jobs_lets_short_work_finish_and_is_undone_by_the_next_start() {
    let chain = after(executor_done(), vec![ready(&["seconder", "obligations"]), claimed("seconder", 1)]);
    let chain = after(chain, vec![claimed("obligations", 1), ChainInput::StopAsked { why: "Ctrl-C".into() }]);
    let stops = outstanding(&chain);
    assert!(stops.iter().all(|effect| matches!(effect, ChainEffect::StopJob { .. })) && stops.len() == 2, "{stops:?}");
    let chain = after(chain, vec![settled("seconder", 1, Outcome::Stopped)]);
    // The other one had its answer out already: its work is settled before the chain comes to rest.
    let chain = after(chain, vec![settled("obligations", 1, answered(Verdict::Passed { remark: None }))]);
    assert_eq!(chain.status, Status::Running);
    let chain = after(chain, vec![work("obligations", 1, Work::Compared(None))]);
    let chain = after(chain, closed("obligations", 1));
    assert_eq!(chain.status, Status::Stopped { why: "Ctrl-C".into() });
    assert_eq!(outstanding(&chain), []);

    let chain = after(chain, vec![ChainInput::Started { incarnation: 2 }]);
    assert_eq!(outstanding(&chain), [ChainEffect::Reread]);
}

#[test]
fn a_worktree_that_may_be_gone_is_found_again_before_anything_runs_in_it() {
    let view = || {
        let open = |id: StepId| (id, StepView { status: "open".into(), assignee: None });
        ChainInput::BeadsRead(BeadsView {
            root: Some("in_progress".into()),
            molecule: Some("open".into()),
            steps: running().steps.into_keys().map(open).collect(),
        })
    };
    let found = |head: &str| ChainInput::TreeReady {
        path: "/tree".into(),
        branch: "feature/x".into(),
        head: head.into(),
        reused: false,
    };
    let chain = after(running(), vec![ready(&["executor"]), claimed("executor", 1)]);
    let chain = after(chain, vec![ChainInput::Started { incarnation: 2 }, view()]);
    assert_eq!(outstanding(&chain), [ChainEffect::PrepareTree]);
    let chain = after(chain, vec![found("c0")]);
    assert_eq!(outstanding(&chain), [ChainEffect::Claim { step: "executor".into(), epoch: 2 }]);

    // Once merged, nobody needs the tree: it is not made again to close beads.
    let mut done = running();
    done.status = Status::Ready;
    let done = after(done, vec![ChainInput::Started { incarnation: 2 }, ChainInput::PublishAsked, view()]);
    assert_eq!(outstanding(&done), [ChainEffect::ClosePublished]);
}

#[test]
fn an_abandoned_chain_frees_the_contract_bead_once_nothing_runs() {
    let chain = after(running(), vec![ready(&["executor"]), claimed("executor", 1)]);
    let chain = after(chain, vec![ChainInput::AbandonAsked { reason: "not wanted".into() }]);
    assert!(matches!(outstanding(&chain)[..], [ChainEffect::StopJob { .. }]));
    let chain = after(chain, vec![settled("executor", 1, Outcome::Stopped)]);
    assert_eq!(outstanding(&chain), [ChainEffect::FreeRoot]);
    let chain = after(chain, vec![ChainInput::Abandoned]);
    assert_eq!((&chain.status, outstanding(&chain)), (&Status::Abandoned, vec![]));
}

#[test]
fn events_survive_storage_unchanged() {
    let mut run = Run::new(7, 3);
    run.run_to_the_end();
    for event in &run.log {
        let text = serde_json::to_string(event).expect("events are plain data");
        assert_eq!(serde_json::from_str::<ChainEvent>(&text).expect(&text), *event);
    }
}

#[test]
fn a_crash_at_every_single_event_loses_and_doubles_nothing() {
    let mut calm = Run::new(11, 0);
    let end = calm.run_to_the_end();
    calm.check(&end).expect("the calm run holds");
    for crash in 1..calm.log.len() {
        let mut run = Run::new(11, 0);
        run.crash_after(crash);
        let end = run.run_to_the_end();
        run.check(&end).unwrap_or_else(|wrong| panic!("crash after event {crash}: {wrong}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_fails_and_wherever_it_crashes_nothing_is_lost_or_done_twice(seed in any::<u64>(), crashes in 0..8u32) {
        let mut run = Run::new(seed, crashes);
        let end = run.run_to_the_end();
        prop_assert!(run.check(&end).is_ok(), "seed {seed}: {}", run.check(&end).unwrap_err());
    }

    #[test]
    fn a_chain_whose_log_is_lost_goes_on_from_what_bd_knows(seed in any::<u64>(), crashes in 0..4u32, at in 2..60usize) {
        let mut run = Run::new(seed, crashes);
        run.lose_all_after(at);
        let end = run.run_to_the_end();
        prop_assert!(run.check(&end).is_ok(), "seed {seed} at {at}: {}", run.check(&end).unwrap_err());
    }
}

/// A chain whose reviewer waits for people, with executor and tests done, taken over by another process.
fn taken_over_with_a_blocked_reviewer() -> ChainState {
    let mut chain = executor_done();
    for (step, epoch, work) in [
        ("seconder", 1, Work::Compared(None)),
        ("obligations", 1, Work::Compared(None)),
        ("tests", 1, made("c2", &[])),
        ("runner", 1, Work::Compared(None)),
    ] {
        chain = after(chain, walk(step, epoch, Verdict::Passed { remark: None }, work));
        chain = after(chain, closed(step, epoch));
    }
    let reason = Verdict::Blocked { reason: BlockReason::NoVerdict, detail: "prose".into() };
    chain = after(chain, walk("reviewer", 1, reason, Work::Compared(None)));
    chain = after(chain, vec![ChainInput::BlockNoted { step: "reviewer".into() }]);
    assert_eq!(chain.status, Status::Blocked);
    let steps = chain.steps.iter().map(|(step, state)| {
        let status = if state.phase == Phase::Closed { "closed" } else { "blocked" };
        (step.clone(), StepView { status: status.into(), assignee: None })
    });
    let view = BeadsView { root: Some("in_progress".into()), molecule: Some("open".into()), steps: steps.collect() };
    after(chain, vec![ChainInput::Started { incarnation: 2 }, ChainInput::BeadsRead(view)])
}

fn tree(head: &str) -> ChainInput {
    ChainInput::TreeReady { path: "/tree".into(), branch: "feature/x".into(), head: head.into(), reused: false }
}

#[test]
fn what_people_commit_on_the_branch_is_judged_by_every_gate_that_has_to() {
    let still = after(taken_over_with_a_blocked_reviewer(), vec![tree("c2")]);
    assert_eq!(still.upstream_commit(&"reviewer".into()), "c2");
    assert!(!still.remarks.iter().any(|(code, _)| code == "branch_moved"));

    let moved = after(taken_over_with_a_blocked_reviewer(), vec![tree("c3")]);
    assert!(moved.remarks.iter().any(|(code, _)| code == "branch_moved"));
    assert_eq!(moved.upstream_commit(&"reviewer".into()), "c3", "the reviewer judges what is there");
    assert_eq!(moved.stale_gate(), Some("runner".into()), "the runner ran the tests of another commit");

    let accepted = after(moved, vec![ChainInput::Accepted { step: "reviewer".into() }]);
    let chain = after(accepted, closed("reviewer", 1));
    assert_eq!(chain.status, Status::Running, "not ready: the runner has to judge it again");
    let reopened = chain.reopening.as_ref().expect("a round for the stale gate");
    assert_eq!((reopened.to.as_str(), reopened.gate.as_ref()), ("runner", None));
}

/// All six steps passed on c2, ready.
fn ready_chain() -> ChainState {
    let mut chain = taken_over_with_a_blocked_reviewer();
    chain = after(chain, vec![tree("c2"), ChainInput::Accepted { step: "reviewer".into() }]);
    let chain = after(chain, closed("reviewer", 1));
    assert_eq!(chain.status, Status::Ready);
    chain
}

#[test]
fn a_ready_chain_whose_branch_is_moved_is_judged_again_before_it_is_published() {
    let same = after(ready_chain(), vec![ChainInput::BranchMoved { head: "c2".into() }]);
    assert_eq!(same, ready_chain(), "nobody moved it");
    let moved = after(ready_chain(), vec![ChainInput::BranchMoved { head: "c3".into() }]);
    assert_eq!(moved.status, Status::Running);
    let reopened = moved.reopening.as_ref().expect("a round");
    assert_eq!(reopened.to.as_str(), "runner", "the first gate that judged another commit");
    assert!(reopened.steps.contains(&"reviewer".into()), "who passed it by hand, passed c2");
    assert!(!reopened.steps.contains(&"seconder".into()), "judged the executor's commit, which is still c1");
    let once = after(moved, vec![tree("c3"), tree("c3"), ChainInput::StepClosed { step: "runner".into() }]);
    assert_eq!(once.round, 2, "one round, however often something comes in before it is opened");
}

#[test]
fn a_round_that_the_operator_asks_for_is_about_what_is_on_the_branch() {
    let asked = ChainInput::Resumed { note: "look again".into(), from: Some("reviewer".into()) };
    let chain = after(ready_chain(), vec![asked, tree("c3")]);
    assert_eq!(chain.upstream_commit(&"reviewer".into()), "c3");
}

#[test]
fn a_commit_raises_the_scrutiny_that_the_scope_did_not_call_for() {
    let settled = |paths: &[&str]| {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        let made = Work::Committed(Commit::Made { head: "c1".into(), paths, refused: vec![] });
        after(running(), walk("executor", 1, Verdict::Passed { remark: None }, made)).scrutiny
    };
    let usual = settled(&["src/pager.sh"]);
    assert_eq!((usual.stated.as_str(), usual.effective.as_str()), ("medium", "medium"));
    let raised = settled(&["src/pager.sh", "src/auth/login.sh"]);
    assert_eq!((raised.stated.as_str(), raised.effective.as_str()), ("medium", "high"));
}

#[test]
fn a_writer_that_is_passed_by_hand_stands_for_what_people_committed() {
    let blocked = Verdict::Blocked { reason: BlockReason::Incomplete, detail: "gave up".into() };
    let chain = after(running(), walk("executor", 1, blocked, Work::Committed(Commit::Nothing { refused: vec![] })));
    let chain = after(chain, vec![ChainInput::BlockNoted { step: "executor".into() }]);
    let view = BeadsView { root: Some("open".into()), molecule: Some("open".into()), steps: BTreeMap::new() };
    let inputs = vec![
        ChainInput::Started { incarnation: 2 },
        ChainInput::Accepted { step: "executor".into() },
        ChainInput::BeadsRead(view),
        tree("c1"),
    ];
    let chain = after(after(chain, inputs), closed("executor", 1));
    assert_eq!(chain.upstream_commit(&"seconder".into()), "c1");
}

fn record(status: &str, assignee: Option<&str>, notes: &[Note]) -> StepRecord {
    let notes = notes.iter().map(|note| format!("{note}\n")).collect();
    StepRecord { status: status.into(), assignee: assignee.map(str::to_owned), notes }
}

#[test]
fn a_closed_step_counts_only_where_our_own_note_shows_that_it_passed() {
    let shape = wide_shape();
    let chain = opening(shape.clone()).chain;
    let note = |step: &str, round: u32, commit: &str, word: Word| Note {
        step: step.into(),
        word,
        round,
        commit: Some(commit.into()),
        text: "fine".into(),
    };
    let passed = |step: &str, round: u32, commit: &str| {
        note(step, round, commit, Word::Passed(job_id(&chain, &step.into(), round)))
    };
    let failed = |step: &str, text: &str| Note {
        text: text.into(),
        ..note(step, 1, "c1", Word::Failed(job_id(&chain, &step.into(), 1)))
    };
    let by_job = Standing::Closed { by: ClosedBy::Job };
    let by_hand = Standing::Closed { by: ClosedBy::Operator };
    let stands = |executor: StepRecord, seconder: StepRecord| {
        let records = BTreeMap::from([("executor".into(), executor), ("seconder".into(), seconder)]);
        let ChainEvent::Recovered { steps, .. } = recovered(&chain, &shape, &records) else { panic!("another event") };
        steps
    };
    let done = || record("closed", Some("sp/proj-mol-0a1b2c3d/executor/3"), &[passed("executor", 1, "c1")]);

    for (case, seconder, wanted) in [
        ("proven", record("closed", None, &[passed("seconder", 1, "c1")]), by_job.clone()),
        ("closed by somebody", record("closed", None, &[]), Standing::Pending),
        ("another commit", record("closed", None, &[passed("seconder", 1, "c0")]), Standing::Pending),
        (
            "another job",
            record("closed", None, &[note("seconder", 1, "c1", Word::Passed(JobId::from("deadbeef")))]),
            Standing::Pending,
        ),
        (
            "failed last",
            record("closed", None, &[passed("seconder", 1, "c1"), failed("seconder", "")]),
            Standing::Pending,
        ),
        ("accepted", record("closed", None, &[note("seconder", 1, "c1", Word::Accepted(None))]), by_hand),
        ("held", record("in_progress", Some("sp/proj-mol-0a1b2c3d/seconder/2"), &[]), Standing::Held),
        (
            "noted",
            record("in_progress", Some("sp/proj-mol-0a1b2c3d/seconder/2"), &[passed("seconder", 1, "c1")]),
            Standing::Closing,
        ),
        ("held by a stranger", record("in_progress", Some("anna"), &[]), Standing::Pending),
    ] {
        let steps = stands(done(), seconder);
        assert_eq!(steps[0].stands, by_job, "{case}");
        assert_eq!((steps[0].epoch, steps[0].commit.as_deref()), (3, Some("c1")), "{case}");
        assert_eq!(steps[1].stands, wanted, "{case}");
    }

    let sent_back = record("closed", None, &[failed("seconder", "no\nopens round 2 at executor\nfix it\nnow")]);
    let again = record("open", None, &[passed("executor", 1, "c1")]);
    let steps = stands(again, sent_back);
    assert_eq!((&steps[0].stands, steps[0].round), (&Standing::Pending, 2));
    assert_eq!(steps[0].findings.as_deref(), Some("fix it\nnow"));
    assert_eq!(steps[0].sent_back_by, Some("seconder".into()));

    let why = Note { commit: None, ..note("executor", 1, "", Word::Blocked("empty_diff".into())) };
    let steps = stands(record("blocked", None, &[why]), StepRecord::default());
    let blocked = Blocked { code: "empty_diff".into(), detail: "fine".into() };
    assert_eq!(steps[0].stands, Standing::Blocked { why: blocked });
}

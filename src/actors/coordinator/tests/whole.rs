//! A whole system on stubs of all ports.

use std::sync::atomic::Ordering;

use tokio::time::sleep;

use super::*;
use crate::actors::doubles::{
    Act, EXECUTOR_DONE, REVIEWER_PASSES, Script, StubAgent, System, notices, reviewer_sends_back, writes,
};
use crate::messages::Operator;
use crate::ports::Launch;

/// Executors change something, reviewers let pass.
fn good() -> Arc<StubAgent> {
    StubAgent::chooses(|launch, _| Ok(good_script(launch)))
}

fn good_script(launch: &Launch) -> Script {
    let text = if writes(launch) { EXECUTOR_DONE } else { REVIEWER_PASSES };
    Script::turns([Act::works(Duration::from_secs(20), text)])
}

/// The names of the events among notices.
fn names(seen: &[NoticeKind]) -> Vec<String> {
    let name = |kind: &NoticeKind| match kind {
        NoticeKind::Event { event, .. } => {
            Some(serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned())
        }
        NoticeKind::Waiting { .. } | NoticeKind::AtRest { .. } | NoticeKind::Failed { .. } => None,
    };
    seen.iter().filter_map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_chain_runs_from_its_pour_to_ready_to_merge() {
    let system = System::start(good()).await;
    let mut watch = system.watchers.subscribe();
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    system.run(args).await;
    let seen = notices(&mut watch, "proj-mol-1").await;
    assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::ReadyToMerge }));
    let step = [
        "step_claiming",
        "step_dispatched",
        "job_answered",
        "work_settled",
        "step_passed",
        "evidence_noted",
        "step_closed",
    ];
    let mut expected = vec!["poured", "root_held", "tree_ready"];
    expected.extend(step);
    expected.extend(step);
    expected.push("chain_ready");
    assert_eq!(names(&seen), expected);
    let numbers: Vec<u64> = seen
        .iter()
        .filter_map(|kind| if let NoticeKind::Event { seq, .. } = kind { Some(*seq) } else { None })
        .collect();
    assert_eq!(numbers, (2..=19).collect::<Vec<u64>>(), "after the opening, without a hole");

    let launches: Vec<Launch> = system.agent.processes().iter().map(|process| process.launch.clone()).collect();
    assert_eq!(launches.iter().map(writes).collect::<Vec<_>>(), [true, false]);
    assert!(launches.iter().all(|launch| launch.boundary.as_ref() == Some(&launch.cwd)), "readers are confined too");
    assert_eq!(system.workspace.commits.load(Ordering::Relaxed), 1);
    for step in ["executor", "reviewer"] {
        let bead = system.tracker.bead(&format!("proj-mol-1-{step}"));
        assert_eq!(bead.status, "closed", "{step}");
        assert_eq!(bead.notes.matches("[sp]").count(), 1, "{step}: {}", bead.notes);
    }
    let owner = system.site.reader().owner(&Resource::Chain("proj-mol-1".into())).unwrap().expect("it was owned");
    assert_eq!(owner.holder, None, "a chain at rest is free");
}

#[tokio::test(start_paused = true)]
async fn a_gate_sends_the_writer_back_once_and_the_chain_gets_through() {
    let agent = StubAgent::chooses(|launch, number| {
        let text = match (writes(launch), number) {
            (true, _) => EXECUTOR_DONE.to_owned(),
            (false, 1) => reviewer_sends_back("off by one"),
            (false, _) => REVIEWER_PASSES.to_owned(),
        };
        Ok(Script::says([text.as_str()]))
    });
    let system = System::start(agent).await;
    let mut watch = system.watchers.subscribe();
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    system.run(args).await;
    let seen = notices(&mut watch, "proj-mol-1").await;
    assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::ReadyToMerge }));
    let processes = system.agent.processes();
    assert_eq!(processes.len(), 4);
    assert!(processes[2].prompts()[0].contains("off by one"), "the writer is told what to mend");
    assert_eq!(system.workspace.commits.load(Ordering::Relaxed), 2);
    let names = names(&seen);
    let round: Vec<&str> = names.iter().map(String::as_str).filter(|name| name.starts_with("round_")).collect();
    assert_eq!(round, ["round_opened", "round_noted", "round_reopened"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_once_is_tried_again() {
    let agent = StubAgent::chooses(|launch, number| {
        Ok(if number == 0 { Script::turns([vec![Act::Exit(1)]]) } else { good_script(launch) })
    });
    let system = System::start(agent).await;
    let mut watch = system.watchers.subscribe();
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    system.run(args).await;
    let seen = notices(&mut watch, "proj-mol-1").await;
    assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::ReadyToMerge }));
    assert!(names(&seen).contains(&"job_failed".to_owned()));
    assert_eq!(system.agent.processes().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_twice_waits_for_people() {
    let system = System::start(StubAgent::plays([Script::turns([vec![Act::Exit(1)]])])).await;
    let mut watch = system.watchers.subscribe();
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    system.run(args).await;
    let seen = notices(&mut watch, "proj-mol-1").await;
    assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::Blocked }));
    assert_eq!(system.agent.processes().len(), 2);
    let bead = system.tracker.bead("proj-mol-1-executor");
    assert_eq!(bead.status, "blocked");
    assert!(bead.notes.contains("agent_exited"), "{}", bead.notes);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_chain_leaves_no_process_and_goes_on_where_it_stood() {
    let system = System::start(good()).await;
    let mut watch = system.watchers.subscribe();
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    let coordinator = system.run(args.clone()).await;
    sleep(Duration::from_secs(10)).await;
    coordinator.cast(CoordinatorMsg::Operator(Operator::Stop { why: "Ctrl-C".into() })).unwrap();
    let seen = notices(&mut watch, "proj-mol-1").await;
    assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::Stopped }));
    assert!(system.agent.processes().iter().all(|process| !process.is_alive()));

    let args = system.take_over(&args, 1).await;
    system.run(args).await;
    let seen = notices(&mut watch, "proj-mol-1").await;
    assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::ReadyToMerge }));
    assert_eq!(system.workspace.commits.load(Ordering::Relaxed), 1);
    assert_eq!(system.tracker.bead("proj-mol-1-executor").notes.matches("[sp]").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn gastown_4698_a_step_that_was_closed_by_hand_meanwhile_is_not_worked_again() {
    let system = System::start(good()).await;
    let mut watch = system.watchers.subscribe();
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    let coordinator = system.run(args.clone()).await;
    sleep(Duration::from_secs(10)).await;
    coordinator.cast(CoordinatorMsg::Operator(Operator::Stop { why: "Ctrl-C".into() })).unwrap();
    notices(&mut watch, "proj-mol-1").await;
    system.tracker.meddle("proj-mol-1-executor", |bead| bead.status = "closed".into());

    let args = system.take_over(&args, 1).await;
    system.run(args).await;
    notices(&mut watch, "proj-mol-1").await;
    let writers = system.agent.processes().iter().filter(|process| writes(&process.launch)).count();
    assert_eq!(writers, 1, "only the one before the stop");
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_is_given_up_frees_its_contract_bead() {
    let system = System::start(good()).await;
    let mut watch = system.watchers.subscribe();
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    let coordinator = system.run(args).await;
    sleep(Duration::from_secs(10)).await;
    coordinator.cast(CoordinatorMsg::Operator(Operator::Abandon { reason: "wrong idea".into() })).unwrap();
    let seen = notices(&mut watch, "proj-mol-1").await;
    assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::Abandoned }));
    let (root, molecule) = (system.tracker.bead("proj-x"), system.tracker.bead("proj-mol-1"));
    assert_eq!((root.status.as_str(), root.assignee, molecule.status.as_str()), ("open", None, "closed"));
    let jobs = system.site.reader().jobs(&JobFilter::default()).unwrap();
    assert!(jobs.iter().all(|job| job.status == JobStatus::Cancelled), "{jobs:?}");
}

#[tokio::test(start_paused = true)]
async fn one_call_of_bd_answers_all_chains_that_want_to_know() {
    let system = System::start(good()).await;
    system.tracker.add_root("proj-y");
    let mut watch = system.watchers.subscribe();
    let first = system.open("proj-mol-1", "proj-x", &[]).await;
    let second = system.open("proj-mol-2", "proj-y", &[]).await;
    system.tracker.dawdles(Duration::from_secs(1));
    system.run(first).await;
    system.run(second).await;
    let mut other = system.watchers.subscribe();
    let (one, two) = tokio::join!(notices(&mut watch, "proj-mol-1"), notices(&mut other, "proj-mol-2"));
    for seen in [one, two] {
        assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::ReadyToMerge }));
    }
    let calls = system.tracker.calls("ready").len();
    assert!(calls <= 12, "{calls} calls");
}

#[tokio::test(start_paused = true)]
async fn twenty_chains_run_side_by_side_and_none_takes_anothers_step() {
    let system = System::start(good()).await;
    let mut runs = Vec::new();
    for number in 0..20 {
        let (chain, bead) = (format!("proj-mol-{number}"), format!("proj-{number}"));
        system.tracker.add_root(&bead);
        let args = system.open(&chain, &bead, &[]).await;
        let mut watch = system.watchers.subscribe();
        runs.push(tokio::spawn(async move { notices(&mut watch, &chain).await }));
        system.run(args).await;
    }
    for run in runs {
        let seen = run.await.unwrap();
        assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::ReadyToMerge }));
    }
    assert_eq!(system.agent.processes().len(), 40);
    assert_eq!(system.workspace.commits.load(Ordering::Relaxed), 20);
    assert_eq!(system.tracker.calls("claim").len(), 40);
}

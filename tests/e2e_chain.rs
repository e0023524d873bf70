//! Whole chains on real git, bd and pi, told as stories; the model is rehearsed.

#[expect(dead_code, unused_imports, reason = "every test crate uses a part of it")]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;
use specialists::{BeadId, EnvelopeClass, EnvelopeFacts, JobId, Position, Scrutiny, StepStatus, parse_envelope};
use support::*;

/// A repository with a bead for its bug.
fn begin() -> (Repo, String) {
    let repo = Repo::new();
    let bead = repo.bead("The last page is lost").contract(PAGER).create();
    (repo, bead)
}

fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/rehearsals").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn code_standard_runs_its_six_steps_and_is_ready_to_merge() {
    let (repo, bead) = begin();
    let script = shipped("code-standard-demo.json");
    let run = repo.sp(["chain", "run", CODE_STANDARD, "--bead", &bead, "--rehearse", &script]);
    insta::assert_snapshot!(run.success(), @r#"
[CHAIN] ready to merge: 6 of 6 steps passed

  ✓ executor             passed [TIME]  1 round(s)     16k in    460 out     $0.01  [JOB executor.1]  status success: page_count rounds up now, so a last page that is not full is cou
  ✓ seconder             passed [TIME]  1 round(s)    5.7k in    130 out    <$0.01  [JOB seconder.1]  overall_verdict PASS
  ✓ test-engineer        passed [TIME]  1 round(s)     14k in    575 out     $0.01  [JOB test-engineer.1]  status tests_written: A regression test for the last page: short, full, of one l
  ✓ test-runner          passed [TIME]  1 round(s)    8.1k in    145 out    <$0.01  [JOB test-runner.1]  status passed
  ✓ obligations-scanner  passed [TIME]  1 round(s)    5.8k in    100 out    <$0.01  [JOB obligations-scanner.1]  verdict CLEAN
  ✓ reviewer             passed [TIME]  1 round(s)    7.7k in    270 out     $0.01  [JOB reviewer.1]  verdict PASS: The cause is fixed, not the symptom.

  bead      [BEAD] by code-standard
  contract  bug: problem, scope, non-goals, validation, acceptance
  scrutiny  medium
  base      main [COMMIT]
  branch    feature/[BEAD]-executor [COMMIT]
  worktree  [REPO]/.worktrees/[BEAD]/[BEAD]-executor
  change    2 file(s), +16 −1 lines
  spent [TIME], 1 round(s), 57k tokens in, 1.6k out, $0.03

next:
  git diff [COMMIT]...feature/[BEAD]-executor
  git merge --no-ff feature/[BEAD]-executor
  sp chain resume [CHAIN]   # after the merge: closes [CHAIN] and [BEAD]
"#);
    repo.must_equal(&Expected::code_standard(&bead).ready());
    let shown = repo.sp(["chain", "show", &bead, "--json"]).json();
    let molecule = &repo.bd_json(["list", "--all", "-n", "0", "-t", "molecule"])[0];
    assert_eq!((&shown["chain_id"], &shown["root_bead_id"]), (&molecule["id"], &json!(bead)), "{molecule:#}");
    assert_eq!(molecule["metadata"]["sp_bead"], json!(bead), "and so the bead names the molecule and it the bead");
    assert_eq!(shown["scrutiny"], json!({ "stated": "medium", "effective": "medium" }));
    let contract = &shown["contract"];
    assert_eq!((&contract["kind"], &contract["missing"]), (&json!("bug"), &json!([])), "{contract:#}");
    assert_eq!(contract["acceptance"], json!(["Every line of a file is on one of its pages."]));
    for part in ["problem", "scope", "non_goals", "dependencies", "deliverables", "validation", "rollback"] {
        assert!(contract.get(part).is_some(), "{part} is not shown: {contract:#}");
    }
    every_step_was_told_where_it_stands(&repo, &bead);
}

/// Looks at what pi was given, by its own session files.
fn every_step_was_told_where_it_stands(repo: &Repo, bead: &str) {
    let steps = ["executor", "seconder", "test-engineer", "test-runner", "obligations-scanner", "reviewer"];
    let chain = repo.chain();
    for (at, step) in steps.iter().enumerate() {
        let told = task(repo, &repo.job(step, 1));
        assert!(told.contains("Every line of a file is on one of its pages."), "{step} has no contract:\n{told}");
        let facts = envelope_in(&told);
        let of = |other: &str| (other.to_owned(), BeadId::new(format!("{chain}-{other}")));
        assert_eq!((facts.chain.as_str(), facts.root_bead.as_str()), (chain.as_str(), bead), "{step}");
        assert_eq!((facts.template.as_str(), &facts.role), (CODE_STANDARD, &of(step).0), "{step}");
        assert_eq!(facts.step_bead, of(step).1);
        let class =
            if ["executor", "test-engineer"].contains(step) { EnvelopeClass::Step } else { EnvelopeClass::Gate };
        let position = [Position::First, Position::Middle, Position::Final][usize::from(at > 0) + usize::from(at == 5)];
        assert_eq!((facts.class, facts.position), (class, position), "{step}");
        assert_eq!((facts.stated, facts.effective), (Scrutiny::Medium, Scrutiny::Medium), "{step}");
        let worktree = repo.root().join(format!(".worktrees/{bead}/{bead}-executor"));
        assert_eq!(Path::new(&facts.worktree), worktree, "{step}");

        let above: Vec<_> =
            facts.upstream.iter().map(|s| (s.role.clone(), s.bead.clone(), s.job.clone(), s.status)).collect();
        let ran =
            |other: &&str| (of(other).0, of(other).1, Some(JobId::new(repo.job(other, 1))), StepStatus::Completed);
        assert_eq!(above, steps[..at].iter().map(ran).collect::<Vec<_>>(), "{step}");
        let below: Vec<_> = facts.pending.iter().map(|s| (s.role.clone(), s.bead.clone(), s.status)).collect();
        let waits = |other: &&str| (of(other).0, of(other).1, StepStatus::Pending);
        assert_eq!(below, steps[at + 1..].iter().map(waits).collect::<Vec<_>>(), "{step}");
    }
}

/// The one envelope of a prompt, by the rules of its schema.
fn envelope_in(told: &str) -> EnvelopeFacts {
    let (_, rest) = told.split_once("<chain-context ").unwrap_or_else(|| panic!("no envelope:\n{told}"));
    assert!(!rest.contains("<chain-context "), "two envelopes:\n{told}");
    let (inner, _) = rest.split_once("</chain-context>").unwrap_or_else(|| panic!("it has no end:\n{told}"));
    parse_envelope(&format!("<chain-context {inner}</chain-context>"))
        .unwrap_or_else(|error| panic!("{error}:\n{told}"))
}

/// The first thing that the user says in a session.
fn task(repo: &Repo, job: &str) -> String {
    let session = fs::read_to_string(repo.job_dir(job).join("session.jsonl")).unwrap();
    let messages = session.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut said = messages.map(|entry| entry["message"].clone()).filter(|message| message["role"] == "user");
    said.next().unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_writer_writes_nowhere_but_in_its_worktree() {
    let (repo, bead) = begin();
    let outside = repo.base().join("outside.txt");
    fs::create_dir(repo.base().join("elsewhere")).unwrap();
    let script = repo
        .rehearse()
        .round(
            "executor",
            [
                writes("../../../outside.txt", "escaped"),
                writes(outside.to_str().unwrap(), "escaped"),
                bash(&format!("ln -s '{}' link", repo.base().join("elsewhere").display())),
                writes("link/outside.txt", "escaped"),
                edits(repo.root().join("README.md").to_str().unwrap(), "# pager", "# escaped"),
                bash("rm link"),
                fixes(),
                says(done()),
            ],
        )
        .round("reviewer", [says(pass())])
        .write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).success();
    repo.must_equal(&Expected::pair(&bead).ready());
    for path in [repo.root().join("outside.txt"), outside, repo.base().join("elsewhere/outside.txt")] {
        assert!(!path.exists(), "{} was written from within the worktree", path.display());
    }
    let session = fs::read_to_string(repo.job_dir(&repo.job("executor", 1)).join("session.jsonl")).unwrap();
    let refused =
        session.lines().filter(|line| line.contains("\"role\":\"toolResult\"") && line.contains("\"isError\":true"));
    assert_eq!(refused.count(), 4, "each attempt is an error that the agent can read:\n{session}");
}

#[test]
fn a_gate_that_fails_opens_a_round_in_the_writers_own_session() {
    let (repo, bead) = begin();
    let script = shipped("fix-loop.json");
    let run = repo.sp(["chain", "run", CODE_STANDARD, "--bead", &bead, "--rehearse", &script, "--json"]);
    run.success();
    assert_eq!(run.json()["rounds"], 2, "{run}");
    repo.must_equal(&Expected::code_standard(&bead).passes("executor").sends_back("seconder", "executor").ready());
    let session = fs::read_to_string(repo.job_dir(&repo.job("executor", 2)).join("session.jsonl")).unwrap();
    for round in [1, 2] {
        let mark = format!("(sp job {})", repo.job("executor", round));
        assert!(session.contains(&mark), "the session of round 2 does not hold round {round}");
    }
}

#[test]
fn a_gate_without_a_verdict_is_asked_once_more() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("reviewer", [says_text("Looks good to me."), says(pass())])
        .write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).success();
    repo.must_equal(&Expected::pair(&bead).passes("executor").passes_after("reviewer", 2).ready());
}

#[test]
fn a_gate_that_twice_gives_no_verdict_blocks_the_chain() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("reviewer", [says_text("Looks good to me."), says_text("As I said.")])
        .write();
    let run = repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]);
    run.code(7);
    assert!(run.stderr.contains("it waits for people at reviewer (no_verdict)"), "{run}");
    repo.must_equal(&Expected::pair(&bead).passes("executor").blocks_with("reviewer", "no_verdict", "error", 2, true));
}

#[test]
fn an_executor_that_changed_nothing_is_not_believed() {
    let (repo, bead) = begin();
    let script = repo.rehearse().round("executor", [says(done())]).round("reviewer", [says(pass())]).write();
    let run = repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]);
    run.code(7);
    assert!(run.stderr.contains("executor (empty_diff)"), "{run}");
    repo.must_equal(&Expected::pair(&bead).blocks("executor", "empty_diff"));
}

#[test]
fn a_test_runner_is_held_to_what_was_seen_to_run() {
    // It ran the tests of an unmended pager, saw them fail, and says that they pass.
    let lies = || says(tests_passed());
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [writes("src/size.sh", "# size > 0\n"), says(done())])
        .round("test-runner", [bash("./test.sh"), lies(), lies()])
        .write();
    let run = repo.sp(["chain", "run", RUN, "--bead", &bead, "--rehearse", &script]);
    run.code(7);
    assert!(run.stdout.contains("test-runner is blocked, contradiction"), "{run}");
    let session = fs::read_to_string(repo.job_dir(&repo.job("test-runner", 1)).join("session.jsonl")).unwrap();
    assert!(session.contains("its last run ended in an error"), "it was not told what was seen");
}

#[test]
fn a_test_runner_that_ran_nothing_is_told_so_and_may_still_run_it() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("test-runner", [says(tests_passed()), bash("./test.sh"), says(tests_passed())])
        .write();
    repo.sp(["chain", "run", RUN, "--bead", &bead, "--rehearse", &script]).success();
    let session = fs::read_to_string(repo.job_dir(&repo.job("test-runner", 1)).join("session.jsonl")).unwrap();
    assert!(session.contains("no command was seen to run"), "it was not told what was missing");
}

#[test]
fn a_test_engineer_that_left_no_test_is_not_believed() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("test-engineer", [says(tests_written())])
        .round("reviewer", [says(pass())])
        .write();
    let run = repo.sp(["chain", "run", TESTED, "--bead", &bead, "--rehearse", &script]);
    run.code(7);
    assert!(run.stdout.contains("test-engineer is blocked, empty_diff"), "{run}");
}

#[test]
fn a_test_engineer_that_needs_production_code_sends_the_work_back() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("executor", [writes("src/extra.sh", "# seam\n"), says(done())])
        // The boundary guards edit and write; a shell is held by what became of the tree.
        .round("test-engineer", [bash("echo '# seam' >>src/pager.sh"), says(tests_written())])
        .round("test-engineer", [writes("test/last_page_test.sh", "exit 0\n"), says(tests_written())])
        .round("reviewer", [says(pass())])
        .write();
    repo.sp(["chain", "run", TESTED, "--bead", &bead, "--rehearse", &script]).success();
    let model = Expected::tested(&bead).passes("executor").oversteps("test-engineer", "executor");
    repo.must_equal(&model.ready());
    let rescued = repo.git(["show", &format!("refs/sp/rescue/{}:src/pager.sh", repo.job("test-engineer", 1))]);
    assert!(rescued.ends_with("# seam"), "the change that was undone is not in the rescue ref: {rescued}");
}

#[test]
fn a_reader_that_changes_a_tracked_file_is_not_heard() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("test-runner", [bash("echo '# mended' >>src/pager.sh; ./test.sh"), says(tests_passed())])
        .write();
    let run = repo.sp(["chain", "run", RUN, "--bead", &bead, "--rehearse", &script]);
    run.code(7);
    assert!(run.stderr.contains("test-runner (reader_changed_tree)"), "{run}");
    repo.must_equal(&Expected::run(&bead).passes("executor").voided("test-runner"));
    let rescued = repo.git(["show", &format!("refs/sp/rescue/{}:src/pager.sh", repo.job("test-runner", 1))]);
    assert!(rescued.ends_with("# mended"), "the change that was undone is not in the rescue ref: {rescued}");
}

#[test]
fn a_hook_that_refuses_blocks_with_its_words_and_a_note_goes_on_once_it_is_content() {
    let (repo, bead) = begin();
    let hook = repo.root().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\necho 'no tabs here' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("executor", [says(done())])
        .round("reviewer", [says(pass())])
        .write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).code(7);
    let blocked = Expected::pair(&bead).blocks("executor", "hook_refused");
    repo.must_equal(&blocked.clone().with_changes(&["M src/pager.sh"]));
    let notes = repo.show(&format!("{}-executor", repo.chain()))["notes"].to_string();
    assert!(notes.contains("no tabs here"), "the hook's words are not in the note: {notes}");

    fs::remove_file(&hook).unwrap();
    repo.sp(["chain", "resume", &bead, "--note", "the hook is gone"]).success();
    repo.must_equal(&blocked.resumed_at("executor").ready());
}

#[test]
fn a_rejected_change_goes_on_with_a_note_to_the_step_that_is_named() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("executor", [writes("src/size.sh", "# size > 0\n"), says(done())])
        .round("reviewer", [says(review_fail("sizes of zero are not thought of"))])
        .round("reviewer", [says(pass())])
        .write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).code(7);
    let blocked = Expected::pair(&bead).passes("executor").blocks("reviewer", "rejected");
    repo.must_equal(&blocked);

    let bare = repo.sp(["chain", "resume", &bead]);
    bare.code(7);
    repo.must_equal(&blocked);

    repo.sp(["chain", "resume", &bead, "--note", "think of zero", "--from", "executor"]).success();
    repo.must_equal(&blocked.resumed_at("executor").ready());
    let session = fs::read_to_string(repo.job_dir(&repo.job("executor", 2)).join("session.jsonl")).unwrap();
    assert!(session.contains("think of zero"), "the note did not reach the executor");
}

#[test]
fn a_blocked_gate_can_be_passed_by_hand() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("reviewer", [says(review_fail("I would do it otherwise"))])
        .write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).code(7);
    repo.sp(["chain", "resume", &bead, "--accept", "reviewer"]).success();
    let model = Expected::pair(&bead).passes("executor").blocks("reviewer", "rejected").accepted("reviewer");
    repo.must_equal(&model.ready());
}

#[test]
fn what_a_person_waved_through_is_told_to_those_who_come_after() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("seconder", [says(second_unclear("is a page of zero lines a page?"))])
        .round("test-engineer", [writes("test/last_page_test.sh", "exit 0\n"), says(tests_written())])
        .round("test-runner", [bash("./test.sh"), says(tests_passed())])
        .round("obligations-scanner", [says(clean())])
        .round("reviewer", [says(pass())])
        .write();
    repo.sp(["chain", "run", CODE_STANDARD, "--bead", &bead, "--rehearse", &script]).code(7);
    repo.sp(["chain", "resume", &bead, "--accept", "seconder"]).success();
    let told = task(&repo, &repo.job("reviewer", 1));
    for fact in ["is a page of zero lines a page?", "the operator accepted the step all the same"] {
        assert!(told.contains(fact), "the reviewer was not told `{fact}`:\n{told}");
    }
}

#[test]
fn an_abandoned_chain_frees_its_bead_and_keeps_the_work() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("reviewer", [says(review_fail("not what was asked for"))])
        .write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).code(7);
    repo.sp(["chain", "abandon", &bead, "--reason", "asked for by mistake"]).success();
    let model = Expected::pair(&bead).passes("executor").blocks("reviewer", "rejected");
    repo.must_equal(&model.abandoned());
    let again = repo.sp(["chain", "resume", &bead, "--note", "go on"]);
    again.code(3);
}

#[test]
fn a_gate_that_is_never_content_ends_with_people() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("executor", [writes("src/size.sh", "# size > 0\n"), says(done())])
        .round("reviewer", [says(review_partial("zero"))])
        .write();
    let run = repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script, "--max-fix-loops", "1"]);
    run.code(7);
    assert!(run.stderr.contains("reviewer (fix_loops_exhausted)"), "{run}");
    repo.must_equal(
        &Expected::pair(&bead)
            .passes("executor")
            .sends_back("reviewer", "executor")
            .passes("executor")
            .blocks("reviewer", "fix_loops_exhausted"),
    );
}

#[test]
fn a_chain_is_published_once_it_is_merged_and_only_then_are_its_dependents_ready() {
    let (repo, bead) = begin();
    let dependent = repo.bead("Number the pages").create();
    repo.bd(["dep", "add", &dependent, &bead]);
    let is_ready =
        || repo.bd_json(["ready", "-n", "0"]).as_array().unwrap().iter().any(|found| found["id"] == *dependent);
    let script = repo.rehearse().round("executor", [fixes(), says(done())]).round("reviewer", [says(pass())]).write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).success();
    repo.must_equal(&Expected::pair(&bead).ready());
    assert!(!is_ready(), "the dependent would start on code that is not merged");

    let early = repo.sp(["chain", "resume", &bead]);
    early.code(3);
    assert!(early.stderr.contains("git merge"), "{early}");
    repo.must_equal(&Expected::pair(&bead).ready());

    repo.git(["merge", "-q", "--no-ff", "-m", "merged", &format!("feature/{bead}-executor")]);
    repo.sp(["chain", "resume", &bead]).success();
    repo.must_equal(&Expected::pair(&bead).ready().published());
    assert!(is_ready(), "the dependent waits for a bead that is closed");
}

#[test]
fn what_people_add_to_a_ready_branch_is_judged_before_it_is_published() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("reviewer", [says(pass())])
        .round("reviewer", [says(pass())])
        .write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).success();
    let branch = format!("feature/{bead}-executor");
    let tree = repo.root().join(".worktrees").join(&bead).join(format!("{bead}-executor"));
    fs::write(tree.join("src/size.sh"), "# added at the last minute\n").unwrap();
    repo.git(["-C", tree.to_str().unwrap(), "add", "src/size.sh"]);
    repo.git(["-C", tree.to_str().unwrap(), "commit", "-q", "-m", "one more thing"]);
    repo.git(["merge", "-q", "--no-ff", "-m", "merged", &branch]);

    let judged = repo.sp(["chain", "resume", &bead]);
    judged.success();
    assert!(judged.stdout.contains("branch_moved"), "{judged}");
    let diff = fs::read_to_string(repo.job_dir(&repo.job("reviewer", 2)).join("diff.patch")).unwrap();
    assert!(diff.contains("added at the last minute"), "the reviewer judged another diff:\n{diff}");
    assert_eq!(repo.column("SELECT status FROM chains"), ["ready_to_merge"]);
    repo.sp(["chain", "resume", &bead]).success();
    assert_eq!(repo.column("SELECT status FROM chains"), ["published"]);
}

#[test]
fn a_busy_or_broken_line_to_the_model_costs_no_work() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round(
            "executor",
            [
                fixes().after_fault(json!({ "http": 503, "message": "busy" }), 2),
                says(done()).after_fault(json!({ "drop_after": 1 }), 1),
            ],
        )
        .round("reviewer", [says(pass())])
        .write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).success();
    repo.must_equal(&Expected::pair(&bead).ready());
}

#[test]
fn a_session_that_falls_silent_is_replaced_and_goes_on() {
    let (repo, bead) = begin();
    fs::create_dir_all(repo.root().join(".specialists")).unwrap();
    fs::write(repo.root().join(".specialists/config.toml"), "[chain]\nstall_seconds = 8\n").unwrap();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done()).after_fault(json!({ "hang_after": 1 }), 1)])
        .round("reviewer", [says(pass())])
        .write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).success();
    assert!(repo.story().contains(&"job_failed executor".to_owned()), "{:?}", repo.story());
    repo.must_equal(&Expected::pair(&bead).ready());
}

#[test]
fn a_model_that_refuses_us_blocks_at_once() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [Turn::fails(json!({ "http": 401, "message": "no such key" }))])
        .round("reviewer", [says(pass())])
        .write();
    let run = repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]);
    run.code(7);
    assert!(run.stderr.contains("executor (unauthorized)"), "{run}");
    repo.must_equal(&Expected::pair(&bead).blocks_with("executor", "unauthorized", "error", 0, false));
}

/// The tests of chains are worth what the model sees.
#[test]
fn the_model_sees_what_should_not_be_there() {
    let (repo, bead) = begin();
    let script = repo.rehearse().round("executor", [fixes(), says(done())]).round("reviewer", [says(pass())]).write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).success();
    let model = Expected::pair(&bead).ready();
    repo.must_equal(&model);
    let sees = |what: &str| {
        let found = repo.differences(&model).join("\n");
        assert!(found.contains(what), "it should see `{what}`, and sees only: {found}");
    };

    let stray = repo.program("sleep").arg("1000").env("SP_ROOT", repo.root()).spawn();
    repo.until("the stray process runs", || !repo.processes().is_empty());
    sees("a process is left");
    repo.processes().iter().for_each(|process| signal(process.pid, rustix::process::Signal::KILL));
    stray.unwrap().wait().unwrap();

    repo.git(["branch", "stray"]);
    sees("ref refs/heads/stray");
    repo.git(["branch", "-D", "stray"]);

    fs::write(repo.root().join("stray.txt"), "").unwrap();
    sees("git status of the main checkout");
    fs::remove_file(repo.root().join("stray.txt")).unwrap();

    let result = repo.job_dir(&repo.job("reviewer", 1)).join("result.txt");
    let kept = fs::read(&result).unwrap();
    fs::write(&result, "PASS").unwrap();
    sees("result.txt is");
    fs::write(&result, kept).unwrap();
    repo.must_equal(&model);

    let step = format!("{}-executor", repo.chain());
    let again = format!("[sp] executor passed: job {} round 1", repo.job("executor", 1));
    repo.bd(["note", &step, &again]);
    sees("passed round 1; passed round 1");
    repo.bd(["create", "another molecule", "-t", "task", "--id", "pager-mol-00000000", "--force"]);
    sees("pager-mol-00000000 is a bead of no chain we know");
}

#[test]
fn a_chain_begun_in_a_subfolder_and_inside_tmux_works_in_its_worktree() {
    let (repo, bead) = begin();
    let script = repo
        .rehearse()
        .round("executor", [bash("pwd >where; echo \"$PWD\" >>where"), fixes(), says(done())])
        .round("reviewer", [says(pass())])
        .write();
    let tmux = repo.base().join("tmux/default,4711,0");
    repo.order(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script])
        .within(repo.root().join("src"))
        .env("TMUX", tmux)
        .env("TMUX_PANE", "%0")
        .run()
        .success();
    let tree = repo.root().join(format!(".worktrees/{bead}/{bead}-executor"));
    for step in ["executor", "reviewer"] {
        let session = fs::read_to_string(repo.job_dir(&repo.job(step, 1)).join("session.jsonl")).unwrap();
        let head: serde_json::Value = serde_json::from_str(session.lines().next().unwrap()).unwrap();
        assert_eq!(head["cwd"], tree.to_str().unwrap(), "{step}");
    }
    let said = fs::read_to_string(tree.join("where")).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), [tree.to_str().unwrap(); 2], "a command of the agent runs elsewhere");
}

#[test]
fn two_readers_of_a_worktree_run_at_once() {
    let (repo, bead) = begin();
    let jobs = repo.root().join(".specialists/jobs");
    let sees = format!(
        "for i in $(seq 300); do grep -l '\"specialist\":\"seconder\"' '{}'/*/status.json | xargs grep -q \
         '\"status\":\"running\"' && exit; sleep 0.1; done; exit 1",
        jobs.display()
    );
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("test-runner", [bash(&sees), says(tests_passed())])
        .round("seconder", [says(second()).after_ms(4_000)])
        .round("reviewer", [says(pass())])
        .write();
    repo.sp(["chain", "run", READERS, "--bead", &bead, "--rehearse", &script]).success();
    let session = fs::read_to_string(repo.job_dir(&repo.job("test-runner", 1)).join("session.jsonl")).unwrap();
    assert!(!session.contains("\"isError\":true"), "it never saw the seconder at work: {session}");
}

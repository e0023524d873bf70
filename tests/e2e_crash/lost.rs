//! The database is lost with all files of sp, as by `git clean -ffdx`: bd and git know enough to go on.

use std::fs;

use crate::story::{Begun, GoOn, LOOP, REJECTED, SHORT, Story};
use crate::support::*;

/// Dies right after the event, and loses `.specialists` and `.worktrees`.
fn loses(story: &Story, event: &str, nth: usize) -> Begun {
    let number = story.number(event, nth);
    let begun = story.begin();
    begun.repo.order(&begun.command).killed_after(number).run().killed();
    clean(&begun.repo);
    begun
}

fn clean(repo: &Repo) {
    for own in [".specialists", ".worktrees"] {
        fs::remove_dir_all(repo.root().join(own)).unwrap();
    }
}

/// Evidence that a step's bead has of one kind.
fn evidence(begun: &Begun, chain: &str, step: &str, word: &str) -> usize {
    let bead = begun.repo.show(&format!("{chain}-{step}"));
    let notes = bead["notes"].as_str().unwrap_or_default().to_owned();
    notes.lines().filter(|line| line.starts_with(&format!("[sp] {step} {word}: "))).count()
}

/// Checks that one molecule is there, whose steps are all closed, each shown to have passed once a round.
fn arrived(begun: &Begun, passes: &[(&str, usize)]) {
    let chain = begun.repo.chain();
    let molecules = begun.repo.bd_json(["list", "--type", "molecule", "--all"]);
    assert_eq!(molecules.as_array().map(Vec::len), Some(1), "{molecules}");
    assert_eq!(begun.repo.column("SELECT status FROM chains"), ["ready_to_merge"]);
    for (step, times) in passes {
        assert_eq!(begun.repo.show(&format!("{chain}-{step}"))["status"], "closed", "{step}");
        assert_eq!(evidence(begun, &chain, step, "passed"), *times, "{step}");
    }
    assert!(begun.repo.processes().is_empty(), "a process of the chain is left");
}

#[test]
fn a_step_that_passed_is_not_done_again() {
    let begun = loses(&SHORT, "step_closed executor", 1);
    let told = begun.go_on(GoOn::Rerun).run();
    told.success();
    assert!(told.stderr.contains("chain_recovered"), "{}", told.stderr);
    let story = begun.repo.story();
    assert_eq!(story[..4], ["opened", "poured", "recovered", "adopted"], "{story:#?}");
    assert!(!story.contains(&"step_dispatched executor".to_owned()), "{story:#?}");
    arrived(&begun, &[("executor", 1), ("reviewer", 1)]);
    let branch = begun.repo.column("SELECT branch FROM chains").remove(0);
    assert_eq!(begun.repo.git(["rev-list", "--count", &format!("main..{branch}")]).trim(), "1");
}

#[test]
fn a_step_that_was_at_work_is_taken_from_the_dead() {
    let begun = loses(&SHORT, "step_dispatched executor", 1);
    begun.go_on(GoOn::Rerun).run().success();
    arrived(&begun, &[("executor", 1), ("reviewer", 1)]);
}

#[test]
fn a_round_goes_on_with_what_the_gate_had_found() {
    let begun = loses(&LOOP, "round_reopened", 1);
    begun.go_on(GoOn::Rerun).run().success();
    let prompt = begun.repo.job_dir(&begun.repo.job("executor", 2)).join("prompt.md");
    let prompt = fs::read_to_string(prompt).unwrap();
    assert!(prompt.contains("sizes of zero are not thought of"), "{prompt}");
    arrived(&begun, &[("executor", 2), ("reviewer", 1)]);
}

#[test]
fn a_step_that_waits_for_people_still_waits() {
    let begun = REJECTED.begin();
    begun.repo.sp(&begun.command).code(7);
    clean(&begun.repo);
    let again = begun.go_on(GoOn::Rerun).run();
    again.code(7);
    assert!(again.stdout.contains("rejected"), "{}", again.stdout);
    begun.repo.sp(["chain", "resume", &begun.bead, "--note", "Think of sizes of zero."]).success();
    arrived(&begun, &[("reviewer", 1)]);
}

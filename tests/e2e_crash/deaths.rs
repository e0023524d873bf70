//! SIGKILL at every event of a chain's log, right after it is stored and right before.

use std::time::Duration;

use crate::story::{GoOn, LOOP, REJECTED, SHORT, Story, WHOLE};

use GoOn::{Rerun, Resume};

/// Dies right after the event was stored; nothing that follows from it is done.
fn dies_after(story: &Story, event: &str, nth: usize, how: GoOn) {
    let number = story.number(event, nth);
    let begun = story.begin();
    begun.repo.order(&begun.command).killed_after(number).run().killed();
    begun.go_on(how).run().code(story.code);
    begun.repo.must_equal(&(story.model)(&begun.bead));
}

/// Dies right before the event is stored; what it tells of has happened.
fn dies_before(story: &Story, event: &str, nth: usize, how: GoOn) {
    let number = story.number(event, nth);
    let begun = story.begin();
    begun.repo.order(&begun.command).killed_before(number).run().killed();
    begun.go_on(how).run().code(story.code);
    begun.repo.must_equal(&(story.model)(&begun.bead));
}

macro_rules! deaths {
    (($table:ident) $($name:ident: $die:ident $story:ident $event:literal $nth:literal $how:ident;)*) => {
        deaths! { $($name: $die $story $event $nth $how;)* }

        /// (how it dies, event) of this table.
        const $table: &[(&str, &str)] = &[$((stringify!($die), $event)),*];
    };
    ($($name:ident: $die:ident $story:ident $event:literal $nth:literal $how:ident;)*) => {
        $(#[test] fn $name() { $die(&$story, $event, $nth, $how); })*
    };
}

deaths! {
    (AFTER_EACH)
    nothing_is_lost_after_the_chain_was_opened: dies_after SHORT "opened" 1 Resume;
    nothing_is_lost_after_the_pour: dies_after SHORT "poured" 1 Rerun;
    nothing_is_lost_after_the_bead_was_held: dies_after SHORT "root_held" 1 Resume;
    nothing_is_lost_after_the_tree_was_made: dies_after SHORT "tree_ready" 1 Rerun;
    nothing_is_lost_after_a_claim_was_meant: dies_after SHORT "step_claiming executor" 1 Resume;
    nothing_is_lost_after_a_writer_was_dispatched: dies_after SHORT "step_dispatched executor" 1 Rerun;
    nothing_is_lost_after_a_writer_answered: dies_after SHORT "job_answered executor" 1 Resume;
    nothing_is_lost_after_a_writer_passed: dies_after SHORT "step_passed executor" 1 Rerun;
    nothing_is_lost_after_a_writers_evidence: dies_after SHORT "evidence_noted executor" 1 Resume;
    nothing_is_lost_after_a_writer_was_closed: dies_after SHORT "step_closed executor" 1 Rerun;
    nothing_is_lost_after_a_gate_was_dispatched: dies_after SHORT "step_dispatched reviewer" 1 Resume;
    nothing_is_lost_after_a_gate_answered: dies_after SHORT "job_answered reviewer" 1 Rerun;
    nothing_is_lost_after_the_chain_was_ready: dies_after SHORT "chain_ready" 1 Rerun;
}

deaths! {
    (BEFORE_EACH)
    nothing_is_done_twice_before_the_pour_is_known: dies_before SHORT "poured" 1 Resume;
    nothing_is_done_twice_before_the_hold_is_known: dies_before SHORT "root_held" 1 Rerun;
    nothing_is_done_twice_before_the_tree_is_known: dies_before SHORT "tree_ready" 1 Resume;
    nothing_is_done_twice_before_a_claim_is_known: dies_before SHORT "step_dispatched executor" 1 Rerun;
    nothing_is_done_twice_before_an_answer_is_known: dies_before SHORT "job_answered executor" 1 Resume;
    nothing_is_done_twice_before_a_commit_is_known: dies_before SHORT "step_passed executor" 1 Rerun;
    nothing_is_done_twice_before_a_note_is_known: dies_before SHORT "evidence_noted executor" 1 Resume;
    nothing_is_done_twice_before_a_close_is_known: dies_before SHORT "step_closed executor" 1 Rerun;
    nothing_is_done_twice_before_the_last_close_is_known: dies_before SHORT "chain_ready" 1 Resume;
}

deaths! {
    a_round_that_was_meant_is_opened: dies_after LOOP "round_opened" 1 Resume;
    a_round_is_noted_once: dies_before LOOP "round_noted" 1 Rerun;
    a_round_that_was_noted_is_reopened: dies_after LOOP "round_noted" 1 Resume;
    a_round_is_reopened_once: dies_before LOOP "round_reopened" 1 Rerun;
    a_round_that_was_reopened_is_worked: dies_after LOOP "round_reopened" 1 Resume;
    a_second_round_goes_on_in_its_own_job: dies_after LOOP "step_dispatched executor" 2 Rerun;
    a_second_commit_is_made_once: dies_before LOOP "step_passed executor" 2 Resume;
}

deaths! {
    a_block_that_was_meant_is_noted: dies_after REJECTED "step_blocked reviewer" 1 Rerun;
    a_block_is_noted_once: dies_before REJECTED "block_noted reviewer" 1 Resume;
}

deaths! {
    a_test_engineer_is_claimed_by_its_next_incarnation: dies_before WHOLE "step_dispatched test-engineer" 1 Resume;
    the_tests_are_committed_once: dies_before WHOLE "step_passed test-engineer" 1 Rerun;
    a_test_runner_is_asked_once: dies_before WHOLE "job_answered test-runner" 1 Resume;
}

#[test]
fn every_event_of_a_short_chain_is_died_after_and_every_effect_before() {
    let walked = |how: &'static str| AFTER_EACH.iter().chain(BEFORE_EACH).filter(move |(die, _)| *die == how);
    // Events of one write share their boundary: the last one names it.
    let one_write = |event: &str, next: Option<&String>| match next {
        Some(next) => matches!(
            (event.split(' ').next(), next.split(' ').next()),
            (Some("work_settled"), Some("step_passed")) | (Some("step_closed"), Some("chain_ready"))
        ),
        None => false,
    };
    // What a gate and a writer do alike counts once.
    let alike = |event: &str| {
        let kind = event.split(' ').next();
        event.ends_with("reviewer") && !matches!(kind, Some("step_dispatched" | "job_answered"))
    };
    for (at, event) in SHORT.log.iter().enumerate().filter(|(_, event)| !alike(event)) {
        if !one_write(event, SHORT.log.get(at + 1)) {
            assert!(walked("dies_after").any(|(_, walked)| walked == event), "no test dies after `{event}`");
        }
    }
    for event in SHORT.log.iter().filter(|event| !event.ends_with("reviewer")) {
        let plain = matches!(event.split(' ').next(), Some("opened" | "step_claiming" | "work_settled"));
        assert!(plain || walked("dies_before").any(|(_, walked)| walked == event), "no test dies before `{event}`");
    }
}

#[test]
fn a_chain_that_is_killed_again_and_again_arrives() {
    let begun = SHORT.begin();
    let mut deaths = 0;
    loop {
        let how = if deaths % 2 == 0 { Rerun } else { Resume };
        // A take-over of a running step stores five events; each life gets one further.
        let run = begun.go_on(how).killed_after(begun.repo.events().len() as u64 + 6).run();
        if run.status.success() {
            break;
        }
        run.killed();
        deaths += 1;
        assert!(deaths < 20, "killed {deaths} times and still not there");
    }
    assert!(deaths >= 3, "it was to be killed more often than {deaths} times");
    begun.repo.must_equal(&(SHORT.model)(&begun.bead));
}

/// A number that looks random and is the same for the same seed (xorshift64*).
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    seed.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33
}

/// Events are not all that happens: a death may come in the middle of a write, a turn, a call of bd or of git.
/// `SP_TEST_SEEDS` tries more than one.
#[test]
fn a_chain_that_is_killed_at_any_moment_arrives() {
    let seeds = std::env::var("SP_TEST_SEEDS").map_or(1, |text| text.parse::<u64>().unwrap());
    for seed in 1..=seeds {
        let mut dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let begun = LOOP.begin();
        for death in 1..=8 {
            let span = Duration::from_millis(200 + next(&mut dice) % 3_000);
            let how = if death % 2 == 0 { Resume } else { Rerun };
            // The very first may die before there is a chain to resume.
            if begun.go_on(how).spawn().killed_within(span).status.success() {
                break;
            }
        }
        begun.go_on(Rerun).run().success();
        begun.repo.must_equal(&(LOOP.model)(&begun.bead));
    }
}

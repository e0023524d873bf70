//! Killed while the operator's word about a blocked chain is carried out.

use crate::story::{Begun, REJECTED};

/// On which side of an event.
enum When {
    Before,
    After,
}

/// A chain whose reviewer rejected the change.
fn blocked() -> Begun {
    let begun = REJECTED.begin();
    begun.repo.sp(&begun.command).code(7);
    begun
}

/// Gives an order whose sp dies before or after the n-th event that it leads to.
fn dies(begun: &Begun, order: &[&str], nth: u64, when: When) {
    let at = begun.repo.events().len() as u64 + nth;
    let order = begun.repo.order(order);
    let order = match when {
        When::Before => order.killed_before(at),
        When::After => order.killed_after(at),
    };
    order.run().killed();
}

#[test]
fn a_note_that_was_given_before_the_death_is_not_forgotten() {
    let begun = blocked();
    let order = ["chain", "resume", &begun.bead, "--note", "think of zero", "--from", "executor"];
    // adopted | resume_asked
    dies(&begun, &order, 2, When::After);
    begun.repo.sp(["chain", "resume", &begun.bead]).success();
    begun.repo.must_equal(&(REJECTED.model)(&begun.bead).resumed_at("executor").ready());
}

#[test]
fn a_step_that_was_passed_by_hand_is_noted_once() {
    let begun = blocked();
    // adopted | step_accepted | reread | evidence_noted
    dies(&begun, &["chain", "resume", &begun.bead, "--accept", "reviewer"], 4, When::Before);
    begun.repo.sp(["chain", "resume", &begun.bead]).success();
    begun.repo.must_equal(&(REJECTED.model)(&begun.bead).accepted("reviewer").ready());
}

#[test]
fn a_chain_is_given_up_once_whenever_sp_dies() {
    let begun = blocked();
    let order = ["chain", "abandon", &begun.bead, "--reason", "asked for by mistake"];
    // adopted | abandon_requested
    dies(&begun, &order, 2, When::After);
    // adopted | reread | abandoned
    dies(&begun, &order, 3, When::Before);
    begun.repo.sp(order).success();
    begun.repo.must_equal(&(REJECTED.model)(&begun.bead).abandoned());
}

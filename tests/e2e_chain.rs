//! Whole chains on real git, bd and pi, told as stories; the model is rehearsed.

#[expect(dead_code, unused_imports, reason = "every test crate uses a part of it")]
mod support;

use support::*;

#[test]
fn a_chain_of_two_steps_is_ready_to_merge() {
    let repo = Repo::new();
    let bead = repo.bead("The last page is lost").contract(PAGER).create();
    let script = repo.rehearse().round("executor", [fixes(), says(done())]).round("reviewer", [says(pass())]).write();
    repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).success();
    repo.must_equal(&Expected::pair(&bead).ready());
}

//! The door: every request that can't or mustn't run is refused with its documented status, names what, where and what
//! next, and leaves nothing behind; and what a newcomer sees of a chain that is there.

#[expect(dead_code, unused_imports, reason = "every test crate uses a part of it")]
mod support;

#[path = "e2e_door/beads.rs"]
mod beads;
#[path = "e2e_door/chains.rs"]
mod chains;
#[path = "e2e_door/door.rs"]
mod door;
#[path = "e2e_door/formulas.rs"]
mod formulas;
#[path = "e2e_door/grounds.rs"]
mod grounds;
#[path = "e2e_door/requests.rs"]
mod requests;
#[path = "e2e_door/sick.rs"]
mod sick;
#[path = "e2e_door/streams.rs"]
mod streams;
#[path = "e2e_door/trees.rs"]
mod trees;

use support::*;

/// A repository with a bead for its bug, and a script that has words for both roles.
pub fn begin() -> (Repo, String, String) {
    let repo = Repo::new();
    let bead = repo.bead("The last page is lost").contract(PAGER).create();
    let script = repo.rehearse().round("executor", [fixes(), says(done())]).round("reviewer", [says(pass())]).write();
    (repo, bead, script)
}

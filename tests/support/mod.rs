//! What the end-to-end tests stand on: hermetic repositories, the built `sp` on real git, bd and pi, scripted models,
//! and the model of what a chain must leave behind.
//!
//! A test crate uses a part of it:
//!
//! ```ignore
//! #[expect(dead_code, unused_imports, reason = "every test crate uses a part of it")]
//! mod support;
//! use support::*;
//!
//! #[test]
//! fn a_chain_of_two_steps_is_ready_to_merge() {
//!     let repo = Repo::new();
//!     let bead = repo.bead("The last page is lost").contract(PAGER).create();
//!     let script = repo.rehearse().round("executor", [fixes(), says(done())]).round("reviewer", [says(pass())]).write();
//!     repo.sp(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).success();
//!     repo.must_equal(&Expected::pair(&bead).ready());
//! }
//! ```

mod answers;
mod expected;
mod formulas;
mod processes;
mod redact;
mod repo;
mod run;
mod script;
mod slots;
mod template;
mod world;

pub use answers::*;
pub use expected::Expected;
pub use formulas::{CODE_STANDARD, PAGER, PAIR, READERS, RUN, TESTED};
pub use processes::{Process, is_alive, marked, signal};
pub use repo::{BeadBuilder, Repo};
pub use run::{Order, Run, Running};
pub use script::{Rehearsal, Turn, bash, calls, edits, fixes, says, says_text, writes};
pub use template::tool;

//! Doubles of the ports, for tests of actors under paused time. The Store under them is the real one.

mod agent;
mod lines;
mod recorder;
mod script;
mod site;
mod system;
mod tracker;
mod workspace;

pub(super) use agent::{StubAgent, writes};
pub(super) use lines::{EXECUTOR_DONE, REVIEWER_PASSES, asks, delta, reviewer_sends_back};
pub(super) use recorder::{Heard, recorder};
pub(super) use script::{Act, Script};
pub(super) use site::Site;
pub(super) use site::process;
pub(super) use system::{System, notices, tree_ready, until};
pub(super) use tracker::StubTracker;
pub(super) use workspace::StubWorkspace;

//! The mailboxes of the actors: one file an actor, each message with who sends it.

mod coordinator;
mod door;
mod job;
mod jobs;
mod session;
mod store;
mod tracker;
mod watchdog;
mod workspaces;

pub use coordinator::{CoordinatorMsg, Operator};
pub use door::Door;
pub use job::{Credit, JobMsg, SessionEnd};
pub use jobs::{Activation, JobsMsg};
pub use session::{SessionMsg, SessionUp};
pub use store::StoreMsg;
pub use tracker::{TrackerMsg, TrackerWork};
pub use watchdog::{Pulse, WatchdogMsg};
pub use workspaces::WorkspacesMsg;

//! The actors: thin shells around the pure machines. Each owns one resource.

mod chains;
mod coordinator;
mod job;
mod jobs;
mod prepare;
mod session;
mod store;
mod tracker;
mod watchdog;
mod workspaces;

pub use chains::{Chains, ChainsMsg};
pub use coordinator::{Coordinator, CoordinatorArgs, Notice, NoticeKind, Settings, Watchers};
pub use job::JobTools;
pub use jobs::{Jobs, JobsArgs};
pub use prepare::{Prepared, Workshop};
pub use store::{Store, StoreHandle};
pub use tracker::{TrackerActor, TrackerHandle};
pub use workspaces::Workspaces;

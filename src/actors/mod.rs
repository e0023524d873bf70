//! The actors: thin shells around the pure machines. Each owns one resource.

mod chains;
mod coordinator;
#[cfg(test)]
mod doubles;
mod job;
mod jobs;
mod policy;
mod prepare;
mod root;
mod session;
mod store;
mod tracker;
mod watchdog;
mod workspaces;

pub use chains::ChainsMsg;
pub(crate) use coordinator::event_body;
pub use coordinator::{Coordinator, CoordinatorArgs, Notice, NoticeKind, Settings, Watchers};
pub use policy::PolicyMsg;
pub use prepare::{Prepared, Workshop};
pub use root::{Doors, Parts, Root, RootMsg};
pub use store::StoreHandle;
pub use tracker::TrackerHandle;
pub(crate) use workspaces::home;

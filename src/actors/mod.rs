//! The actors: thin shells around the pure machines. Each owns one resource.

mod chains;
mod coordinator;
mod crash_point;
#[cfg(test)]
mod doubles;
mod job;
mod jobs;
mod notice;
mod policy;
mod prepare;
mod root;
mod session;
mod settings;
mod store;
mod tracker;
mod watchdog;
mod workspaces;

pub use chains::ChainsMsg;
pub(crate) use coordinator::event_body;
pub use coordinator::{Coordinator, CoordinatorArgs};
pub use notice::{Notice, NoticeKind, Watchers};
pub use policy::PolicyMsg;
pub use prepare::{Prepared, Workshop};
pub use root::{Doors, Parts, Root, RootMsg};
pub use settings::Settings;
pub(crate) use workspaces::home;

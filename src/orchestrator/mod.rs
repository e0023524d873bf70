//! The embedding API: build an [`Orchestrator`], run chains on a repository, follow and steer them.

mod adopt;
mod builder;
mod compose;
mod control;
mod error;
mod handle;
mod open;
mod report;
mod request;
mod tree;

pub use builder::{Orchestrator, OrchestratorBuilder};
pub use compose::{Composition, StepPlan};
pub use error::OrchestratorError;
pub use handle::{ChainHandle, Ending};
pub use report::{chain_of_process, chain_report, find_chain, running_process, stored_events};
pub use request::{ResumeRequest, RunRequest, Started};

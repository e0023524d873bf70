//! `sp` runs teams of coding agents as chains of supervised actors.
//!
//! A *chain* is a formula compiled into a graph of steps. Each step is one activation (*job*) of a *specialist*, run by
//! the `pi` coding agent in an isolated git worktree. Beads (`bd`) holds the contracts and alone decides what is ready.
//!
//! ```no_run
//! # async fn example() -> Result<(), specialists::OrchestratorError> {
//! use specialists::{Orchestrator, RunRequest, Started};
//!
//! let orchestrator = Orchestrator::builder(".").build().await?;
//! if let Started::Running(mut chain) = orchestrator.run_chain(RunRequest::new("code-standard", "proj-a3f2")).await? {
//!     println!("{:?}", chain.wait().await);
//! }
//! orchestrator.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! The rooms and how they depend on each other: docs/architecture.md.

#![forbid(unsafe_code)]

mod actors;
mod beads;
mod chain;
pub mod cli;
mod config;
mod exec;
mod failure;
mod formulas;
mod git;
mod ids;
mod job;
mod messages;
mod nearest;
mod orchestrator;
mod pi;
mod policy;
pub mod ports;
mod rehearsal;
mod specialist;
mod storage;

pub use actors::{Notice, NoticeKind};
pub use chain::context::{
    EnvelopeClass, EnvelopeError, EnvelopeFacts, PendingStep, Position, StepStatus, UpstreamStep, parse_envelope,
};
pub use chain::machine::{Blocked, Cause, ChainEvent, ClosedBy, Limits, Opening, Outcome, Scrutinies};
pub use chain::report::{BlockedReport, ChainReport, ScrutinyReport, StepReport, WorkReport};
pub use chain::scrutiny::Scrutiny;
pub use chain::shape::{Class, Relation, Shape, Step, Target, Writer};
pub use chain::verdict::{BlockReason, ReworkTarget, Verdict};
pub use config::Models;
pub use exec::LocalExec;
pub use failure::{Explain, Failure, FailureKind, TABLE};
pub use ids::{BeadId, ChainId, JobId, StepId};
pub use orchestrator::{
    ChainHandle, Composition, Ending, Orchestrator, OrchestratorBuilder, OrchestratorError, ResumeRequest, RunRequest,
    Started, StepPlan, chain_report,
};
pub use pi::PiAgent;
pub use policy::{Mode, Modes};
pub use specialist::Tier;
pub use storage::ChainStatus;

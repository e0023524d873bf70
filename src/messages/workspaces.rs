//! Mailbox of Workspaces: branches, worktrees, commits.

use std::sync::Arc;

use ractor::ActorRef;

use super::CoordinatorMsg;
use crate::chain::machine::ChainState;
use crate::ids::{JobId, StepId};

/// To Workspaces.
#[derive(Debug)]
pub enum WorkspacesMsg {
    /// From a Coordinator: make or find the branch and the worktree of the chain.
    PrepareTree {
        /// The state that asks for it.
        chain: Arc<ChainState>,
        /// Who asked.
        reply_to: ActorRef<CoordinatorMsg>,
    },
    /// From a Coordinator: commit a writer's turn, or put back what a reader changed.
    SettleWork {
        /// The state that asks for it.
        chain: Arc<ChainState>,
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// Job.
        job: JobId,
        /// Who asked.
        reply_to: ActorRef<CoordinatorMsg>,
    },
    /// From itself: work on an effect panicked.
    Broken(String),
}

//! Mailbox of the Tracker: every call to bd goes through here.

use std::path::PathBuf;
use std::sync::Arc;

use ractor::{ActorRef, RpcReplyPort};

use super::CoordinatorMsg;
use crate::chain::machine::{ChainEffect, ChainState};
use crate::ids::{BeadId, ChainId};
use crate::ports::{Bead, TrackerError};

/// An effect that a chain asks of the tracker.
#[derive(Debug, Clone)]
pub struct TrackerWork {
    /// What.
    pub effect: ChainEffect,
    /// The state that asks for it.
    pub chain: Arc<ChainState>,
    /// Whether an earlier try may have gone through unseen: look before acting.
    pub again: bool,
    /// Who asked.
    pub reply_to: ActorRef<CoordinatorMsg>,
    /// Tries that failed so far.
    pub tries: u32,
}

/// To the Tracker.
#[derive(Debug)]
pub enum TrackerMsg {
    /// From a Coordinator: do this effect.
    Perform(Box<TrackerWork>),
    /// From a Coordinator: tell me which steps bd calls ready. Served for all chains by one call.
    WantReady {
        /// The chain.
        chain: ChainId,
        /// Who asked.
        reply_to: ActorRef<CoordinatorMsg>,
    },
    /// From the Orchestrator and Jobs: read one bead.
    Show {
        /// The bead.
        bead: BeadId,
        /// The answer.
        reply: RpcReplyPort<Result<Option<Bead>, TrackerError>>,
    },
    /// From Workspaces: make a worktree on an existing branch.
    CreateWorktree {
        /// Directory, absolute.
        path: PathBuf,
        /// Branch.
        branch: String,
        /// The answer.
        reply: RpcReplyPort<Result<(), TrackerError>>,
    },
    /// From itself: the call that was under way is over.
    Done,
    /// From itself: the call that was under way panicked.
    Broken(String),
    /// From itself: the wait of a failed call is over.
    Retry(Box<TrackerWork>),
}

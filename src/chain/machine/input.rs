//! What the world reports to a chain.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::chain::verdict::Verdict;
use crate::ids::StepId;
use crate::ports::{ClaimAnswer, Commit, Restored};

/// What a job came to. Stored with the job, so that a later incarnation of its chain finds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// It gave an answer that fits its contract.
    Answered {
        /// What the answer means.
        verdict: Verdict,
        /// One line about it.
        summary: String,
    },
    /// It ended without a usable answer, asked twice.
    NoAnswer {
        /// What was wrong with it.
        problem: String,
    },
    /// It did not end by itself.
    Failed {
        /// Whether another try makes sense.
        retry: bool,
        /// Stable code.
        code: String,
        /// What happened.
        detail: String,
    },
    /// It was stopped as asked.
    Stopped,
}

impl Outcome {
    /// Returns whether the job's work is done, so that no later incarnation may do it again.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Answered { .. } | Self::NoAnswer { .. })
    }
}

/// What the worktree came to after a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// A writer's turn was committed, or there was nothing to commit, or it could not be.
    Committed(Commit),
    /// A reader's turn was compared; `Some` when it had changed something.
    Compared(Option<Restored>),
}

/// One step bead as bd has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepView {
    /// bd's status word.
    pub status: String,
    /// Who holds it.
    pub assignee: Option<String>,
}

/// The chain's beads as bd has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeadsView {
    /// Status of the contract bead; `None` when it is gone.
    pub root: Option<String>,
    /// Status of the molecule; `None` when it is gone.
    pub molecule: Option<String>,
    /// Its steps.
    pub steps: BTreeMap<StepId, StepView>,
}

/// What the world reports. Every word of a job or a claim names the incarnation that it is about.
#[derive(Debug, Clone, PartialEq)]
pub enum ChainInput {
    /// A process took the chain: the epoch of its ownership row.
    Started {
        /// Epoch of the ownership row.
        incarnation: u64,
    },
    /// The molecule is in bd.
    Poured,
    /// The contract bead is held.
    RootHeld,
    /// The worktree is there.
    TreeReady {
        /// Directory.
        path: String,
        /// Branch.
        branch: String,
        /// Commit of HEAD.
        head: String,
        /// Whether it was found; else it was made.
        reused: bool,
    },
    /// The chain's beads were read.
    BeadsRead(BeadsView),
    /// The steps of this chain that bd calls ready. A set, so that a step listed twice can't be dispatched twice.
    ReadyListed(BTreeSet<StepId>),
    /// bd answered a claim.
    ClaimAnswered {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// What bd said.
        answer: ClaimAnswer,
    },
    /// A job ended. Comes again when the same job is asked for again.
    JobSettled {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// What it came to.
        outcome: Outcome,
    },
    /// The worktree was settled after a job.
    WorkSettled {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// What it came to.
        work: Work,
    },
    /// The evidence of a passed step is in bd.
    EvidenceNoted {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
    },
    /// The bead of a step is closed.
    StepClosed {
        /// Step.
        step: StepId,
    },
    /// The evidence of a failed gate is in bd.
    RoundNoted {
        /// Number of the round.
        round: u32,
    },
    /// The steps of a round are open in bd.
    RoundReopened {
        /// Number of the round.
        round: u32,
    },
    /// bd knows that a step is blocked.
    BlockNoted {
        /// Step.
        step: StepId,
    },
    /// An effect of one step can't be done, whatever is tried.
    StepRefused {
        /// Step.
        step: StepId,
        /// Stable code.
        code: String,
        /// What happened.
        detail: String,
    },
    /// An effect of the chain as a whole can't be done now.
    ChainRefused {
        /// Stable code.
        code: String,
        /// What happened.
        detail: String,
    },
    /// Somebody wants the chain stopped.
    StopAsked {
        /// Who or what.
        why: String,
    },
    /// The operator gives a note to a step and wants it worked again.
    Resumed {
        /// What the operator says.
        note: String,
        /// Step that works first; the blocked one by default.
        from: Option<StepId>,
    },
    /// The operator passes a step by hand.
    Accepted {
        /// Step.
        step: StepId,
    },
    /// The operator gives the chain up.
    AbandonAsked {
        /// Why.
        reason: String,
    },
    /// The molecule is closed and the contract bead free.
    Abandoned,
    /// The branch of a chain that is ready was moved by hand.
    BranchMoved {
        /// Commit that it stands at.
        head: String,
    },
    /// The tip is contained in the base: the beads may be closed.
    PublishAsked,
    /// The molecule and the contract bead are closed.
    Published,
}

//! Mailbox of a Coordinator: the shell of one chain.

use crate::chain::machine::ChainInput;
use crate::ids::StepId;
use crate::ports::Bead;

/// What the operator wants of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operator {
    /// Stop it; resumable.
    Stop {
        /// Who or what asks, such as `Ctrl-C`.
        why: String,
    },
    /// Give a note to a step and have it worked again.
    Resume {
        /// The note.
        note: String,
        /// Step that works first; the blocked one by default.
        from: Option<StepId>,
    },
    /// Pass a blocked step by hand.
    Accept {
        /// The step.
        step: StepId,
    },
    /// Give the chain up.
    Abandon {
        /// Why.
        reason: String,
    },
    /// The branch of a chain that is ready stands elsewhere now: what people added is to be judged.
    Judge {
        /// Commit that it stands at.
        head: String,
    },
    /// Its work is in the base: close its beads.
    Publish,
}

/// To a Coordinator.
#[derive(Debug)]
pub enum CoordinatorMsg {
    /// From Tracker, Workspaces and Jobs: the answer to an effect. Boxed, since few are large.
    Input(Box<ChainInput>),
    /// From Tracker: the contract bead, read again with the chain's beads.
    RootRead(Box<Bead>),
    /// From Tracker: a call failed and waits to be tried again; for people only.
    Waiting {
        /// On what, such as `tracker`.
        on: &'static str,
        /// Why.
        why: String,
    },
    /// From the Orchestrator: the operator's word.
    Operator(Operator),
    /// From itself: time to ask bd for ready steps.
    Poll,
    /// From itself: writes may work again.
    Advance,
    /// From the Orchestrator: an actor that owed answers was restarted; ask again for all that is outstanding.
    Reask,
}

//! Mailbox of Jobs: the supervisor of all activations.

use std::sync::Arc;

use ractor::{ActorId, ActorRef};

use super::CoordinatorMsg;
use crate::chain::machine::{ChainState, Outcome};
use crate::ids::{JobId, StepId};
use crate::ports::Bead;

/// One activation of a step, as its chain asks for it.
#[derive(Debug, Clone)]
pub struct Activation {
    /// The state that asks for it.
    pub chain: Arc<ChainState>,
    /// The contract bead, as last read.
    pub root: Arc<Bead>,
    /// Where its model is.
    pub settings: Arc<crate::actors::Settings>,
    /// Step.
    pub step: StepId,
    /// Its incarnation.
    pub epoch: u32,
    /// Job.
    pub job: JobId,
    /// Whether a failure ends the job.
    pub last_try: bool,
    /// Who asked.
    pub reply_to: ActorRef<CoordinatorMsg>,
}

/// To Jobs.
#[derive(Debug)]
pub enum JobsMsg {
    /// From a Coordinator: run this activation, or say what it came to.
    Start(Box<Activation>),
    /// From a Coordinator: stop a job. It answers with its outcome; a job that is gone is stopped.
    Stop {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// Job.
        job: JobId,
        /// Who asked.
        reply_to: ActorRef<CoordinatorMsg>,
    },
    /// From itself: the preparation of an activation is over.
    Prepared {
        /// The activation.
        activation: Box<Activation>,
        /// What to start, or why not.
        prepared: Box<Result<crate::actors::Prepared, Outcome>>,
    },
    /// From itself: a job's actor is gone. Said by mail, behind whatever the job said before.
    Gone {
        /// The actor.
        actor: ActorId,
        /// How it went.
        detail: String,
    },
    /// From a Job: it is over.
    Settled {
        /// Job.
        job: JobId,
        /// Its incarnation.
        epoch: u32,
        /// What it came to.
        outcome: Outcome,
    },
}

//! What a chain asks of the world. Derived from the state alone, so that nothing a crash swallowed is forgotten.
//!
//! | effect | key | harmless when repeated, because |
//! |---|---|---|
//! | `Pour` | molecule id | bd refuses a second molecule of that id: found, adopted |
//! | `HoldRoot` | chain id | sets the same status, holder and `sp_chain` |
//! | `PrepareTree` | branch | found by its branch before it is made |
//! | `Reread` | – | reads |
//! | `Claim` | step, epoch | the actor's name holds the epoch; who holds the bead is looked up |
//! | `StartJob` | job, epoch | a job that settled answers from the store; a live one goes on |
//! | `StopJob` | job, epoch | a job that is gone is stopped |
//! | `SettleWork` | job | commit and comparison look from where the job began |
//! | `Note` | job and round in the note's header | looked up before it is appended again |
//! | `Close`, `Reopen`, `NoteBlock`, `FreeRoot`, `ClosePublished` | bead | set the same status |

use crate::ids::{JobId, StepId};

use super::state::{Activity, ChainState, Phase, Status};

/// What a note says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteKind {
    /// Evidence of a step that passed.
    Passed,
    /// Evidence of a gate that failed, with the round that it opens.
    Failed,
}

/// What a chain asks of the world, once the events are on disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChainEffect {
    /// Create the molecule and its steps.
    Pour,
    /// Set the contract bead in progress, held by the chain.
    HoldRoot,
    /// Make or find the branch and the worktree.
    PrepareTree,
    /// Read the chain's beads.
    Reread,
    /// Claim a step's bead, releasing an older incarnation of ours.
    Claim {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
    },
    /// Start a job, or find what it came to.
    StartJob {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// Job.
        job: JobId,
        /// Whether a failure of it ends the job, since no try is left.
        last_try: bool,
    },
    /// Stop a job; it answers with `JobSettled`. It goes on with the next start of the chain, unless a round or the end
    /// of the chain leaves it behind.
    StopJob {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// Job.
        job: JobId,
    },
    /// Commit a writer's turn, or compare the tree after a reader's.
    SettleWork {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// Job.
        job: JobId,
    },
    /// Append evidence to a step's bead.
    Note {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// What it says.
        kind: NoteKind,
    },
    /// Close a step's bead.
    Close {
        /// Step.
        step: StepId,
    },
    /// Reopen the beads of a round in one batch.
    Reopen {
        /// Number of the round.
        round: u32,
    },
    /// Mark a step's bead blocked, with the reason.
    NoteBlock {
        /// Step.
        step: StepId,
    },
    /// Close the molecule and free the contract bead.
    FreeRoot,
    /// Close the molecule and the contract bead.
    ClosePublished,
}

/// Returns every effect that the state still asks for, in the order in which to perform them.
pub fn outstanding(chain: &ChainState) -> Vec<ChainEffect> {
    if chain.status.is_over() {
        return Vec::new();
    }
    let mut effects = Vec::new();
    if chain.must_reread {
        // Nothing else before bd was read: somebody may have closed what we were about to work on.
        effects.push(ChainEffect::Reread);
        return effects;
    }
    if chain.must_find_tree && chain.abandoning.is_none() {
        effects.push(ChainEffect::PrepareTree);
        return effects;
    }
    match chain.status {
        Status::Opened => effects.push(ChainEffect::Pour),
        Status::Poured => effects.push(ChainEffect::HoldRoot),
        Status::Held => effects.push(ChainEffect::PrepareTree),
        Status::Running | Status::Blocked | Status::Stopped { .. } | Status::Ready => {}
        Status::Published | Status::Abandoned | Status::Cancelled { .. } => return Vec::new(),
    }
    if let Status::Opened | Status::Poured | Status::Held = chain.status
        && (chain.stopping.is_some() || chain.abandoning.is_some())
    {
        effects.clear();
    }
    steps(chain, &mut effects);
    rounds(chain, &mut effects);
    if chain.publishing {
        effects.push(ChainEffect::ClosePublished);
    }
    if chain.abandoning.is_some() && chain.at_rest() {
        effects.push(ChainEffect::FreeRoot);
    }
    effects
}

/// Returns the effects that `after` asks for and `before` did not.
pub fn newly_outstanding(before: &ChainState, after: &ChainState) -> Vec<ChainEffect> {
    let known = outstanding(before);
    outstanding(after).into_iter().filter(|effect| !known.contains(effect)).collect()
}

fn steps(chain: &ChainState, effects: &mut Vec<ChainEffect>) {
    for (shape, state) in chain.in_order() {
        let (step, epoch) = (shape.id.clone(), state.epoch);
        let job = || chain.job_of(&shape.id, state.round);
        match &state.phase {
            Phase::Active(Activity::Claiming) => effects.push(ChainEffect::Claim { step, epoch }),
            Phase::Active(Activity::Running) if chain.is_halting(&shape.id) => {
                effects.push(ChainEffect::StopJob { step, epoch, job: job() });
            }
            Phase::Active(Activity::Running) => {
                let last_try = state.failures >= chain.limits.retries;
                effects.push(ChainEffect::StartJob { step, epoch, job: job(), last_try });
            }
            Phase::Active(Activity::Settling { .. }) => {
                effects.push(ChainEffect::SettleWork { step, epoch, job: job() });
            }
            // A gate whose failure opens a round is noted by the round.
            Phase::Active(Activity::Noting) if is_gate_of_round(chain, &shape.id) => {}
            Phase::Active(Activity::Noting) => effects.push(ChainEffect::Note { step, epoch, kind: NoteKind::Passed }),
            Phase::Active(Activity::Closing) => effects.push(ChainEffect::Close { step }),
            Phase::Blocked { noted: false, .. } => effects.push(ChainEffect::NoteBlock { step }),
            Phase::Active(Activity::Interrupted)
            | Phase::Blocked { noted: true, .. }
            | Phase::Pending
            | Phase::Closed => {}
        }
    }
}

fn is_gate_of_round(chain: &ChainState, step: &StepId) -> bool {
    chain.reopening.as_ref().is_some_and(|reopening| reopening.gate.as_ref() == Some(step))
}

fn rounds(chain: &ChainState, effects: &mut Vec<ChainEffect>) {
    let Some(reopening) = &chain.reopening else { return };
    if let (false, Some(gate)) = (reopening.noted, &reopening.gate) {
        let epoch = chain.steps.get(gate).map_or(0, |state| state.epoch);
        effects.push(ChainEffect::Note { step: gate.clone(), epoch, kind: NoteKind::Failed });
        return;
    }
    // A step on its way to closing closes first: its close, sent after the reopening, would undo it.
    let quiet = reopening.steps.iter().all(|step| match chain.steps.get(step).map(|state| &state.phase) {
        Some(Phase::Active(Activity::Noting)) => reopening.gate.as_ref() == Some(step),
        Some(
            Phase::Active(Activity::Claiming | Activity::Running | Activity::Settling { .. } | Activity::Closing)
            | Phase::Blocked { noted: false, .. },
        ) => false,
        Some(Phase::Active(Activity::Interrupted) | Phase::Pending | Phase::Closed | Phase::Blocked { .. }) | None => {
            true
        }
    });
    // A stopped chain opens its round when it goes on: opened later than that, it would undo a claim.
    let halted = chain.stopping.is_some() || matches!(chain.status, Status::Stopped { .. });
    if quiet && !halted && chain.abandoning.is_none() {
        effects.push(ChainEffect::Reopen { round: reopening.round });
    }
}

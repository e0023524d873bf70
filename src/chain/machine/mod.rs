//! What a chain does next. No clock, no I/O. Design: docs/design/chain-machine.md.

mod decide;
mod event;
mod evolve;
mod input;
mod judge;
mod note;
mod outstanding;
mod recover;
mod state;

#[cfg(test)]
mod simulator;
#[cfg(test)]
mod tests;

pub use decide::decide;
pub use event::{Cause, ChainEvent, ClosedBy, Opening};
pub use evolve::{evolve, fold};
pub use input::{BeadsView, ChainInput, Outcome, StepView, Work};
pub use note::{block_of, evidence_of, request_of};
pub use outstanding::{ChainEffect, NoteKind, newly_outstanding, outstanding};
pub use recover::{StepRecord, recovered};
#[cfg(test)]
pub(crate) use simulator::{Dice, opening, step};
#[cfg(test)]
pub use state::job_id;
pub use state::{Activity, Blocked, ChainState, Limits, Phase, Scrutinies, Status, StepState};

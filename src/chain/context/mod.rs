//! What a step is told: the envelope of the chain, and the parts of its prompt. Design: docs/design/envelope.md.

mod compose;
mod envelope;
mod excerpt;
mod facts;
mod fence;
mod read;

pub use compose::{
    Access, CONTRACT_LIMIT, DiffText, Handoff, PromptInput, PromptParts, RoundFinding, compose, resume_text, round_text,
};
pub use envelope::{EnvelopeClass, EnvelopeFacts, PendingStep, Position, StepStatus, UpstreamStep};
pub use facts::{StepProgress, facts_from};
pub use read::{EnvelopeError, parse_envelope};

#[cfg(test)]
mod tests;

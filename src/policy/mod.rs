//! Pure: what policy says of a request. Design: docs/design/contract.md.

mod evaluate;
mod finding;
mod mode;
mod overlap;
mod preflight;
mod refusal;

pub use evaluate::{Ruling, evaluate};
pub use finding::{Disposition, Finding, FindingKind, POLICY_VERSION};
pub use mode::{Mode, ModeError, Modes};
pub use overlap::overlap;
pub use preflight::{LiveChain, Preflight, RootFacts};
pub use refusal::{Refusal, RefusedError};

#[cfg(test)]
mod tests;

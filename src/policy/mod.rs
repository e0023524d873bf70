//! Pure: what policy says of a request. Design: docs/design/contract.md.

mod evaluate;
mod finding;
mod mode;
mod overlap;
mod preflight;
mod refusal;

pub use evaluate::{Ruling, evaluate};
pub use finding::{Disposition, FindingKind, POLICY_VERSION};
pub use mode::{Mode, Modes};
pub use preflight::{LiveChain, Preflight, RootFacts};
pub use refusal::RefusedError;

#[cfg(test)]
mod tests;

//! What a root bead binds us to: its change contract, in XML or under headings. Design: docs/design/contract.md.

mod error;
mod markdown;
mod model;
mod parse;
mod xml;

pub use error::ContractError;
pub use model::{Contract, ContractKind, ContractView, Form, Section, missing};
pub use parse::parse;

#[cfg(test)]
mod tests;

//! What a root bead binds us to: its change contract, in XML or under headings. Design: docs/design/contract.md.

mod error;
mod markdown;
mod model;
mod parse;
mod xml;

pub use error::ContractError;
pub use markdown::parse_markdown;
pub use model::{Contract, ContractKind, Form, Scope, Section, UnknownPart, missing};
pub use parse::parse;
pub use xml::parse_xml;

#[cfg(test)]
mod tests;

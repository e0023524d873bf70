//! Which form a description holds.

use super::error::ContractError;
use super::markdown::parse_markdown;
use super::model::Contract;
use super::xml::{parse_xml, starts};

/// Reads the contract of a bead's description.
///
/// A `<change-contract>` element wins over headings. A description with neither is a contract of form `none`, which
/// lacks every section; that is no error, since beads were written before there were contracts.
pub fn parse(description: &str) -> Result<Contract, ContractError> {
    if starts(description).is_empty() { parse_markdown(description) } else { parse_xml(description) }
}

//! Why a contract could not be read.

use crate::chain::scrutiny::UnknownScrutiny;
use crate::failure::{Explain, FailureKind};
use crate::nearest::advice;

use super::model::ContractKind;

/// Why a bead's description gave no contract. Positions count from 1 and are those of the description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractError {
    /// The XML is not well formed.
    #[error("read the change contract, line {line}, column {column}: {reason}")]
    Malformed {
        /// Line.
        line: u32,
        /// Column, in characters.
        column: u32,
        /// What the XML reader says.
        reason: String,
    },
    /// There is more than one contract, and nothing says which one counts.
    #[error("read the change contract: the description holds {count} of them (the second in line {line})")]
    Several {
        /// How many.
        count: usize,
        /// Line of the second.
        line: u32,
    },
    /// The contract's type is none we know.
    #[error("read the contract's type `{found}`: {}", advice(.found, &ContractKind::WORDS))]
    UnknownKind {
        /// The word.
        found: String,
    },
    /// The contract's scrutiny is no level.
    #[error("read the contract's scrutiny")]
    UnknownScrutiny(#[source] UnknownScrutiny),
}

impl Explain for ContractError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        let (code, next) = match self {
            Self::Malformed { .. } => (
                "contract_malformed",
                "mend the XML in the bead's description (`<`, `>` and `&` in text are written `&lt;`, `&gt;`, `&amp;`)",
            ),
            Self::Several { .. } => ("contract_ambiguous", "leave one <change-contract> in the bead's description"),
            Self::UnknownKind { .. } => ("contract_type_unknown", "set the contract's type to one of the known words"),
            Self::UnknownScrutiny(_) => {
                ("contract_scrutiny_unknown", "set the contract's scrutiny to one of the known levels")
            }
        };
        (FailureKind::Refused, code, next.to_owned())
    }
}

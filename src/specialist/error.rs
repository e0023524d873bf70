//! What can be wrong with a specialist.

use super::contract::ContractError;
use crate::failure::{Explain, FailureKind};

/// Why a specialist could not be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecialistError {
    /// The file is not JSON, or a field has the wrong type or value.
    #[error("read specialist {file}: field `{path}`: {reason}")]
    Malformed {
        /// The file as it was named to us.
        file: String,
        /// Where in the file, such as `specialist.execution.timeout_ms`.
        path: String,
        /// What is wrong there.
        reason: String,
    },
    /// A field that the schema does not have: a slip that would otherwise be ignored.
    #[error("read specialist {file}: no field `{path}` in the schema{}", did_you_mean(nearest))]
    UnknownField {
        /// The file as it was named to us.
        file: String,
        /// The full path of the field.
        path: String,
        /// Fields of the same object that resemble it.
        nearest: Vec<String>,
    },
    /// The output schema can't be used as a contract.
    #[error("read specialist {file}: field `specialist.prompt.output_schema`")]
    OutputSchema {
        /// The file as it was named to us.
        file: String,
        /// What is wrong with the schema.
        #[source]
        source: ContractError,
    },
    /// There is no such specialist.
    #[error("find specialist {name}{}", did_you_mean(nearest))]
    Unknown {
        /// The name asked for.
        name: String,
        /// Names that resemble it.
        nearest: Vec<String>,
        /// All names there are.
        known: Vec<String>,
    },
}

fn did_you_mean(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

impl Explain for SpecialistError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        match self {
            Self::Malformed { file, path, .. } => {
                (FailureKind::Usage, "specialist_malformed", format!("correct `{path}` in {file}"))
            }
            Self::UnknownField { file, path, .. } => {
                (FailureKind::Usage, "specialist_unknown_field", format!("rename or remove `{path}` in {file}"))
            }
            Self::OutputSchema { file, .. } => (
                FailureKind::Usage,
                "specialist_output_schema",
                format!("correct `specialist.prompt.output_schema` in {file}"),
            ),
            Self::Unknown { known, .. } => {
                (FailureKind::NotFound, "specialist_unknown", format!("use one of: {}", known.join(", ")))
            }
        }
    }
}

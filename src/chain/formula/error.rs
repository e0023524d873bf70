//! Why a formula can't be used.

use std::error::Error;
use std::fmt;

use crate::failure::{Explain, FailureKind};
use crate::nearest::hint;

/// Where in a formula something stands: file, step, field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File, or `built-in NAME`.
    pub origin: String,
    /// Id of the step, or `#3` for the third step when it has no usable id.
    pub step: Option<String>,
    /// Field, dotted below the step or the formula, such as `metadata.area`.
    pub field: String,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.origin)?;
        if let Some(step) = &self.step {
            write!(out, ", step {step}")?;
        }
        if self.field.is_empty() { Ok(()) } else { write!(out, ", field {}", self.field) }
    }
}

/// Why a formula could not be found, read or resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormulaError {
    /// The name could lead out of a formula directory.
    #[error(
        "find formula {name:?}: a name holds letters, digits, `-`, `_` and `.` only, and starts with a letter or digit"
    )]
    BadName {
        /// As given.
        name: String,
    },
    /// No layer of the search path has it.
    #[error("find formula {name}{}: not in the search path{}", wanted(.wanted_by), hint(.nearest))]
    NotFound {
        /// As given.
        name: String,
        /// The formula that extends it.
        wanted_by: Option<String>,
        /// Names that resemble it.
        nearest: Vec<String>,
    },
    /// The file or directory is there and can't be read.
    #[error("read {origin}")]
    Unreadable {
        /// File or directory.
        origin: String,
        /// What the system said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Not JSON or TOML.
    #[error("parse {origin}, line {line}, column {column}: {problem}")]
    Syntax {
        /// File.
        origin: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What the parser said.
        problem: String,
    },
    /// A key that bd's schema does not have; bd itself would drop it silently.
    #[error("read {at}: not a key of the formula schema{}", hint(.nearest))]
    UnknownKey {
        /// Where; the field is the key.
        at: Place,
        /// Keys that resemble it.
        nearest: Vec<String>,
    },
    /// A key of bd's schema that sp can't run yet.
    #[error("read {at}: bd knows it, sp can't run it yet")]
    Unsupported {
        /// Where; the field is the key.
        at: Place,
    },
    /// A value of the wrong type or out of its range, or a missing one.
    #[error("read {at}: {problem}")]
    Malformed {
        /// Where.
        at: Place,
        /// What is wrong with it.
        problem: String,
    },
    /// Formulas that extend each other.
    #[error("resolve extends: {} is a circle", .chain.join(" -> "))]
    ExtendsCycle {
        /// Names in order; the last is the first again.
        chain: Vec<String>,
    },
    /// Two steps of one id, in one formula or in two parents.
    #[error("read {second}, step {step}: the id is taken by a step of {first}")]
    DuplicateStep {
        /// The id.
        step: String,
        /// File of the first.
        first: String,
        /// File of the second.
        second: String,
    },
    /// A value for a variable that the formula does not declare.
    #[error("set variable {name} of formula {formula}: not declared{}", hint(.nearest))]
    UnknownVar {
        /// Formula.
        formula: String,
        /// As given.
        name: String,
        /// Declared names that resemble it.
        nearest: Vec<String>,
    },
    /// Variables that need a value and have none.
    #[error("resolve formula {formula}: no value for {}", .names.join(", "))]
    MissingVars {
        /// Formula.
        formula: String,
        /// All of them.
        names: Vec<String>,
    },
    /// A value that breaks enum, pattern or type of its variable.
    #[error("set variable {name} of formula {formula} to {value:?}: {problem}")]
    BadValue {
        /// Formula.
        formula: String,
        /// Variable.
        name: String,
        /// The value, given or default.
        value: String,
        /// The rule it breaks.
        problem: String,
    },
    /// `{{name}}` of a variable that is not declared.
    #[error("substitute {{{{{name}}}}} in {at}: no such variable is declared{}", hint(.nearest))]
    Undeclared {
        /// Where it is used.
        at: Place,
        /// The name between the braces.
        name: String,
        /// Declared names that resemble it.
        nearest: Vec<String>,
    },
}

fn wanted(by: &Option<String>) -> String {
    by.as_ref().map(|by| format!(" (extended by {by})")).unwrap_or_default()
}

impl Explain for FormulaError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        let list = "see the formulas there are: `sp formula list`".to_owned();
        let file = |origin: &str| format!("correct {origin}, then `sp formula validate` it");
        match self {
            Self::BadName { .. } => (FailureKind::Usage, "formula_name_bad", list),
            Self::NotFound { .. } => (FailureKind::NotFound, "formula_not_found", list),
            Self::Unreadable { origin, .. } => {
                (FailureKind::Usage, "formula_unreadable", format!("make {origin} readable as UTF-8 text"))
            }
            Self::Syntax { origin, .. } => (FailureKind::Usage, "formula_syntax", file(origin)),
            Self::UnknownKey { at, .. } => (FailureKind::Usage, "formula_unknown_key", file(&at.origin)),
            Self::Unsupported { at } => (
                FailureKind::Usage,
                "formula_unsupported",
                format!("write {} without {}; docs/design/formulas.md lists what sp runs", at.origin, at.field),
            ),
            Self::Malformed { at, .. } => (FailureKind::Usage, "formula_malformed", file(&at.origin)),
            Self::ExtendsCycle { .. } => {
                (FailureKind::Usage, "formula_extends_cycle", "remove one `extends` of the circle".to_owned())
            }
            Self::DuplicateStep { second, .. } => (FailureKind::Usage, "formula_duplicate_step", file(second)),
            Self::UnknownVar { formula, .. } => (FailureKind::Usage, "var_unknown", variables(formula)),
            Self::MissingVars { formula, names } => (
                FailureKind::Usage,
                "var_missing",
                format!(
                    "give {}; {}",
                    names.iter().map(|name| format!("`--var {name}=…`")).collect::<Vec<_>>().join(" "),
                    variables(formula)
                ),
            ),
            Self::BadValue { formula, .. } => (FailureKind::Usage, "var_bad_value", variables(formula)),
            Self::Undeclared { at, .. } => (FailureKind::Usage, "var_undeclared", file(&at.origin)),
        }
    }
}

fn variables(formula: &str) -> String {
    format!("see its variables: `sp formula show {formula}`")
}

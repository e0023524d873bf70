//! Formulas: bd's schema from text to steps with nothing left to fill in. Design: docs/design/formulas.md.

mod condition;
mod error;
mod fields;
mod inherit;
mod library;
mod parse;
mod resolve;
mod schema;
mod substitute;
mod text;
mod vars;

pub use error::FormulaError;
pub use inherit::load;
pub use library::{Format, FormulaSource, Listed, SearchPath, SourceText, check_name, choose};
#[cfg(test)]
pub use parse::parse;
pub use resolve::{Resolved, ResolvedStep, resolve, resolve_named};
pub use schema::{Formula, FormulaStep, Var, VarKind};

//! Pure: specialists, their prompts and output contracts. Design: docs/design/outputs.md.

mod contract;
mod error;
mod fields;
mod output;
mod prompt;
mod roster;
mod scan;
mod spec;
mod tier;

pub use contract::Contract;
pub use error::SpecialistError;
pub use output::{Answer, OutputProblem, check, extract, re_ask, seconder_overall};
pub use prompt::{TaskVars, render_task, render_template, system_text};
pub use roster::Roster;
pub use spec::{Specialist, Thinking};
pub use tier::Tier;

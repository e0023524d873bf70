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
pub use output::{Answer, OutputProblem, check, re_ask};
pub use prompt::{TaskVars, render_task, system_text};
pub use roster::Roster;
pub use spec::Specialist;
pub use tier::Tier;

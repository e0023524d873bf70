//! `sp formula …`: the templates of chains.

use super::context::Context;
use super::output::Exit;
use super::{formula_list, formula_show, formula_validate};
use crate::failure::Failure;

/// Look at formulas, the templates of chains
#[derive(Debug, clap::Subcommand)]
pub enum FormulaCommand {
    /// List the formulas that can be run from here
    List,
    /// Show variables, steps and output contracts of a formula
    Show(formula_show::ShowArgs),
    /// Check a formula, by name or file
    Validate(formula_validate::ValidateArgs),
}

/// Runs the command.
pub fn run(command: &FormulaCommand, cx: &Context) -> Result<Exit, Failure> {
    match command {
        FormulaCommand::List => formula_list::run(cx),
        FormulaCommand::Show(args) => formula_show::run(args, cx),
        FormulaCommand::Validate(args) => formula_validate::run(args, cx),
    }
}

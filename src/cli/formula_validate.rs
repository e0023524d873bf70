//! `sp formula validate`: everything that is checked before a chain of it is created.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::context::Context;
use super::formula_sources::{OneFile, compiled, is_path, sources, variable_value};
use super::output::{Exit, Human};
use super::table::one_line;
use crate::chain::formula::{FormulaSource, load};
use crate::failure::Failure;
use crate::specialist::Roster;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sp formula validate code-standard
  sp formula validate .beads/formulas/mine.formula.toml --var area=docs

Checked are syntax, keys, `extends`, variables, conditions, roles, and the order of
writers and gates. A required variable without a value is stood in for; one with a
pattern must be given.")]
pub struct ValidateArgs {
    /// Formula, by name or file
    formula: String,
    /// Value for a variable of the formula; may be given more than once
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable_value)]
    vars: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
struct Valid {
    formula: String,
    origin: String,
    /// Number of steps that a chain of it has.
    steps: usize,
}

impl Human for Valid {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} is valid: {} steps ({})", self.formula, self.steps, one_line(&self.origin))
    }
}

/// Runs the command.
pub fn run(args: &ValidateArgs, cx: &Context) -> Result<Exit, Failure> {
    let given = args.vars.iter().cloned().collect();
    let valid = if is_path(&args.formula) {
        let file = OneFile::new(&args.formula, cx)?;
        validated(file.name(), &file, &given)?
    } else {
        validated(&args.formula, &sources(cx), &given)?
    };
    cx.printer.print(&valid)
}

fn validated(name: &str, source: &dyn FormulaSource, given: &BTreeMap<String, String>) -> Result<Valid, Failure> {
    let formula = load(name, source)?;
    let shape = compiled(&formula, given, &Roster::shipped())?;
    Ok(Valid { formula: formula.name, origin: formula.origin, steps: shape.steps.len() })
}

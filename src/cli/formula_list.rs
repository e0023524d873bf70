//! `sp formula list`: the formulas that can be run from here.

use std::io::{self, Write};

use serde::Serialize;

use super::context::Context;
use super::formula_sources::sources;
use super::output::{Exit, Human};
use super::table::{Table, terminal_width};
use crate::chain::formula::{FormulaSource, load};
use crate::failure::Failure;

#[derive(Debug, Serialize)]
struct Line {
    name: String,
    /// File, or `built-in NAME`.
    origin: String,
    description: String,
    /// Why it can't be used; `null` when it can.
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct FormulaList {
    formulas: Vec<Line>,
    #[serde(skip)]
    width: Option<usize>,
}

impl Human for FormulaList {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new(["FORMULA", "ORIGIN", "DESCRIPTION"], &[2, 1]);
        for line in &self.formulas {
            let description = match &line.problem {
                Some(problem) => format!("broken: {problem}"),
                None => line.description.clone(),
            };
            table.row([line.name.clone(), line.origin.clone(), description]);
        }
        table.write(out, self.width)
    }
}

/// Runs the command.
pub fn run(cx: &Context) -> Result<Exit, Failure> {
    let list = FormulaList { formulas: listed(&sources(cx))?, width: terminal_width() };
    cx.printer.print(&list)
}

/// One that is broken is listed as that: it hides another of its name, and nobody would know why.
fn listed(source: &dyn FormulaSource) -> Result<Vec<Line>, Failure> {
    let line = |name: String, origin: String| match load(&name, source) {
        Ok(formula) => Line { name, origin, description: formula.description, problem: None },
        Err(error) => Line { name, origin, description: String::new(), problem: Some(Failure::from(error).message) },
    };
    Ok(source.list()?.into_iter().map(|listed| line(listed.name, listed.origin)).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cli::fixture::text;
    use crate::formulas::search_path;

    #[test]
    fn a_broken_formula_is_listed_with_what_is_wrong() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("mine.formula.toml"), "formula = 'mine'\nneed = 1\n").unwrap();
        let list = FormulaList { formulas: listed(&search_path([directory.path().to_owned()])).unwrap(), width: None };
        let shown = text(&list);
        let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.splitn(2, ' ').collect()).collect();
        assert_eq!((lines[1][0], lines[2][0], lines.len()), ("code-standard", "mine", 3));
        assert!(lines[1][1].contains("built-in code-standard ") && lines[1][1].contains(" The default way"), "{shown}");
        assert!(lines[2][1].contains("broken: read ") && lines[2][1].contains("field need"), "{shown}");
    }
}

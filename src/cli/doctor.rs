//! `sp doctor`: what sp needs, what it found, and what is left behind.

mod look;

use std::io::{self, Write};

use serde::Serialize;

use super::context::Context;
use super::error::CliError;
use super::output::{Exit, Human};
use super::table::one_line;
use crate::failure::Failure;

/// How one thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// Works, but not well.
    Warn,
    /// Missing, and needed.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Check {
    name: &'static str,
    level: Level,
    /// What was found.
    found: String,
    /// What to do about it; safe to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, level: Level::Ok, found: found.into(), next: None }
    }

    fn note(name: &'static str, found: impl Into<String>) -> Self {
        Self { level: Level::Note, ..Self::ok(name, found) }
    }

    fn warn(name: &'static str, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self { level: Level::Warn, next: Some(next.into()), ..Self::ok(name, found) }
    }

    fn fail(name: &'static str, failure: impl Into<Failure>) -> Self {
        let failure = failure.into();
        Self { name, level: Level::Fail, found: failure.message, next: Some(failure.next_safe_action) }
    }
}

/// All that was looked at.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// Whether chains can run here.
    usable: bool,
    checks: Vec<Check>,
}

impl Diagnosis {
    fn of(checks: Vec<Check>) -> Self {
        Self { usable: checks.iter().all(|check| check.level < Level::Fail), checks }
    }

    /// Returns the failure that stands for everything that is missing.
    fn failure(&self) -> Option<CliError> {
        let missing: Vec<&Check> = self.checks.iter().filter(|check| check.level == Level::Fail).collect();
        let next = missing.first()?.next.clone().unwrap_or_default();
        Some(CliError::NotUsable { faults: missing.iter().map(|check| check.found.clone()).collect(), next })
    }
}

impl Human for Diagnosis {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for check in &self.checks {
            let (color, word) = match check.level {
                Level::Ok => (anstyle::AnsiColor::Green, "ok"),
                Level::Note => (anstyle::AnsiColor::Blue, "note"),
                Level::Warn => (anstyle::AnsiColor::Yellow, "warn"),
                Level::Fail => (anstyle::AnsiColor::Red, "FAIL"),
            };
            let style = color.on_default();
            writeln!(out, "{style}{word:<4}{style:#}  {:<11}  {}", check.name, one_line(&check.found))?;
            if let Some(next) = &check.next {
                writeln!(out, "{:<4}  {:<11}  next: {}", "", "", one_line(next))?;
            }
        }
        Ok(())
    }
}

/// Runs the command.
pub fn run(cx: &Context) -> Result<Exit, Failure> {
    let diagnosis = Diagnosis::of(look::all(cx)?);
    match diagnosis.failure() {
        None => cx.printer.print(&diagnosis),
        Some(missing) => cx.printer.print_failed(&diagnosis, &missing.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fixture::text;
    use crate::ports::TrackerError;

    #[test]
    fn what_is_missing_makes_the_place_unusable_and_a_warning_does_not() {
        let fine = vec![Check::ok("git", "2.39.5"), Check::warn("fd", "not found", "install fd")];
        assert!(Diagnosis::of(fine).failure().is_none());
        let missing = TrackerError::Missing { verb: "version", program: "bd".into() };
        let diagnosis = Diagnosis::of(vec![
            Check::ok("git", "2.39.5"),
            Check::note("node", "not\u{1b} found"),
            Check::fail("bd", missing),
        ]);
        let failure = Failure::from(diagnosis.failure().unwrap());
        assert_eq!((failure.exit, failure.error_code), (6, "not_usable"));
        insta::assert_snapshot!(text(&diagnosis), @"
        ok    git          2.39.5
        note  node         not  found
        FAIL  bd           run `bd version`: there is no executable `bd`
                           next: install bd 1.3 (README, section Install), then `sp doctor`
        ");
        assert_eq!(failure.message, "check what sp needs: run `bd version`: there is no executable `bd`");
    }
}

//! Printing: one report or one failure, as text or as one JSON object.

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use serde::Serialize;

use super::error::CliError;
use crate::failure::Failure;

/// The exit status of a command that printed what it had to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(pub u8);

impl Exit {
    /// All went well.
    pub const SUCCESS: Self = Self(0);
}

/// What a person reads. Colours are written as they come; the printer takes them out where nobody sees them.
pub trait Human {
    /// Writes the text, lines ended.
    fn human(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// How a command speaks: text for people, or JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text on stdout, failures on stderr.
    Text,
    /// One object on stdout, also for a failure.
    Json,
}

/// Prints to the process's own streams.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    format: Format,
}

/// A report as it stands under `--json`: its own fields after `"ok": true`.
#[derive(Serialize)]
struct Success<'a, T> {
    ok: bool,
    #[serde(flatten)]
    report: &'a T,
}

/// A failure that has a report all the same, such as a blocked chain.
#[derive(Serialize)]
struct Failed<'a, T> {
    #[serde(flatten)]
    failure: &'a Failure,
    report: &'a T,
}

impl Printer {
    /// Makes a printer.
    pub fn new(format: Format) -> Self {
        Self { format }
    }

    /// Returns whether JSON was asked for.
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Prints the one report of a command. `T` must serialize as an object without `ok`.
    pub fn print<T: Serialize + Human>(&self, report: &T) -> Result<Exit, Failure> {
        match self.format {
            Format::Text => finish(self.text(report)),
            Format::Json => finish(write_json(&Success { ok: true, report })),
        }
    }

    /// Prints a report of something that did not end well: under `--json` the failure with the report inside, as text
    /// the report and then the failure on stderr. The exit status is the failure's.
    pub fn print_failed<T: Serialize + Human>(&self, report: &T, failure: &Failure) -> Result<Exit, Failure> {
        let written = match self.format {
            Format::Text => self.text(report).and_then(|()| failure_text(failure, &mut anstream::stderr().lock())),
            Format::Json => write_json(&Failed { failure, report }),
        };
        finish(written).map(|_| Exit(failure.exit))
    }

    /// Prints text that may hold anything, byte for byte; a terminal is spared its control characters.
    pub fn print_raw(&self, text: &str) -> Result<Exit, Failure> {
        let mut out = io::stdout().lock();
        let shown = if out.is_terminal() { printable(text) } else { text.to_owned() };
        let end = if shown.ends_with('\n') { "" } else { "\n" };
        finish(write!(out, "{shown}{end}").and_then(|()| out.flush()))
    }

    /// Prints a failure where it belongs; returns its exit status.
    pub fn print_failure(&self, failure: &Failure) -> Exit {
        let written = match self.format {
            Format::Text => failure_text(failure, &mut anstream::stderr().lock()),
            Format::Json => write_json(failure),
        };
        // Nowhere is left to say that nothing can be said.
        drop(written);
        Exit(failure.exit)
    }

    /// Says something beside the report, on stderr; under `--json` nothing.
    pub fn remark(&self, text: &str) {
        if self.format == Format::Text {
            // A lost remark is no reason to end.
            drop(writeln!(io::stderr().lock(), "{text}"));
        }
    }

    fn text(&self, report: &impl Human) -> io::Result<()> {
        let mut out = BufWriter::new(anstream::stdout().lock());
        report.human(&mut out)?;
        out.flush()
    }
}

/// Prints lines as they come, for as long as somebody reads them.
pub struct Lines {
    out: Box<dyn Write>,
    closed: bool,
}

impl Lines {
    /// Opens stdout; JSON is written as it is, text without colours where nobody sees them.
    pub fn open(printer: Printer) -> Self {
        let out: Box<dyn Write> = match printer.format {
            Format::Text => Box::new(BufWriter::new(anstream::stdout().lock())),
            Format::Json => Box::new(BufWriter::new(io::stdout().lock())),
        };
        Self { out, closed: false }
    }

    /// Writes one line; nothing once the reader has gone.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.passed(|out| writeln!(out, "{text}"))
    }

    /// Hands everything to the reader.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.passed(|out| out.flush())
    }

    /// Returns whether the reader has gone.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    fn passed(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        if self.closed {
            return Ok(());
        }
        match write(&mut *self.out) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            written => Ok(written.map_err(CliError::Output)?),
        }
    }
}

/// A reader that had enough closes the pipe (`sp ps | head -1`): that is success.
fn finish(written: io::Result<()>) -> Result<Exit, Failure> {
    match written {
        Ok(()) => Ok(Exit::SUCCESS),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::SUCCESS),
        Err(error) => Err(CliError::Output(error).into()),
    }
}

/// Writes one object and a line feed. Not through anstream: JSON escapes what a terminal would take as a command.
fn write_json(object: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(object)?;
    text.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a failure for people: what, what next, what stands in the way, where to look.
fn failure_text(failure: &Failure, out: &mut dyn Write) -> io::Result<()> {
    let (error, label) = (anstyle::AnsiColor::Red.on_default().bold(), anstyle::Style::new().bold());
    writeln!(out, "{error}error:{error:#} {}", printable(&failure.message))?;
    writeln!(out, "{label}next:{label:#} {}", printable(&failure.next_safe_action))?;
    if !failure.blocked_by.is_empty() {
        writeln!(out, "{label}blocked by:{label:#} {}", printable(&failure.blocked_by.join(", ")))?;
    }
    if let Some(command) = &failure.diagnose_command {
        writeln!(out, "{label}see:{label:#} {}", printable(command))?;
    }
    Ok(())
}

/// Returns a text without the characters that a terminal would obey; line feeds and tabs stay.
pub fn printable(text: &str) -> String {
    let shown =
        |each: char| if each.is_control() && each != '\n' && each != '\t' { char::REPLACEMENT_CHARACTER } else { each };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_tells_what_what_next_what_blocks_and_where_to_look() {
        let failure = Failure {
            ok: false,
            error_code: "bead_held",
            kind: "contested",
            message: "claim bead p-1: held by \u{1b}[31mann".into(),
            blocked_by: vec!["p-2".into(), "p-3".into()],
            next_safe_action: "wait".into(),
            diagnose_command: Some("sp ps".into()),
            exit: 5,
        };
        let mut out = anstream::StripStream::new(Vec::new());
        failure_text(&failure, &mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out.into_inner()).unwrap(), @r"
        error: claim bead p-1: held by �[31mann
        next: wait
        blocked by: p-2, p-3
        see: sp ps
        ");
    }

    #[test]
    fn a_report_stands_beside_ok_and_in_a_failure_inside() {
        #[derive(Serialize)]
        struct Report {
            steps: u32,
        }
        let report = Report { steps: 2 };
        let success = serde_json::to_string(&Success { ok: true, report: &report }).unwrap();
        assert_eq!(success, r#"{"ok":true,"steps":2}"#);
        let failure = Failure {
            ok: false,
            error_code: "c",
            kind: "blocked",
            message: "m".into(),
            blocked_by: vec![],
            next_safe_action: "n".into(),
            diagnose_command: None,
            exit: 7,
        };
        let failed = serde_json::to_string(&Failed { failure: &failure, report: &report }).unwrap();
        assert_eq!(
            failed,
            r#"{"ok":false,"error_code":"c","kind":"blocked","message":"m","blocked_by":[],"next_safe_action":"n","report":{"steps":2}}"#
        );
    }
}

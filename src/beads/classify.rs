//! What a failed call means. bd tells its failures apart by text alone: the needles are here and nowhere else.

use std::path::Path;

use crate::ids::BeadId;
use crate::ports::TrackerError;

/// The kinds of failure that ask for different acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// No bead of that id.
    NotFound,
    /// No `.beads` where bd looked.
    NoWorkspace,
    /// The named holder does not hold the bead.
    NotHeld,
    /// A bead of that id is there.
    AlreadyExists,
    /// bd understood and said no; asking again brings the same answer.
    Refused,
    /// It may pass: lock, disk, damage, crash, and every text that we don't know.
    Failed,
}

/// What bd said, and how we read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Complaint {
    pub class: Class,
    /// Whether the class is read from the text or the exit; else nobody has met such a text.
    pub is_known: bool,
    /// bd's own words, on one line, shortened.
    pub reason: String,
}

/// Needles in lower case, the first hit decides. Refusals name beads and flags, so the order is from the store outwards.
const NEEDLES: &[(&str, Class)] = &[
    ("no beads database found", Class::NoWorkspace),
    ("no_beads_directory", Class::NoWorkspace),
    ("no .beads directory found", Class::NoWorkspace),
    ("no active beads workspace", Class::NoWorkspace),
    ("panic:", Class::Failed),
    ("fatal error:", Class::Failed),
    ("no space left on device", Class::Failed),
    ("failed to open database", Class::Failed),
    ("database not found", Class::Failed),
    ("database is locked", Class::Failed),
    ("waiting for other bd commands", Class::Failed),
    ("lock wait timeout", Class::Failed),
    (".lock': file exists", Class::Failed),
    ("another git process seems to be running", Class::Failed),
    ("cannot lock ref", Class::Failed),
    ("could not lock", Class::Failed),
    ("i/o timeout", Class::Failed),
    ("invalid connection", Class::Failed),
    ("deadline exceeded", Class::Failed),
    ("connection refused", Class::Failed),
    ("cannot resolve default branch head", Class::Failed),
    ("invalid journal record", Class::Failed),
    ("corrupt", Class::Failed),
    ("needs a clean working set", Class::Failed),
    ("too many open files", Class::Failed),
    ("permission denied", Class::Failed),
    ("assignee mismatch", Class::NotHeld),
    ("already exists", Class::AlreadyExists),
    ("no issue found matching", Class::NotFound),
    ("no issues found matching", Class::NotFound),
    ("not found: issue", Class::NotFound),
    ("ambiguous issue id", Class::NotFound),
    ("already claimed", Class::Refused),
    ("already assigned to", Class::Refused),
    ("already checked out", Class::Refused),
    ("not claimable", Class::Refused),
    ("no matching row", Class::Refused),
    ("cannot be ", Class::Refused),
    ("cannot close", Class::Refused),
    ("cannot modify", Class::Refused),
    ("cannot reassign", Class::Refused),
    ("cannot unclaim", Class::Refused),
    ("claimed by a different actor", Class::Refused),
    ("mismatch", Class::Refused),
    ("cycle", Class::Refused),
    ("is blocked by [", Class::Refused),
    ("open child issue", Class::Refused),
    ("pinned issue", Class::Refused),
    ("gate condition not satisfied", Class::Refused),
    ("is required", Class::Refused),
    ("requires ", Class::Refused),
    ("validation failed", Class::Refused),
    ("invalid", Class::Refused),
    ("too many rows", Class::Refused),
    ("unknown flag", Class::Refused),
    ("unknown command", Class::Refused),
    ("not allowed in read-only mode", Class::Refused),
    ("bd_backend env var is not supported", Class::Refused),
    ("parsing formula", Class::Refused),
    ("failed to create worktree", Class::Refused),
    ("not found", Class::Refused),
];

/// Exit code of a guard that no longer held.
const GUARD_MISMATCH: i32 = 13;

/// Longest reason that we pass on, in characters.
const REASON_LIMIT: usize = 600;

/// Reads a failure from its exit code (`None`: ended by a signal) and text.
pub(super) fn complaint(code: Option<i32>, text: &str) -> Complaint {
    let known = match code {
        None => Some(Class::Failed),
        Some(GUARD_MISMATCH) => Some(Class::NotHeld),
        Some(_) => class_of(text),
    };
    Complaint { class: known.unwrap_or(Class::Failed), is_known: known.is_some(), reason: reason(code, text) }
}

fn class_of(text: &str) -> Option<Class> {
    let text = unechoed(text).to_lowercase();
    NEEDLES.iter().find(|(needle, _)| text.contains(needle)).map(|(_, class)| *class)
}

/// Leaves out the line of ours that `batch` repeats (`line 3 (close x "…"): why`): a reason may hold any needle.
fn unechoed(text: &str) -> &str {
    let said = text.strip_prefix("Error: ").unwrap_or(text);
    if batch_line(said).is_none() {
        return text;
    }
    said.rsplit_once("): ").map_or(said, |(_, why)| why)
}

/// Returns the number of the batch line that a failure names, counted from 1.
pub(super) fn batch_line(text: &str) -> Option<usize> {
    let (number, _) = text.strip_prefix("line ")?.split_once(" (")?;
    number.parse().ok()
}

/// bd's own words: a crash by its last cause, anything else without log lines and prefix, on one line.
fn reason(code: Option<i32>, text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_log(line)).collect();
    let crash = lines.iter().find(|line| line.starts_with("fatal error:"));
    let said = match crash {
        Some(cause) => (*cause).to_owned(),
        None if lines.first().is_some_and(|line| line.starts_with("panic:")) => lines[0].to_owned(),
        None => lines.join("; "),
    };
    let said = said.strip_prefix("Error: ").unwrap_or(&said);
    match (said.is_empty(), code) {
        (false, _) => shorten(said),
        (true, Some(code)) => format!("exit {code} without a word"),
        (true, None) => "ended by a signal".to_owned(),
    }
}

fn is_log(line: &str) -> bool {
    line.starts_with("time=\"") && line.contains(" level=")
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(REASON_LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Why a call brought no payload, before we know what was asked of whom.
#[derive(Debug)]
pub(super) enum Trouble {
    /// bd failed and said why.
    Said(Complaint),
    /// bd's answer was not understood.
    Garbled(serde_json::Error),
    /// There was no answer.
    Unanswered(TrackerError),
}

impl Trouble {
    /// Returns how bd's words were read, if it spoke.
    pub(super) fn class(&self) -> Option<Class> {
        match self {
            Self::Said(complaint) => Some(complaint.class),
            Self::Garbled(_) | Self::Unanswered(_) => None,
        }
    }

    /// Takes a text that nobody has met for a refusal: where trying again is worth it for known reasons alone.
    pub(super) fn unknown_is_refusal(mut self) -> Self {
        if let Self::Said(complaint) = &mut self
            && !complaint.is_known
        {
            complaint.class = Class::Refused;
        }
        self
    }

    /// Returns whether bd may have acted all the same: after a kill about one write in four had happened (beads.md
    /// §13.1), so look before asking again.
    pub(super) fn is_uncertain(&self) -> bool {
        match self {
            Self::Said(complaint) => complaint.class == Class::Failed,
            Self::Garbled(_) => true,
            Self::Unanswered(error) => matches!(error, TrackerError::TimedOut { .. }),
        }
    }

    /// Turns it into the error of the boundary.
    pub(super) fn into_error(self, verb: &'static str, bead: Option<&BeadId>, repository: &Path) -> TrackerError {
        let complaint = match self {
            Self::Said(complaint) => complaint,
            Self::Garbled(source) => return TrackerError::Garbled { verb, source },
            Self::Unanswered(error) => return error,
        };
        match (complaint.class, bead) {
            (Class::NotFound, Some(bead)) => TrackerError::NotFound { verb, bead: bead.clone() },
            (Class::NoWorkspace, _) => TrackerError::NoWorkspace { repository: repository.to_owned() },
            (Class::Failed, _) => TrackerError::Failed { verb, reason: complaint.reason },
            (Class::NotFound | Class::NotHeld | Class::AlreadyExists | Class::Refused, _) => {
                TrackerError::Refused { verb, reason: complaint.reason }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_its_class() {
        for (text, expected) in [
            ("no issue found matching \"p-1\"", Class::NotFound),
            ("Error: no beads database found\nHint: run 'bd where'", Class::NoWorkspace),
            ("panic: goroutine 1 [running]:", Class::Failed),
            ("Error: failed to open database: openat LOCK: permission denied", Class::Failed),
            ("Error 1049: database not found: proj", Class::Failed),
            ("possible data loss detected: Corrupted journal", Class::Failed),
            ("assignee mismatch: p-1 is held by \"a\", expected \"b\"", Class::NotHeld),
            ("explicit id \"p-1\" already exists", Class::AlreadyExists),
            ("issue already claimed by sp/w1", Class::Refused),
            ("issue not claimable: status closed", Class::Refused),
            ("adding dependency would create a cycle", Class::Refused),
            ("Error: unknown flag: --bogus", Class::Refused),
            ("ship not found as formula or proto ID", Class::Refused),
            ("words that no version has said yet", Class::Failed),
            ("", Class::Failed),
        ] {
            assert_eq!(complaint(Some(1), text).class, expected, "{text}");
        }
        assert_eq!(complaint(Some(13), "whatever").class, Class::NotHeld);
        assert_eq!(complaint(None, "already exists").class, Class::Failed);
    }

    #[test]
    fn the_line_that_batch_repeats_does_not_decide_the_class() {
        let text = "line 2 (close \"p-1\" \"panic: lock (see): no space left on device\"): not found: issue p-1";
        assert_eq!(complaint(Some(1), text).class, Class::NotFound);
        assert_eq!(batch_line(text), Some(2));
        assert_eq!(batch_line("line two (x): y"), None);
    }

    #[test]
    fn a_reason_is_one_short_line_of_bds_own_words() {
        for (case, code, text, expected) in [
            ("prefix", Some(1), "Error: unknown flag: --x\n", "unknown flag: --x"),
            ("several lines", Some(1), "Error: a failed:\n  - x is required\n", "a failed:; - x is required"),
            ("log lines", Some(1), "time=\"2026\" level=error msg=\"x\"\nError: y", "y"),
            (
                "a crash",
                Some(2),
                "panic: goroutine 1\n\tx()\n\tfatal error: no space left",
                "fatal error: no space left",
            ),
            ("a crash without cause", Some(2), "panic: nil map\n\ngoroutine 1\n", "panic: nil map"),
            ("silence", Some(1), " \n", "exit 1 without a word"),
            ("a signal", None, "", "ended by a signal"),
        ] {
            assert_eq!(complaint(code, text).reason, expected, "{case}");
        }
        assert_eq!(complaint(Some(1), &"é".repeat(5000)).reason.chars().count(), REASON_LIMIT + 1);
    }
}

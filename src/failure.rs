//! How `sp` ends when it does not succeed: one table of endings, one envelope.
//!
//! Every module boundary has its own `thiserror` enum and implements [`Explain`] beside it; the command line turns
//! any of them into a [`Failure`] and prints that, as text or under `--json`. `docs/cli.md` shows [`TABLE`] and a test
//! compares the two.

use std::error::Error;
use std::iter;

use serde::Serialize;

/// The class of a failure; decides the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// A fault of sp itself.
    Internal,
    /// Command line, formula or config is wrong.
    Usage,
    /// Policy, contract or state forbids it.
    Refused,
    /// No such bead, chain, job or formula.
    NotFound,
    /// Another holds the bead, lease or lock.
    Contested,
    /// A needed program or repository state is missing.
    Unusable,
    /// The chain waits at a gate or for people.
    Blocked,
    /// bd failed or was not understood.
    Tracker,
    /// Database or job file not written.
    Store,
    /// The session gave no usable result.
    Agent,
    /// git failed.
    Git,
    /// Stopped by a signal.
    Interrupted,
}

/// (exit status, `kind`, meaning), in the order of [`FailureKind`]. Rows are added, never renumbered.
pub const TABLE: [(u8, &str, &str); 12] = [
    (1, "internal", "a fault of sp: please report"),
    (2, "usage", "command line, formula or config is wrong"),
    (3, "refused", "policy, contract or state forbids it"),
    (4, "not_found", "no such bead, chain, job, formula"),
    (5, "contested", "another holds the bead, lease or lock"),
    (6, "unusable", "bd, pi, git missing or too old; no commit yet"),
    (7, "blocked", "the chain waits at a gate or for people"),
    (10, "tracker", "bd failed or was not understood"),
    (11, "store", "database or job file not written"),
    (12, "agent", "the session gave no usable result"),
    (13, "git", "git failed; refs are as they were"),
    (130, "interrupted", "stopped by a signal; resumable"),
];

impl FailureKind {
    /// Returns the row of [`TABLE`] for this class: exit status, `kind`, meaning.
    pub fn row(self) -> (u8, &'static str, &'static str) {
        TABLE[self as usize]
    }
}

/// What a person or program needs to know about an error beside its text.
///
/// Implemented once per boundary, beside its enum. The next step must never be able to destroy work: agents run what
/// they read.
pub trait Explain: Error {
    /// Returns the class, the specific `error_code`, and the next safe action.
    fn explain(&self) -> (FailureKind, &'static str, String);

    /// Returns the ids (beads, jobs, chains) that stand in the way.
    fn blocked_by(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns a read-only command that shows more about the cause.
    fn diagnose_command(&self) -> Option<String> {
        None
    }
}

/// The one envelope of a failure under `--json`; people see the same four things.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Always `false`.
    pub ok: bool,
    /// Specific code, stable, snake case.
    pub error_code: &'static str,
    /// Class, from [`TABLE`].
    pub kind: &'static str,
    /// What was tried, on what, and the causes.
    pub message: String,
    /// Ids that stand in the way.
    pub blocked_by: Vec<String>,
    /// What to do next; safe to run.
    pub next_safe_action: String,
    /// A read-only command that shows more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnose_command: Option<String>,
    /// Exit status, from [`TABLE`].
    #[serde(skip)]
    pub exit: u8,
}

impl<E: Explain> From<E> for Failure {
    fn from(error: E) -> Self {
        let causes = iter::successors(error.source(), |&cause| cause.source());
        let message = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
        let (class, error_code, next_safe_action) = error.explain();
        let (exit, kind, _) = class.row();
        Self {
            ok: false,
            error_code,
            kind,
            message,
            blocked_by: error.blocked_by(),
            next_safe_action,
            diagnose_command: error.diagnose_command(),
            exit,
        }
    }
}

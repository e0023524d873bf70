//! A request that policy turns down.

use std::fmt;

use serde::Serialize;

use crate::failure::{Explain, FailureKind};

/// One reason why a request is turned down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Specific code, stable.
    pub error_code: &'static str,
    /// Class of the failure.
    #[serde(skip)]
    pub kind: FailureKind,
    /// What was tried, on what, and why not.
    pub message: String,
    /// Ids that stand in the way.
    pub blocked_by: Vec<String>,
    /// What to do next; safe to run.
    pub next_safe_action: String,
    /// A read-only command that shows more.
    pub diagnose_command: String,
}

/// A request that policy turned down, with every reason; the first decides class and code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedError {
    first: Refusal,
    others: Vec<Refusal>,
}

impl RefusedError {
    /// Returns the error of these refusals, or `None` when there are none.
    pub fn of(refusals: &[Refusal]) -> Option<Self> {
        let (first, others) = refusals.split_first()?;
        Some(Self { first: first.clone(), others: others.to_vec() })
    }

    /// Returns all reasons, the one that decides first.
    pub fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl fmt::Display for RefusedError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.first.message)?;
        self.others.iter().try_for_each(|other| write!(out, "; also: {}", other.message))
    }
}

impl std::error::Error for RefusedError {}

impl Explain for RefusedError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        (self.first.kind, self.first.error_code, self.first.next_safe_action.clone())
    }

    fn blocked_by(&self) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        for id in self.refusals().flat_map(|refusal| &refusal.blocked_by) {
            if !ids.contains(id) {
                ids.push(id.clone());
            }
        }
        ids
    }

    fn diagnose_command(&self) -> Option<String> {
        Some(self.first.diagnose_command.clone())
    }
}

//! How much a finding counts.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::failure::{Explain, FailureKind};
use crate::nearest::advice;

use super::finding::FindingKind;

/// How much a finding counts. Refusals that protect work don't depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing is looked at.
    Off,
    /// Recorded, not shown.
    Shadow,
    /// Recorded and shown.
    #[default]
    Warn,
    /// Recorded, and the request is refused.
    Enforce,
}

const WORDS: [&str; 4] = ["off", "shadow", "warn", "enforce"];

impl Mode {
    /// Returns the word of this mode.
    pub fn as_str(self) -> &'static str {
        WORDS[self as usize]
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, ModeError> {
        let wanted = text.trim();
        [Self::Off, Self::Shadow, Self::Warn, Self::Enforce]
            .into_iter()
            .find(|mode| mode.as_str().eq_ignore_ascii_case(wanted))
            .ok_or_else(|| ModeError::UnknownMode { found: wanted.to_owned() })
    }
}

/// The mode of each kind of finding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Modes {
    default: Mode,
    of_kind: BTreeMap<FindingKind, Mode>,
}

impl Modes {
    /// One mode for every kind.
    pub fn all(mode: Mode) -> Self {
        Self { default: mode, of_kind: BTreeMap::new() }
    }

    /// Sets the mode of one kind, named by its code, such as `scope_collision`.
    pub fn set(&mut self, code: &str, mode: Mode) -> Result<(), ModeError> {
        let kind = FindingKind::ALL.into_iter().find(|kind| kind.code() == code);
        let kind = kind.ok_or_else(|| ModeError::UnknownFinding { found: code.to_owned() })?;
        self.of_kind.insert(kind, mode);
        Ok(())
    }

    /// Returns the mode of one kind.
    pub fn of(&self, kind: FindingKind) -> Mode {
        self.of_kind.get(&kind).copied().unwrap_or(self.default)
    }
}

/// Why a policy setting was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModeError {
    /// No such mode.
    #[error("read policy mode `{found}`: {}", advice(.found, &WORDS))]
    UnknownMode {
        /// The word.
        found: String,
    },
    /// No such finding.
    #[error("read the policy mode of `{found}`: {}", advice(.found, &FindingKind::ALL.map(FindingKind::code)))]
    UnknownFinding {
        /// The word.
        found: String,
    },
}

impl Explain for ModeError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        let code = match self {
            Self::UnknownMode { .. } => "policy_mode_unknown",
            Self::UnknownFinding { .. } => "policy_finding_unknown",
        };
        (FailureKind::Usage, code, "mend the [policy] section of the configuration".to_owned())
    }
}

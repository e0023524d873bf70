//! What the answer of a role means for its chain.

use serde::{Deserialize, Serialize};

/// Who works again after a gate failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReworkTarget {
    /// The writer of the production change.
    PrimaryWriter,
    /// The writer of the tests.
    SecondaryWriter,
}

/// What the answer of a role means for its chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Verdict {
    /// The step is done.
    Passed,
    /// Another step must work again.
    Rework {
        /// Who.
        target: ReworkTarget,
        /// What is wrong.
        findings: String,
    },
    /// People must decide.
    Blocked {
        /// Stable code.
        reason: String,
        /// What is wrong.
        detail: String,
    },
    /// The same step gets one more turn.
    Again {
        /// Why.
        why: String,
    },
}

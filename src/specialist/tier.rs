//! Permission tiers and the tools each allows.

use serde::{Deserialize, Serialize};

use crate::ports::Tool;

/// How much a specialist may do. Each tier has the tools of the one before and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Tier {
    /// Reads files.
    ReadOnly,
    /// Also runs commands.
    Low,
    /// Also edits files.
    Medium,
    /// Also writes new files.
    High,
}

impl Tier {
    /// Returns whether the tier may change the worktree.
    pub fn writes(self) -> bool {
        self >= Self::Medium
    }

    /// Returns the tools of pi that the tier allows.
    pub fn tools(self) -> Vec<Tool> {
        let all = [Tool::Read, Tool::Grep, Tool::Find, Tool::Ls, Tool::Bash, Tool::Edit, Tool::Write];
        let allowed = match self {
            Self::ReadOnly => 4,
            Self::Low => 5,
            Self::Medium => 6,
            Self::High => 7,
        };
        all[..allowed].to_vec()
    }
}

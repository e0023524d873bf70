//! Words that the database, the files and the code share: one list for all three.

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

/// A stored word that this version doesn't know.
#[derive(Debug, thiserror::Error)]
#[error("read a {what}: unknown word `{found}`")]
struct UnknownWord {
    what: &'static str,
    found: String,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every word.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the word as it is stored.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Returns the live words as an SQL list: `'a', 'b'`.
            pub(super) fn live_list() -> String {
                let live = Self::ALL.iter().filter(|word| word.is_live());
                live.map(|word| format!("'{}'", word.as_str())).collect::<Vec<_>>().join(", ")
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.pad(self.as_str())
            }
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::from(self.as_str()))
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let found = value.as_str()?;
                Self::ALL.iter().copied().find(|word| word.as_str() == found).ok_or_else(|| {
                    FromSqlError::other(UnknownWord { what: stringify!($name), found: found.to_owned() })
                })
            }
        }
    };
}

words! {
    /// How a job stands (spec 000 §5). The words are the existing system's.
    JobStatus {
        /// Its session is being started.
        Starting = "starting",
        /// The agent works.
        Running = "running",
        /// The session is open and waits for the next turn.
        Waiting = "waiting",
        /// Ended with a usable result.
        Done = "done",
        /// Ended without one.
        Error = "error",
        /// Ended because somebody asked for it.
        Cancelled = "cancelled",
    }
}

impl JobStatus {
    /// Returns whether the job may still do something.
    pub fn is_live(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Waiting => true,
            Self::Done | Self::Error | Self::Cancelled => false,
        }
    }

    /// Returns whether the job has ended; such a status is never changed again.
    pub fn is_terminal(self) -> bool {
        !self.is_live()
    }
}

words! {
    /// How a chain stands.
    ChainStatus {
        /// Recorded; its molecule is being poured.
        Composing = "composing",
        /// Its steps are worked on.
        Running = "running",
        /// Waits for the tracker, the store or the clock.
        Waiting = "waiting",
        /// Waits for people.
        Blocked = "blocked",
        /// Every step is closed, nothing is published.
        ReadyToMerge = "ready_to_merge",
        /// Its work is in the base and its beads are closed.
        Published = "published",
        /// Stopped by a signal or on request; resumable.
        Stopped = "stopped",
        /// Its bead or molecule was closed by somebody else.
        Cancelled = "cancelled",
        /// Given up on request.
        Abandoned = "abandoned",
    }
}

impl ChainStatus {
    /// Returns whether the chain still holds its bead: no other chain may be opened on it.
    pub fn is_live(self) -> bool {
        match self {
            Self::Composing | Self::Running | Self::Waiting | Self::Blocked | Self::ReadyToMerge | Self::Stopped => {
                true
            }
            Self::Published | Self::Cancelled | Self::Abandoned => false,
        }
    }
}

#[cfg(test)]
mod tests;

//! Identifiers. Each is a newtype, so that a bead can't be handed in where a job is meant.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps the text of an id.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

id! {
    /// A tracker item of bd, such as `proj-a3f2`.
    BeadId
}
id! {
    /// A chain; its text is the id of the chain's molecule in bd, such as `proj-mol-0a1b2c3d`.
    ChainId
}
id! {
    /// A step of a formula, such as `executor`. Unique within one chain.
    StepId
}
id! {
    /// A job: one activation of a specialist. Eight base-36 characters.
    JobId
}

impl ChainId {
    /// Returns the bead that holds this chain in bd: the molecule.
    pub fn molecule(&self) -> BeadId {
        BeadId::new(self.as_str())
    }

    /// Returns the bead of one step: `<molecule>-<step>`.
    pub fn step_bead(&self, step: &StepId) -> BeadId {
        BeadId::new(format!("{self}-{step}"))
    }
}

//! What can go wrong with a rehearsal before and while it is served.

use std::io;
use std::path::PathBuf;

use crate::failure::{Explain, FailureKind};

/// Why a rehearsal script can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file could not be read.
    #[error("read rehearsal {}", file.display())]
    Unreadable {
        /// The script.
        file: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The file is no script.
    #[error("read rehearsal {file}: line {line}, column {column}, {}: {reason}", place(field))]
    Invalid {
        /// The script, as the user named it.
        file: String,
        /// Line, from 1. For a rule about several fields, the line where their object ends.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Path of the field, such as `roles.executor.rounds[0].turns[2].text`; `.` is the whole file.
        field: String,
        /// What is wrong there, with the nearest known name where a name is misspelt.
        reason: String,
    },
}

fn place(field: &str) -> String {
    if field == "." { "whole file".to_owned() } else { format!("field `{field}`") }
}

impl Explain for ScriptError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        match self {
            Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => (
                FailureKind::NotFound,
                "rehearsal_missing",
                "name an existing script; `config/rehearsals/` of the source has examples".to_owned(),
            ),
            Self::Unreadable { .. } => {
                (FailureKind::Usage, "rehearsal_unreadable", "name a readable text file in UTF-8".to_owned())
            }
            Self::Invalid { .. } => (
                FailureKind::Usage,
                "rehearsal_invalid",
                "correct that field (docs/rehearsal.md lists them all), then run the same command again".to_owned(),
            ),
        }
    }
}

/// Why the rehearsal server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// No port of the loopback address was given to us.
    #[error("serve the rehearsal: listen on 127.0.0.1")]
    Listen(#[source] io::Error),
}

impl Explain for ServeError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        match self {
            Self::Listen(_) => (
                FailureKind::Unusable,
                "rehearsal_no_port",
                "see whether this system lets programs listen on 127.0.0.1, then run the same command again".to_owned(),
            ),
        }
    }
}

/// Why it is unknown whether a fault was given before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The ledger could not be read.
    #[error("count faults of the rehearsal: read {}", path.display())]
    Read {
        /// The ledger.
        path: PathBuf,
        /// The system's reason, or that of the decoder.
        #[source]
        source: io::Error,
    },
    /// The ledger could not be written.
    #[error("count faults of the rehearsal: write {}", path.display())]
    Write {
        /// The ledger.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The job's id could lead out of the directory of jobs.
    #[error("count faults of the rehearsal: `{job}` is no job id")]
    BadJob {
        /// What was given as the id.
        job: String,
    },
}

//! Starting programs. Local is the default; nothing above this trait may assume a local pid.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::failure::{Explain, FailureKind};

/// A program to start. The environment of sp is inherited, then `unset` is removed and `env` is set.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Absolute path, or a name looked up on `PATH`.
    pub path: PathBuf,
    /// Arguments after the program's name.
    pub args: Vec<OsString>,
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// Variables set for the program.
    pub env: BTreeMap<OsString, OsString>,
    /// Variables removed before `env` is applied.
    pub unset: Vec<OsString>,
}

/// A started program: its streams and its handle.
pub struct Spawned {
    /// Where commands are written; dropping it is end of file for the program.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// What the program prints.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// What the program complains.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// Waits for and ends the program.
    pub child: Box<dyn Child>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitReport {
    /// Exit code, if it exited by itself.
    pub code: Option<i32>,
    /// Signal, if one ended it.
    pub signal: Option<i32>,
}

impl ExitReport {
    /// Returns whether the program exited by itself with status 0.
    pub fn is_success(self) -> bool {
        self.code == Some(0)
    }
}

/// The handle of one started program and of everything in its process group.
///
/// Dropping it ends the whole group (KILL), waited for or not: what a program leaves behind in its group is never
/// wanted, and an owner that panics can't do it itself.
#[async_trait]
pub trait Child: Send + Sync {
    /// Returns (pid, start time in clock ticks since boot) of a local process; `None` where there is none.
    fn identity(&self) -> Option<(u32, u64)>;

    /// Waits for the end. May be called again; the same report comes back.
    async fn wait(&self) -> Result<ExitReport, ExecError>;

    /// Asks the whole group to end (TERM). Nothing happens when it is gone.
    fn terminate(&self);

    /// Ends the whole group (KILL). Nothing happens when it is gone.
    fn kill(&self);

    /// Ends what the program started and what has left its group. For after its end: while it runs, that is its own
    /// business. A backend that can't find such processes leaves nothing that could escape, or has none to find.
    async fn end_escaped(&self) -> Result<(), ExecError> {
        Ok(())
    }
}

/// Starts programs.
#[async_trait]
pub trait ExecBackend: Send + Sync + 'static {
    /// Starts a program in a process group of its own, its three streams piped.
    async fn spawn(&self, program: Program) -> Result<Spawned, ExecError>;
}

/// Why a program could not be started or waited for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The program is not there.
    #[error("start `{program}`: not found")]
    Missing {
        /// Its path or name.
        program: String,
    },
    /// Its working directory is not there.
    #[error("start `{program}` in {directory}: no such directory")]
    NoDirectory {
        /// Its path or name.
        program: String,
        /// The directory.
        directory: PathBuf,
    },
    /// The system refused.
    #[error("start `{program}`")]
    Spawn {
        /// Its path or name.
        program: String,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// The running processes could not be looked at; nothing is known about them.
    #[error("look at the processes of this machine")]
    Look(#[source] std::io::Error),
    /// The end of the program could not be observed.
    #[error("wait for `{program}`")]
    Wait {
        /// Its path or name.
        program: String,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
}

impl Explain for ExecError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        match self {
            Self::Missing { program } => {
                (FailureKind::Unusable, "program_missing", format!("install `{program}`, then `sp doctor`"))
            }
            Self::NoDirectory { directory, .. } => (
                FailureKind::Unusable,
                "directory_missing",
                format!("find out what removed {}; the branch still holds the commits", directory.display()),
            ),
            Self::Spawn { program, .. } => (
                FailureKind::Unusable,
                "program_not_started",
                format!("check that `{program}` may be executed and that process and file limits are not reached"),
            ),
            Self::Look(_) => (
                FailureKind::Unusable,
                "processes_not_visible",
                "check that /proc is mounted and readable, then run the same command again".to_owned(),
            ),
            Self::Wait { .. } => (
                FailureKind::Internal,
                "program_not_waited_for",
                "see `sp ps` for what still runs; report this with the message".to_owned(),
            ),
        }
    }
}

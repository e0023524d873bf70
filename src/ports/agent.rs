//! The coding agent. The real one is pi in RPC mode; a stub may be any pair of streams that speaks pi's protocol.

use std::path::PathBuf;

use async_trait::async_trait;

use super::exec::{ExecError, Spawned};
use crate::failure::{Explain, FailureKind};
use crate::ids::JobId;

/// A tool that an agent may use, by pi's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the variants are pi's tool names")]
pub enum Tool {
    Read,
    Grep,
    Find,
    Ls,
    Bash,
    Edit,
    Write,
}

impl Tool {
    /// Returns the name that pi knows the tool by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Grep => "grep",
            Self::Find => "find",
            Self::Ls => "ls",
            Self::Bash => "bash",
            Self::Edit => "edit",
            Self::Write => "write",
        }
    }
}

/// Where the model's answers come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    /// The user's own pi: its configuration and credentials. `None` takes pi's own default model.
    User {
        /// `provider/model`, any that pi knows.
        model: Option<String>,
    },
    /// A rehearsal server: an isolated agent directory is made for this job.
    Rehearsal {
        /// Base URL for this job's step and round, such as `http://127.0.0.1:4711/executor/1/v1`.
        base_url: String,
        /// Model id, `rehearsal/<role>`.
        model: String,
        /// Agent directory to make and use, inside the job's directory.
        agent_dir: PathBuf,
    },
}

/// Everything needed to start one agent session.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The job; goes into the environment as `SP_JOB_ID`, by which escaped processes are found again.
    pub job: JobId,
    /// Root of the repository; goes into the environment as `SP_ROOT`, so that only this repository's processes count.
    pub root: PathBuf,
    /// Working directory: the worktree.
    pub cwd: PathBuf,
    /// Session file of pi; created by pi, or continued where it exists.
    pub session_file: PathBuf,
    /// File with the text appended to pi's system prompt. A file, since an argument is limited to 128 KiB.
    pub system_prompt_file: PathBuf,
    /// Tools the agent may use.
    pub tools: Vec<Tool>,
    /// Directory that `edit` and `write` are confined to: that of every job of a worktree, whatever its tools. `None` is
    /// refused for a session with these tools.
    pub boundary: Option<PathBuf>,
    /// Fallback directory for the generated boundary extension: the job's directory.
    pub job_dir: PathBuf,
    /// Where answers come from.
    pub model: ModelSource,
    /// pi's thinking level, such as `medium`.
    pub thinking: Option<String>,
}

/// Starts agent sessions.
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// Asks whether sessions can be started at all, before anything is created for them.
    async fn check(&self) -> Result<(), AgentError> {
        Ok(())
    }

    /// Starts one session. The streams speak pi's RPC protocol.
    async fn launch(&self, launch: &Launch) -> Result<Spawned, AgentError>;
}

/// Why a session could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// pi is not installed.
    #[error("start a pi session: there is no executable `{program}`")]
    Missing {
        /// What was looked for.
        program: String,
    },
    /// pi is installed, in a version that sp can't drive.
    #[error("start a pi session: {program} is version {found}, needed is {needed}")]
    Unsupported {
        /// The program found.
        program: String,
        /// Its version.
        found: String,
        /// The supported range.
        needed: &'static str,
    },
    /// pi is there but did not say which version it is.
    #[error("ask `{program} --version`: {reason}")]
    Unanswered {
        /// The program asked.
        program: String,
        /// What came instead of a version.
        reason: String,
    },
    /// The write boundary could not be put in place, so the session must not start.
    #[error("confine the session to {boundary}: no directory takes the extension file")]
    NoBoundary {
        /// The directory that writes would have been confined to.
        boundary: PathBuf,
        /// The last reason.
        #[source]
        source: std::io::Error,
    },
    /// A file the session needs could not be written.
    #[error("prepare the session: write {path}")]
    Prepare {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// The session file was made in another directory, and pi would work there.
    #[error("continue the session {file} in {wanted}: it belongs to {stored}")]
    OtherDirectory {
        /// The session file.
        file: PathBuf,
        /// The directory stored in it.
        stored: PathBuf,
        /// The directory that the job works in.
        wanted: PathBuf,
    },
    /// The program did not start.
    #[error("start a pi session")]
    Spawn(#[source] ExecError),
}

/// How pi is installed; no network host, so that it holds behind a mirror too.
const INSTALL: &str = "run `make tools` in the sp checkout or `npm install -g @earendil-works/pi-coding-agent@1.6.0` \
                       with node 22, then `sp doctor`";

impl Explain for AgentError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        match self {
            Self::Missing { .. } => (FailureKind::Unusable, "pi_missing", INSTALL.to_owned()),
            Self::Unsupported { .. } => (FailureKind::Unusable, "pi_unsupported", INSTALL.to_owned()),
            Self::Unanswered { .. } => (
                FailureKind::Unusable,
                "pi_unanswered",
                "run the same command by hand; pi 1.6 needs node 22.19 or newer".to_owned(),
            ),
            Self::NoBoundary { .. } => (
                FailureKind::Refused,
                "no_boundary",
                "make TMPDIR or the job's directory writable for you alone; no session starts unconfined".to_owned(),
            ),
            Self::Prepare { path, .. } => (
                FailureKind::Store,
                "session_not_prepared",
                format!("look at {} and the free space there, then run the same command again", path.display()),
            ),
            Self::OtherDirectory { .. } => (
                FailureKind::Refused,
                "session_elsewhere",
                "restore the worktree at its old path, or let the step start a new session".to_owned(),
            ),
            Self::Spawn(cause) => cause.explain(),
        }
    }

    fn diagnose_command(&self) -> Option<String> {
        match self {
            Self::Missing { .. } | Self::Unsupported { .. } | Self::Unanswered { .. } | Self::Spawn(_) => {
                Some("sp doctor".to_owned())
            }
            Self::NoBoundary { .. } | Self::Prepare { .. } | Self::OtherDirectory { .. } => None,
        }
    }
}

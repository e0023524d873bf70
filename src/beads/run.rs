//! Runs bd: arguments, environment, lock, deadline. The only place that starts a bd process.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::future::Future;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::decode::Answer;
use super::lock::{self, Held};
use crate::ports::TrackerError;

/// Longest time that a bd which only reads may take (beads.md §13.1).
const READ_LIMIT: Duration = Duration::from_secs(60);
/// Longest time that a bd which writes may take.
const WRITE_LIMIT: Duration = Duration::from_secs(180);
/// Longest wait for other bd calls of this workspace: a slow write and some more.
const LOCK_LIMIT: Duration = Duration::from_secs(300);
/// How long a killed bd may take to be gone.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// What bd does when a call names no actor of its own.
const ACTOR: &str = "sp";

/// Set for every call (beads.md §1.1): enveloped JSON, no question, no metrics, no hook, no server, no colour.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("BD_NON_INTERACTIVE", "1"),
    ("BD_JSON_ENVELOPE", "1"),
    ("BD_DISABLE_METRICS", "1"),
    ("BD_DISABLE_EVENT_FLUSH", "1"),
    ("BD_BACKUP_ENABLED", "false"),
    ("BD_NO_HOOKS", "1"),
    ("BD_NO_PAGER", "1"),
    ("BD_NO_EMOJI", "1"),
    ("NO_COLOR", "1"),
    ("BEADS_DOLT_AUTO_START", "0"),
];

/// Removed for every call: they point bd or its git elsewhere, cap its answers, or are fatal (`BD_BACKEND`).
const UNSET: &[&str] = &[
    "BEADS_DB",
    "BD_DB",
    "BD_BACKEND",
    "BD_ACTOR",
    "BD_DEBUG",
    "BEADS_MAX_ROWS",
    "BEADS_TEST_MODE",
    "CLAUDE_SESSION_ID",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
];

/// How far a call needs the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Opens nothing.
    Nothing,
    /// Reads.
    Read,
    /// Writes.
    Write,
}

/// One command line of bd.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// The command in bd's words, such as `worktree create`.
    pub verb: &'static str,
    access: Access,
    options: Vec<OsString>,
    operands: Vec<OsString>,
    limit: Duration,
}

impl Call {
    /// A call that opens no workspace.
    pub(super) fn bare(verb: &'static str) -> Self {
        Self { verb, access: Access::Nothing, options: Vec::new(), operands: Vec::new(), limit: READ_LIMIT }
    }

    /// A call that changes nothing.
    pub(super) fn read(verb: &'static str) -> Self {
        Self { access: Access::Read, ..Self::bare(verb) }
    }

    /// A call that changes the workspace.
    pub(super) fn write(verb: &'static str) -> Self {
        Self { access: Access::Write, limit: WRITE_LIMIT, ..Self::bare(verb) }
    }

    /// Adds an option without a value.
    pub(super) fn flag(mut self, name: &str) -> Self {
        self.options.push(name.into());
        self
    }

    /// Adds an option with its value in one argument, so that no value can be taken for an option.
    pub(super) fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let mut option = OsString::from(name);
        option.push("=");
        option.push(value);
        self.options.push(option);
        self
    }

    /// Adds an operand; they stand behind `--`.
    pub(super) fn on(mut self, operand: impl Into<OsString>) -> Self {
        self.operands.push(operand.into());
        self
    }

    /// Gives the call more time.
    pub(super) fn longer(mut self, by: Duration) -> Self {
        self.limit += by;
        self
    }

    /// Returns all arguments in order.
    fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = self.verb.split(' ').map(OsString::from).collect();
        arguments.push("--json".into());
        arguments.extend(self.options.iter().cloned());
        if !self.operands.is_empty() {
            arguments.push("--".into());
            arguments.extend(self.operands.iter().cloned());
        }
        arguments
    }
}

/// Starts bd for one workspace, one process at a time and in the order asked.
#[derive(Debug)]
pub(super) struct Runner {
    pub program: PathBuf,
    pub repository: PathBuf,
    pub beads_dir: PathBuf,
    pub lock_file: PathBuf,
    /// Variables over all others.
    pub variables: Vec<(OsString, OsString)>,
    queue: Mutex<()>,
}

impl Runner {
    pub(super) fn new(program: PathBuf, repository: PathBuf, beads_dir: PathBuf, lock_file: PathBuf) -> Self {
        Self { program, repository, beads_dir, lock_file, variables: Vec::new(), queue: Mutex::new(()) }
    }

    /// Runs one bd to its end.
    ///
    /// # Errors
    /// `TimedOut` after the call's limit (its whole process group is dead then), `Failed` when the workspace stayed
    /// locked, `Missing` and `Io` when bd could not be started. A bd that failed is an answer, not an error.
    pub(super) async fn run(&self, call: &Call) -> Result<Answer, TrackerError> {
        let verb = call.verb;
        let io = |source| TrackerError::Io { verb, source };
        // tokio's mutex is first come, first served; the file lock alone is not.
        let _turn = self.queue.lock().await;
        let held = self.lock(call).await?;
        let stdin = held.as_ref().map(Held::share).transpose().map_err(io)?;
        let mut command = async_process::Command::from(self.command(call));
        command.stdin(stdin.map_or_else(Stdio::null, Stdio::from)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|source| self.not_started(verb, source))?;
        let group = Group::of(child.id());
        match settle(child.output(), sleep(call.limit), group).await {
            Some(output) => output.map(Answer::from).map_err(io),
            None => Err(TrackerError::TimedOut { verb, seconds: call.limit.as_secs() }),
        }
    }

    fn command(&self, call: &Call) -> Command {
        let mut command = Command::new(&self.program);
        command.args(call.arguments()).current_dir(&self.repository);
        for name in UNSET {
            command.env_remove(name);
        }
        command.envs(ENVIRONMENT.iter().copied()).env("BEADS_DIR", &self.beads_dir).env("BEADS_ACTOR", ACTOR);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        // A group of its own: Ctrl-C on our terminal must not cut a write short, and a kill must reach bd's git too.
        command.process_group(0);
        command
    }

    /// Takes the workspace's lock. A read in a repository where sp never wrote goes without: it must leave no trace.
    async fn lock(&self, call: &Call) -> Result<Option<Held>, TrackerError> {
        let verb = call.verb;
        let io = |source| TrackerError::Io { verb, source };
        let folder = self.lock_file.parent().filter(|folder| !folder.as_os_str().is_empty());
        match (call.access, folder) {
            (Access::Nothing, _) => return Ok(None),
            (Access::Read, Some(folder)) if !folder.is_dir() => return Ok(None),
            (Access::Write, Some(folder)) => fs::create_dir_all(folder).map_err(io)?,
            (Access::Read | Access::Write, _) => {}
        }
        match lock::acquire(&self.lock_file, LOCK_LIMIT).await.map_err(io)? {
            Some(held) => Ok(Some(held)),
            None => {
                let reason = format!("{} stayed locked for {} s", self.lock_file.display(), LOCK_LIMIT.as_secs());
                Err(TrackerError::Failed { verb, reason })
            }
        }
    }

    /// A missing working directory gives the same error as a missing program.
    fn not_started(&self, verb: &'static str, source: io::Error) -> TrackerError {
        if source.kind() == io::ErrorKind::NotFound && self.repository.is_dir() {
            TrackerError::Missing { verb, program: self.program.display().to_string() }
        } else {
            TrackerError::Io { verb, source }
        }
    }
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        Self { code: output.status.code(), stdout: output.stdout, stderr: output.stderr }
    }
}

/// Waits for an output; at the deadline ends the group, waits until it is gone, and returns `None`.
async fn settle<T>(output: impl Future<Output = T>, deadline: impl Future, mut group: Group) -> Option<T> {
    let mut output = pin!(output);
    tokio::select! {
        biased;
        done = &mut output => {
            group.pid = None;
            Some(done)
        }
        _ = deadline => {
            group.end();
            // Both streams end with the last process of the group, so nothing of it writes after this.
            let _ = timeout(KILL_LIMIT, output).await;
            None
        }
    }
}

/// A process group that dies with its owner: a call given up half-way leaves no bd behind.
struct Group {
    pid: Option<Pid>,
}

impl Group {
    fn of(leader: u32) -> Self {
        Self { pid: i32::try_from(leader).ok().and_then(Pid::from_raw) }
    }

    fn end(&mut self) {
        if let Some(pid) = self.pid.take() {
            // It may have ended by itself, which is as good.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;

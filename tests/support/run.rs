//! Running `sp`: to its end, or beside the test.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::processes::signal;
use super::repo::Repo;

/// How long a command may take, unless the test says otherwise. Far above what one takes, so that only a hang is one.
const LIMIT: Duration = Duration::from_secs(240);

/// A command of `sp` on its way.
#[must_use]
pub struct Order<'a> {
    repo: &'a Repo,
    command: Command,
    limit: Duration,
}

impl<'a> Order<'a> {
    pub(super) fn new(repo: &'a Repo, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let mut command = repo.program(env!("CARGO_BIN_EXE_sp"));
        command.args(args);
        Self { repo, command, limit: LIMIT }
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes a variable.
    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Runs in another directory.
    pub fn within(mut self, directory: impl Into<PathBuf>) -> Self {
        self.command.current_dir(directory.into());
        self
    }

    /// Allows another span than the usual one.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Dies hard once the chain's log has this many events.
    pub fn killed_after(self, events: u64) -> Self {
        self.env("SP_TEST_KILL_AFTER", events.to_string())
    }

    /// Dies hard before the event of this number is stored: what it tells of has happened, and no one knows.
    pub fn killed_before(self, event: u64) -> Self {
        self.env("SP_TEST_KILL_BEFORE", event.to_string())
    }

    /// Runs it to its end.
    pub fn run(self) -> Run<'a> {
        self.spawn().wait()
    }

    /// Starts it beside the test. It ends with the test at the latest.
    pub fn spawn(mut self) -> Running<'a> {
        let args: Vec<String> = self.command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
        if matches!(args.iter().map(String::as_str).collect::<Vec<_>>()[..], ["chain", "run" | "resume", ..]) {
            self.repo.take_slot();
        }
        let number = self.repo.next_number();
        let files = ["stdout", "stderr"].map(|name| self.repo.base().join(format!("out/{number}.{name}")));
        fs::create_dir_all(self.repo.base().join("out")).unwrap();
        let [out, err] = [0, 1].map(|at: usize| File::create(&files[at]).unwrap());
        let told = format!("sp {}", args.join(" "));
        self.command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
        let child = self.command.spawn().unwrap_or_else(|error| panic!("start {told}: {error}"));
        self.repo.tell(format!("$ {told}"));
        let pid = i32::try_from(child.id()).unwrap();
        Running { repo: self.repo, pid, told, files, limit: self.limit, ended: follow(child), is_over: false }
    }
}

/// Waits for a child in a thread of its own: it can then be waited for with a limit.
fn follow(mut child: Child) -> Receiver<ExitStatus> {
    let (tell, ended) = channel();
    thread::spawn(move || {
        let status = child.wait().expect("a child of this process can be waited for");
        // The test may have given up.
        let _ = tell.send(status);
    });
    ended
}

/// An `sp` that runs beside the test.
#[must_use]
pub struct Running<'a> {
    repo: &'a Repo,
    pid: i32,
    told: String,
    files: [PathBuf; 2],
    limit: Duration,
    ended: Receiver<ExitStatus>,
    is_over: bool,
}

impl<'a> Running<'a> {
    /// Returns its process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends it a signal.
    pub fn signal(&self, which: Signal) {
        self.repo.tell(format!("{which:?} to {} ({})", self.pid, self.told));
        signal(self.pid, which);
    }

    /// Returns what it printed on stderr so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.files[1]).unwrap()).into_owned()
    }

    /// Waits until it printed this on stderr.
    pub fn until_it_says(&self, text: &str) {
        self.repo.until(&format!("`{}` says `{text}`", self.told), || self.stderr().contains(text));
    }

    /// Waits for its end, but not longer than this; then kills it.
    pub fn killed_within(mut self, span: Duration) -> Run<'a> {
        match self.ended.recv_timeout(span) {
            Ok(status) => self.over(status),
            Err(_) => {
                self.signal(Signal::KILL);
                self.wait()
            }
        }
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Run<'a> {
        match self.ended.recv_timeout(self.limit) {
            Ok(status) => self.over(status),
            Err(RecvTimeoutError::Timeout) => {
                let said = self.stderr();
                panic!("`{}` did not end within {:?}; it said:\n{said}", self.told, self.limit)
            }
            Err(RecvTimeoutError::Disconnected) => panic!("`{}` can't be waited for", self.told),
        }
    }

    fn over(&mut self, status: ExitStatus) -> Run<'a> {
        self.is_over = true;
        let text = |file: &PathBuf| String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
        let run = Run {
            repo: self.repo,
            told: self.told.clone(),
            status,
            stdout: text(&self.files[0]),
            stderr: text(&self.files[1]),
        };
        if run.status.signal() == Some(Signal::KILL.as_raw()) {
            self.repo.note_kill();
        }
        self.repo.tell(format!("{run}"));
        run
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.is_over
            && let Some(group) = Pid::from_raw(self.pid)
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// What came of a command. Look at its status: [`Run::success`], [`Run::code`] or [`Run::killed`].
#[must_use]
pub struct Run<'a> {
    repo: &'a Repo,
    told: String,
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it printed beside that.
    pub stderr: String,
}

impl Run<'_> {
    /// Asserts that it succeeded; returns its stdout with ids, times and paths taken out.
    pub fn success(&self) -> String {
        self.code(0)
    }

    /// Asserts its exit status; returns its stdout with ids, times and paths taken out.
    pub fn code(&self, expected: i32) -> String {
        assert_eq!(self.status.code(), Some(expected), "{self}");
        self.repo.redact(&self.stdout)
    }

    /// Asserts that it was killed.
    pub fn killed(&self) {
        assert_eq!(self.status.signal(), Some(Signal::KILL.as_raw()), "{self}");
    }

    /// Returns its stderr with ids, times and paths taken out.
    pub fn complaint(&self) -> String {
        self.repo.redact(&self.stderr)
    }

    /// Returns the one JSON object on its stdout.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON on stdout: {error}\n{self}"))
    }
}

impl fmt::Display for Run<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { told, status, stdout, stderr, .. } = self;
        write!(out, "`{told}`: {status}\nstdout:\n{stdout}\nstderr:\n{stderr}")
    }
}

//! Runs git: arguments, environment, deadline. The only place of the room that starts a process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

use async_process::{Child, Command};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::timeout;

use crate::ports::WorkspaceError;

/// Longest time for a call that runs no hook.
const DEADLINE: Duration = Duration::from_secs(120);

/// Longest time for a commit with the user's hooks, which may run a test suite.
pub(super) const HOOK_DEADLINE: Duration = Duration::from_secs(600);

/// How long a git that was asked to end may take to put its lock files away.
const GRACE: Duration = Duration::from_secs(5);

/// Bytes of git's own text that an error carries.
const SHORT: usize = 2_000;

/// Variables that would turn git to another repository, index or meaning of a path. A hook or alias that starts sp
/// has several of them set.
const UNSET: [&str; 16] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_SHALLOW_FILE",
    "GIT_QUARANTINE_PATH",
];

/// What a call does to the repository; decides locks, hooks, language and deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Takes no lock, not even to refresh the index.
    Read,
    /// Writes; the user's hooks stay out, since this is our own book-keeping.
    Write,
    /// Writes with the user's hooks, in the user's language.
    Hooks,
}

/// One call of git, being put together.
#[derive(Debug)]
pub(super) struct Call<'a> {
    verb: &'static str,
    mode: Mode,
    dir: &'a Path,
    upward: bool,
    before: Vec<OsString>,
    args: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    stdin: &'a [u8],
}

/// How a call of git ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal,
    /// By us, at the deadline.
    Deadline,
}

/// What a call of git gave.
#[derive(Debug)]
pub(super) struct Output {
    verb: &'static str,
    pub(super) ended: Ended,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// The git program and what is added to its environment.
#[derive(Debug, Clone, Default)]
pub(super) struct Runner {
    pub(super) env: Vec<(OsString, OsString)>,
}

impl<'a> Call<'a> {
    pub(super) fn new(mode: Mode, dir: &'a Path, verb: &'static str) -> Self {
        Self { verb, mode, dir, upward: false, before: Vec::new(), args: Vec::new(), env: Vec::new(), stdin: b"" }
    }

    pub(super) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(super) fn args<const N: usize>(mut self, args: [&str; N]) -> Self {
        self.args.extend(args.map(OsString::from));
        self
    }

    /// Lets git look for the repository above the directory too.
    pub(super) fn upward(mut self) -> Self {
        self.upward = true;
        self
    }

    /// Sets a configuration value for this call only.
    pub(super) fn config(mut self, setting: &str) -> Self {
        self.before.extend(["-c".into(), setting.into()]);
        self
    }

    pub(super) fn env(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name, value.as_ref().to_owned()));
        self
    }

    /// Works on another index file than the worktree's own.
    pub(super) fn index(self, file: &Path) -> Self {
        self.env("GIT_INDEX_FILE", file)
    }

    pub(super) fn stdin(mut self, bytes: &'a [u8]) -> Self {
        self.stdin = bytes;
        self
    }

    fn io(&self) -> impl Fn(io::Error) -> WorkspaceError + use<> {
        let verb = self.verb;
        move |source| match source.kind() {
            io::ErrorKind::NotFound => WorkspaceError::Missing { verb },
            _ => WorkspaceError::Io { verb, source },
        }
    }
}

impl Runner {
    /// Runs a call to its end, whatever that is.
    pub(super) async fn output(&self, call: Call<'_>) -> Result<Output, WorkspaceError> {
        // Files instead of pipes: what git and its hooks print can't block them, and a daemon that a hook leaves
        // behind with our streams open can't hold us. In memory, so that no directory has to be writable.
        let scratch = || {
            let made = memfd_create("sp-git", MemfdFlags::CLOEXEC).map(File::from);
            made.map_err(|errno| WorkspaceError::Io { verb: call.verb, source: errno.into() })
        };
        let (mut stdin, mut stdout, mut stderr) = (scratch()?, scratch()?, scratch()?);
        stdin.write_all(call.stdin).and_then(|()| stdin.rewind()).map_err(call.io())?;
        let mut command = Command::from(self.command(&call));
        command.stdin(stdin);
        command.stdout(stdout.try_clone().map_err(call.io())?).stderr(stderr.try_clone().map_err(call.io())?);
        let child = command.spawn().map_err(call.io())?;
        let deadline = if call.mode == Mode::Hooks { HOOK_DEADLINE } else { DEADLINE };
        let ended = wait(child, deadline).await.map_err(call.io())?;
        let stdout = contents(&mut stdout).map_err(call.io())?;
        let stderr = contents(&mut stderr).map_err(call.io())?;
        Ok(Output { verb: call.verb, ended, stdout, stderr })
    }

    /// Runs a call that must succeed and returns what it printed.
    pub(super) async fn ok(&self, call: Call<'_>) -> Result<Vec<u8>, WorkspaceError> {
        let output = self.output(call).await?;
        if output.ended == Ended::Code(0) { Ok(output.stdout) } else { Err(output.failed()) }
    }

    /// Runs a call that prints one line, and returns that without its line feed; the rest may hold others.
    pub(super) async fn line(&self, call: Call<'_>) -> Result<Vec<u8>, WorkspaceError> {
        self.ok(call).await.map(without_line_feed)
    }

    fn command(&self, call: &Call<'_>) -> std::process::Command {
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(call.dir);
        // Hooks would inherit these settings; their own calls of git shall see the user's.
        if call.mode != Mode::Hooks {
            command.args(["-c", "core.quotepath=false", "-c", "submodule.recurse=false"]);
            command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.safecrlf=false"]);
        }
        if call.mode != Mode::Read {
            // What sp records as done must survive a power cut, as its own database does.
            command.args(["-c", "core.fsync=committed,loose-object", "-c", "core.fsyncMethod=batch"]);
        }
        command.args(&call.before).arg(call.verb).args(&call.args);
        for name in UNSET {
            command.env_remove(name);
        }
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_EDITOR", "true");
        if !call.upward {
            // Without its own `.git` a worktree must not pass for the repository around it.
            command.env("GIT_CEILING_DIRECTORIES", call.dir.parent().unwrap_or(call.dir));
        }
        if call.mode != Mode::Hooks {
            command.env("LC_ALL", "C"); // the few texts that we tell apart are English then
        }
        if call.mode == Mode::Read {
            command.env("GIT_OPTIONAL_LOCKS", "0");
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.envs(call.env.iter().map(|(name, value)| (name, value)));
        // A group of its own: Ctrl-C at the terminal is sp's to handle, and a deadline ends the hooks too.
        command.process_group(0);
        command
    }
}

impl Output {
    /// Turns an unsuccessful end into an error that carries git's own text.
    pub(super) fn failed(&self) -> WorkspaceError {
        let text = String::from_utf8_lossy(tail(&self.stderr, SHORT)).trim().to_owned();
        let reason = match self.ended {
            Ended::Deadline => format!("no end within the deadline; stopped. {text}"),
            Ended::Signal => format!("ended by a signal. {text}"),
            Ended::Code(code) if text.is_empty() => format!("exit status {code}"),
            Ended::Code(_) => text,
        };
        WorkspaceError::Failed { verb: self.verb, reason }
    }
}

/// Returns bytes without the one line feed that git ends a line with; a name may end with others.
pub(super) fn without_line_feed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.pop_if(|last| *last == b'\n');
    bytes
}

/// Returns the end of a text, at most `limit` bytes.
pub(super) fn tail(text: &[u8], limit: usize) -> &[u8] {
    &text[text.len().saturating_sub(limit)..]
}

fn contents(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

async fn wait(child: Child, deadline: Duration) -> io::Result<Ended> {
    let mut group = Group { child, over: false };
    let in_time = timeout(deadline, group.child.status()).await;
    let ended = match in_time {
        Ok(status) => status?.code().map_or(Ended::Signal, Ended::Code),
        Err(_) => {
            // TERM first: git removes its lock files then, and after a KILL it can't.
            group.signal(Signal::TERM);
            if timeout(GRACE, group.child.status()).await.is_err() {
                group.signal(Signal::KILL);
                group.child.status().await?;
            }
            Ended::Deadline
        }
    };
    group.over = true;
    Ok(ended)
}

/// A running git with its hooks; ends them when nobody waits any more.
struct Group {
    child: Child,
    over: bool,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // Already gone is what we want.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.over {
            self.signal(Signal::TERM);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(command: &std::process::Command, name: &str) -> Option<Option<OsString>> {
        command.get_envs().find(|(key, _)| *key == name).map(|(_, value)| value.map(OsStr::to_owned))
    }

    #[test]
    fn a_call_neither_follows_the_callers_repository_nor_asks_questions() {
        for mode in [Mode::Read, Mode::Write, Mode::Hooks] {
            let command = Runner::default().command(&Call::new(mode, Path::new("/r/tree"), "status"));
            for name in UNSET {
                assert_eq!(variable(&command, name), Some(None), "{name}");
            }
            assert_eq!(variable(&command, "GIT_TERMINAL_PROMPT"), Some(Some("0".into())));
            assert_eq!(variable(&command, "GIT_CEILING_DIRECTORIES"), Some(Some("/r".into())));
            assert_eq!(variable(&command, "GIT_OPTIONAL_LOCKS").is_some(), mode == Mode::Read);
            let without_hooks = command.get_args().any(|arg| arg == "core.hooksPath=/dev/null");
            assert_eq!(without_hooks, mode != Mode::Hooks);
        }
    }

    #[tokio::test]
    async fn a_program_that_does_not_end_is_ended_with_its_children() {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "sleep 600 & wait"]).process_group(0);
        let child = Command::from(command).spawn().unwrap();
        let group = Pid::from_raw(child.id().cast_signed()).unwrap();
        assert_eq!(wait(child, Duration::from_millis(1)).await.unwrap(), Ended::Deadline);
        // Members of an ended group are gone or zombies that wait for their parent.
        let alive = || {
            let left = procfs::process::all_processes().unwrap().flatten().filter_map(|process| process.stat().ok());
            left.filter(|stat| stat.pgrp == group.as_raw_nonzero().get() && stat.state != 'Z').count()
        };
        // Their leader is gone before they are.
        let gone = async {
            while alive() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(GRACE, gone).await.expect("the children are ended too");
    }

    #[tokio::test]
    async fn a_failure_carries_gits_own_text_and_no_more_than_its_end() {
        let output = Output {
            verb: "commit",
            ended: Ended::Code(128),
            stdout: vec![],
            stderr: [b"x".repeat(5_000), b"fatal: why\n".to_vec()].concat(),
        };
        let text = output.failed().to_string();
        assert!(text.starts_with("run `git commit`: xx") && text.ends_with("fatal: why") && text.len() < 2_100);
    }
}

//! Programs on this machine: a process group each, streams on tokio pipes, an end that leaves nobody behind.
//!
//! async-process spawns and reaps; the streams are moved to tokio, since a round trip through async-process' own
//! reactor thread costs twice the time and CPU. A program that has ended is observed but not reaped while its handle
//! lives: the zombie keeps its number, so a signal to the group can never reach a stranger that was given it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use async_process::Command;
use async_trait::async_trait;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::sync::OnceCell;

use super::identity::{raw, started};
use super::orphans::{JOB_VARIABLE, ROOT_VARIABLE, end_marked};
use crate::ids::JobId;
use crate::ports::{Child, ExecBackend, ExecError, ExitReport, Program, Spawned};

/// Starts programs on this machine. Needs a tokio runtime with I/O.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalExec;

#[async_trait]
impl ExecBackend for LocalExec {
    async fn spawn(&self, program: Program) -> Result<Spawned, ExecError> {
        let name = program.path.display().to_string();
        let failed = |source: io::Error| ExecError::Spawn { program: name.clone(), source };
        let mut process = command(&program).spawn().map_err(|source| why_not_started(&program, &name, source))?;
        let streams = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        // From here on a failure drops `child`, and with it the group.
        let child = LocalChild::adopt(process, name.clone(), marks(&program)).map_err(failed)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(failed(io::Error::other("a stream is missing")));
        };
        let stdin = OwnedFd::try_from(stdin).and_then(pipe::Sender::from_owned_fd).map_err(failed)?;
        let stdout = OwnedFd::try_from(stdout).and_then(pipe::Receiver::from_owned_fd).map_err(failed)?;
        let stderr = OwnedFd::try_from(stderr).and_then(pipe::Receiver::from_owned_fd).map_err(failed)?;
        Ok(Spawned {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            child: Box::new(child),
        })
    }
}

fn command(program: &Program) -> Command {
    let mut command = std::process::Command::new(&program.path);
    command.args(&program.args).current_dir(&program.cwd).process_group(0);
    for name in &program.unset {
        command.env_remove(name);
    }
    command.envs(&program.env);
    let mut command = Command::from(command);
    // After the conversion, which forgets what was set before.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// "Not found" has three causes with one error number: the directory, the program, the program's interpreter.
fn why_not_started(program: &Program, name: &str, source: io::Error) -> ExecError {
    if source.kind() == io::ErrorKind::NotFound && !program.cwd.is_dir() {
        return ExecError::NoDirectory { program: name.to_owned(), directory: program.cwd.clone() };
    }
    if source.kind() == io::ErrorKind::NotFound && !Path::new(name).exists() {
        return ExecError::Missing { program: name.to_owned() };
    }
    ExecError::Spawn { program: name.to_owned(), source }
}

/// Returns the marks that a program is started with: its job and its repository.
fn marks(program: &Program) -> Option<(JobId, PathBuf)> {
    let variable = |name: &str| program.env.get(OsStr::new(name));
    Some((JobId::new(variable(JOB_VARIABLE)?.to_str()?), PathBuf::from(variable(ROOT_VARIABLE)?)))
}

/// A started program and its group.
struct LocalChild {
    /// Reaps the program when dropped.
    _process: async_process::Child,
    program: String,
    /// By which what escapes from the group is found.
    marks: Option<(JobId, PathBuf)>,
    pid: Pid,
    /// Start time in clock ticks since boot.
    started: u64,
    /// Readable once the program has ended.
    end: AsyncFd<OwnedFd>,
    report: OnceCell<ExitReport>,
}

impl LocalChild {
    /// Takes charge of a program that was just started; ends its group if that fails.
    fn adopt(process: async_process::Child, program: String, marks: Option<(JobId, PathBuf)>) -> io::Result<Self> {
        let pid = raw(process.id()).and_then(Pid::from_raw).ok_or_else(|| io::Error::other("no process id"))?;
        let facts = || {
            let end = pidfd_open(pid, PidfdFlags::empty())?;
            let end = observed(end)?;
            Ok((started(process.id()).map_err(io::Error::other)?, end))
        };
        match facts() {
            Ok((started, end)) => {
                Ok(Self { _process: process, program, marks, pid, started, end, report: OnceCell::new() })
            }
            Err(error) => {
                signal(pid, Signal::KILL);
                Err(error)
            }
        }
    }

    /// Sends to the group if the number is still ours: an embedding program might reap our children.
    fn signal_group(&self, signal_number: Signal) {
        if started(self.pid.as_raw_nonzero().get().unsigned_abs()).is_ok_and(|started| started == self.started) {
            signal(self.pid, signal_number);
        }
    }

    async fn observe(&self) -> io::Result<ExitReport> {
        loop {
            let mut ready = self.end.readable().await?;
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            match waitid(WaitId::Pid(self.pid), look) {
                Ok(Some(end)) => {
                    return Ok(ExitReport { code: end.exit_status(), signal: end.terminating_signal() });
                }
                Ok(None) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Registers the descriptor of a process with the runtime.
#[expect(
    deprecated,
    reason = "deprecated for types that may change their descriptor, which an OwnedFd does not; the \
                               replacement is an unsafe fn"
)]
fn observed(end: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(end, Interest::READABLE)
}

/// Sends to a group; one that is gone is no error.
fn signal(group: Pid, signal: Signal) {
    // The only other failure is a group that holds nothing of ours any more.
    let _ = kill_process_group(group, signal);
}

#[async_trait]
impl Child for LocalChild {
    fn identity(&self) -> Option<(u32, u64)> {
        Some((self.pid.as_raw_nonzero().get().unsigned_abs(), self.started))
    }

    async fn wait(&self) -> Result<ExitReport, ExecError> {
        let report = self.report.get_or_try_init(|| self.observe()).await;
        report.copied().map_err(|source| ExecError::Wait { program: self.program.clone(), source })
    }

    fn terminate(&self) {
        self.signal_group(Signal::TERM);
    }

    fn kill(&self) {
        self.signal_group(Signal::KILL);
    }

    async fn end_escaped(&self) -> Result<(), ExecError> {
        // The leader is a zombie while this handle lives, so the number of the group is still its own.
        self.signal_group(Signal::KILL);
        let Some((job, root)) = self.marks.clone() else { return Ok(()) };
        let swept = tokio::task::spawn_blocking(move || end_marked(&root, |found| *found == job)).await;
        swept.map_err(|gone| ExecError::Look(io::Error::other(gone)))?
    }
}

impl Drop for LocalChild {
    fn drop(&mut self) {
        self.signal_group(Signal::KILL);
    }
}

#[cfg(test)]
mod tests;

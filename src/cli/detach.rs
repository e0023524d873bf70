//! `--background`: the same command again, in a session of its own, with its own log.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::context::Context;
use super::error::CliError;
use super::output::{Exit, Human};
use crate::failure::Failure;
use crate::orchestrator::{OrchestratorError, chain_of_process, find_chain, running_process};
use crate::storage::{Layout, StoreError};

/// How long the first durable write may take: bd, git and pi are asked before it.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Serialize)]
struct Detached {
    chain_id: String,
    pid: u32,
    /// `None` when the chain ran already.
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<String>,
}

impl Human for Detached {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.chain_id)?;
        match &self.log {
            Some(log) => writeln!(out, "\nruns in process {}, log {log}", self.pid)?,
            None => writeln!(out, "\nran already, in process {}", self.pid)?,
        }
        writeln!(out, "next:\n  sp feed {} -f\n  sp chain show {}", self.chain_id, self.chain_id)
    }
}

/// Starts the command again without its terminal and returns once its chain is on disk.
pub fn run(context: &Context, bead: &str) -> Result<Exit, Failure> {
    let root = context.place()?.root.clone();
    if let Some((chain, pid)) = running(&root, bead)? {
        return context.printer.print(&Detached { chain_id: chain, pid, log: None });
    }
    let mut log = Log::begin(&root, context.now_ms())?;
    let args = env::args_os().skip(1).filter(|arg| arg != "--background");
    let mut child = Command::new(env::current_exe().map_err(io)?)
        .args(args)
        .arg("--detached")
        .stdin(Stdio::null())
        .stdout(log.file.try_clone().map_err(io)?)
        .stderr(log.file.try_clone().map_err(io)?)
        .spawn()
        .map_err(io)?;
    let pid = child.id();
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(chain) = chain_of_process(&root, pid)? {
            let log = log.keep(&root).map(|path| path.display().to_string());
            return context.printer.print(&Detached { chain_id: chain, pid, log });
        }
        if let Some(status) = child.try_wait().map_err(io)? {
            return ended(context, bead, status.code().unwrap_or(1), &log.take());
        }
        if Instant::now() > deadline {
            let log = log.path.display().to_string();
            return Err(CliError::SlowToBegin { bead: bead.to_owned(), pid, log }.into());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn io(source: io::Error) -> CliError {
    CliError::Background { source }
}

/// Returns the chain on a bead that a process runs already: another one would only watch it.
fn running(root: &Path, bead: &str) -> Result<Option<(String, u32)>, Failure> {
    let row = match find_chain(root, bead) {
        Ok(row) => row,
        Err(OrchestratorError::Store(StoreError::NotThere { .. } | StoreError::NoSuchChain { .. })) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let pid = running_process(root, row.chain.as_str())?;
    Ok(pid.filter(|_| row.status.is_live()).map(|pid| (row.chain.to_string(), pid)))
}

/// Says what a process said that ended before it held a chain: a refusal, or the report of one that is ready.
fn ended(context: &Context, bead: &str, status: i32, said: &str) -> Result<Exit, Failure> {
    let silent = || CliError::NotBegun { bead: bead.to_owned(), status, said: said.to_owned() };
    let exit = u8::try_from(status).map(Exit).map_err(|_| silent())?;
    if context.printer.is_json() {
        let object = said.lines().rev().find(|line| line.starts_with('{')).ok_or_else(silent)?;
        return context.printer.print_raw(object).map(|_| exit);
    }
    if said.trim().is_empty() {
        return Err(silent().into());
    }
    if exit == Exit::SUCCESS {
        return context.printer.print_raw(said);
    }
    context.printer.remark(said.trim_end());
    Ok(exit)
}

/// The log of the process in the background. It lies in git's directory until there is a chain: a request that is
/// refused leaves nothing behind.
struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    fn begin(root: &Path, now_ms: i64) -> Result<Self, CliError> {
        let git = root.join(".git");
        let folder = if git.is_dir() { git } else { env::temp_dir() };
        let path = folder.join(format!("sp-run-{now_ms}-{}.log", std::process::id()));
        Ok(Self { file: File::create_new(&path).map_err(io)?, path })
    }

    /// Puts it beside the other files of sp; where that can't be done it stays where it is.
    fn keep(&mut self, root: &Path) -> Option<PathBuf> {
        let logs = Layout::new(root).base().join("logs");
        let kept = logs.join(self.path.file_name()?);
        if fs::create_dir_all(&logs).and_then(|()| fs::rename(&self.path, &kept)).is_ok() {
            self.path = kept;
        }
        Some(self.path.clone())
    }

    /// Takes it away; returns what it says.
    fn take(self) -> String {
        let said = fs::read(&self.path).unwrap_or_default();
        // A log that stays is no reason to hide what it says.
        drop(fs::remove_file(&self.path));
        String::from_utf8_lossy(&said).into_owned()
    }
}

/// Leaves the terminal: a session of its own, so that no hang-up reaches it.
pub fn leave_terminal() -> Result<(), Failure> {
    // Refused only to a leader of a process group, which a child of `run` never is.
    rustix::process::setsid().map(drop).map_err(|errno| CliError::Background { source: errno.into() })?;
    Ok(())
}

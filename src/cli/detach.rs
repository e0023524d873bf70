//! `--background`: the same command again, in a session of its own, with its own log.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::context::Context;
use super::error::CliError;
use super::output::{Exit, Human};
use crate::failure::Failure;
use crate::orchestrator::chain_of_process;

/// How long the first durable write may take: bd, git and pi are asked before it.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Serialize)]
struct Detached {
    chain_id: String,
    pid: u32,
    log: String,
}

impl Human for Detached {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.chain_id)?;
        writeln!(
            out,
            "\nruns in process {}, log {}\nnext:\n  sp feed {} -f\n  sp chain show {}",
            self.pid, self.log, self.chain_id, self.chain_id
        )
    }
}

/// Starts the command again without its terminal and returns once its chain is on disk.
pub fn run(context: &Context, bead: &str) -> Result<Exit, Failure> {
    let root = context.place()?.root.clone();
    let logs = root.join(".specialists").join("logs");
    let log = logs.join(format!("run-{}.log", context.now_ms()));
    let io = |source| CliError::Background { source };
    fs::create_dir_all(&logs).map_err(io)?;
    let out = File::create(&log).map_err(io)?;
    let args = env::args_os().skip(1).filter(|arg| arg != "--background");
    let mut child = Command::new(env::current_exe().map_err(io)?)
        .args(args)
        .arg("--detached")
        .stdin(Stdio::null())
        .stdout(out.try_clone().map_err(io)?)
        .stderr(out)
        .spawn()
        .map_err(io)?;
    let pid = child.id();
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(chain) = chain_of_process(&root, pid)? {
            return context.printer.print(&Detached { chain_id: chain, pid, log: log.display().to_string() });
        }
        if let Some(status) = child.try_wait().map_err(io)? {
            let said = fs::read_to_string(&log).unwrap_or_default();
            return Err(CliError::NotBegun { bead: bead.to_owned(), status: status.code().unwrap_or(1), said }.into());
        }
        if Instant::now() > deadline {
            return Err(CliError::SlowToBegin { bead: bead.to_owned(), pid, log: log.display().to_string() }.into());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Leaves the terminal: a session of its own, so that no hang-up reaches it.
pub fn leave_terminal() -> Result<(), Failure> {
    // Refused only to a leader of a process group, which a child of `run` never is.
    rustix::process::setsid().map(drop).map_err(|errno| CliError::Background { source: errno.into() })?;
    Ok(())
}

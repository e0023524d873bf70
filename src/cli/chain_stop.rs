use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::context::Context;
use super::error::CliError;
use super::output::{Exit, Human};
use crate::failure::Failure;
use crate::orchestrator::{find_chain, running_process};
use crate::storage::ChainStatus;

/// How long a chain may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stop a chain that another process runs; it stays resumable
#[derive(Debug, clap::Args)]
pub struct StopArgs {
    /// Chain id, or the bead that holds its contract
    chain: String,
}

#[derive(Debug, Serialize)]
struct Stopped {
    chain_id: String,
    status: ChainStatus,
    /// Whether a process was asked to stop.
    was_running: bool,
}

impl Human for Stopped {
    fn human(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        let what = if self.was_running { "stopped" } else { "was not running" };
        writeln!(out, "{} {what}, it is {}", self.chain_id, self.status.as_str())?;
        if self.status.is_live() {
            writeln!(out, "\nnext:\n  sp chain show {}\n  sp chain resume {}", self.chain_id, self.chain_id)?;
        }
        Ok(())
    }
}

/// Runs the command.
pub fn run(args: &StopArgs, context: &Context) -> Result<Exit, Failure> {
    let root = context.place()?.root.clone();
    let row = find_chain(&root, &args.chain)?;
    let chain = row.chain.as_str();
    let Some(pid) = running_process(&root, chain)? else {
        return context.printer.print(&Stopped { chain_id: chain.to_owned(), status: row.status, was_running: false });
    };
    // The owner row was just found alive by pid and start time: this is that process.
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        kill_process(pid, Signal::TERM)
            .map_err(|errno| CliError::Signal { pid: pid.as_raw_nonzero().get(), source: errno.into() })?;
    }
    let deadline = Instant::now() + PATIENCE;
    while running_process(&root, chain)?.is_some() {
        if Instant::now() > deadline {
            return Err(CliError::StillRunning { chain: chain.to_owned(), pid }.into());
        }
        thread::sleep(Duration::from_millis(100));
    }
    let status = find_chain(&root, chain)?.status;
    context.printer.print(&Stopped { chain_id: chain.to_owned(), status, was_running: true })
}

//! Driving a chain from the command line: progress, signals, and watching one that another process runs.

use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::chain_end::print_end;
use super::chain_progress::Progress;
use super::context::Context;
use super::error::CliError;
use super::output::Exit;
use crate::config::Config;
use crate::failure::{Failure, FailureKind};
use crate::ids::ChainId;
use crate::orchestrator::{ChainHandle, Ending, Orchestrator, Started, running_process, stored_events};

/// Signals this close together are one request: `timeout` sends its own to the program and then to its group.
const TOGETHER: Duration = Duration::from_millis(100);
/// How often the log of a chain that runs elsewhere is read.
const WATCH: Duration = Duration::from_millis(300);

/// Builds the system on the repository of the context.
pub async fn orchestrator(context: &Context, config: &Config) -> Result<Orchestrator, Failure> {
    let built = Orchestrator::builder(context.directory())
        .bd(config.tools.bd.clone())
        .pi(config.tools.pi.clone())
        .build()
        .await;
    Ok(built?)
}

/// The signals that ask a chain to stop.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> Result<Self, CliError> {
        let on = |kind| signal(kind).map_err(CliError::Signals);
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hangup: on(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}

/// Follows whatever was started to its end and prints the report.
pub async fn follow(
    context: &Context,
    orchestrator: Orchestrator,
    progress: &Progress,
    started: Started,
) -> Result<Exit, Failure> {
    let (chain, ending) = match started {
        Started::Running(handle) => drive(handle, &orchestrator, progress).await,
        Started::Elsewhere { chain, pid } => {
            let ending = watch_elsewhere(&orchestrator, &chain, pid, progress).await?;
            (chain, ending)
        }
        Started::Resting { chain } => (chain, None),
    };
    progress.end();
    let exit = print_end(context, &orchestrator, &chain, ending).await;
    orchestrator.close().await;
    exit
}

/// Follows a chain of this process to its rest. The first signal asks it to stop, the second ends now.
async fn drive(mut handle: ChainHandle, orchestrator: &Orchestrator, progress: &Progress) -> (ChainId, Option<Ending>) {
    let chain = handle.chain().clone();
    for remark in handle.remarks() {
        progress.say(&format!("remark: {remark}"));
    }
    let mut signals = Signals::listen().ok();
    let mut asked: Option<Instant> = None;
    let mut waiter = handle.waiter();
    let ending = loop {
        let signalled = async {
            match &mut signals {
                Some(signals) => signals.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            why = signalled => {
                if asked.is_some_and(|first| first.elapsed() < TOGETHER) {
                    continue;
                }
                if asked.is_some() {
                    progress.end();
                    progress.say(&format!("ending now; go on with: sp chain resume {chain}"));
                    // Everything that counts is on disk; the sessions see their stdin close.
                    std::process::exit(i32::from(FailureKind::Interrupted.row().0));
                }
                asked = Some(Instant::now());
                progress.say(&format!("stopping ({why}); once more to end now; go on later with: sp chain resume {chain}"));
                orchestrator.stop_all(why);
            }
            notice = handle.next() => match notice {
                Some(notice) => progress.tell(&notice),
                None => break waiter.wait().await,
            },
            ending = waiter.wait() => {
                // What was said before the end is told before it.
                while let Some(notice) = handle.try_next() {
                    progress.tell(&notice);
                }
                break ending;
            }
        }
    };
    (chain, Some(ending))
}

/// Shows a chain that another process runs, until it rests or that process is gone. A signal ends the view alone.
async fn watch_elsewhere(
    orchestrator: &Orchestrator,
    chain: &ChainId,
    pid: u32,
    progress: &Progress,
) -> Result<Option<Ending>, Failure> {
    progress.say(&format!("process {pid} runs {chain}; this only shows it"));
    let mut signals = Signals::listen()?;
    let mut seq = 0;
    loop {
        let running = running_process(orchestrator.root(), chain.as_str())?;
        for (at, at_ms, event) in stored_events(orchestrator.root(), chain, seq)? {
            progress.tell_event(at_ms, &event);
            seq = at;
        }
        if running.is_none() {
            return Ok(None);
        }
        tokio::select! {
            () = tokio::time::sleep(WATCH) => {}
            _ = signals.next() => {
                progress.end();
                return Err(CliError::ViewEnded { chain: chain.to_string(), pid }.into());
            }
        }
    }
}

impl Context {
    /// Runs a command that hosts actors, on a runtime with two workers.
    pub fn drive(&self, work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(CliError::Runtime)?;
        runtime.block_on(work)
    }
}

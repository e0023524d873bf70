//! How a run of a chain ends on the command line: one report, one exit status.

use super::context::Context;
use super::output::Exit;
use crate::chain::report::ChainReport;
use crate::failure::{Failure, FailureKind};
use crate::ids::ChainId;
use crate::orchestrator::{Ending, Orchestrator, chain_report};

/// Prints the report of a chain that rests, with the exit status that its standing has.
pub async fn print_end(
    context: &Context,
    orchestrator: &Orchestrator,
    chain: &ChainId,
    ending: Option<Ending>,
) -> Result<Exit, Failure> {
    let report = chain_report(orchestrator.root(), chain.as_str()).await?;
    match failure(&report, ending.as_ref()) {
        None => context.printer.print(&report),
        Some(failure) => context.printer.print_failed(&report, &failure),
    }
}

/// Returns how a run failed; `None` when the chain is ready, published or abandoned as asked.
fn failure(report: &ChainReport, ending: Option<&Ending>) -> Option<Failure> {
    if let Some(Ending::Failed { why, taken_over }) = ending {
        let (kind, code) = match taken_over {
            true => (FailureKind::Contested, "chain_taken_over"),
            false => (FailureKind::Store, "chain_failed"),
        };
        return Some(fail(kind, code, format!("run chain {}: {why}", report.chain_id), Vec::new(), next(report)));
    }
    let chain = &report.chain_id;
    match report.status {
        "blocked" => {
            let steps: Vec<String> = report.blocked().map(|(step, _)| step.bead.clone()).collect();
            let why: Vec<String> =
                report.blocked().map(|(step, why)| format!("{} ({})", step.step, why.code)).collect();
            let message = format!("run chain {chain}: it waits for people at {}", why.join(", "));
            let next = format!("sp chain resume {chain} --note \"what to do\" [--from STEP]");
            Some(fail(FailureKind::Blocked, "chain_blocked", message, steps, next))
        }
        "stopped" => Some(stopped(report)),
        "cancelled" => {
            let message =
                format!("run chain {chain}: cancelled, {}", report.why.as_deref().unwrap_or("ended elsewhere"));
            Some(fail(FailureKind::Refused, "chain_cancelled", message, Vec::new(), format!("sp chain show {chain}")))
        }
        "composing" | "running" => {
            let message = format!("run chain {chain}: its process is gone before it came to rest");
            Some(fail(FailureKind::Interrupted, "chain_interrupted", message, Vec::new(), next(report)))
        }
        _ => None,
    }
}

/// A chain that was stopped: by a signal, or by something outside its steps that would not work.
fn stopped(report: &ChainReport) -> Failure {
    let why = report.why.clone().unwrap_or_default();
    let message = format!("run chain {}: stopped, {why}", report.chain_id);
    let code = why.split(':').next().unwrap_or_default();
    let (kind, code) = match code {
        code if code.starts_with("bd_") || code.starts_with("bead_") => {
            (FailureKind::Tracker, "chain_stopped_by_tracker")
        }
        "Ctrl-C" | "SIGTERM" | "SIGHUP" => (FailureKind::Interrupted, "chain_stopped"),
        code if code.contains(' ') => (FailureKind::Interrupted, "chain_stopped"),
        _ => (FailureKind::Git, "chain_stopped_by_workspace"),
    };
    fail(kind, code, message, Vec::new(), next(report))
}

fn next(report: &ChainReport) -> String {
    format!("sp chain resume {}", report.chain_id)
}

fn fail(kind: FailureKind, code: &'static str, message: String, blocked_by: Vec<String>, next: String) -> Failure {
    let (exit, kind, _) = kind.row();
    Failure {
        ok: false,
        error_code: code,
        kind,
        message,
        blocked_by,
        next_safe_action: next,
        diagnose_command: None,
        exit,
    }
}

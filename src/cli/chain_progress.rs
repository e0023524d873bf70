//! What a running chain says while it runs: lines on stderr, and a live line on a terminal.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::feed_line::chain_event;
use super::figures::time_of_day;
use super::output::printable;
use super::table::one_line;
use crate::actors::{Notice, NoticeKind};
use crate::chain::machine::ChainEvent;

/// Tells people what happens. Silent under `--json`: live JSON is `sp feed <chain> -f --json`.
pub struct Progress {
    silent: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Begins. `silent` says nothing at all.
    pub fn begin(silent: bool) -> Self {
        let live = !silent && io::stderr().is_terminal();
        let bar = live.then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { silent, bar }
    }

    /// Tells one notice.
    pub fn tell(&self, notice: &Notice) {
        match &notice.kind {
            NoticeKind::Event { event, .. } => self.tell_event(notice.at_ms, event),
            NoticeKind::Waiting { on, why } => self.line(notice.at_ms, &format!("waiting: {on}: {why}")),
            NoticeKind::AtRest { .. } | NoticeKind::Failed { .. } => {}
        }
    }

    /// Tells one stored event.
    pub fn tell_event(&self, at_ms: i64, event: &ChainEvent) {
        if is_told(event) {
            let (label, text) = chain_event(event);
            self.line(at_ms, &format!("{label:<9} {text}"));
        }
        if let (Some(bar), Some(live)) = (&self.bar, live(event)) {
            bar.set_message(live);
        }
    }

    /// Says something beside the events.
    pub fn say(&self, text: &str) {
        if self.silent {
            return;
        }
        let text = printable(text);
        // A lost remark is no reason to end: a terminal that goes away is heard of by its signal.
        let write = || drop(io::Write::write_all(&mut io::stderr(), format!("{text}\n").as_bytes()));
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Takes the live line away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, at_ms: i64, text: &str) {
        self.say(&one_line(&format!("{} {text}", time_of_day(at_ms))));
    }
}

/// Whether people want to read of an event while the chain runs; the rest is in `sp feed`.
fn is_told(event: &ChainEvent) -> bool {
    !matches!(
        event,
        ChainEvent::Reread
            | ChainEvent::RootHeld
            | ChainEvent::StepClaiming { .. }
            | ChainEvent::StepInterrupted { .. }
            | ChainEvent::WorkSettled { .. }
            | ChainEvent::StepPassed { .. }
            | ChainEvent::StepAccepted { .. }
            | ChainEvent::EvidenceNoted { .. }
            | ChainEvent::RoundNoted { .. }
            | ChainEvent::RoundReopened { .. }
            | ChainEvent::BlockNoted { .. }
            | ChainEvent::ChainBlocked
            | ChainEvent::ChainStopped { .. }
            | ChainEvent::ResumeAsked { .. }
            | ChainEvent::ResumeDropped
            | ChainEvent::PublishRequested
            | ChainEvent::Abandoned { .. }
    )
}

/// Returns what the live line says from this event on.
fn live(event: &ChainEvent) -> Option<String> {
    match event {
        ChainEvent::Opened(_) | ChainEvent::Adopted { .. } => Some("preparing".to_owned()),
        ChainEvent::StepClaiming { step, .. } => Some(format!("{step}: claiming")),
        ChainEvent::StepDispatched { step, job, .. } => Some(format!("{step}: job {job} works")),
        ChainEvent::JobAnswered { step, .. } => Some(format!("{step}: settling its work")),
        ChainEvent::StepClosed { .. } | ChainEvent::RoundReopened { .. } => Some("asking bd what is ready".to_owned()),
        ChainEvent::StopRequested { .. } => Some("stopping".to_owned()),
        _ => None,
    }
}

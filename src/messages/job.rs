//! Mailbox of a Job: one activation.

use tokio::sync::OwnedSemaphorePermit;

use super::SessionUp;
use crate::pi::PiEvent;
use crate::ports::ExitReport;

/// The right to one batch in flight between a session and its job. Dropping it lets the session read on, so that a
/// flooding agent fills its own pipe and not our memory.
pub type Credit = OwnedSemaphorePermit;

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEnd {
    /// Exit code or signal; `None` when the end could not be observed.
    pub exit: Option<ExitReport>,
    /// The end of what it complained.
    pub stderr: String,
}

impl SessionEnd {
    /// Returns one line for people: exit code or signal, and the last complaint.
    pub fn describe(&self) -> String {
        let how = match self.exit {
            Some(ExitReport { code: Some(code), .. }) => format!("pi exited with status {code}"),
            Some(ExitReport { signal: Some(signal), .. }) => format!("pi was ended by signal {signal}"),
            Some(ExitReport { .. }) | None => "pi is gone".to_owned(),
        };
        match self.stderr.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => format!("{how}: {}", line.chars().take(500).collect::<String>()),
            None => how,
        }
    }
}

/// To a Job.
#[derive(Debug)]
pub enum JobMsg {
    /// From its Session: it answered the first `get_state`.
    SessionReady(SessionUp),
    /// From its Session: it broke its protocol or left a command unanswered.
    SessionFailed {
        /// Stable code.
        code: &'static str,
        /// What happened.
        detail: String,
    },
    /// From its Session: what happened, deltas of one block already summed.
    Events(Vec<PiEvent>, Credit),
    /// From its Session: the agent's last text.
    TextRead(Option<String>),
    /// From its Session: the process is gone and all it said was handed on.
    SessionEnded(SessionEnd),
    /// From its StallWatchdog: nothing was heard for this long.
    Silent {
        /// In ms.
        silence_ms: u64,
        /// Whether it is too long; else it is remarked only.
        too_long: bool,
    },
    /// From itself: the row was to wait this long for its next record.
    RecordDue,
    /// From itself: the whole time is over.
    TimedOut {
        /// In ms.
        limit_ms: u64,
    },
    /// From Jobs: stop.
    Stop,
    /// From itself: the grace after an abort is over.
    GraceOver,
}

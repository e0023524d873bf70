//! What happens in a session, as far as sp acts on it (pi-rpc §7). Texts of deltas are counted, not kept.

use std::time::Duration;

use super::message::{AssistantEnd, Role};

/// An event of pi.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PiEvent {
    /// A run began. From here on `abort` works.
    AgentStart,
    /// A run, or one attempt of it, is over; only [`PiEvent::AgentSettled`] is final.
    AgentEnd {
        /// Whether pi tries again by itself.
        will_retry: bool,
    },
    /// The run is over for good.
    AgentSettled {
        /// Whether an `abort` ended it.
        aborted: bool,
    },
    /// One request to the model, with the tools it calls, began.
    TurnStart,
    /// The turn's answer and all its tool results are in.
    TurnEnd,
    /// A message began.
    MessageStart {
        /// Who speaks.
        role: Role,
    },
    /// A message is complete.
    MessageEnd {
        /// Who spoke.
        role: Role,
        /// The model's answer; present exactly when `role` is [`Role::Assistant`].
        assistant: Option<Box<AssistantEnd>>,
    },
    /// A part of the model's answer began, grew or ended.
    Block {
        /// What the part is.
        kind: BlockKind,
        /// What happened to it.
        phase: BlockPhase,
        /// Its place in the message, from 0.
        index: u32,
        /// Name of the tool, at the start of a tool call.
        tool: Option<String>,
    },
    /// A tool call began; also one that will be blocked or does not exist.
    ToolStart {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The telling argument (path, command, pattern) or the raw JSON, one line of at most 200 characters.
        args: String,
    },
    /// A tool that runs gave output.
    ToolUpdate {
        /// The call.
        id: String,
        /// The tool.
        name: String,
    },
    /// A tool call ended.
    ToolEnd {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// Whether it failed, was blocked or is unknown.
        is_error: bool,
        /// Beginning and end of its output, at most 500 characters.
        summary: String,
        /// How long it ran; `None` if it did not run.
        duration: Option<Duration>,
    },
    /// pi waits before it asks the model again.
    AutoRetryStart {
        /// The attempt to come, from 1.
        attempt: u32,
        /// Attempts at most.
        max_attempts: u32,
        /// The pause.
        delay: Duration,
        /// Why; free text that differs between versions.
        error: String,
    },
    /// The retries are over.
    AutoRetryEnd {
        /// Whether the last attempt worked.
        success: bool,
        /// That attempt.
        attempt: u32,
        /// The last error, if it did not.
        error: Option<String>,
    },
    /// pi began to shorten its context: an extra request to the model.
    CompactionStart {
        /// `manual`, `threshold` or `overflow`.
        reason: String,
    },
    /// pi has shortened its context or given up.
    CompactionEnd {
        /// As at the start.
        reason: String,
        /// Whether it was cancelled.
        aborted: bool,
        /// Whether the run goes on.
        will_retry: bool,
        /// Why it did not work.
        error: Option<String>,
    },
    /// pi's queues changed.
    QueueUpdate {
        /// Waiting steering messages.
        steering: usize,
        /// Waiting follow-ups.
        follow_up: usize,
    },
    /// A handler of an extension threw; the run goes on.
    ExtensionError {
        /// File of the extension.
        extension: String,
        /// The event that was handled.
        event: String,
        /// What was thrown.
        error: String,
    },
    /// An extension speaks to the user.
    UiRequest {
        /// Id that an answer carries.
        id: String,
        /// Such as `confirm`.
        method: String,
        /// Whether the run waits, for ever, until it is answered (pi-rpc §1.8).
        needs_answer: bool,
    },
    /// An event that changes nothing for sp.
    Other,
}

/// Kind of a part of the model's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// What the model says.
    Text,
    /// What it thinks.
    Thinking,
    /// What it wants done.
    ToolCall,
}

/// What happened to a part of the model's answer. Sizes are in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockPhase {
    /// It began.
    Start,
    /// It grew.
    Delta {
        /// By so much.
        chars: u64,
    },
    /// It is complete.
    End {
        /// Its whole size; 0 for tool calls.
        chars: u64,
    },
}

//! One line of pi's stdout into what it says.
//!
//! Almost all lines are deltas, so their kind is peeked and their text only counted: no allocation unless it holds
//! escapes.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::{BlockKind, BlockPhase, PiEvent};
use super::message::{Role, WireMessage};
use super::response::{Response, WireResponse};
use super::text::{Chars, Text, ends, one_line, whole};

/// A line from pi.
#[derive(Debug, Clone)]
pub enum Line {
    /// The answer to a command.
    Response(Response),
    /// Something happened in the session.
    Event(PiEvent),
    /// An event of a later pi; to be ignored.
    Unknown {
        /// Its type, at most 200 characters.
        kind: String,
    },
}

/// A line that is not what pi's protocol promises.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// It is no JSON object with a type.
    #[error("read a line of pi that begins `{start}`")]
    Garbled {
        /// Its first characters, at most 200.
        start: String,
        /// Where it went wrong.
        #[source]
        source: serde_json::Error,
    },
    /// Its type is known, its fields are not.
    #[error("read {kind} of pi")]
    Shape {
        /// What the line is.
        kind: String,
        /// Where it went wrong.
        #[source]
        source: serde_json::Error,
    },
}

const SUMMARY_CHARS: usize = 500;
const ARGS_CHARS: usize = 200;
const START_CHARS: usize = 200;

/// Reads one line, without its line feed.
pub fn decode(line: &[u8]) -> Result<Line, CodecError> {
    let read = decode_strict(line);
    // Raw values can't hold invalid UTF-8. pi never writes it, but a line is not worth losing.
    match (read, std::str::from_utf8(line)) {
        (Err(_), Err(_)) => decode_strict(String::from_utf8_lossy(line).as_bytes()),
        (read, _) => read,
    }
}

/// Returns whether a line only repeats what was said, by its beginning: the messages of a turn or of a whole run once
/// more. Of such a line sp needs to know that it came.
pub fn repeats(head: &[u8]) -> bool {
    matches!(peek(head), Some("turn_end" | "agent_end"))
}

/// Reads what can be known of a line by its beginning, where [`repeats`] holds for it.
pub fn decode_head(head: &[u8]) -> Line {
    Line::Event(match peek(head) {
        Some("turn_end") => PiEvent::TurnEnd,
        // Whether pi tries again stands at the line's end, and only `agent_settled` is final.
        _ => PiEvent::Other,
    })
}

fn decode_strict(line: &[u8]) -> Result<Line, CodecError> {
    if let Some(kind) = peek(line) {
        return decode_as(kind, line);
    }
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow, rename = "type")]
        kind: Text<'a>,
    }
    let head: Head<'_> = serde_json::from_slice(line).map_err(|source| CodecError::Garbled {
        start: one_line(&String::from_utf8_lossy(&line[..line.len().min(4 * START_CHARS)]), START_CHARS),
        source,
    })?;
    decode_as(&head.kind.0, line)
}

/// Returns the type of a line that begins with it, as all events do.
fn peek(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let end = rest.iter().take(64).position(|byte| !byte.is_ascii_lowercase() && *byte != b'_')?;
    (rest[end] == b'"').then(|| std::str::from_utf8(&rest[..end]).ok())?
}

fn decode_as(kind: &str, line: &[u8]) -> Result<Line, CodecError> {
    let event = match kind {
        "message_update" => update(line),
        "response" => {
            return read::<WireResponse<'_>>(line).map(|wire| Line::Response(wire.into())).map_err(shape(kind));
        }
        "agent_start" => read::<Empty>(line).map(|_| PiEvent::AgentStart),
        "agent_end" => read::<WireAgentEnd>(line).map(|end| PiEvent::AgentEnd { will_retry: end.will_retry }),
        "agent_settled" => read::<WireSettled>(line).map(|end| PiEvent::AgentSettled { aborted: end.aborted }),
        "turn_start" => read::<Empty>(line).map(|_| PiEvent::TurnStart),
        "turn_end" => read::<Empty>(line).map(|_| PiEvent::TurnEnd),
        "message_start" => {
            read::<WireWithMessage<'_>>(line).map(|wire| PiEvent::MessageStart { role: wire.message.role() })
        }
        "message_end" => read::<WireWithMessage<'_>>(line).and_then(message_end),
        "tool_execution_start" => read::<WireTool<'_>>(line).map(tool_start),
        "tool_execution_update" => read::<WireTool<'_>>(line).map(tool_update),
        "tool_execution_end" => read::<WireTool<'_>>(line).map(tool_end),
        "auto_retry_start" | "auto_retry_end" => read::<WireRetry<'_>>(line).map(|wire| retry(kind, wire)),
        "compaction_start" | "compaction_end" => read::<WireCompaction<'_>>(line).map(|wire| compaction(kind, wire)),
        "queue_update" => read::<WireQueue<'_>>(line)
            .map(|queue| PiEvent::QueueUpdate { steering: queue.steering.len(), follow_up: queue.follow_up.len() }),
        "extension_error" => read::<WireExtensionError<'_>>(line).map(|wire| PiEvent::ExtensionError {
            extension: wire.extension_path.into_string(),
            event: wire.event.into_string(),
            error: wire.error.into_string(),
        }),
        "extension_ui_request" => read::<WireUi<'_>>(line).map(ui_request),
        "entry_appended"
        | "thinking_level_changed"
        | "session_info_changed"
        | "bash_execution_update"
        | "summarization_retry_scheduled"
        | "summarization_retry_attempt_start"
        | "summarization_retry_finished" => read::<Empty>(line).map(|_| PiEvent::Other),
        _ => {
            return read::<Empty>(line)
                .map(|_| Line::Unknown { kind: one_line(kind, START_CHARS) })
                .map_err(shape(kind));
        }
    };
    event.map(Line::Event).map_err(shape(kind))
}

fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(line)
}

fn shape(kind: &str) -> impl FnOnce(serde_json::Error) -> CodecError {
    move |source| CodecError::Shape { kind: format!("the line `{}`", one_line(kind, START_CHARS)), source }
}

/// Any object: what it holds is checked to be JSON and skipped.
#[derive(Deserialize)]
struct Empty {}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireUpdate<'a> {
    #[serde(borrow)]
    assistant_message_event: WireBlockEvent<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBlockEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    content_index: u32,
    #[serde(default)]
    delta: Chars,
    #[serde(default)]
    content: Chars,
    #[serde(borrow, default)]
    tool_name: Option<Text<'a>>,
}

fn update(line: &[u8]) -> Result<PiEvent, serde_json::Error> {
    let block = read::<WireUpdate<'_>>(line)?.assistant_message_event;
    let (delta, end) = (BlockPhase::Delta { chars: block.delta.0 }, BlockPhase::End { chars: block.content.0 });
    let (kind, phase) = match block.kind.0.as_ref() {
        "text_delta" => (BlockKind::Text, delta),
        "thinking_delta" => (BlockKind::Thinking, delta),
        "toolcall_delta" => (BlockKind::ToolCall, delta),
        "text_start" => (BlockKind::Text, BlockPhase::Start),
        "thinking_start" => (BlockKind::Thinking, BlockPhase::Start),
        "toolcall_start" => (BlockKind::ToolCall, BlockPhase::Start),
        "text_end" => (BlockKind::Text, end),
        "thinking_end" => (BlockKind::Thinking, end),
        "toolcall_end" => (BlockKind::ToolCall, end),
        // `start`, `done` and `error` repeat what message_start and message_end say; a later pi may have more.
        _ => return Ok(PiEvent::Other),
    };
    Ok(PiEvent::Block { kind, phase, index: block.content_index, tool: block.tool_name.map(Text::into_string) })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAgentEnd {
    #[serde(default)]
    will_retry: bool,
}

#[derive(Deserialize)]
struct WireSettled {
    #[serde(default)]
    aborted: bool,
}

#[derive(Deserialize)]
struct WireWithMessage<'a> {
    #[serde(borrow)]
    message: WireMessage<'a>,
}

fn message_end(wire: WireWithMessage<'_>) -> Result<PiEvent, serde_json::Error> {
    let role = wire.message.role();
    let assistant = match role {
        Role::Assistant => Some(Box::new(wire.message.into_assistant()?)),
        Role::System | Role::User | Role::ToolResult | Role::Other => None,
    };
    Ok(PiEvent::MessageEnd { role, assistant })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireTool<'a> {
    #[serde(borrow)]
    tool_call_id: Text<'a>,
    #[serde(borrow)]
    tool_name: Text<'a>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    duration_ms: Option<f64>,
}

fn tool_start(wire: WireTool<'_>) -> PiEvent {
    let args = wire.args.map_or("", |raw| raw.get());
    PiEvent::ToolStart { id: wire.tool_call_id.into_string(), name: wire.tool_name.into_string(), args: telling(args) }
}

fn tool_update(wire: WireTool<'_>) -> PiEvent {
    PiEvent::ToolUpdate { id: wire.tool_call_id.into_string(), name: wire.tool_name.into_string() }
}

fn tool_end(wire: WireTool<'_>) -> PiEvent {
    PiEvent::ToolEnd {
        id: wire.tool_call_id.into_string(),
        name: wire.tool_name.into_string(),
        is_error: wire.is_error,
        summary: wire.result.map(|raw| output(raw.get())).unwrap_or_default(),
        duration: wire.duration_ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok()),
    }
}

/// Returns the argument that tells most about a call, or the arguments as they are.
fn telling(args: &str) -> String {
    #[derive(Deserialize)]
    struct Known<'a> {
        #[serde(borrow, default)]
        command: Option<Text<'a>>,
        #[serde(borrow, default)]
        pattern: Option<Text<'a>>,
        #[serde(borrow, default)]
        path: Option<Text<'a>>,
    }
    let known: Option<Known<'_>> = serde_json::from_str(args).ok();
    let first = known.and_then(|known| known.command.or(known.pattern).or(known.path));
    one_line(first.as_ref().map_or(args, |text| &text.0), ARGS_CHARS)
}

/// Returns the text of a tool's result, cut. Results of other tools than pi's own may have any shape.
fn output(result: &str) -> String {
    #[derive(Deserialize)]
    struct Part<'a> {
        #[serde(borrow, default)]
        text: Option<Text<'a>>,
    }
    #[derive(Deserialize)]
    struct WireResult<'a> {
        #[serde(borrow)]
        content: Vec<Part<'a>>,
    }
    match serde_json::from_str::<WireResult<'_>>(result) {
        Ok(result) => {
            let texts: Vec<_> = result.content.into_iter().filter_map(|part| part.text).map(|text| text.0).collect();
            ends(texts.join("\n").trim(), SUMMARY_CHARS)
        }
        Err(_) => ends(result, SUMMARY_CHARS),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireRetry<'a> {
    #[serde(default, deserialize_with = "whole")]
    attempt: u64,
    #[serde(default, deserialize_with = "whole")]
    max_attempts: u64,
    #[serde(default, deserialize_with = "whole")]
    delay_ms: u64,
    #[serde(borrow, default)]
    error_message: Option<Text<'a>>,
    #[serde(default)]
    success: bool,
    #[serde(borrow, default)]
    final_error: Option<Text<'a>>,
}

fn retry(kind: &str, wire: WireRetry<'_>) -> PiEvent {
    let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    if kind == "auto_retry_end" {
        let error = wire.final_error.map(Text::into_string);
        return PiEvent::AutoRetryEnd { success: wire.success, attempt: small(wire.attempt), error };
    }
    PiEvent::AutoRetryStart {
        attempt: small(wire.attempt),
        max_attempts: small(wire.max_attempts),
        delay: Duration::from_millis(wire.delay_ms),
        error: wire.error_message.unwrap_or_default().into_string(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCompaction<'a> {
    #[serde(borrow, default)]
    reason: Text<'a>,
    #[serde(default)]
    aborted: bool,
    #[serde(default)]
    will_retry: bool,
    #[serde(borrow, default)]
    error_message: Option<Text<'a>>,
}

fn compaction(kind: &str, wire: WireCompaction<'_>) -> PiEvent {
    let reason = wire.reason.into_string();
    if kind == "compaction_start" {
        return PiEvent::CompactionStart { reason };
    }
    let error = wire.error_message.map(Text::into_string);
    PiEvent::CompactionEnd { reason, aborted: wire.aborted, will_retry: wire.will_retry, error }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireQueue<'a> {
    #[serde(borrow, default)]
    steering: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    follow_up: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireExtensionError<'a> {
    #[serde(borrow, default)]
    extension_path: Text<'a>,
    #[serde(borrow, default)]
    event: Text<'a>,
    #[serde(borrow, default)]
    error: Text<'a>,
}

#[derive(Deserialize)]
struct WireUi<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    method: Text<'a>,
}

fn ui_request(wire: WireUi<'_>) -> PiEvent {
    // Only these are known to need none. pi ignores an answer that nobody waits for; a missing one hangs the run.
    let told = ["notify", "setStatus", "setWidget", "setTitle", "set_editor_text"];
    let needs_answer = !told.contains(&wire.method.0.as_ref());
    PiEvent::UiRequest { id: wire.id.into_string(), method: wire.method.into_string(), needs_answer }
}

#[cfg(test)]
mod tests;

//! Responses: pi's answers to commands (pi-rpc §6), matched to them by id.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::decode::CodecError;
use super::text::{Text, whole};

/// pi's answer to one command.
#[derive(Debug, Clone)]
pub struct Response {
    /// Id of the command; `None` when pi did not understand the line at all, or for an id that sp did not give.
    pub id: Option<u64>,
    /// The command's name; `parse` for a line that is no JSON; empty when pi gave none.
    pub command: String,
    /// Whether pi accepted the command. For `prompt` this says nothing about the run (pi-rpc §5.2).
    pub success: bool,
    /// Why not.
    pub error: Option<String>,
    data: Option<Box<RawValue>>,
}

/// A model, by pi's names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelRef {
    /// Provider id.
    #[serde(default)]
    pub provider: String,
    /// Model id; `unknown` when pi has no model at all.
    pub id: String,
    /// Tokens that its context holds; 0 when pi doesn't know.
    #[serde(default, deserialize_with = "whole")]
    pub context_window: u64,
}

/// The answer to `get_state`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    /// The model in use.
    #[serde(default)]
    pub model: Option<ModelRef>,
    /// Thinking level after clamping.
    #[serde(default)]
    pub thinking_level: Option<String>,
    /// Whether a run is on, back-off and automatic compaction included.
    pub is_streaming: bool,
    /// Whether the context is being shortened.
    #[serde(default)]
    pub is_compacting: bool,
    /// Session file; `None` for a session in memory.
    #[serde(default)]
    pub session_file: Option<PathBuf>,
    /// Session id.
    pub session_id: String,
    /// Messages in the session; above 0 where an earlier session is continued.
    #[serde(default)]
    pub message_count: u64,
    /// Messages in the queues.
    #[serde(default)]
    pub pending_message_count: u64,
}

impl Response {
    /// Reads the answer to `get_state`.
    pub fn state(&self) -> Result<SessionState, CodecError> {
        self.data("get_state")
    }

    /// Reads the answer to `get_last_assistant_text`; `None` where there is none, which pi shows by leaving it out.
    pub fn last_assistant_text(&self) -> Result<Option<String>, CodecError> {
        #[derive(Deserialize)]
        struct Data<'a> {
            #[serde(borrow, default)]
            text: Option<Text<'a>>,
        }
        Ok(self.data::<Data<'_>>("get_last_assistant_text")?.text.map(Text::into_string))
    }

    fn data<'a, T: Deserialize<'a>>(&'a self, expected: &str) -> Result<T, CodecError> {
        let raw = self.data.as_ref().map_or("null", |data| data.get());
        serde_json::from_str(raw)
            .map_err(|source| CodecError::Shape { kind: format!("the response to {expected}"), source })
    }
}

/// A response as it stands on the wire.
#[derive(Deserialize)]
pub(super) struct WireResponse<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    command: Text<'a>,
    success: bool,
    #[serde(borrow, default)]
    error: Option<Text<'a>>,
    #[serde(default)]
    data: Option<Box<RawValue>>,
}

impl From<WireResponse<'_>> for Response {
    fn from(wire: WireResponse<'_>) -> Self {
        Self {
            id: wire.id.and_then(|raw| raw.get().parse().ok()),
            command: wire.command.into_string(),
            success: wire.success,
            error: wire.error.map(Text::into_string),
            data: wire.data,
        }
    }
}

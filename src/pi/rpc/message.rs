//! Messages of a session. Only the model's answers are looked into.

use std::borrow::Cow;
use std::ops::AddAssign;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::text::{Chars, Text, whole};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// The system prompt; pi 1.6 shows it as a message.
    System,
    /// The one who prompts or steers.
    User,
    /// The model.
    Assistant,
    /// A tool's result, as the model sees it.
    ToolResult,
    /// An extension or a later pi.
    Other,
}

impl Role {
    fn named(name: &str) -> Self {
        match name {
            "system" => Self::System,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "toolResult" => Self::ToolResult,
            _ => Self::Other,
        }
    }
}

/// Why the model stopped. Stop, error, aborted and length are different endings (pi-rpc §5.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// It had said all.
    Stop,
    /// It reached the limit of its answer.
    Length,
    /// It calls tools.
    ToolUse,
    /// The request failed.
    Error,
    /// It was cut off by us.
    Aborted,
    /// Another reason, such as `deferred`.
    Other(String),
}

impl StopReason {
    fn named(name: Cow<'_, str>) -> Self {
        match name.as_ref() {
            "stop" => Self::Stop,
            "length" => Self::Length,
            "toolUse" => Self::ToolUse,
            "error" => Self::Error,
            "aborted" => Self::Aborted,
            _ => Self::Other(name.into_owned()),
        }
    }

    /// Returns pi's name of the reason.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolUse => "toolUse",
            Self::Error => "error",
            Self::Aborted => "aborted",
            Self::Other(name) => name,
        }
    }
}

/// Tokens and money of one answer. What a provider does not tell is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Prompt tokens that were not cached.
    #[serde(deserialize_with = "whole")]
    pub input: u64,
    /// Answer tokens, thinking included.
    #[serde(deserialize_with = "whole")]
    pub output: u64,
    /// Prompt tokens read from the provider's cache.
    #[serde(deserialize_with = "whole")]
    pub cache_read: u64,
    /// Prompt tokens written to the provider's cache.
    #[serde(deserialize_with = "whole")]
    pub cache_write: u64,
    /// Answer tokens spent on thinking.
    #[serde(deserialize_with = "whole")]
    pub reasoning: u64,
    /// All tokens.
    #[serde(deserialize_with = "whole", rename = "totalTokens")]
    pub total: u64,
    /// Cost in US dollars, by pi's price table.
    #[serde(deserialize_with = "total_cost", rename = "cost")]
    pub cost_usd: f64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.reasoning += other.reasoning;
        self.total += other.total;
        self.cost_usd += other.cost_usd;
    }
}

fn total_cost<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    #[derive(Deserialize)]
    struct Cost {
        #[serde(default)]
        total: Option<f64>,
    }
    Ok(Option::<Cost>::deserialize(deserializer)?.and_then(|cost| cost.total).unwrap_or_default())
}

/// A complete answer of the model; authoritative, where deltas are only progress.
#[derive(Debug, Clone, PartialEq)]
pub struct AssistantEnd {
    /// Its text blocks, joined without a separator as pi does.
    pub text: String,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// The provider's or pi's words when it did not end well; free text that differs between versions.
    pub error_message: Option<String>,
    /// Tokens and cost.
    pub usage: Usage,
    /// Model id.
    pub model: String,
    /// Provider id.
    pub provider: String,
    /// Tool calls in it.
    pub tool_calls: u32,
    /// Characters of thinking in it.
    pub thinking_chars: u64,
}

/// A message as it stands in `message_start` and `message_end`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireMessage<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    /// An array of blocks; other roles also have a plain string.
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    error_message: Option<Text<'a>>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(borrow, default)]
    model: Option<Text<'a>>,
    #[serde(borrow, default)]
    provider: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct WireBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(default)]
    thinking: Option<Chars>,
}

impl WireMessage<'_> {
    pub(super) fn role(&self) -> Role {
        Role::named(&self.role.0)
    }

    pub(super) fn into_assistant(self) -> Result<AssistantEnd, serde_json::Error> {
        let blocks: Vec<WireBlock<'_>> = self.content.map_or(Ok(Vec::new()), |raw| serde_json::from_str(raw.get()))?;
        let (mut text, mut tool_calls, mut thinking_chars) = (String::new(), 0, 0);
        for block in blocks {
            match block.kind.0.as_ref() {
                "text" => text.push_str(&block.text.unwrap_or_default().0),
                "thinking" => thinking_chars += block.thinking.unwrap_or_default().0,
                "toolCall" => tool_calls += 1,
                _ => {}
            }
        }
        let named = |field: Option<Text<'_>>| field.unwrap_or_default().into_string();
        Ok(AssistantEnd {
            text,
            stop_reason: StopReason::named(self.stop_reason.unwrap_or_default().0),
            error_message: self.error_message.map(Text::into_string),
            usage: self.usage.unwrap_or_default(),
            model: named(self.model),
            provider: named(self.provider),
            tool_calls,
            thinking_chars,
        })
    }
}

//! Decoding a script. Every rule is checked while reading, so that each error has a line and a field.

mod shapes;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

use self::shapes::{Filled, Named, Within, object, word};
use super::{Fault, FaultKind, Finish, Round, Script, Text, ToolCall, Turn, Usage};
use crate::nearest::{hint, nearest};
use crate::rehearsal::error::ScriptError;

/// Largest text of one turn, unfolded, thinking and arguments included.
const MAX_TURN_BYTES: u64 = 10_000_000;
const DEFAULT_CHUNK_CHARS: u64 = 64;

/// Reads a script; see [`Script::parse`].
pub(super) fn decode(file: &str, text: &str) -> Result<Script, ScriptError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let script = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| invalid(file, &error.path().to_string(), error.inner()))?;
    json.end().map_err(|error| invalid(file, ".", &error))?;
    Ok(script)
}

fn invalid(file: &str, path: &str, error: &serde_json::Error) -> ScriptError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let reason = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    let reason = format!("{reason}{}", hint(&meant(reason)));
    // Where a text breaks off in front of a name, the path ends in a question mark.
    let field = if path == "?" { "." } else { path.strip_suffix(".?").unwrap_or(path) };
    ScriptError::Invalid { file: file.to_owned(), line, column, field: field.to_owned(), reason }
}

/// Returns the known names that are nearest to the unknown one. serde's message quotes the unknown name first, then all
/// known ones.
fn meant(reason: &str) -> Vec<String> {
    let Some(names) = reason.strip_prefix("unknown ") else { return Vec::new() };
    let mut quoted = names.split('`').skip(1).step_by(2);
    quoted.next().map(|found| nearest(found, quoted)).unwrap_or_default()
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    #[serde(rename = "rehearsal")]
    _format: Within<1, 1>,
    #[serde(default)]
    description: String,
    roles: Named<RawRole>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRole {
    rounds: Filled<Round>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRound {
    turns: Filled<Turn>,
}

impl<'de> Deserialize<'de> for Script {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        object(from, |raw: RawScript| {
            let roles = raw.roles.0.into_iter().map(|(name, role)| (name, role.rounds.0)).collect();
            Ok(Self { description: raw.description, roles })
        })
    }
}

impl<'de> Deserialize<'de> for Round {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        object(from, |raw: RawRound| Ok(Self { turns: raw.turns.0 }))
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTurn {
    thinking: Option<Text>,
    text: Option<Text>,
    #[serde(default)]
    tools: Vec<ToolCall>,
    usage: Option<Usage>,
    finish: Option<Finish>,
    #[serde(default)]
    delay_ms: Within<0, 600_000>,
    #[serde(default)]
    chunk_delay_ms: Within<0, 60_000>,
    chunk_chars: Option<Within<1, 65_536>>,
    fault: Option<FaultKind>,
    fault_times: Option<Within<1, 1_000_000>>,
}

impl<'de> Deserialize<'de> for Turn {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        object(from, turn)
    }
}

fn turn(raw: RawTurn) -> Result<Turn, String> {
    let answers = raw.text.is_some() || raw.thinking.is_some() || !raw.tools.is_empty();
    let fault = match (raw.fault, raw.fault_times) {
        (None, None) if answers => None,
        (None, None) => return Err("a turn needs `text`, `thinking`, `tools` or a `fault`".to_owned()),
        (None, Some(_)) => return Err("`fault_times` without a `fault`".to_owned()),
        (Some(_), Some(_)) if !answers => {
            return Err("`fault_times` on a turn that has no answer for afterwards".to_owned());
        }
        (Some(kind), Some(times)) => Some(Fault { kind, times: Some(times.narrow()) }),
        (Some(kind), None) => Some(Fault { kind, times: answers.then_some(1) }),
    };
    let (thinking, text) = (raw.thinking.unwrap_or_default(), raw.text.unwrap_or_default());
    let arguments: u64 = raw.tools.iter().map(|call| call.arguments.bytes()).sum();
    if thinking.bytes() + text.bytes() + arguments > MAX_TURN_BYTES {
        return Err(format!("the turn is over {MAX_TURN_BYTES} bytes"));
    }
    let finish = raw.finish.unwrap_or(if raw.tools.is_empty() { Finish::Stop } else { Finish::ToolCalls });
    Ok(Turn {
        thinking,
        text,
        tools: raw.tools,
        usage: raw.usage,
        finish,
        delay: raw.delay_ms.millis(),
        chunk_delay: raw.chunk_delay_ms.millis(),
        chunk_chars: raw.chunk_chars.map_or(DEFAULT_CHUNK_CHARS, |chars| chars.0) as usize,
        fault,
    })
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawText {
    repeat: Option<String>,
    count: Option<Within<1, MAX_TURN_BYTES>>,
    json: Option<Value>,
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a string, {\"repeat\", \"count\"} or {\"json\"}")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text::from(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text, A::Error> {
        shapes::fields(map, |raw: RawText| {
            let text = match raw {
                RawText { repeat: Some(unit), count: Some(count), json: None } => Text::repeated(unit, count.narrow()),
                RawText { repeat: None, count: None, json: Some(value) } => Text::repeated(value.to_string(), 1),
                RawText { .. } => return Err("either `repeat` and `count`, or `json` alone (and not null)".to_owned()),
            };
            if text.bytes() > MAX_TURN_BYTES {
                return Err(format!("`repeat` × `count` is over {MAX_TURN_BYTES} bytes"));
            }
            Ok(text)
        })
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    name: ToolName,
    arguments: Map<String, Value>,
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        object(from, |raw: RawCall| {
            let arguments = Value::Object(raw.arguments).to_string();
            Ok(Self { name: raw.name.0, arguments: Text::repeated(arguments, 1) })
        })
    }
}

struct ToolName(&'static str);

impl<'de> Deserialize<'de> for ToolName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        word(from, &["read", "grep", "find", "ls", "bash", "edit", "write"]).map(Self)
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUsage {
    input: Tokens,
    output: Tokens,
    #[serde(default)]
    cached: Tokens,
    #[serde(default)]
    reasoning: Tokens,
}

type Tokens = Within<0, 1_000_000_000_000>;

impl<'de> Deserialize<'de> for Usage {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        object(from, |raw: RawUsage| {
            if raw.reasoning.0 > raw.output.0 {
                return Err("`reasoning` is part of `output`, so it can't be more".to_owned());
            }
            Ok(Self { input: raw.input.0, output: raw.output.0, cached: raw.cached.0, reasoning: raw.reasoning.0 })
        })
    }
}

impl<'de> Deserialize<'de> for Finish {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(match word(from, &["stop", "length", "tool_calls", "content_filter"])? {
            "length" => Self::Length,
            "tool_calls" => Self::ToolCalls,
            "content_filter" => Self::ContentFilter,
            _stop => Self::Stop,
        })
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFault {
    http: Option<Within<400, 599>>,
    message: Option<String>,
    drop_after: Option<Within<0, MAX_TURN_BYTES>>,
    hang_after: Option<Within<0, MAX_TURN_BYTES>>,
}

impl<'de> Deserialize<'de> for FaultKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        object(from, |raw| match raw {
            RawFault { http: Some(status), message, drop_after: None, hang_after: None } => {
                let status = status.narrow();
                Ok(Self::Http { status, message: message.unwrap_or_else(|| format!("rehearsed error {status}")) })
            }
            RawFault { http: None, message: None, drop_after: Some(deltas), hang_after: None } => {
                Ok(Self::DropAfter(deltas.0))
            }
            RawFault { http: None, message: None, drop_after: None, hang_after: Some(deltas) } => {
                Ok(Self::HangAfter(deltas.0))
            }
            RawFault { .. } => {
                Err("a fault is one of `http` (with or without `message`), `drop_after` and `hang_after`".to_owned())
            }
        })
    }
}

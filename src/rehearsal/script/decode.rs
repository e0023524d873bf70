//! Decoding a script. Every rule is checked while reading, so that each error has a line and a field.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde_json::{Map, Value};

use super::{Fault, FaultKind, Finish, Round, Script, Text, ToolCall, Turn, Usage};
use crate::rehearsal::error::ScriptError;

/// Largest text of one turn, unfolded, thinking and arguments included.
const MAX_TURN_BYTES: u64 = 10_000_000;
const DEFAULT_CHUNK_CHARS: u64 = 64;
const TOOLS: &[&str] = &["read", "grep", "find", "ls", "bash", "edit", "write"];

/// Reads a script; see [`Script::parse`].
pub(super) fn decode(file: &str, text: &str) -> Result<Script, ScriptError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let whole = |error: serde_json::Error| invalid(file, ".".to_owned(), &error);
    let raw: RawScript = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| invalid(file, error.path().to_string(), error.inner()))?;
    json.end().map_err(whole)?;
    let roles = raw.roles.0.into_iter().map(|(name, role)| (name, role.rounds.0)).collect();
    Ok(Script { description: raw.description, roles })
}

fn invalid(file: &str, field: String, error: &serde_json::Error) -> ScriptError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let reason = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    let reason = nearest(reason).map_or_else(|| reason.to_owned(), |name| format!("{reason}; did you mean `{name}`?"));
    ScriptError::Invalid { file: file.to_owned(), line, column, field, reason }
}

/// Returns the known name that is nearest to the unknown one. serde's message quotes the unknown name first, then all
/// known ones.
fn nearest(reason: &str) -> Option<&str> {
    let mut quoted = reason.strip_prefix("unknown ")?.split('`').skip(1).step_by(2);
    let found = quoted.next()?;
    let far = found.chars().count() / 3 + 1;
    let near = quoted.map(|known| (strsim::damerau_levenshtein(found, known), known)).filter(|(far_off, _)| *far_off <= far);
    near.min().map(|(_, known)| known)
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

impl<'de> Deserialize<'de> for Round {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self { turns: RawRound::deserialize(from)?.turns.0 })
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
        let raw = RawTurn::deserialize(from)?;
        let answers = raw.text.is_some() || raw.thinking.is_some() || !raw.tools.is_empty();
        let fault = match (raw.fault, raw.fault_times) {
            (None, None) if answers => None,
            (None, None) => return Err(D::Error::custom("a turn needs `text`, `thinking`, `tools` or a `fault`")),
            (None, Some(_)) => return Err(D::Error::custom("`fault_times` without a `fault`")),
            (Some(kind), None) => Some(Fault { kind, times: answers.then_some(1) }),
            (Some(_), Some(_)) if !answers => {
                return Err(D::Error::custom("`fault_times` on a turn that has no answer for afterwards"));
            }
            (Some(kind), Some(times)) => Some(Fault { kind, times: Some(times.0 as u32) }),
        };
        let (thinking, text) = (raw.thinking.unwrap_or_default(), raw.text.unwrap_or_default());
        let arguments: u64 = raw.tools.iter().map(|call| call.arguments.bytes()).sum();
        if thinking.bytes() + text.bytes() + arguments > MAX_TURN_BYTES {
            return Err(D::Error::custom(format_args!("the turn is over {MAX_TURN_BYTES} bytes")));
        }
        let finish = raw.finish.unwrap_or(if raw.tools.is_empty() { Finish::Stop } else { Finish::ToolCalls });
        Ok(Self {
            thinking,
            text,
            tools: raw.tools,
            usage: raw.usage,
            finish,
            delay: Duration::from_millis(raw.delay_ms.0),
            chunk_delay: Duration::from_millis(raw.chunk_delay_ms.0),
            chunk_chars: raw.chunk_chars.map_or(DEFAULT_CHUNK_CHARS, |chars| chars.0) as usize,
            fault,
        })
    }
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
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string, {\"repeat\", \"count\"} or {\"json\"}")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text::from(text))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text, A::Error> {
                let text = match RawText::deserialize(MapAccessDeserializer::new(map))? {
                    RawText { repeat: Some(unit), count: Some(count), json: None } => {
                        Text::repeated(unit, count.0 as u32)
                    }
                    RawText { repeat: None, count: None, json: Some(value) } => Text::repeated(value.to_string(), 1),
                    RawText { .. } => {
                        return Err(A::Error::custom("either `repeat` and `count`, or `json` alone (and not null)"));
                    }
                };
                if text.bytes() > MAX_TURN_BYTES {
                    return Err(A::Error::custom(format_args!("`repeat` × `count` is over {MAX_TURN_BYTES} bytes")));
                }
                Ok(text)
            }
        }
        from.deserialize_any(TextVisitor)
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
        let raw = RawCall::deserialize(from)?;
        Ok(Self { name: raw.name.0, arguments: Text::repeated(Value::Object(raw.arguments).to_string(), 1) })
    }
}

struct ToolName(&'static str);

impl<'de> Deserialize<'de> for ToolName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let found = String::deserialize(from)?;
        let known = TOOLS.iter().find(|name| **name == found);
        known.map(|name| Self(name)).ok_or_else(|| D::Error::unknown_variant(&found, TOOLS))
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
        let raw = RawUsage::deserialize(from)?;
        if raw.reasoning.0 > raw.output.0 {
            return Err(D::Error::custom("`reasoning` is part of `output`, so it can't be more"));
        }
        Ok(Self { input: raw.input.0, output: raw.output.0, cached: raw.cached.0, reasoning: raw.reasoning.0 })
    }
}

impl<'de> Deserialize<'de> for Finish {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        const ALL: [Finish; 4] = [Finish::Stop, Finish::Length, Finish::ToolCalls, Finish::ContentFilter];
        const NAMES: &[&str] = &["stop", "length", "tool_calls", "content_filter"];
        let found = String::deserialize(from)?;
        let known = ALL.into_iter().find(|finish| finish.as_str() == found);
        known.ok_or_else(|| D::Error::unknown_variant(&found, NAMES))
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
        match RawFault::deserialize(from)? {
            RawFault { http: Some(status), message, drop_after: None, hang_after: None } => {
                let status = status.0 as u16;
                Ok(Self::Http { status, message: message.unwrap_or_else(|| format!("rehearsed error {status}")) })
            }
            RawFault { http: None, message: None, drop_after: Some(deltas), hang_after: None } => {
                Ok(Self::DropAfter(deltas.0))
            }
            RawFault { http: None, message: None, drop_after: None, hang_after: Some(deltas) } => {
                Ok(Self::HangAfter(deltas.0))
            }
            RawFault { .. } => Err(D::Error::custom(
                "a fault is one of `http` (with or without `message`), `drop_after` and `hang_after`",
            )),
        }
    }
}

/// A whole number between two bounds, both included.
#[derive(Default)]
struct Within<const MIN: u64, const MAX: u64>(u64);

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Within<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Bounds<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Bounds<MIN, MAX> {
            type Value = Within<MIN, MAX>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                if MIN == MAX { write!(out, "the number {MIN}") } else { write!(out, "a whole number from {MIN} to {MAX}") }
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                if (MIN..=MAX).contains(&number) {
                    Ok(Within(number))
                } else {
                    Err(E::invalid_value(Unexpected::Unsigned(number), &self))
                }
            }
        }
        from.deserialize_u64(Bounds)
    }
}

/// A list with something in it.
struct Filled<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Filled<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let list = Vec::deserialize(from)?;
        if list.is_empty() { Err(D::Error::custom("the list is empty")) } else { Ok(Self(list)) }
    }
}

/// An object by free names: not empty, no name twice (serde's maps would keep the last one in silence).
struct Named<T>(BTreeMap<String, T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct NamedVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedVisitor<T> {
            type Value = Named<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object with an entry for each step or role")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
                let mut named = BTreeMap::new();
                while let Some((name, entry)) = map.next_entry::<String, T>()? {
                    if named.contains_key(&name) {
                        return Err(A::Error::custom(format_args!("`{name}` is there twice")));
                    }
                    named.insert(name, entry);
                }
                if named.is_empty() { Err(A::Error::custom("the object is empty")) } else { Ok(Named(named)) }
            }
        }
        from.deserialize_map(NamedVisitor(PhantomData))
    }
}

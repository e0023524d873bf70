//! A rehearsal script: who answers what, in which round and turn. Pure. Format: docs/rehearsal.md.

mod decode;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::error::ScriptError;

/// A whole script, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// What the rehearsal shows, in a sentence.
    pub description: String,
    /// Rounds by step id or role; neither the map nor a list in it is empty.
    roles: BTreeMap<String, Vec<Round>>,
}

/// The answers of one round of the fix loop.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Answers in order; never empty.
    pub turns: Vec<Turn>,
}

/// One answer of the model. Cheap to clone: its texts are shared.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Reasoning, streamed before the text.
    pub thinking: Text,
    /// The visible answer.
    pub text: Text,
    /// Tools called at the end of the answer.
    pub tools: Vec<ToolCall>,
    /// Tokens reported; estimated from sizes when absent.
    pub usage: Option<Usage>,
    /// Why the answer ends.
    pub finish: Finish,
    /// Wait before the first byte.
    pub delay: Duration,
    /// Wait after each delta.
    pub chunk_delay: Duration,
    /// Characters (Unicode scalar values) in a delta, at least 1.
    pub chunk_chars: usize,
    /// Goes wrong instead of answering, or in the middle of it.
    pub fault: Option<Fault>,
}

/// A text that may repeat itself, kept folded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text {
    unit: Arc<str>,
    count: u32,
}

/// A call of one of pi's tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// pi's name of the tool.
    pub name: &'static str,
    /// The arguments: a JSON object as text.
    pub arguments: Text,
}

/// Tokens as pi reports them afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens that were not read from a cache.
    pub input: u64,
    /// Output tokens, reasoning among them.
    pub output: u64,
    /// Input tokens read from a cache; on top of `input`.
    pub cached: u64,
    /// Output tokens spent on reasoning; at most `output`.
    pub reasoning: u64,
}

/// Why an answer ends, by the protocol's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// Said all.
    Stop,
    /// Out of tokens.
    Length,
    /// Waits for tools.
    ToolCalls,
    /// The provider refuses to go on.
    ContentFilter,
}

/// Something that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// How often a job meets it before the turn answers normally; `None` is every time.
    pub times: Option<u32>,
}

/// The ways to go wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// An HTTP error instead of an answer.
    Http {
        /// Status, 400–599.
        status: u16,
        /// Message in the error's body.
        message: String,
    },
    /// The connection breaks after so many deltas.
    DropAfter(u64),
    /// Nothing more comes after so many deltas; the connection stays open.
    HangAfter(u64),
}

/// Why a request has no answer in the script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoTurn {
    /// Neither the step nor its role is in the script.
    #[error("rehearsal: the script has no entry for step {step} or role {role}")]
    NoEntry {
        /// The step.
        step: String,
        /// Its role.
        role: String,
    },
    /// The model is asked once more than the script foresaw.
    #[error("rehearsal: role {name} round {round} has only {turns} turns")]
    NoMoreTurns {
        /// Step id or role whose entry answers.
        name: String,
        /// The round that was asked for, from 1.
        round: u32,
        /// Turns there are.
        turns: usize,
    },
}

impl Script {
    /// Reads a script. `file` is only for messages.
    ///
    /// The error names line, column and field of the first thing that is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScriptError> {
        decode::decode(file, text)
    }

    /// Returns the answer for a step (looked up by its id, then by its role) in a round (from 1) at a turn (from 0).
    ///
    /// A round past the last one gets the last one: how often a gate is asked depends on how rounds are counted and
    /// on what others answer, and a gate that passed would say the same again.
    pub fn turn(&self, step: &str, role: &str, round: u32, turn: usize) -> Result<&Turn, NoTurn> {
        let (name, rounds) = self
            .roles
            .get_key_value(step)
            .or_else(|| self.roles.get_key_value(role))
            .ok_or_else(|| NoTurn::NoEntry { step: step.to_owned(), role: role.to_owned() })?;
        let wanted = usize::try_from(round.max(1) - 1).unwrap_or(usize::MAX);
        let turns = rounds.get(wanted).or(rounds.last()).map_or(&[][..], |round| &round.turns);
        turns.get(turn).ok_or_else(|| NoTurn::NoMoreTurns { name: name.clone(), round, turns: turns.len() })
    }

    /// Returns the steps, of the given (step id, role) pairs, that the script has no answers for.
    pub fn uncovered<'a>(&self, steps: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<&'a str> {
        let has = |name: &str| self.roles.contains_key(name);
        steps.into_iter().filter(|(step, role)| !has(step) && !has(role)).map(|(step, _)| step).collect()
    }

    /// Returns every entry: step id or role, and its rounds.
    #[cfg(test)]
    pub fn entries(&self) -> impl Iterator<Item = (&str, &[Round])> {
        self.roles.iter().map(|(name, rounds)| (name.as_str(), rounds.as_slice()))
    }
}

impl Text {
    /// Folds `count` times `unit`.
    pub fn repeated(unit: impl Into<Arc<str>>, count: u32) -> Self {
        let unit = unit.into();
        // Nothing repeated often is nothing: who unfolds it must not count to four billion.
        let count = if unit.is_empty() { 0 } else { count };
        Self { unit, count }
    }

    /// Returns the size of the unfolded text in bytes.
    pub fn bytes(&self) -> u64 {
        self.unit.len() as u64 * u64::from(self.count)
    }

    /// Returns the unfolded text.
    pub fn unfold(&self) -> String {
        self.unit.repeat(self.count as usize)
    }

    /// Cuts the text into pieces of `chars` characters; unfolds one piece at a time.
    pub fn pieces(&self, chars: usize) -> Pieces {
        Pieces { unit: Arc::clone(&self.unit), left: self.count, at: 0, chars: chars.max(1) }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::repeated(text, 1)
    }
}

impl Finish {
    /// Returns the protocol's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
        }
    }
}

/// Pieces of a [`Text`], made one by one.
#[derive(Debug, Clone)]
pub struct Pieces {
    unit: Arc<str>,
    /// Repetitions still to come, the one at hand among them.
    left: u32,
    /// Byte offset in the unit; on a character's boundary.
    at: usize,
    chars: usize,
}

impl Iterator for Pieces {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut piece = String::new();
        let mut wanted = self.chars;
        while wanted > 0 && self.left > 0 {
            let rest = &self.unit[self.at..];
            if let Some((end, _)) = rest.char_indices().nth(wanted) {
                piece.push_str(&rest[..end]);
                self.at += end;
                wanted = 0;
            } else {
                piece.push_str(rest);
                wanted -= rest.chars().count();
                self.at = 0;
                self.left -= 1;
            }
        }
        (!piece.is_empty()).then_some(piece)
    }
}

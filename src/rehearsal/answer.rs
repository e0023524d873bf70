//! An answer in the form of OpenAI's chat completions: chunks of a stream, or one object. Pure.

use std::vec;

use serde_json::{Value, json};

use super::script::{Pieces, Turn, Usage};

/// What stands in every chunk of one answer.
#[derive(Debug, Clone)]
pub(super) struct Head {
    /// Id of the answer, unique in its session.
    pub(super) id: String,
    /// The model as the request named it.
    pub(super) model: String,
    /// Size of the request in bytes, from which input tokens are estimated.
    pub(super) request_bytes: usize,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Delta {
    Thinking(String),
    Text(String),
    CallOpened { index: usize, name: &'static str },
    CallArguments { index: usize, piece: String },
}

/// The deltas of a turn in order: thinking, text, then each call with its arguments. Made one by one.
#[derive(Debug)]
struct Deltas {
    sources: vec::IntoIter<Source>,
    current: Option<Source>,
}

#[derive(Debug)]
enum Source {
    Thinking(Pieces),
    Text(Pieces),
    Call { index: usize, name: &'static str },
    Arguments { index: usize, pieces: Pieces },
}

impl Deltas {
    fn of(turn: &Turn) -> Self {
        let chars = turn.chunk_chars;
        let mut sources = vec![Source::Thinking(turn.thinking.pieces(chars)), Source::Text(turn.text.pieces(chars))];
        for (index, call) in turn.tools.iter().enumerate() {
            sources.push(Source::Call { index, name: call.name });
            sources.push(Source::Arguments { index, pieces: call.arguments.pieces(chars) });
        }
        Self { sources: sources.into_iter(), current: None }
    }
}

impl Iterator for Deltas {
    type Item = Delta;

    fn next(&mut self) -> Option<Delta> {
        loop {
            let delta = match self.current.as_mut() {
                None => None,
                Some(Source::Thinking(pieces)) => pieces.next().map(Delta::Thinking),
                Some(Source::Text(pieces)) => pieces.next().map(Delta::Text),
                Some(Source::Call { index, name }) => {
                    let opened = Delta::CallOpened { index: *index, name };
                    self.current = None;
                    Some(opened)
                }
                Some(Source::Arguments { index, pieces }) => {
                    let index = *index;
                    pieces.next().map(|piece| Delta::CallArguments { index, piece })
                }
            };
            if delta.is_some() {
                return delta;
            }
            self.current = Some(self.sources.next()?);
        }
    }
}

/// One event of a streamed answer, ready to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// Before the first delta.
    Opening(String),
    /// A delta of the turn.
    Delta(String),
    /// After the last delta.
    Closing(String),
}

/// The frames of a streamed answer, made one by one.
#[derive(Debug)]
pub(super) struct Frames {
    head: Head,
    turn: Turn,
    deltas: Deltas,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Role,
    Deltas,
    Usage,
    Done,
    Over,
}

impl Frames {
    /// Prepares the answer of a turn.
    pub(super) fn of(head: Head, turn: Turn) -> Self {
        let deltas = Deltas::of(&turn);
        Self { head, turn, deltas, stage: Stage::Role }
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> String {
        self.event(&json!([{"index": 0, "delta": delta, "finish_reason": finish}]), None)
    }

    fn event(&self, choices: &Value, usage: Option<Value>) -> String {
        let mut chunk = json!({"id": self.head.id, "object": "chat.completion.chunk", "created": 0,
                               "model": self.head.model, "choices": choices});
        if let Some(usage) = usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    }

    fn delta(&self, delta: Delta) -> String {
        let delta = match delta {
            Delta::Thinking(piece) => json!({"reasoning_content": piece}),
            Delta::Text(piece) => json!({"content": piece}),
            Delta::CallOpened { index, name } => json!({"tool_calls": [{"index": index,
                "id": call_id(&self.head.id, index), "type": "function", "function": {"name": name, "arguments": ""}}]}),
            Delta::CallArguments { index, piece } => {
                json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            }
        };
        self.chunk(&delta, None)
    }
}

impl Iterator for Frames {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        match self.stage {
            Stage::Role => {
                self.stage = Stage::Deltas;
                Some(Frame::Opening(self.chunk(&json!({"role": "assistant", "content": ""}), None)))
            }
            Stage::Deltas => Some(match self.deltas.next() {
                Some(delta) => Frame::Delta(self.delta(delta)),
                None => {
                    self.stage = Stage::Usage;
                    Frame::Closing(self.chunk(&json!({}), Some(self.turn.finish.as_str())))
                }
            }),
            Stage::Usage => {
                self.stage = Stage::Done;
                Some(Frame::Closing(self.event(&json!([]), Some(usage(&self.turn, self.head.request_bytes)))))
            }
            Stage::Done => {
                self.stage = Stage::Over;
                Some(Frame::Closing("data: [DONE]\n\n".to_owned()))
            }
            Stage::Over => None,
        }
    }
}

/// Returns the answer as one object, for a client that doesn't want a stream.
pub(super) fn whole(head: &Head, turn: &Turn) -> Value {
    let calls = turn.tools.iter().enumerate().map(|(index, call)| {
        json!({"id": call_id(&head.id, index), "type": "function",
               "function": {"name": call.name, "arguments": call.arguments.unfold()}})
    });
    let mut message = json!({"role": "assistant", "content": turn.text.unfold()});
    if turn.thinking.bytes() > 0 {
        message["reasoning_content"] = Value::String(turn.thinking.unfold());
    }
    if !turn.tools.is_empty() {
        message["tool_calls"] = calls.collect();
    }
    json!({"id": head.id, "object": "chat.completion", "created": 0, "model": head.model,
           "choices": [{"index": 0, "message": message, "finish_reason": turn.finish.as_str()}],
           "usage": usage(turn, head.request_bytes)})
}

fn call_id(answer: &str, index: usize) -> String {
    format!("{answer}-{index}")
}

fn usage(turn: &Turn, request_bytes: usize) -> Value {
    let arguments: u64 = turn.tools.iter().map(|call| call.arguments.bytes()).sum();
    // Four bytes a token: the usual rough measure, and the same at every run.
    let estimated = || Usage {
        input: request_bytes as u64 / 4,
        output: (turn.thinking.bytes() + turn.text.bytes() + arguments).div_ceil(4),
        cached: 0,
        reasoning: turn.thinking.bytes() / 4,
    };
    let Usage { input, output, cached, reasoning } = turn.usage.unwrap_or_else(estimated);
    let prompt = input + cached;
    json!({"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output,
           "prompt_tokens_details": {"cached_tokens": cached},
           "completion_tokens_details": {"reasoning_tokens": reasoning}})
}

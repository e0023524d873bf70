//! What the server reads of a request: which turn it asks for. All else of it is skipped, not kept.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

/// Opens each round: sp's envelope, in a user message.
const ROUND_MARK: &str = "<chain-context ";

/// A chat-completions request.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub(super) struct Request {
    /// Model id, given back as it came.
    #[serde(default)]
    pub(super) model: String,
    /// Whether the answer is streamed.
    #[serde(default)]
    pub(super) stream: bool,
    messages: Vec<Message>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
struct Message {
    role: Speaker,
    #[serde(default)]
    content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Speaker {
    User,
    Assistant,
    #[serde(other)]
    Other,
}

/// Whether the text of a message holds the mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Content {
    marked: bool,
}

impl Request {
    /// Returns the turn asked for, from 0: the answers since the user message that opened the round.
    ///
    /// A session that goes on in a second round still holds the answers of the first; they don't count. Without such
    /// a message all answers count.
    pub(super) fn turn(&self) -> usize {
        let opens = |message: &Message| message.role == Speaker::User && message.content.marked;
        let start = self.messages.iter().rposition(opens).unwrap_or(0);
        answers(&self.messages[start..])
    }

    /// Returns how many answers the whole session holds: a number that no other answer of it had.
    pub(super) fn serial(&self) -> usize {
        answers(&self.messages)
    }
}

fn answers(messages: &[Message]) -> usize {
    messages.iter().filter(|message| message.role == Speaker::Assistant).count()
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string, a list of parts or null")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content { marked: text.contains(ROUND_MARK) })
            }

            fn visit_unit<E>(self) -> Result<Content, E> {
                Ok(Content::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content, A::Error> {
                let mut marked = false;
                while let Some(part) = parts.next_element::<Part>()? {
                    marked |= part.text.marked;
                }
                Ok(Content { marked })
            }
        }
        from.deserialize_any(ContentVisitor)
    }
}

/// A part of a content; parts of other kinds (images) have no text.
#[derive(serde::Deserialize)]
struct Part {
    #[serde(default, rename = "type")]
    _kind: IgnoredAny,
    #[serde(default)]
    text: Content,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn turn(messages: &Value) -> usize {
        serde_json::from_value::<Request>(json!({"model": "m", "messages": messages, "tools": [1]})).unwrap().turn()
    }

    #[test]
    fn the_turn_is_the_number_of_answers_since_the_last_envelope() {
        let envelope = json!({"role": "user", "content": "go\n<chain-context version=\"1\">"});
        let in_parts = json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}},
                              {"type": "text", "text": "<chain-context version=\"1\">"}]});
        let user = json!({"role": "user", "content": "answer again"});
        let quoted = json!({"role": "tool", "content": "<chain-context version=\"1\">"});
        let answer = json!({"role": "assistant", "content": null, "tool_calls": []});
        let echo = json!({"role": "assistant", "content": "I see <chain-context version=\"1\">"});
        let system = json!({"role": "developer", "content": "be good"});
        for (case, messages, expected) in [
            ("nothing was said", json!([]), 0),
            ("the first turn", json!([system, envelope]), 0),
            ("after two tools", json!([system, envelope, answer, quoted, answer, quoted]), 2),
            ("asked again: the round goes on", json!([envelope, answer, user]), 1),
            ("a second round counts afresh", json!([envelope, answer, answer, envelope, answer]), 1),
            ("the envelope is found in parts", json!([envelope, answer, in_parts]), 0),
            ("no envelope: all answers count", json!([user, answer, user, answer]), 2),
            ("only a user opens a round", json!([envelope, answer, echo, quoted]), 2),
        ] {
            assert_eq!(turn(&messages), expected, "{case}");
        }
    }

    #[test]
    fn the_serial_counts_every_answer_of_the_session() {
        let request = json!({"messages": [{"role": "assistant"}, {"role": "user", "content": "<chain-context "},
                             {"role": "assistant"}]});
        let request: Request = serde_json::from_value(request).unwrap();
        assert_eq!((request.serial(), request.turn()), (2, 1));
    }
}

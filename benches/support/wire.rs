//! Lines as pi 1.6 prints them (contract: pi-rpc §5 to §7), down to the fields that nobody reads.
//!
//! They are made once for each role, so that what is measured is `sp` and not this.

use serde_json::{Value, json};

use super::answers::passing;

/// Characters of one delta.
const PIECE: usize = 16;

/// A piece of a run: its lines, and the messages that `agent_end` repeats.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// Whole lines.
    pub(crate) lines: Vec<u8>,
    /// JSON objects, each with a comma before it.
    pub(crate) messages: String,
}

/// What an agent says in one run, around the prompt that it echoes.
#[derive(Debug)]
pub(crate) struct Script {
    /// Up to the system prompt.
    pub(crate) before: Part,
    /// A turn that thinks, speaks and reads a file.
    pub(crate) opening: Part,
    /// The turn that answers.
    pub(crate) closing: Part,
    /// The answer.
    pub(crate) answer: String,
}

/// A turn of a flood: one text block and a tool call.
#[derive(Debug)]
pub(crate) struct FloodTurn {
    /// Up to the block's start.
    pub(crate) start: Vec<u8>,
    /// Some delta lines.
    pub(crate) deltas: Vec<u8>,
    /// From the block's end on.
    pub(crate) end: Part,
}

impl Script {
    /// Writes the script of a role that passes.
    pub(crate) fn of(role: &str) -> Self {
        let mut before = Part::default();
        before.line(&json!({"type": "agent_start"}));
        before.line(&json!({"type": "turn_start"}));
        let sections = json!({"preamble": "You are a coding assistant. ".repeat(90), "tools": "- read\n".repeat(300)});
        before.message(&json!({"role": "system", "content": "", "sections": sections, "timestamp": 1}));

        let mut opening = Part::default();
        let (thought, said) = ("The contract says that the last page is lost. ".repeat(4), "I read the code first.");
        opening.begin_answer();
        opening.block("thinking", 0, &thought);
        opening.block("text", 1, said);
        opening
            .call_tool(vec![json!({"type": "thinking", "thinking": thought}), json!({"type": "text", "text": said})]);

        let (mut closing, answer) = (Part::default(), passing(role));
        closing.begin_answer();
        closing.block("text", 0, &answer);
        let message = assistant(&json!([{"type": "text", "text": answer}]), "stop");
        closing.line(&json!({"type": "message_end", "message": message}));
        closing.line(&json!({"type": "turn_end", "message": message, "toolResults": []}));
        closing.repeat(&message);
        Self { before, opening, closing, answer }
    }
}

impl FloodTurn {
    /// Writes a turn whose block has `deltas` deltas, some of which are handed out as lines.
    pub(crate) fn of(deltas: u64, lines: u64) -> Self {
        let words = ["the page ", "count is ", "\"rounded\"", " down,\n  ", "so that a", " last one"];
        let words = || words.iter().copied().cycle();
        let many = |number: u64| usize::try_from(number).unwrap_or_default();
        let mut start = Part::default();
        start.begin_answer();
        start.update(&json!({"type": "text_start", "contentIndex": 0}));
        let mut some = Part::default();
        for word in words().take(many(lines)) {
            some.update(&json!({"type": "text_delta", "contentIndex": 0, "delta": word}));
        }
        let text: String = words().take(many(lines)).collect::<String>().repeat(many(deltas / lines));
        let mut end = Part::default();
        end.update(&json!({"type": "text_end", "contentIndex": 0, "content": text}));
        end.call_tool(vec![json!({"type": "text", "text": text})]);
        Self { start: start.lines, deltas: some.lines, end }
    }
}

/// Usage as every line of a streaming answer carries it: 220 bytes.
fn usage() -> Value {
    json!({"input": 1000, "output": 40, "cacheRead": 0, "cacheWrite": 0, "reasoning": 10, "totalTokens": 1040,
           "cost": {"input": 0.001, "output": 7.999_999_999_999_999e-05, "cacheRead": 0, "cacheWrite": 0,
                    "total": 0.00108, "totalFromProvider": false}})
}

fn assistant(content: &Value, stop: &str) -> Value {
    json!({"role": "assistant", "content": content, "api": "openai-completions", "provider": "stub",
           "model": "stub-1", "usage": usage(), "stopReason": stop, "timestamp": 1_796_080_686_880_u64,
           "responseId": "chatcmpl-0", "rawStopReason": stop, "durationMs": 64, "thinkingLevel": "medium"})
}

impl Part {
    /// Adds a line.
    pub(crate) fn line(&mut self, line: &Value) {
        self.lines.extend_from_slice(line.to_string().as_bytes());
        self.lines.push(b'\n');
    }

    /// Adds the two lines of a message that is no answer of the model.
    pub(crate) fn message(&mut self, message: &Value) {
        self.line(&json!({"type": "message_start", "message": message}));
        self.line(&json!({"type": "message_end", "message": message}));
        self.repeat(message);
    }

    fn repeat(&mut self, message: &Value) {
        self.messages.push(',');
        self.messages.push_str(&message.to_string());
    }

    fn update(&mut self, event: &Value) {
        self.line(&json!({"type": "message_update", "usage": usage(), "assistantMessageEvent": event}));
    }

    fn begin_answer(&mut self) {
        self.line(&json!({"type": "message_start", "message": assistant(&json!([]), "pending")}));
    }

    /// Adds start, deltas and end of one block.
    fn block(&mut self, kind: &str, index: usize, text: &str) {
        self.update(&json!({"type": format!("{kind}_start"), "contentIndex": index}));
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(PIECE) {
            let piece: String = piece.iter().collect();
            self.update(&json!({"type": format!("{kind}_delta"), "contentIndex": index, "delta": piece}));
        }
        self.update(&json!({"type": format!("{kind}_end"), "contentIndex": index, "content": text}));
    }

    /// Ends a turn that calls a tool: the call, the answer, the tool and its result, and the next turn's start.
    fn call_tool(&mut self, mut content: Vec<Value>) {
        let (index, arguments) = (content.len(), json!({"path": "src/pager.sh"}));
        let call = json!({"type": "toolCall", "id": "call_1", "name": "read", "arguments": arguments});
        self.update(&json!({"type": "toolcall_start", "contentIndex": index, "id": "call_1", "toolName": "read"}));
        self.update(&json!({"type": "toolcall_delta", "contentIndex": index, "delta": arguments.to_string()}));
        self.update(&json!({"type": "toolcall_end", "contentIndex": index, "toolCall": call}));
        content.push(call);
        let answer = assistant(&Value::Array(content), "toolUse");
        self.line(&json!({"type": "message_end", "message": answer}));
        self.repeat(&answer);
        let text = "# Pages of a text file.\n".repeat(20);
        let body = json!([{"type": "text", "text": text}]);
        let started = json!({"type": "tool_execution_start", "toolCallId": "call_1", "toolName": "read",
                             "args": arguments});
        self.line(&started);
        let ended = json!({"type": "tool_execution_end", "toolCallId": "call_1", "toolName": "read",
                           "result": {"content": body, "structuredContent": text}, "isError": false,
                           "durationMs": 15});
        self.line(&ended);
        let result = json!({"role": "toolResult", "toolCallId": "call_1", "toolName": "read", "content": body,
                            "isError": false, "durationMs": 15, "timestamp": 1});
        self.message(&result);
        self.line(&json!({"type": "turn_end", "message": answer, "toolResults": [result]}));
        self.line(&json!({"type": "turn_start"}));
    }
}

/// Returns the line that answers a command.
pub(crate) fn response(command: &Value, data: &Value) -> Vec<u8> {
    let mut part = Part::default();
    let (id, kind) = (&command["id"], &command["type"]);
    part.line(&json!({"id": id, "type": "response", "command": kind, "success": true, "data": data}));
    part.lines
}

/// Returns the answer to `get_state`.
pub(crate) fn state(messages: u32) -> Value {
    json!({"model": {"id": "stub-1", "name": "Stub", "api": "openai-completions", "provider": "stub",
                     "reasoning": true, "input": ["text"], "contextWindow": 128_000, "maxTokens": 16_384},
           "thinkingLevel": "medium", "isStreaming": false, "isCompacting": false, "steeringMode": "one-at-a-time",
           "followUpMode": "one-at-a-time", "sessionId": "01a22ea4-75f4-7178-8135-01fe2682968f",
           "autoCompactionEnabled": true, "messageCount": messages, "pendingMessageCount": 0})
}

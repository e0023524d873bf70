//! What pi's session file holds of one task: read when a later incarnation of a job goes on with it.
//!
//! The file is pi's: lines of JSON, appended, the last perhaps cut off by a crash (pi-rpc §3.6). Only what is asked here
//! is read of it, and a line that is not understood is passed over.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;

use super::rpc::Usage;

/// What was done of a task, as the session file has it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SessionTask {
    /// Whether the newest message ended the run by itself: there is an answer, and nothing else to do.
    pub is_answered: bool,
    /// Answers of the model, also those that only called tools.
    pub turns: u32,
    /// Results of tools.
    pub tools: u32,
    /// What the answers used.
    pub usage: Usage,
}

/// A command that the agent ran and that returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCall {
    /// The whole command.
    pub command: String,
    /// Whether it ended in an error: another exit code than 0, or not by itself.
    pub failed: bool,
}

/// Returns the commands of a task in the order in which they returned, from the message that holds `marker` on; `None`
/// when no message does.
pub fn shell_calls(bytes: &[u8], marker: &str) -> Option<Vec<ShellCall>> {
    let finder = memmem::Finder::new(marker);
    let mut calls: Option<Vec<ShellCall>> = None;
    let mut running: Vec<(String, String)> = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        if calls.is_none() && finder.find(line).is_some() {
            calls = Some(Vec::new());
        }
        let Some(calls) = &mut calls else { continue };
        let Ok(ToolEntry { message: Some(message) }) = serde_json::from_slice(line) else { continue };
        for part in message.content.into_iter().filter(|part| part.name.as_deref() == Some("bash")) {
            let command = part.arguments.and_then(|arguments| arguments.command);
            running.extend(part.id.zip(command));
        }
        let Some(id) = message.tool_call_id else { continue };
        if let Some(at) = running.iter().position(|(running, _)| *running == id) {
            let (_, command) = running.remove(at);
            calls.push(ShellCall { command, failed: message.is_error });
        }
    }
    calls
}

impl SessionTask {
    /// Reads a session file from the message that holds `marker` on; `None` when no message does.
    pub fn read(bytes: &[u8], marker: &str) -> Option<Self> {
        let finder = memmem::Finder::new(marker);
        let mut task: Option<Self> = None;
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(Entry { message: Some(message) }) = serde_json::from_slice(line) else { continue };
            match &mut task {
                Some(task) => task.add(&message),
                None if finder.find(line).is_some() => task = Some(Self::default()),
                None => {}
            }
        }
        task
    }

    fn add(&mut self, message: &Message<'_>) {
        let is_models = message.role == "assistant";
        self.is_answered = is_models && message.stop_reason.as_deref() == Some("stop");
        if is_models {
            self.turns += 1;
            self.usage += message.usage;
        } else if message.role == "toolResult" {
            self.tools += 1;
        }
    }
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    usage: Usage,
}

#[derive(Deserialize)]
struct ToolEntry {
    #[serde(default)]
    message: Option<ToolMessage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolMessage {
    #[serde(default)]
    content: Vec<ToolPart>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct ToolPart {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<ToolArguments>,
}

#[derive(Deserialize)]
struct ToolArguments {
    #[serde(default)]
    command: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TASK: &str =
        r#"{"type":"message","message":{"role":"user","content":[{"type":"text","text":"Fix it (sp job b)"}]}}"#;
    const CALL: &str = r#"{"type":"message","message":{"role":"assistant","content":[],"stopReason":"toolUse","usage":{"input":10,"output":2,"cost":{"total":0.5}}}}"#;
    const RESULT: &str = r#"{"type":"message","message":{"role":"toolResult","content":[]}}"#;
    const ANSWER: &str = r#"{"type":"message","message":{"role":"assistant","content":[],"stopReason":"stop","usage":{"input":5,"output":1,"cost":{"total":0.25}}}}"#;
    const FAILED: &str = r#"{"type":"message","message":{"role":"assistant","content":[],"stopReason":"error"}}"#;
    const OTHER: &str = r#"{"type":"model_change","provider":"p"}"#;

    fn read(lines: &[&str]) -> Option<SessionTask> {
        SessionTask::read(lines.join("\n").as_bytes(), "(sp job b)")
    }

    #[test]
    fn a_task_is_answered_when_the_newest_message_ended_its_run() {
        for (case, lines, expected) in [
            ("an empty file", &[][..], None),
            ("an older round only", &[OTHER, CALL, RESULT, ANSWER], None),
            ("the task, and nothing said to it", &[OTHER, ANSWER, TASK], Some(false)),
            ("a tool that did not return", &[TASK, CALL], Some(false)),
            ("a tool that returned", &[TASK, CALL, RESULT], Some(false)),
            ("an answer", &[TASK, CALL, RESULT, ANSWER], Some(true)),
            ("an answer, then another model", &[TASK, ANSWER, OTHER], Some(true)),
            ("a request that failed", &[TASK, FAILED], Some(false)),
            ("a question about the answer", &[TASK, ANSWER, TASK], Some(false)),
            ("an answer cut off by a crash", &[TASK, CALL, RESULT, &ANSWER[..60]], Some(false)),
        ] {
            assert_eq!(read(lines).map(|task| task.is_answered), expected, "{case}");
        }
    }

    #[test]
    fn what_was_used_before_the_task_is_not_counted() {
        let task = read(&[ANSWER, RESULT, TASK, CALL, RESULT, RESULT, ANSWER]).unwrap();
        assert_eq!((task.turns, task.tools, task.usage.input, task.usage.output), (2, 2, 15, 3));
        assert!((task.usage.cost_usd - 0.75).abs() < 1e-9);
    }

    #[test]
    fn the_commands_of_a_task_are_known_with_how_they_ended() {
        let call = |id: &str, tool: &str, command: &str| {
            let part = json!({"type": "toolCall", "id": id, "name": tool, "arguments": {"command": command}});
            let text = json!({"type": "text", "text": "I run it."});
            json!({"type": "message", "message": {"role": "assistant", "content": [text, part]}}).to_string()
        };
        let result = |id: &str, is_error: bool| {
            let content = json!([{"type": "text", "text": "out"}]);
            let message = json!({"role": "toolResult", "toolCallId": id, "content": content, "isError": is_error});
            json!({"type": "message", "message": message}).to_string()
        };
        let lines = [
            call("0", "bash", "older"),
            result("0", false),
            TASK.to_owned(),
            call("1", "bash", "./test.sh"),
            call("2", "write", "no command"),
            call("3", "bash", "./lint.sh"),
            result("3", false),
            result("2", false),
            result("1", true),
            call("4", "bash", "never returned"),
            RESULT.to_owned(),
        ];
        let calls = shell_calls(lines.join("\n").as_bytes(), "(sp job b)").unwrap();
        let calls: Vec<(&str, bool)> = calls.iter().map(|call| (call.command.as_str(), call.failed)).collect();
        assert_eq!(calls, [("./lint.sh", false), ("./test.sh", true)]);
        assert_eq!(shell_calls(lines.join("\n").as_bytes(), "(sp job c)"), None);
    }
}

//! What sp writes to pi: one JSON object a line (pi-rpc §6).

use serde::Serialize;

/// A command of pi's RPC mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Command {
    /// Starts a run. Never while another prompt is in flight: pi accepts both and drops one (pi-rpc §1.3).
    Prompt {
        /// The user's turn.
        message: String,
    },
    /// Ends the run. Only after `agent_start` was seen: an earlier one is confirmed and has no effect (pi-rpc §1.2).
    Abort,
    /// Empties pi's queues, so that nothing stays for the next prompt.
    ClearQueue,
    /// Asks for [`SessionState`](super::SessionState).
    GetState,
    /// Asks for the last answer.
    GetLastAssistantText,
    /// Answers a dialog of an extension with "cancelled"; pi sends no response. `id` is the dialog's.
    #[serde(rename = "extension_ui_response")]
    CancelDialog {
        /// The dialog.
        id: String,
        /// Always `true`; see [`Command::cancel_dialog`].
        cancelled: bool,
    },
}

impl Command {
    /// Returns the answer that ends the dialog `id` without a choice.
    pub fn cancel_dialog(id: impl Into<String>) -> Self {
        Self::CancelDialog { id: id.into(), cancelled: true }
    }
}

/// One command as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Id that the response will carry; `None` for commands without a response.
    pub id: Option<u64>,
    /// The line, with its line feed.
    pub line: Vec<u8>,
}

/// Writes commands, each with the next request id. One per session.
#[derive(Debug, Default)]
pub struct Encoder {
    last: u64,
}

impl Encoder {
    /// Returns the command as a line; the first id is 1.
    pub fn encode(&mut self, command: &Command) -> Encoded {
        #[derive(Serialize)]
        struct Request<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<u64>,
            #[serde(flatten)]
            command: &'a Command,
        }
        let id = match command {
            Command::CancelDialog { .. } => None,
            Command::Prompt { .. }
            | Command::Abort
            | Command::ClearQueue
            | Command::GetState
            | Command::GetLastAssistantText => {
                self.last += 1;
                Some(self.last)
            }
        };
        let mut line = serde_json::to_vec(&Request { id, command })
            .expect("strings and numbers under string keys are always JSON");
        line.push(b'\n');
        Encoded { id, line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_lines_with_rising_ids() {
        let mut encoder = Encoder::default();
        let mut line = |command| String::from_utf8(encoder.encode(&command).line).unwrap();
        for (command, expected) in [
            (
                Command::Prompt { message: "a\nb\u{2028}".into() },
                "{\"id\":1,\"type\":\"prompt\",\"message\":\"a\\nb\u{2028}\"}\n",
            ),
            (Command::cancel_dialog("d-1"), "{\"type\":\"extension_ui_response\",\"id\":\"d-1\",\"cancelled\":true}\n"),
            (Command::Abort, "{\"id\":2,\"type\":\"abort\"}\n"),
            (Command::ClearQueue, "{\"id\":3,\"type\":\"clear_queue\"}\n"),
            (Command::GetState, "{\"id\":4,\"type\":\"get_state\"}\n"),
            (Command::GetLastAssistantText, "{\"id\":5,\"type\":\"get_last_assistant_text\"}\n"),
        ] {
            assert_eq!(line(command), expected);
        }
    }
}

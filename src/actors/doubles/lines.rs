//! What pi 1.6 says, line by line (pi-rpc §7), and what roles answer.

use serde_json::{Value, json};

/// An executor's answer that fits its contract.
pub(in crate::actors) const EXECUTOR_DONE: &str =
    r#"All done. {"status":"success","summary":"the last page is right"}"#;

/// A reviewer's answer that lets a chain pass.
pub(in crate::actors) const REVIEWER_PASSES: &str = r#"{"verdict":"PASS","score":95,"findings":[],"requirement_coverage":[{"requirement":"last page","status":"met","evidence":"src/pager.rs:7"}]}"#;

/// A reviewer's answer that sends the writer back.
pub(in crate::actors) fn reviewer_sends_back(issue: &str) -> String {
    json!({
        "verdict": "PARTIAL", "score": 60,
        "findings": [{"severity": "high", "issue": issue}],
        "requirement_coverage": [{"requirement": "last page", "status": "unmet", "evidence": "src/pager.rs:7"}],
    })
    .to_string()
}

/// One delta of text.
pub(in crate::actors) fn delta(text: &str) -> String {
    update(json!({"type": "text_delta", "contentIndex": 0, "delta": text}))
}

/// A dialog that blocks the run until it is answered.
pub(in crate::actors) fn asks(id: &str) -> String {
    json!({"type": "extension_ui_request", "id": id, "method": "confirm", "title": "sure?"}).to_string()
}

pub(super) fn update(event: Value) -> String {
    json!({"type": "message_update", "usage": {}, "assistantMessageEvent": event}).to_string()
}

pub(super) fn plain(kind: &str) -> String {
    json!({"type": kind}).to_string()
}

/// The complete answer of the model.
pub(super) fn message_end(text: &str, stop: &str, error: Option<&str>) -> String {
    json!({"type": "message_end", "message": {
        "role": "assistant", "content": [{"type": "text", "text": text}], "provider": "stub", "model": "stub-1",
        "usage": {"input": 10, "output": 5, "totalTokens": 15, "cost": {"total": 0.5}},
        "stopReason": stop, "errorMessage": error,
    }})
    .to_string()
}

/// A turn up to the tool that it calls.
pub(super) fn calling(tool: &str) -> Vec<String> {
    vec![
        plain("turn_start"),
        json!({"type": "message_start", "message": {"role": "assistant", "content": []}}).to_string(),
        message_end("", "toolUse", None),
        json!({"type": "tool_execution_start", "toolCallId": tool, "toolName": tool, "args": {}}).to_string(),
    ]
}

/// The end of that tool and of its turn.
pub(super) fn called(tool: &str) -> Vec<String> {
    let end = json!({"type": "tool_execution_end", "toolCallId": tool, "toolName": tool, "isError": false});
    vec![end.to_string(), plain("turn_end")]
}

/// The end of a run, from the model's answer on.
pub(super) fn ending(text: &str, stop: &str, error: Option<&str>) -> Vec<String> {
    vec![
        message_end(text, stop, error),
        plain("turn_end"),
        json!({"type": "agent_end", "messages": [], "willRetry": false}).to_string(),
        json!({"type": "agent_settled", "aborted": stop == "aborted"}).to_string(),
    ]
}

/// The beginning of a run, up to the open text block of the model's answer.
pub(super) fn beginning() -> Vec<String> {
    vec![
        plain("agent_start"),
        plain("turn_start"),
        json!({"type": "message_start", "message": {"role": "assistant", "content": []}}).to_string(),
        update(json!({"type": "text_start", "contentIndex": 0})),
    ]
}

/// The end of the text block.
pub(super) fn block_end(text: &str) -> String {
    update(json!({"type": "text_end", "contentIndex": 0, "content": text}))
}

/// The data of `get_state`.
pub(super) fn state(messages: usize) -> Value {
    let model = json!({"id": "stub-1", "provider": "stub", "contextWindow": 1_000});
    json!({"model": model, "isStreaming": false, "sessionId": "s", "messageCount": messages})
}

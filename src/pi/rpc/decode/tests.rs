use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::*;
use crate::pi::rpc::{AssistantEnd, StopReason};

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pi/1.6.0")
}

fn lines(scenario: &str) -> Vec<Line> {
    let text = fs::read_to_string(traces().join(format!("{scenario}.ndjson"))).unwrap();
    text.split_terminator('\n').map(|line| decode(line.as_bytes()).unwrap()).collect()
}

fn events(scenario: &str) -> Vec<PiEvent> {
    let event = |line| if let Line::Event(event) = line { Some(event) } else { None };
    lines(scenario).into_iter().filter_map(event).collect()
}

fn responses(scenario: &str) -> Vec<Response> {
    let response = |line| if let Line::Response(response) = line { Some(response) } else { None };
    lines(scenario).into_iter().filter_map(response).collect()
}

fn answers(scenario: &str) -> Vec<AssistantEnd> {
    let answer = |event| if let PiEvent::MessageEnd { assistant, .. } = event { assistant } else { None };
    events(scenario).into_iter().filter_map(answer).map(|answer| *answer).collect()
}

fn event(json: &str) -> PiEvent {
    match decode(json.as_bytes()).unwrap() {
        Line::Event(event) => event,
        other => panic!("{other:?}"),
    }
}

/// Every recorded scenario, those that are kept whole and those that are kept short.
fn scenarios() -> Vec<String> {
    let mut found = Vec::new();
    for (directory, prefix) in [(traces(), ""), (traces().join("short"), "short/")] {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                found.push(format!("{prefix}{}", path.file_stem().unwrap().to_str().unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Every recorded line, with its scenario.
fn recorded() -> Vec<(String, String)> {
    let lines = |scenario: String| -> Vec<(String, String)> {
        let text = fs::read_to_string(traces().join(format!("{scenario}.ndjson"))).unwrap();
        text.split_terminator('\n').map(|line| (scenario.clone(), line.to_owned())).collect()
    };
    scenarios().into_iter().flat_map(lines).collect()
}

#[test]
fn every_recorded_line_has_a_known_type_and_shape() {
    let all = recorded();
    for (scenario, line) in &all {
        match decode(line.as_bytes()) {
            Ok(Line::Response(_) | Line::Event(_)) => {}
            other => panic!("{scenario}: {other:?} of {line}"),
        }
        if repeats(line.as_bytes()) {
            assert!(matches!(decode_head(line.as_bytes()), Line::Event(_)), "{scenario}: {line}");
        }
    }
    // pi wrote nothing in 4 of the 100 that were recorded.
    assert_eq!(scenarios().len(), 96);
    assert!(all.len() > 2500, "only {} lines were found", all.len());
}

/// R0-150: every layer of the stream is recorded, the inner `done` and `error` are in no stream, and each is over all
/// the same.
#[test]
fn pi_never_sends_the_inner_done_or_error_and_every_run_it_may_finish_ends() {
    let mut layers = BTreeSet::new();
    let mut runs: BTreeMap<String, bool> = BTreeMap::new();
    for (scenario, line) in recorded() {
        match decode(line.as_bytes()).unwrap() {
            Line::Event(PiEvent::AgentStart) => drop(runs.insert(scenario, false)),
            Line::Event(PiEvent::AgentSettled { .. }) => drop(runs.insert(scenario, true)),
            _ => {}
        }
        let line: Value = serde_json::from_str(&line).unwrap();
        let inner = ["/assistantMessageEvent/type", "/message/role"].iter().find_map(|at| line.pointer(at));
        layers.insert(
            [Some(&line["type"]), inner].into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        );
    }
    let of = |kinds: &[&str]| -> Vec<&str> {
        layers.iter().map(String::as_str).filter(|layer| kinds.iter().any(|kind| layer.starts_with(kind))).collect()
    };
    let blocks = ["text", "thinking", "toolcall"];
    let inside = blocks.map(|block| ["delta", "end", "start"].map(|part| format!("message_update {block}_{part}")));
    assert_eq!(of(&["message_update"]), inside.as_flattened());
    assert_eq!(of(&["tool_execution"]), ["tool_execution_end", "tool_execution_start", "tool_execution_update"]);
    assert_eq!(of(&["message_start t", "message_end t"]), ["message_end toolResult", "message_start toolResult"]);
    assert_eq!(
        of(&["turn_", "agent_"]),
        ["agent_end", "agent_settled", "agent_start", "turn_end assistant", "turn_start"]
    );

    let cut_off: Vec<&str> = runs.iter().filter(|(_, over)| !**over).map(|(scenario, _)| scenario.as_str()).collect();
    let ended_by_us = |scenario: &&str| scenario.starts_with("short/12") || scenario.starts_with("short/21b");
    assert!(cut_off.iter().all(ended_by_us) && runs.len() > cut_off.len() + 60, "{cut_off:?} of {}", runs.len());
}

#[test]
fn the_answer_at_a_message_s_end_is_whole() {
    let answers = answers("02-thinking-and-tools");
    let [first, .., last] = answers.as_slice() else { panic!("{answers:#?}") };
    assert_eq!(
        *first,
        AssistantEnd {
            text: "Reading.".into(),
            stop_reason: StopReason::ToolUse,
            error_message: None,
            usage: first.usage,
            model: "mock-1".into(),
            provider: "mock".into(),
            tool_calls: 1,
            thinking_chars: 29,
        }
    );
    assert_eq!((first.usage.input, first.usage.output, first.usage.reasoning), (1000, 40, 10));
    assert!((first.usage.cost_usd - 0.00108).abs() < 1e-9, "{}", first.usage.cost_usd);
    assert_eq!((last.stop_reason.as_str(), last.text.as_str()), ("stop", "Done: changed one line."));
}

#[test]
fn kata_220_endings_are_told_apart() {
    for (scenario, reason, has_error) in [
        ("01-simple-text", StopReason::Stop, false),
        ("07a-abort-text", StopReason::Aborted, true),
        ("09b-retry-exhausted", StopReason::Error, true),
        ("09d-401", StopReason::Error, true),
        ("09n-finish-length", StopReason::Length, false),
    ] {
        let first = answers(scenario).swap_remove(0);
        assert_eq!(first.stop_reason, reason, "{scenario}");
        assert_eq!(first.error_message.is_some(), has_error, "{scenario}");
    }
}

#[test]
fn only_settled_is_final() {
    let ends = |scenario| -> Vec<PiEvent> {
        let is_end = |event: &PiEvent| {
            matches!(event, PiEvent::AgentEnd { .. } | PiEvent::AgentSettled { .. } | PiEvent::AutoRetryEnd { .. })
        };
        events(scenario).into_iter().filter(is_end).collect()
    };
    let (again, over) = (PiEvent::AgentEnd { will_retry: true }, PiEvent::AgentEnd { will_retry: false });
    let settled = |aborted| PiEvent::AgentSettled { aborted };
    assert_eq!(ends("01-simple-text"), [over.clone(), settled(false)]);
    assert_eq!(ends("07a-abort-text")[..2], [over.clone(), settled(true)]);
    let worked = PiEvent::AutoRetryEnd { success: true, attempt: 2, error: None };
    assert_eq!(ends("09a-retry-429-500-then-ok"), [again.clone(), again, worked, over, settled(false)]);
}

#[test]
fn tools_are_told_with_their_telling_argument_and_the_ends_of_their_output() {
    let of_tools: Vec<PiEvent> = events("02-thinking-and-tools")
        .into_iter()
        .filter(|event| matches!(event, PiEvent::ToolStart { .. } | PiEvent::ToolEnd { .. }))
        .collect();
    let PiEvent::ToolStart { id, name, args } = &of_tools[0] else { panic!("{of_tools:?}") };
    assert_eq!((id.as_str(), name.as_str(), args.as_str()), ("call_read", "read", "a.txt"));
    let ended = of_tools.iter().find(|event| matches!(event, PiEvent::ToolEnd { id, .. } if id == "call_read"));
    let Some(PiEvent::ToolEnd { is_error: false, summary, duration: Some(_), .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(summary, "alpha\nbeta\ngamma");

    let long = format!("begin {} end", "x".repeat(9000));
    let line = format!(
        r#"{{"type":"tool_execution_end","toolCallId":"c","toolName":"bash","isError":true,"result":{{"content":[{{"type":"text","text":"{long}"}}],"structuredContent":{{"output":"{long}"}}}}}}"#
    );
    let PiEvent::ToolEnd { is_error: true, summary, duration: None, .. } = event(&line) else { panic!("{line}") };
    assert!(summary.chars().count() == 500 && summary.starts_with("begin ") && summary.ends_with(" end"), "{summary}");
}

#[test]
fn deltas_are_counted_in_characters_and_a_tool_call_names_its_tool() {
    let block = |json: &str| {
        event(&format!(r#"{{"type":"message_update","usage":{{"input":1}},"assistantMessageEvent":{json}}}"#))
    };
    let expected =
        |kind, phase, index, tool: Option<&str>| PiEvent::Block { kind, phase, index, tool: tool.map(str::to_owned) };
    for (json, wanted) in [
        (
            r#"{"type":"text_delta","contentIndex":1,"delta":"h\u00e4 ä\n"}"#,
            expected(BlockKind::Text, BlockPhase::Delta { chars: 5 }, 1, None),
        ),
        (
            r#"{"type":"thinking_delta","contentIndex":0,"delta":"half \ud83d"}"#,
            expected(BlockKind::Thinking, BlockPhase::Delta { chars: 6 }, 0, None),
        ),
        (
            r#"{"type":"toolcall_start","contentIndex":2,"id":"call_read","toolName":"read"}"#,
            expected(BlockKind::ToolCall, BlockPhase::Start, 2, Some("read")),
        ),
        (
            r#"{"type":"toolcall_end","contentIndex":2,"toolCall":{"type":"toolCall","id":"c","name":"read","arguments":{}}}"#,
            expected(BlockKind::ToolCall, BlockPhase::End { chars: 0 }, 2, None),
        ),
        (
            r#"{"type":"text_end","contentIndex":1,"content":"whole"}"#,
            expected(BlockKind::Text, BlockPhase::End { chars: 5 }, 1, None),
        ),
        (r#"{"type":"done","reason":"stop"}"#, PiEvent::Other),
    ] {
        assert_eq!(block(json), wanted, "{json}");
    }
}

#[test]
fn dialogs_need_an_answer_and_remarks_do_not() {
    let requests = events("21a-extension-ui");
    let mut asked: Vec<(&str, bool)> = requests
        .iter()
        .filter_map(|event| match event {
            PiEvent::UiRequest { method, needs_answer, .. } => Some((method.as_str(), *needs_answer)),
            _ => None,
        })
        .collect();
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(
        asked,
        [
            ("confirm", true),
            ("editor", true),
            ("input", true),
            ("notify", false),
            ("select", true),
            ("setStatus", false),
            ("setTitle", false),
            ("setWidget", false),
        ]
    );
    let later = event(r#"{"type":"extension_ui_request","id":"1","method":"pickColour"}"#);
    assert!(matches!(later, PiEvent::UiRequest { needs_answer: true, .. }), "{later:?}");
}

#[test]
fn queues_retries_compactions_and_faults_of_extensions_are_read() {
    let has = |scenario, wanted: PiEvent| {
        let events = events(scenario);
        assert!(events.contains(&wanted), "{scenario}: no {wanted:?} in {events:#?}");
    };
    has("04a-steer-during-tool", PiEvent::QueueUpdate { steering: 1, follow_up: 0 });
    has("10c-compact-auto-threshold", PiEvent::CompactionStart { reason: "threshold".into() });
    has(
        "10d-compact-overflow",
        PiEvent::CompactionEnd { reason: "overflow".into(), aborted: false, will_retry: true, error: None },
    );
    let retry = events("09b-retry-exhausted").into_iter().find(|event| matches!(event, PiEvent::AutoRetryStart { .. }));
    let Some(PiEvent::AutoRetryStart { attempt: 1, max_attempts: 3, delay, error }) = retry else {
        panic!("{retry:?}")
    };
    assert!(!delay.is_zero() && !error.is_empty());
    let fault = events("17c-extension-handler-throws");
    assert!(fault.iter().any(|event| matches!(event, PiEvent::ExtensionError { error, .. } if !error.is_empty())));
}

#[test]
fn responses_carry_typed_answers() {
    let responses = responses("01-simple-text");
    let of = |command: &str| responses.iter().filter(|response| response.command == command).collect::<Vec<_>>();
    let state = of("get_state")[0].state().unwrap();
    assert_eq!(state.model.unwrap().id, "mock-1");
    assert!(!state.is_streaming && state.session_file.is_some() && !state.session_id.is_empty());
    let texts: Vec<_> = of("get_last_assistant_text").iter().map(|it| it.last_assistant_text().unwrap()).collect();
    assert_eq!(texts, [None, Some("Hello there, world!".to_owned())]);
}

#[test]
fn failed_responses_carry_the_reason_and_only_our_ids() {
    for (json, id, command, error) in [
        (r#"{"id":7,"type":"response","command":"prompt","success":false,"error":"busy"}"#, Some(7), "prompt", "busy"),
        (r#"{"id":"u1","type":"response","command":"x","success":false,"error":"no"}"#, None, "x", "no"),
        (r#"{"type":"response","success":false,"error":"Unknown"}"#, None, "", "Unknown"),
    ] {
        let Line::Response(response) = decode(json.as_bytes()).unwrap() else { panic!("{json}") };
        assert_eq!((response.id, response.command.as_str(), response.success), (id, command, false));
        assert_eq!(response.error.as_deref(), Some(error));
    }
    assert!(responses("11a-protocol-errors").iter().any(|response| response.command == "parse"));
}

#[test]
fn what_is_not_understood_is_an_error_or_named() {
    let unknown = decode(br#"{"type":"brand_new","x":1}"#).unwrap();
    assert!(matches!(unknown, Line::Unknown { kind } if kind == "brand_new"));
    let late = decode(br#"{"x":1,"type":"agent_start"}"#).unwrap();
    assert!(matches!(late, Line::Event(PiEvent::AgentStart)));
    for (line, expected) in [
        (b"pi: warning".as_slice(), "read a line of pi that begins `pi: warning`"),
        (b"{}", "read a line of pi that begins `{}`"),
        (b"null", "read a line of pi that begins `null`"),
        (br#"{"type":"message_end"}"#, "read the line `message_end` of pi"),
        (br#"{"type":"agent_start""#, "read the line `agent_start` of pi"),
        (br#"{"type":"message_update","assistantMessageEvent":{"#, "read the line `message_update` of pi"),
    ] {
        assert_eq!(decode(line).unwrap_err().to_string(), expected);
    }
}

#[test]
fn invalid_bytes_and_halves_of_characters_lose_no_line() {
    let bad = b"{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\",\"stopReason\":\"stop\",\
        \"content\":[{\"type\":\"text\",\"text\":\"a\xffb \\ud83d\"}]}}";
    let Line::Event(PiEvent::MessageEnd { assistant: Some(answer), .. }) = decode(bad).unwrap() else { panic!() };
    assert_eq!(answer.text, "a\u{fffd}b \u{fffd}\u{fffd}\u{fffd}");
}

#[test]
fn an_eight_megabyte_line_is_read() {
    let text = "0123456789abcdef".repeat(1 << 19);
    let line = format!(
        r#"{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}],"stopReason":"stop","usage":null}}}}"#
    );
    let PiEvent::MessageEnd { assistant: Some(answer), .. } = event(&line) else { panic!("no answer") };
    assert_eq!(answer.text.len(), 8 << 20);
}

#[test]
fn a_line_that_repeats_is_known_by_its_beginning() {
    let head = |kind: &str| format!("{{\"type\":\"{kind}\",\"message\":{{\"role\":").into_bytes();
    for (kind, repeated) in [("turn_end", true), ("agent_end", true), ("message_end", false), ("agent_settled", false)]
    {
        assert_eq!(repeats(&head(kind)), repeated, "{kind}");
    }
    assert!(matches!(decode_head(&head("turn_end")), Line::Event(PiEvent::TurnEnd)));
    assert!(matches!(decode_head(&head("agent_end")), Line::Event(PiEvent::Other)));
}

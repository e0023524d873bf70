//! From the prompt to the answer.

use super::*;
use crate::actors::doubles::{Act, EXECUTOR_DONE, Script, asks, delta};
use crate::chain::verdict::Verdict;
use crate::pi::{SessionTask, Usage};
use crate::storage::SessionMeta;

fn passed() -> Outcome {
    let summary = "status success: the last page is right".to_owned();
    Outcome::Answered { verdict: Verdict::Passed { remark: None }, summary }
}

#[tokio::test(start_paused = true)]
async fn a_job_asks_for_state_and_text_after_its_prompt_and_then_ends_pi_by_end_of_file() {
    let mut bench = Bench::start(StubAgent::plays([Script::says([EXECUTOR_DONE])])).await;
    assert_eq!(bench.end().await, passed());
    let told = ["get_state", "prompt", "get_state", "get_last_assistant_text", "EOF", "exit 0"];
    assert_eq!(bench.agent.only().told(), told);
    assert_eq!(bench.agent.only().prompts(), ["the whole task"]);
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn the_result_has_the_bytes_that_were_acknowledged() {
    let text = format!("caf\u{e9}\u{2028}\r\n\t{EXECUTOR_DONE}\n ");
    let mut bench = Bench::start(StubAgent::plays([Script::says([text.as_str()])])).await;
    assert_eq!(bench.end().await, passed());
    assert_eq!(bench.result(), Some(text));
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn every_lifecycle_change_is_on_disk_in_its_order() {
    let mut bench = Bench::start(StubAgent::plays([Script::says([EXECUTOR_DONE])])).await;
    bench.end().await;
    let kinds = bench.kinds();
    let expected = ["run_start", "turn", "message", "text", "meta", "turn_summary", "message", "turn", "run_complete"];
    assert_eq!(kinds, expected);
    let row = bench.row();
    assert_eq!((row.status, row.model.as_deref(), row.pid), (JobStatus::Done, Some("stub/stub-1"), None));
    assert_eq!((row.totals.turns, row.totals.output_tokens), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn the_session_that_answers_is_told_in_row_and_status_and_at_the_start_of_the_timeline() {
    let mut bench = Bench::start(StubAgent::plays([Script::says([EXECUTOR_DONE])])).await;
    bench.end().await;
    let row = bench.row();
    let expected = SessionMeta {
        backend: "pi".into(),
        model: Some("stub/stub-1".into()),
        session_id: "s".into(),
        started_at_ms: row.started_at_ms,
    };
    assert_eq!(row.session, Some(expected));
    let start: Value = serde_json::from_str(&bench.rows()[0].json).unwrap();
    assert_eq!(
        (&start["type"], &start["session_id"], &start["model"]),
        (&json!("run_start"), &json!("s"), &json!("stub/stub-1"))
    );
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn a_session_that_never_came_up_is_not_named_at_the_start() {
    let script = Script { first: vec![Act::Exit(1)], ..Script::default() };
    let mut bench = Bench::start(StubAgent::plays([script])).await;
    bench.end().await;
    let start: Value = serde_json::from_str(&bench.rows()[0].json).unwrap();
    assert_eq!((&start["type"], &start["session_id"]), (&json!("run_start"), &Value::Null));
    assert_eq!(bench.row().session, None);
}

#[tokio::test(start_paused = true)]
async fn answers_in_reverse_order_reach_their_own_callers() {
    let script = Script { reversed: true, ..Script::says([EXECUTOR_DONE]) };
    let mut bench = Bench::start(StubAgent::plays([script])).await;
    assert_eq!(bench.end().await, passed());
    assert_eq!(bench.result().as_deref(), Some(EXECUTOR_DONE));
}

#[tokio::test(start_paused = true)]
async fn an_acknowledged_prompt_is_not_the_end_of_its_turn() {
    let turn = Act::works(Duration::from_secs(20), EXECUTOR_DONE);
    let mut bench = Bench::start(StubAgent::plays([Script::turns([turn])])).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(bench.row().status, JobStatus::Running);
    assert_eq!(bench.row().pid, Some(4711));
    assert_eq!(bench.end().await, passed());
    assert_eq!(bench.agent.only().when("EOF"), Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn an_unusable_answer_is_asked_for_once_more() {
    let mut bench = Bench::start(StubAgent::plays([Script::says(["looks good", EXECUTOR_DONE])])).await;
    assert_eq!(bench.end().await, passed());
    let prompts = bench.agent.only().prompts();
    assert_eq!(prompts.len(), 2);
    assert!(prompts[1].contains("no JSON object with the key `status`"), "{}", prompts[1]);
    assert_eq!(bench.result().as_deref(), Some(EXECUTOR_DONE));
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn a_second_unusable_answer_ends_the_job_without_one() {
    let mut bench = Bench::start(StubAgent::plays([Script::says(["looks good", "very good", EXECUTOR_DONE])])).await;
    assert!(matches!(bench.end().await, Outcome::NoAnswer { .. }));
    assert_eq!(bench.agent.only().prompts().len(), 2);
    assert_eq!((bench.row().status, bench.result().as_deref()), (JobStatus::Error, Some("very good")));
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn a_partial_result_gets_one_more_turn() {
    let partial = r#"{"status":"partial","summary":"half of it"}"#;
    let mut bench = Bench::start(StubAgent::plays([Script::says([partial, EXECUTOR_DONE])])).await;
    assert_eq!(bench.end().await, passed());
    assert!(bench.agent.only().prompts()[1].contains("half of it"));
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_is_no_answer_and_no_crash() {
    let mut turn = Act::says("");
    turn.retain(|act| !matches!(act, Act::Said(_)));
    let mut bench = Bench::start(StubAgent::plays([Script::turns([turn.clone(), turn])])).await;
    assert!(matches!(bench.end().await, Outcome::NoAnswer { .. }));
    assert_eq!(bench.row().status, JobStatus::Error);
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn a_session_that_holds_the_task_is_told_to_go_on() {
    let script = Script { messages: 3, ..Script::says([EXECUTOR_DONE]) };
    let mut bench = Bench::start_with(StubAgent::plays([script]), "executor", |prepared| {
        prepared.task = Some(SessionTask::default());
    })
    .await;
    bench.end().await;
    assert_eq!(bench.agent.only().prompts(), ["go on"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_the_session_holds_already_is_read_and_nothing_is_asked() {
    let script = Script { messages: 3, text: Some(EXECUTOR_DONE), ..Script::says([]) };
    let usage = Usage { input: 40, output: 2, ..Default::default() };
    let held = SessionTask { is_answered: true, turns: 2, tools: 1, usage };
    let mut bench =
        Bench::start_with(StubAgent::plays([script]), "executor", |prepared| prepared.task = Some(held)).await;
    assert_eq!(bench.end().await, passed());
    assert!(bench.agent.only().prompts().is_empty());
    let totals = bench.row().totals;
    assert_eq!((totals.turns, totals.tool_calls, totals.input_tokens), (2, 1, 40), "what was used before counts");
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn a_dialog_is_cancelled_at_once() {
    let mut turn = Act::begins();
    turn.extend([Act::Rest(Duration::from_secs(5)), Act::Line(asks("d-1")), Act::Answered]);
    turn.extend(Act::ends(EXECUTOR_DONE));
    let mut bench = Bench::start(StubAgent::plays([Script::turns([turn])])).await;
    assert_eq!(bench.end().await, passed());
    assert_eq!(bench.agent.only().when("extension_ui_response"), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn pi_1910_a_line_separator_inside_a_string_does_not_end_a_line() {
    let mut turn = Act::begins();
    turn.push(Act::Bytes(format!("{}\r\n", delta("left\u{2028}right\u{85}\u{2029}")).into_bytes()));
    turn.extend(Act::ends(EXECUTOR_DONE));
    let mut bench = Bench::start(StubAgent::plays([Script::turns([turn])])).await;
    assert_eq!(bench.end().await, passed());
}

#[tokio::test(start_paused = true)]
async fn a_line_of_eight_mebibytes_passes() {
    let text = format!("{}{EXECUTOR_DONE}", "x".repeat(8 << 20));
    let mut bench = Bench::start(StubAgent::plays([Script::says([text.as_str()])])).await;
    assert_eq!(bench.end().await, passed());
    assert_eq!(bench.result().map(|result| result.len()), Some(text.len()));
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_deltas_leaves_one_row_a_block() {
    let mut turn = Act::begins();
    turn.push(Act::Flood(200_000));
    turn.extend(Act::ends(EXECUTOR_DONE));
    let mut bench = Bench::start(StubAgent::plays([Script::turns([turn])])).await;
    assert_eq!(bench.end().await, passed());
    let text: Vec<JobEventRow> = bench.rows().into_iter().filter(|row| row.kind == "text").collect();
    assert_eq!(text.len(), 1);
    assert!(text[0].json.contains(&format!("\"char_count\":{}", 200_000 * 8 + EXECUTOR_DONE.len())), "{text:?}");
    assert!(bench.rows().len() < 12);
    bench.must_agree();
}

//! What a look at a job tells while it works.

use super::*;
use crate::actors::doubles::{Act, EXECUTOR_DONE, Script};
use crate::storage::JobRow;
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

/// The row, which must be what status.json says.
fn looked(bench: &Bench) -> JobRow {
    let row = bench.row();
    let mirrored = bench.site.layout.job(&"0a1b2c3d".into()).unwrap().read_status().unwrap();
    assert_eq!(mirrored.as_ref(), Some(&row));
    row
}

#[tokio::test(start_paused = true)]
async fn a_job_at_work_shows_its_figures_its_tool_and_how_full_its_context_is() {
    let mut run = Act::begins();
    run.extend(Act::uses("read", 5 * SECOND));
    run.extend(Act::uses("bash", 40 * SECOND));
    run.extend(Act::ends(EXECUTOR_DONE));
    let mut bench = Bench::start(StubAgent::plays([Script::turns([run])])).await;
    sleep(SECOND / 2).await;
    let begun = bench.row();
    assert_eq!((begun.totals.turns, begun.totals.input_tokens), (0, 10), "the model has answered once");
    sleep(2 * SECOND).await;
    let first = looked(&bench);
    assert_eq!(first.current_tool.as_deref(), Some("read"));
    sleep(20 * SECOND).await;
    let second = looked(&bench);
    assert_eq!((second.status, second.current_tool.as_deref()), (JobStatus::Running, Some("bash")));
    let totals = second.totals;
    assert_eq!((totals.turns, totals.tool_calls, totals.input_tokens, totals.output_tokens), (1, 1, 20, 10));
    assert_eq!(second.context_pct, Some(1.5));
    assert!(second.updated_at_ms >= first.updated_at_ms + 4_000, "{first:?} {second:?}");
    bench.end().await;
    let ended = looked(&bench);
    assert_eq!((ended.totals.turns, ended.totals.tool_calls, ended.current_tool), (3, 2, None));
    let dir = bench.site.layout.job(&"0a1b2c3d".into()).unwrap();
    let status: Value = serde_json::from_slice(&std::fs::read(dir.status()).unwrap()).unwrap();
    assert_eq!(status.get("current_tool"), Some(&Value::Null), "it is there, and says that there is none");
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_tools_is_written_into_the_row_once_a_second() {
    let mut run = Act::begins();
    run.extend(Act::uses("read", Duration::ZERO));
    let tool = |acts: Vec<Act>| acts.into_iter().filter(|act| matches!(act, Act::Rest(_)) || is_tool(act));
    for _ in 0..500 {
        run.extend(tool(Act::uses("grep", SECOND / 50)));
    }
    run.extend(Act::ends(EXECUTOR_DONE));
    let mut bench = Bench::start(StubAgent::plays([Script::turns([run])])).await;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..95 {
        sleep(SECOND / 10).await;
        seen.insert(bench.row().updated_at_ms);
    }
    assert!((9..=11).contains(&seen.len()), "{seen:?}");
    let counted = bench.row().totals.tool_calls;
    assert!((400..=480).contains(&counted), "{counted} of about 475");
    bench.end().await;
    assert_eq!(bench.row().totals.tool_calls, 501);
    bench.must_agree();
}

fn is_tool(act: &Act) -> bool {
    matches!(act, Act::Line(line) if line.contains("tool_execution"))
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_refused_in_passing_comes_with_the_next() {
    let mut run = Act::begins();
    run.extend(Act::uses("read", 5 * SECOND));
    run.extend(Act::uses("bash", 5 * SECOND));
    run.extend(Act::uses("grep", 5 * SECOND));
    run.extend(Act::ends(EXECUTOR_DONE));
    let mut bench = Bench::start(StubAgent::plays([Script::turns([run])])).await;
    sleep(SECOND * 2).await;
    bench.site.refused_writes.store(1, std::sync::atomic::Ordering::Relaxed);
    sleep(SECOND * 5).await;
    assert_eq!(looked(&bench).current_tool.as_deref(), Some("read"));
    sleep(SECOND * 5).await;
    assert_eq!(looked(&bench).current_tool.as_deref(), Some("grep"));
    bench.end().await;
    bench.must_agree();
}

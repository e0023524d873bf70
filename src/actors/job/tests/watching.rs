//! The stall watchdog, as the job lives with it.

use super::*;
use crate::actors::doubles::{Act, EXECUTOR_DONE, Script};
use crate::messages::WatchdogMsg;
use tokio::time::sleep;

fn hangs() -> Arc<StubAgent> {
    StubAgent::plays([Script::turns([Act::works(Duration::from_secs(3_000), EXECUTOR_DONE)])])
}

fn warnings(bench: &Bench) -> Vec<JobEventRow> {
    bench.rows().into_iter().filter(|row| row.kind == "stale_warning").collect()
}

#[tokio::test(start_paused = true)]
async fn three_hundred_seconds_of_silence_end_the_job_and_another_try_may_follow() {
    let mut bench = Bench::start(hangs()).await;
    let outcome = bench.end().await;
    assert_eq!(failed(&outcome), ("stalled", "nothing was heard of the agent for 300 s"));
    assert!(matches!(outcome, Outcome::Failed { retry: true, .. }));
    assert_eq!(bench.agent.only().when("TERM").as_secs(), 300);
    assert_eq!(bench.row().status, JobStatus::Waiting);
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn a_silence_of_sixty_seconds_is_remarked_once() {
    let mut bench = Bench::start(hangs()).await;
    sleep(Duration::from_secs(59)).await;
    assert!(warnings(&bench).is_empty());
    sleep(Duration::from_secs(200)).await;
    let warned = warnings(&bench);
    assert_eq!(warned.len(), 1);
    assert!(warned[0].json.contains(r#""silence_ms":60000"#), "{warned:?}");
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn each_silence_is_remarked_on_its_own_and_a_word_ends_it() {
    let mut turn = Act::begins();
    for _ in 0..3 {
        turn.extend([Act::Rest(Duration::from_secs(250)), Act::Line(crate::actors::doubles::delta("still here"))]);
    }
    turn.extend(Act::ends(EXECUTOR_DONE));
    let mut bench = Bench::start(StubAgent::plays([Script::turns([turn])])).await;
    assert!(matches!(bench.end().await, Outcome::Answered { .. }));
    assert_eq!(warnings(&bench).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_watchdog_that_panics_is_started_again_and_remembers_since_when_it_is_silent() {
    let mut bench = Bench::start(hangs()).await;
    sleep(Duration::from_secs(200)).await;
    let children = bench.job.get_cell().get_children();
    let watchdog = children.iter().find(|child| child.is_message_type_of::<WatchdogMsg>() == Some(true));
    watchdog.expect("it watches").send_message(WatchdogMsg::Break).unwrap();
    let outcome = bench.end().await;
    assert_eq!(failed(&outcome).0, "stalled");
    assert_eq!(bench.agent.only().when("TERM").as_secs() / 10, 30, "300 s after the last word, not after the panic");
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn silence_while_nothing_is_expected_is_no_stall() {
    let script = Script { ignores_eof: true, ignores_term: true, ..Script::says([EXECUTOR_DONE]) };
    let mut bench = Bench::start_with(StubAgent::plays([script]), "executor", |prepared| {
        (prepared.stall, prepared.warn) = (Duration::from_secs(2), Duration::from_secs(1));
    })
    .await;
    assert!(matches!(bench.end().await, Outcome::Answered { .. }));
    assert!(warnings(&bench).is_empty());
    bench.must_agree();
}

//! Stopping: abort, grace, TERM, KILL.

use super::*;
use crate::actors::doubles::{Act, EXECUTOR_DONE, Script};
use tokio::time::sleep;

const LONG: Duration = Duration::from_secs(250);

#[tokio::test(start_paused = true)]
async fn a_running_turn_is_aborted_and_pi_is_ended() {
    let script = Script::turns([Act::works(LONG, EXECUTOR_DONE)]);
    let mut bench = Bench::start(StubAgent::plays([script])).await;
    sleep(Duration::from_secs(10)).await;
    bench.job.cast(JobMsg::Stop).unwrap();
    assert_eq!(bench.end().await, Outcome::Stopped);
    let told = bench.agent.only().told();
    assert_eq!(told[..4], ["get_state", "prompt", "clear_queue", "abort"]);
    assert!(!told.contains(&"KILL".to_owned()), "{told:?}");
    assert_eq!((bench.row().status, bench.row().pid), (JobStatus::Waiting, None));
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn an_abort_that_is_not_answered_gets_two_seconds_then_term_then_kill_after_five() {
    let script =
        Script { silent: vec!["abort", "clear_queue"], ignores_term: true, ignores_eof: true, ..Script::default() };
    let script = Script { turns: [Act::works(LONG, EXECUTOR_DONE)].into(), ..script };
    let mut bench = Bench::start(StubAgent::plays([script])).await;
    sleep(Duration::from_secs(10)).await;
    bench.job.cast(JobMsg::Stop).unwrap();
    assert_eq!(bench.end().await, Outcome::Stopped);
    let pi = bench.agent.only();
    let seconds = |what| pi.when(what).as_secs_f64().round();
    assert_eq!((seconds("abort"), seconds("TERM"), seconds("KILL")), (10.0, 12.0, 17.0));
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn an_abort_before_the_run_began_is_held_until_it_has() {
    let mut turn = vec![Act::Rest(Duration::from_secs(1))];
    turn.extend(Act::works(LONG, EXECUTOR_DONE));
    let mut bench = Bench::start(StubAgent::plays([Script::turns([turn])])).await;
    sleep(Duration::from_millis(100)).await;
    bench.job.cast(JobMsg::Stop).unwrap();
    assert_eq!(bench.end().await, Outcome::Stopped);
    let pi = bench.agent.only();
    assert_eq!(pi.when("prompt").as_millis(), 0);
    assert_eq!(pi.when("abort").as_millis(), 1_000);
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_coming_up_is_ended_at_once() {
    let script = Script { silent: vec!["get_state"], ..Script::default() };
    let mut bench = Bench::start(StubAgent::plays([script])).await;
    sleep(Duration::from_secs(1)).await;
    bench.job.cast(JobMsg::Stop).unwrap();
    assert_eq!(bench.end().await, Outcome::Stopped);
    assert_eq!(bench.agent.only().when("TERM").as_millis(), 1_000);
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn stopping_twice_has_the_effect_of_once() {
    let script = Script { silent: vec!["abort"], ignores_term: true, ignores_eof: true, ..Script::default() };
    let script = Script { turns: [Act::works(LONG, EXECUTOR_DONE)].into(), ..script };
    let mut bench = Bench::start(StubAgent::plays([script])).await;
    sleep(Duration::from_secs(1)).await;
    for _ in 0..3 {
        bench.job.cast(JobMsg::Stop).unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(bench.end().await, Outcome::Stopped);
    let pi = bench.agent.only();
    assert_eq!((pi.count("abort"), pi.count("TERM"), pi.count("KILL")), (1, 1, 1));
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_out_when_the_stop_comes_counts() {
    let script = Script { silent: vec!["get_last_assistant_text"], ..Script::says([EXECUTOR_DONE]) };
    let mut bench = Bench::start(StubAgent::plays([script])).await;
    sleep(Duration::from_secs(1)).await;
    bench.job.cast(JobMsg::Stop).unwrap();
    bench.job.cast(JobMsg::TextRead(Some(EXECUTOR_DONE.to_owned()))).unwrap();
    assert!(matches!(bench.end().await, Outcome::Answered { .. }));
    assert_eq!(bench.row().status, JobStatus::Done);
}

#[tokio::test(start_paused = true)]
async fn pi_that_does_not_end_at_end_of_file_is_ended_by_signals() {
    let script = Script { ignores_eof: true, ignores_term: true, ..Script::says([EXECUTOR_DONE]) };
    let mut bench = Bench::start(StubAgent::plays([script])).await;
    assert!(matches!(bench.end().await, Outcome::Answered { .. }));
    let pi = bench.agent.only();
    let after_eof = |what| (pi.when(what) - pi.when("EOF")).as_secs_f64().round();
    assert_eq!((after_eof("TERM"), after_eof("KILL")), (5.0, 10.0));
    bench.must_agree();
}

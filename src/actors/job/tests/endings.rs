//! Ends that are no answer.

use super::*;
use crate::actors::doubles::{Act, EXECUTOR_DONE, Script, delta, process};
use crate::ports::AgentError;
use crate::storage::{Released, StoreError, UpsertJob};

#[tokio::test(start_paused = true)]
async fn silence_of_thirty_seconds_after_a_command_is_an_rpc_timeout() {
    for (case, silent, launch) in [
        ("the greeting", "get_state", Duration::from_secs(30)),
        ("the prompt", "prompt", Duration::from_secs(30)),
        ("the last text", "get_last_assistant_text", Duration::from_secs(30)),
    ] {
        let script = Script { silent: vec![silent], ..Script::says([EXECUTOR_DONE]) };
        let mut bench = Bench::start(StubAgent::plays([script])).await;
        let outcome = bench.end().await;
        let (code, detail) = failed(&outcome);
        assert_eq!(code, "rpc_timeout", "{case}");
        assert!(detail.starts_with("RPC timeout"), "{case}: {detail}");
        assert_eq!(bench.agent.only().when("TERM"), launch, "{case}");
        assert_eq!(bench.row().status, JobStatus::Waiting, "{case}: another try may follow");
        bench.must_agree();
    }
}

#[tokio::test(start_paused = true)]
async fn a_pi_that_reads_nothing_ends_in_an_rpc_timeout_however_long_the_prompt() {
    let script = Script { deaf: true, ..Script::default() };
    // More than a pipe holds: who waits for the pipe waits for ever.
    let agent = StubAgent::plays([Script { first: vec![Act::Line(greeting())], ..script }]);
    let mut bench = Bench::start_with(agent, "executor", |prepared| prepared.first = "x".repeat(1 << 20)).await;
    let outcome = bench.end().await;
    assert_eq!(failed(&outcome).0, "rpc_timeout");
    bench.must_agree();
}

/// The answer to the first `get_state`, given unasked.
fn greeting() -> String {
    r#"{"id":1,"type":"response","command":"get_state","success":true,"data":{"isStreaming":false,"sessionId":"s"}}"#
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_refused_prompt_fails_the_job_with_pis_text() {
    let script = Script { refuses: Some(("prompt", "No API key found")), ..Script::default() };
    let mut bench = Bench::start(StubAgent::plays([script])).await;
    let outcome = bench.end().await;
    assert_eq!(failed(&outcome), ("unauthorized", "pi refused prompt: No API key found"));
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn paperclip_1721_exit_status_0_without_a_settled_run_is_no_success() {
    let mut turn = Act::begins();
    turn.extend([Act::Said(EXECUTOR_DONE.to_owned()), Act::Exit(0)]);
    let script = Script { complaint: "bye\n", ..Script::turns([turn]) };
    let mut bench =
        Bench::start_with(StubAgent::plays([script]), "executor", |prepared| prepared.last_try = true).await;
    let outcome = bench.end().await;
    assert_eq!(failed(&outcome), ("agent_exited", "pi exited with status 0: bye"));
    assert_eq!((bench.row().status, bench.result()), (JobStatus::Error, None));
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn a_startup_failure_names_what_pi_complained() {
    let script =
        Script { first: vec![Act::Exit(1)], complaint: "stack\nError: Unknown option: --x\n", ..Script::default() };
    let mut bench = Bench::start(StubAgent::plays([script])).await;
    let outcome = bench.end().await;
    assert_eq!(failed(&outcome), ("agent_exited", "pi exited with status 1: Error: Unknown option: --x"));
}

#[tokio::test(start_paused = true)]
async fn garbage_on_stdout_fails_the_job_and_ends_the_process() {
    let mut turn = Act::begins();
    turn.extend([Act::Line("Segmentation fault".into()), Act::Rest(Duration::from_secs(900))]);
    let mut bench = Bench::start(StubAgent::plays([Script::turns([turn])])).await;
    let outcome = bench.end().await;
    let (code, detail) = failed(&outcome);
    assert_eq!(code, "garbled_stream");
    assert!(detail.contains("Segmentation fault"), "{detail}");
    assert_eq!(bench.agent.only().count("TERM"), 1);
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn words_after_the_terminal_outcome_change_nothing() {
    // The answer to the greeting, a whole run and more come behind the line that fails the job for good.
    let mut first = vec![Act::Line("garbage".into()), Act::Line(greeting())];
    first.extend(Act::says(EXECUTOR_DONE));
    first.push(Act::Line(delta("late")));
    let script = Script { first, ignores_term: true, ..Script::default() };
    let mut bench =
        Bench::start_with(StubAgent::plays([script]), "executor", |prepared| prepared.last_try = true).await;
    let outcome = bench.end().await;
    assert_eq!(failed(&outcome).0, "garbled_stream");
    assert_eq!(bench.row().status, JobStatus::Error);
    assert_eq!(bench.kinds(), ["run_start", "run_complete"]);
    assert_eq!(bench.result(), None);
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn gastown_909_a_late_word_does_not_put_a_waiting_job_back_to_running() {
    let script = Script { first: vec![Act::Line("garbage".into()), Act::Line(greeting())], ..Script::default() };
    let mut bench = Bench::start(StubAgent::plays([script])).await;
    bench.end().await;
    assert_eq!(bench.row().status, JobStatus::Waiting);
    assert_eq!(bench.kinds(), ["run_start", "status_change"]);
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_model_that_no_try_mends_is_final() {
    for (text, retry) in [("401: bad key", false), ("429: slow down", true)] {
        let mut bench = Bench::start(StubAgent::plays([Script::turns([Act::errs(text)])])).await;
        let outcome = bench.end().await;
        assert!(matches!(&outcome, Outcome::Failed { retry: again, .. } if *again == retry), "{outcome:?}");
        bench.must_agree();
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_takes_longer_than_it_may_is_ended() {
    let turn = Act::works(Duration::from_secs(50), EXECUTOR_DONE);
    let mut bench = Bench::start_with(StubAgent::plays([Script::turns([turn])]), "executor", |prepared| {
        prepared.timeout = Some(Duration::from_secs(40));
    })
    .await;
    let outcome = bench.end().await;
    assert_eq!(failed(&outcome), ("timed_out", "the job took longer than its 40 s"));
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_session_ends_the_process_and_the_job_says_so() {
    let turn = vec![Act::Line("garbage".into()), Act::Rest(Duration::from_secs(900))];
    let script = Script { panics_on_term: true, ..Script::turns([turn]) };
    let mut bench = Bench::start(StubAgent::plays([script])).await;
    let outcome = bench.end().await;
    assert_eq!(failed(&outcome).0, "garbled_stream", "the first reason counts");
    assert_eq!(bench.agent.only().count("KILL"), 1);
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn a_session_that_cannot_be_started_is_told_with_its_reason() {
    let agent = StubAgent::chooses(|_, _| Err(AgentError::Missing { program: "pi".into() }));
    let mut bench = Bench::start(agent).await;
    let outcome = bench.end().await;
    assert!(matches!(outcome, Outcome::Failed { retry: false, .. }), "{outcome:?}");
    assert_eq!(bench.row().status, JobStatus::Error);
    bench.must_agree();
}

#[tokio::test(start_paused = true)]
async fn a_second_writer_in_a_worktree_is_refused_until_the_first_is_over() {
    let site = Site::new().await;
    let resource = Resource::Worktree(site.prepared("executor").launch.cwd.clone());
    let take = |pid| TakeOwnership {
        resource: Resource::Worktree(site.prepared("executor").launch.cwd),
        me: process(pid),
        at_ms: 1,
        is_alive: Box::new(|_| true),
    };
    let Ownership::Owned { epoch } = site.store.write(take(9)).await.unwrap() else { panic!("it was free") };
    let writer = |site: &Site| {
        let mut prepared = site.prepared("executor");
        prepared.writes = true;
        prepared
    };
    let prepared = writer(&site);
    let mut bench = Bench::start_in(site, StubAgent::plays([Script::says([EXECUTOR_DONE])]), prepared).await;
    let outcome = bench.end().await;
    assert_eq!(failed(&outcome), ("worktree_leased", "process 9 writes in this worktree"));
    assert!(bench.agent.processes().is_empty(), "nothing was launched");
    let release = ReleaseOwnership { resource: resource.clone(), me: process(9), epoch };
    assert_eq!(bench.site.store.write(release).await.unwrap(), Released::Released);

    let site = Site::new().await;
    let prepared = writer(&site);
    let mut bench = Bench::start_in(site, StubAgent::plays([Script::says([EXECUTOR_DONE])]), prepared).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(matches!(bench.end().await, Outcome::Answered { .. }));
    let resource = Resource::Worktree(bench.site.prepared("executor").launch.cwd);
    let owner = bench.site.reader().owner(&resource).unwrap().expect("it was held");
    assert_eq!(owner.holder, None, "and is free again");
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_a_worktree_takes_no_lease() {
    let mut bench = Bench::start(StubAgent::plays([Script::says([EXECUTOR_DONE])])).await;
    bench.end().await;
    let resource = Resource::Worktree(bench.site.prepared("executor").launch.cwd);
    assert_eq!(bench.site.reader().owner(&resource).unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_settlement_that_another_incarnation_made_is_not_overwritten() {
    let site = Site::new().await;
    let mut row = site.prepared("executor").row;
    row.epoch = 2;
    site.store.write(UpsertJob(row)).await.unwrap();
    let prepared = site.prepared("executor");
    let (jobs, mut words) = recorder::<JobsMsg>(None).await;
    let job = Job { tools: site.tools(StubAgent::plays([Script::default()])), jobs: site.door("nobody") };
    let spawned = Actor::spawn_linked(None, job, prepared, jobs.get_cell()).await;
    drop(spawned.expect("it starts"));
    let Some(Heard::Failed(why)) = words.recv().await else { panic!("the older one fails") };
    let expected = StoreError::StaleEpoch { job: "0a1b2c3d".into(), epoch: 1, current: 2 };
    assert_eq!(why, expected.to_string());
}

#[tokio::test(start_paused = true)]
async fn vibe_kanban_2926_a_store_that_fails_for_a_while_costs_no_job_its_work() {
    let turn = Act::works(Duration::from_secs(10), EXECUTOR_DONE);
    for failures in [1, 2, 3, 10] {
        let mut bench = Bench::start(StubAgent::plays([Script::turns([turn.clone()])])).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        bench.site.refused_writes.store(failures, std::sync::atomic::Ordering::Relaxed);
        assert!(matches!(bench.end().await, Outcome::Answered { .. }), "{failures} failures");
        assert_eq!((bench.row().status, bench.agent.processes().len()), (JobStatus::Done, 1));
        let numbers: Vec<u64> = bench.rows().iter().map(|row| row.seq).collect();
        assert_eq!(numbers, (1..=9).collect::<Vec<u64>>(), "no hole after {failures} failures");
        bench.must_agree();
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_process_also_while_the_store_is_away() {
    let turn = Act::works(Duration::from_secs(200), EXECUTOR_DONE);
    let mut bench = Bench::start(StubAgent::plays([Script::turns([turn])])).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    bench.site.refused_writes.store(usize::MAX, std::sync::atomic::Ordering::Relaxed);
    bench.job.cast(JobMsg::Stop).unwrap();
    assert_eq!(bench.end().await, Outcome::Stopped);
    assert_eq!(bench.agent.only().when("TERM").as_secs(), 5);
}

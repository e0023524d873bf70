//! A tracker that fails, refuses, or stays away.

use tokio::time::sleep;

use super::*;
use crate::actors::doubles::{
    Act, EXECUTOR_DONE, REVIEWER_PASSES, Script, StubAgent, System, notices, reviewer_sends_back, until, writes,
};
use crate::messages::Operator;
use crate::ports::TrackerError;

async fn system() -> System {
    System::start(StubAgent::chooses(|launch, _| {
        Ok(Script::says([if writes(launch) { EXECUTOR_DONE } else { REVIEWER_PASSES }]))
    }))
    .await
}

fn refuses(verb: &'static str) -> TrackerError {
    TrackerError::Refused { verb, reason: "no".into() }
}

async fn run(system: &System) -> Vec<NoticeKind> {
    let mut watch = system.watchers.subscribe();
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    system.run(args).await;
    notices(&mut watch, "proj-mol-1").await
}

fn opens_round(kind: &NoticeKind) -> bool {
    matches!(kind, NoticeKind::Event { event, .. } if matches!(**event, ChainEvent::RoundOpened { .. }))
}

fn waits(seen: &[NoticeKind]) -> usize {
    seen.iter().filter(|kind| matches!(kind, NoticeKind::Waiting { on: "tracker", .. })).count()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_twice_is_waited_out() {
    for verb in ["pour", "hold", "show", "batch", "ready", "claim", "note", "worktree"] {
        let system = system().await;
        system.tracker.fails_times(verb, 2);
        let seen = run(&system).await;
        assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::ReadyToMerge }), "{verb}");
        assert_eq!(waits(&seen), 2, "{verb}");
        assert_eq!(system.tracker.bead("proj-mol-1-executor").notes.matches("[sp]").count(), 1, "{verb}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_note_whose_answer_was_lost_is_not_written_twice() {
    let system = system().await;
    // It went through, as far as bd is concerned; sp hears of a timeout.
    let mut watch = system.watchers.subscribe();
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    system.tracker.fails("note", TrackerError::TimedOut { verb: "note", seconds: 60 });
    system.run(args).await;
    until(&mut watch, |kind| matches!(kind, NoticeKind::Waiting { .. })).await;
    let job = crate::chain::machine::job_id(&"proj-mol-1".into(), &"executor".into(), 1);
    let landed = format!("[sp] executor passed: job {job} round 1\n");
    system.tracker.meddle("proj-mol-1-executor", |bead| bead.notes.push_str(&landed));
    notices(&mut watch, "proj-mol-1").await;
    assert_eq!(system.tracker.bead("proj-mol-1-executor").notes, landed);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_blocks_the_step_that_it_is_about() {
    for verb in ["claim", "note"] {
        let system = system().await;
        system.tracker.fails(verb, refuses(verb));
        let seen = run(&system).await;
        assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::Blocked }), "{verb}");
        assert_eq!(system.tracker.bead("proj-mol-1-executor").status, "blocked", "{verb}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_is_about_no_step_stops_the_chain() {
    for verb in ["pour", "worktree"] {
        let system = system().await;
        system.tracker.fails(verb, refuses(verb));
        let seen = run(&system).await;
        assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::Stopped }), "{verb}");
        assert!(system.agent.processes().is_empty(), "{verb}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tracker_that_stays_away_ends_the_run_and_not_the_chain() {
    for verb in ["pour", "claim", "note"] {
        let system = system().await;
        system.tracker.fails_times(verb, 6);
        let seen = run(&system).await;
        let ended = matches!(
            seen.last(),
            Some(NoticeKind::AtRest { status: ChainStatus::Stopped } | NoticeKind::Failed { taken_over: false, .. })
        );
        assert!(ended, "{verb}: {:?}", seen.last());
        let owner = system.site.reader().owner(&Resource::Chain("proj-mol-1".into())).unwrap().expect("owned before");
        assert_eq!(owner.holder, None, "{verb}: another process may go on");

        let args = system.open_again("proj-mol-1").await;
        let mut watch = system.watchers.subscribe();
        system.run(args).await;
        let seen = notices(&mut watch, "proj-mol-1").await;
        assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::ReadyToMerge }), "{verb}");
        assert_eq!(system.tracker.bead("proj-mol-1-executor").notes.matches("[sp]").count(), 1, "{verb}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_heard_while_the_tracker_is_away() {
    let system = system().await;
    let mut watch = system.watchers.subscribe();
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    system.tracker.fails_times("note", 100);
    let coordinator = system.run(args).await;
    sleep(Duration::from_secs(3)).await;
    coordinator.cast(CoordinatorMsg::Operator(Operator::Stop { why: "Ctrl-C".into() })).unwrap();
    let seen = notices(&mut watch, "proj-mol-1").await;
    assert!(matches!(seen.last(), Some(NoticeKind::Failed { .. } | NoticeKind::AtRest { .. })), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_cannot_be_marked_blocked_still_lets_the_chain_come_to_rest() {
    let system = System::start(StubAgent::plays([Script::turns([vec![Act::Exit(1)]])])).await;
    system.tracker.fails("note", refuses("note"));
    let seen = run(&system).await;
    assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::Stopped }));
}

#[tokio::test(start_paused = true)]
async fn a_round_that_cannot_be_opened_stops_the_chain_once() {
    let system = System::start(StubAgent::chooses(|launch, _| {
        let back = reviewer_sends_back("off by one");
        Ok(Script::says([if writes(launch) { EXECUTOR_DONE } else { back.as_str() }]))
    }))
    .await;
    let mut watch = system.watchers.subscribe();
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    system.run(args).await;
    // The batch before closes the executor.
    until(&mut watch, opens_round).await;
    (0..3).for_each(|_| system.tracker.fails("batch", refuses("batch")));
    let seen = notices(&mut watch, "proj-mol-1").await;
    assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::Stopped }));
    let stops =
        system.log("proj-mol-1").iter().filter(|event| matches!(event, ChainEvent::ChainStopped { .. })).count();
    assert_eq!(stops, 1);
    let tries = system.tracker.calls("batch").iter().filter(|call| call.contains("round 2")).count();
    assert_eq!(tries, 1, "a stopped chain opens no round behind its own back");
}

#[tokio::test(start_paused = true)]
async fn a_round_that_was_cut_off_by_a_stop_is_opened_by_the_next_run() {
    let system = System::start(StubAgent::chooses(|launch, number| {
        let back = reviewer_sends_back("off by one");
        let review = if number == 1 { back.as_str() } else { REVIEWER_PASSES };
        Ok(Script::says([if writes(launch) { EXECUTOR_DONE } else { review }]))
    }))
    .await;
    let mut watch = system.watchers.subscribe();
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    system.run(args.clone()).await;
    until(&mut watch, opens_round).await;
    system.tracker.fails("batch", refuses("batch"));
    notices(&mut watch, "proj-mol-1").await;
    let args = system.open_again("proj-mol-1").await;
    system.run(args).await;
    let seen = notices(&mut watch, "proj-mol-1").await;
    assert_eq!(seen.last(), Some(&NoticeKind::AtRest { status: ChainStatus::ReadyToMerge }));
    assert_eq!(system.agent.processes().len(), 4);
}

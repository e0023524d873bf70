//! Between recorders: what it asks for, and when.

use std::sync::atomic::Ordering;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use tokio::sync::broadcast;

use super::*;
use crate::actors::doubles::{Heard, Script, StubAgent, System, notices, recorder, tree_ready};

/// A coordinator whose neighbours are recorders.
struct Bench {
    system: System,
    args: CoordinatorArgs,
    tracker: UnboundedReceiver<Heard<TrackerMsg>>,
    jobs: UnboundedReceiver<Heard<JobsMsg>>,
    watch: broadcast::Receiver<Notice>,
}

impl Bench {
    /// Opens a chain whose worktree is ready, with more events behind it.
    async fn open(more: &[ChainEvent]) -> Self {
        let system = System::without_actors(StubAgent::plays([Script::default()])).await;
        let name = |name: &str| Some(system.site.door::<TrackerMsg>(name).name().to_owned());
        let (_, tracker) = recorder(name("tracker")).await;
        let (_, jobs) = recorder(name("jobs")).await;
        recorder::<WorkspacesMsg>(name("workspaces")).await;
        let mut behind = tree_ready(&system.site.tree());
        behind.extend_from_slice(more);
        let args = system.open("proj-mol-1", "proj-x", &behind).await;
        let watch = system.watchers.subscribe();
        Self { system, args, tracker, jobs, watch }
    }

    async fn run(&self) -> ActorRef<CoordinatorMsg> {
        self.system.run(self.args.clone()).await
    }

    /// The effects that the Tracker was asked for so far.
    async fn asked(&mut self) -> Vec<(ChainEffect, bool)> {
        sleep(Duration::from_millis(10)).await;
        let mut asked = Vec::new();
        while let Ok(heard) = self.tracker.try_recv() {
            if let Heard::Mail(TrackerMsg::Perform(work)) = heard {
                asked.push((work.effect.clone(), work.again));
            }
        }
        asked
    }

    /// The jobs that were asked for so far.
    async fn starts(&mut self) -> Vec<(StepId, u32)> {
        sleep(Duration::from_millis(10)).await;
        let mut starts = Vec::new();
        while let Ok(heard) = self.jobs.try_recv() {
            if let Heard::Mail(JobsMsg::Start(activation)) = heard {
                starts.push((activation.step.clone(), activation.epoch));
            }
        }
        starts
    }

    fn waits(&mut self) -> Vec<&'static str> {
        let mut waits = Vec::new();
        while let Ok(notice) = self.watch.try_recv() {
            if let NoticeKind::Waiting { on, .. } = notice.kind {
                waits.push(on);
            }
        }
        waits
    }

    fn fail_writes(&self, count: usize) {
        self.system.site.refused_writes.store(count, Ordering::Relaxed);
    }
}

fn claim(epoch: u32) -> ChainEffect {
    ChainEffect::Claim { step: "executor".into(), epoch }
}

fn dispatched() -> Vec<ChainEvent> {
    let job = crate::chain::machine::job_id(&"proj-mol-1".into(), &"executor".into(), 1);
    vec![
        ChainEvent::StepClaiming { step: "executor".into(), epoch: 1 },
        ChainEvent::StepDispatched { step: "executor".into(), epoch: 1, job },
    ]
}

#[tokio::test(start_paused = true)]
async fn killed_after_the_write_it_asks_for_the_same_effect_again() {
    let mut bench = Bench::open(&[]).await;
    let coordinator = bench.run().await;
    coordinator.cast(ready(&["executor"])).unwrap();
    assert_eq!(bench.asked().await, [(claim(1), false)]);
    coordinator.get_cell().kill_and_wait(None).await.unwrap();

    let coordinator = bench.run().await;
    assert_eq!(bench.asked().await, [(claim(1), true)], "the same, to be looked up first");
    coordinator.cast(claimed("executor", 1)).unwrap();
    assert_eq!(bench.starts().await, [("executor".into(), 1)]);
    coordinator.get_cell().kill_and_wait(None).await.unwrap();

    bench.run().await;
    assert_eq!(bench.starts().await, [("executor".into(), 1)]);
    assert_eq!(bench.asked().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_failing_store_starts_nothing_until_it_is_back_and_then_once() {
    let mut bench = Bench::open(&[]).await;
    let coordinator = bench.run().await;
    sleep(Duration::from_millis(10)).await;
    bench.fail_writes(3);
    coordinator.cast(ready(&["executor"])).unwrap();
    assert_eq!(bench.asked().await, [], "what is not on disk did not happen");
    assert_eq!(bench.waits(), ["store"]);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(bench.asked().await, [(claim(1), false)]);
    assert_eq!(bench.waits(), ["store", "store"]);
    let claims = bench.system.log("proj-mol-1");
    assert_eq!(claims.iter().filter(|event| matches!(event, ChainEvent::StepClaiming { .. })).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn mail_during_an_outage_does_not_shorten_the_patience_with_the_store() {
    let mut bench = Bench::open(&[]).await;
    let coordinator = bench.run().await;
    sleep(Duration::from_millis(10)).await;
    bench.fail_writes(usize::MAX);
    for _ in 0..20 {
        coordinator.cast(ready(&["executor"])).unwrap();
    }
    sleep(Duration::from_secs(20)).await;
    bench.fail_writes(0);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(bench.asked().await, [(claim(1), false)], "20 s of outage are waited out");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_away_ends_the_run_and_not_the_chain() {
    let mut bench = Bench::open(&[]).await;
    let coordinator = bench.run().await;
    sleep(Duration::from_millis(10)).await;
    bench.fail_writes(usize::MAX);
    coordinator.cast(ready(&["executor"])).unwrap();
    let seen = notices(&mut bench.watch, "proj-mol-1").await;
    assert!(matches!(seen.last(), Some(NoticeKind::Failed { taken_over: false, .. })), "{seen:?}");
    assert_eq!(bench.asked().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_another_process_took_over_is_let_go() {
    let mut bench = Bench::open(&[]).await;
    let coordinator = bench.run().await;
    bench.system.take_over(&bench.args, 2).await;
    coordinator.cast(ready(&["executor"])).unwrap();
    let seen = notices(&mut bench.watch, "proj-mol-1").await;
    assert!(matches!(seen.last(), Some(NoticeKind::Failed { taken_over: true, .. })), "{seen:?}");
    assert_eq!(bench.asked().await, [], "nothing is asked for in the other's name");
}

#[tokio::test(start_paused = true)]
async fn gastown_4698_a_chain_taken_over_reads_bd_before_it_asks_for_anything_else() {
    let mut bench = Bench::open(&dispatched()).await;
    bench.args = bench.system.take_over(&bench.args, 2).await;
    let mut coordinator = bench.system.coordinator();
    coordinator.me = crate::actors::doubles::process(2);
    Actor::spawn(None, coordinator, bench.args.clone()).await.unwrap();
    assert_eq!(bench.asked().await, [(ChainEffect::Reread, true)]);
    assert_eq!(bench.starts().await, [], "the older incarnation of the job is not started");
    assert!(bench.system.log("proj-mol-1").contains(&ChainEvent::Adopted { incarnation: 2 }));
}

#[tokio::test(start_paused = true)]
async fn a_chain_taken_over_before_its_pour_is_poured() {
    let system = System::without_actors(StubAgent::plays([Script::default()])).await;
    let (_, mut tracker) =
        recorder::<TrackerMsg>(Some(system.site.door::<TrackerMsg>("tracker").name().to_owned())).await;
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    let args = system.take_over(&args, 2).await;
    system.run(args).await;
    let Some(Heard::Mail(TrackerMsg::Perform(work))) = tracker.recv().await else { panic!("it asks the tracker") };
    assert_eq!((work.effect, work.again), (ChainEffect::Pour, true));
    sleep(Duration::from_secs(1)).await;
    assert!(tracker.try_recv().is_err(), "once");
}

#[tokio::test(start_paused = true)]
async fn a_failing_store_at_a_take_over_starts_nothing_until_it_is_back() {
    let mut bench = Bench::open(&dispatched()).await;
    bench.args = bench.system.take_over(&bench.args, 2).await;
    bench.fail_writes(2);
    bench.run().await;
    assert_eq!((bench.asked().await, bench.starts().await), (vec![], vec![]));
    sleep(Duration::from_secs(5)).await;
    assert_eq!(bench.asked().await, [(ChainEffect::Reread, true)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_after_a_take_over_is_looked_up_first() {
    let mut behind = dispatched();
    behind.extend([
        ChainEvent::JobAnswered {
            step: "executor".into(),
            epoch: 1,
            verdict: crate::chain::verdict::Verdict::Passed { remark: None },
            summary: "done".into(),
        },
        ChainEvent::WorkSettled { step: "executor".into(), epoch: 1, head: "c1".into() },
        ChainEvent::StepPassed { step: "executor".into(), epoch: 1, commit: "c1".into() },
    ]);
    let mut bench = Bench::open(&behind).await;
    bench.args = bench.system.take_over(&bench.args, 2).await;
    let coordinator = bench.run().await;
    assert_eq!(bench.asked().await, [(ChainEffect::Reread, true)]);
    let view = crate::chain::machine::BeadsView {
        root: Some("in_progress".into()),
        molecule: Some("open".into()),
        steps: std::collections::BTreeMap::new(),
    };
    coordinator.cast(CoordinatorMsg::Input(Box::new(ChainInput::BeadsRead(view)))).unwrap();
    let found =
        ChainInput::TreeReady { path: "/tree".into(), branch: "feature/x".into(), head: "c1".into(), reused: false };
    coordinator.cast(CoordinatorMsg::Input(Box::new(found))).unwrap();
    let note = ChainEffect::Note { step: "executor".into(), epoch: 1, kind: crate::chain::machine::NoteKind::Passed };
    assert_eq!(bench.asked().await, [(note, true)], "its note may be in bd already");
}

#[tokio::test(start_paused = true)]
async fn an_effect_whose_owner_is_being_restarted_is_sent_when_it_is_back() {
    let system = System::without_actors(StubAgent::plays([Script::default()])).await;
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    system.run(args).await;
    sleep(Duration::from_secs(3)).await;
    let (_, mut tracker) =
        recorder::<TrackerMsg>(Some(system.site.door::<TrackerMsg>("tracker").name().to_owned())).await;
    let Some(Heard::Mail(TrackerMsg::Perform(work))) = tracker.recv().await else { panic!("it asks the tracker") };
    assert_eq!(work.effect, ChainEffect::Pour);
    sleep(Duration::from_secs(1)).await;
    assert!(tracker.try_recv().is_err(), "once");
}

#[tokio::test(start_paused = true)]
async fn bd_is_asked_more_seldom_the_longer_nothing_happens_and_at_once_after_something_closed() {
    let mut bench = Bench::open(&dispatched()).await;
    let coordinator = bench.run().await;
    sleep(Duration::from_secs(60)).await;
    let mut polls = 0;
    while let Ok(heard) = bench.tracker.try_recv() {
        polls += u32::from(matches!(heard, Heard::Mail(TrackerMsg::WantReady { .. })));
    }
    assert!((3..=5).contains(&polls), "{polls} calls in a minute beside a job that works");

    for input in [
        ChainInput::JobSettled {
            step: "executor".into(),
            epoch: 1,
            outcome: crate::chain::machine::Outcome::Answered {
                verdict: crate::chain::verdict::Verdict::Passed { remark: None },
                summary: "done".into(),
            },
        },
        ChainInput::WorkSettled {
            step: "executor".into(),
            epoch: 1,
            work: crate::chain::machine::Work::Committed(crate::ports::Commit::Made {
                head: "c1".into(),
                paths: vec![],
                refused: vec![],
            }),
        },
        ChainInput::EvidenceNoted { step: "executor".into(), epoch: 1 },
        ChainInput::StepClosed { step: "executor".into() },
    ] {
        coordinator.cast(CoordinatorMsg::Input(Box::new(input))).unwrap();
    }
    sleep(Duration::from_millis(50)).await;
    let mut asked = false;
    while let Ok(heard) = bench.tracker.try_recv() {
        asked |= matches!(heard, Heard::Mail(TrackerMsg::WantReady { .. }));
    }
    assert!(asked, "the reviewer may be ready now");
}

//! The Tracker on a tracker in memory; its chains are recorders.

use std::collections::BTreeSet;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep};

use super::*;
use crate::actors::doubles::{Heard, Script, StubAgent, System, recorder};
use crate::chain::machine::{ChainState, fold};

struct Bench {
    system: System,
    tracker: ActorRef<TrackerMsg>,
    above: UnboundedReceiver<Heard<TrackerMsg>>,
}

type Words = UnboundedReceiver<Heard<CoordinatorMsg>>;

async fn start() -> Bench {
    let system = System::without_actors(StubAgent::plays([Script::default()])).await;
    let (above, words) = recorder::<TrackerMsg>(None).await;
    let stub: Arc<dyn Tracker> = system.tracker.clone();
    let (tracker, _) = Actor::spawn_linked(None, TrackerActor { tracker: stub }, (), above.get_cell()).await.unwrap();
    Bench { system, tracker, above: words }
}

impl Bench {
    async fn chain(&self) -> Arc<ChainState> {
        self.system.open("proj-mol-1", "proj-x", &[]).await;
        Arc::new(fold(&self.system.log("proj-mol-1")).unwrap())
    }

    async fn perform(&self, chain: &Arc<ChainState>, effect: ChainEffect) -> Words {
        let (reply_to, words) = recorder(None).await;
        let work = TrackerWork { effect, chain: Arc::clone(chain), again: false, reply_to, tries: 0 };
        self.tracker.cast(TrackerMsg::Perform(Box::new(work))).unwrap();
        words
    }

    async fn want_ready(&self, chain: &str) -> Words {
        let (reply_to, words) = recorder(None).await;
        self.tracker.cast(TrackerMsg::WantReady { chain: chain.into(), reply_to }).unwrap();
        words
    }
}

async fn answer(words: &mut Words) -> CoordinatorMsg {
    match words.recv().await {
        Some(Heard::Mail(mail)) => mail,
        other => panic!("{other:?}"),
    }
}

fn input(mail: CoordinatorMsg) -> ChainInput {
    match mail {
        CoordinatorMsg::Input(input) => *input,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn chains_that_wait_are_answered_by_one_call_each_with_its_own_steps() {
    let bench = start().await;
    let chain = bench.chain().await;
    bench.system.tracker.dawdles(Duration::from_secs(1));
    let mut poured = bench.perform(&chain, ChainEffect::Pour).await;
    let mut mine = bench.want_ready("proj-mol-1").await;
    let mut other = bench.want_ready("proj-mol-2").await;
    assert_eq!(input(answer(&mut poured).await), ChainInput::Poured);
    let steps = BTreeSet::from([StepId::from("executor")]);
    assert_eq!(input(answer(&mut mine).await), ChainInput::ReadyListed(steps));
    assert_eq!(input(answer(&mut other).await), ChainInput::ReadyListed(BTreeSet::new()));
    assert_eq!(bench.system.tracker.calls("ready").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_call_runs_at_a_time() {
    let bench = start().await;
    let chain = bench.chain().await;
    bench.system.tracker.dawdles(Duration::from_secs(10));
    let begun = Instant::now();
    let mut held = bench.perform(&chain, ChainEffect::HoldRoot).await;
    let mut again = bench.perform(&chain, ChainEffect::HoldRoot).await;
    answer(&mut held).await;
    assert_eq!(begun.elapsed().as_secs(), 10);
    answer(&mut again).await;
    assert_eq!(begun.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_failed_look_is_unknown_and_never_none() {
    let bench = start().await;
    bench.system.tracker.fails_times("ready", 1);
    let mut words = bench.want_ready("proj-mol-1").await;
    assert!(matches!(answer(&mut words).await, CoordinatorMsg::Waiting { on: "tracker", .. }));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_next_try_holds_up_nobody_else() {
    let bench = start().await;
    let chain = bench.chain().await;
    bench.system.tracker.fails_times("pour", 4);
    let mut poured = bench.perform(&chain, ChainEffect::Pour).await;
    let begun = Instant::now();
    for _ in 0..4 {
        assert!(matches!(answer(&mut poured).await, CoordinatorMsg::Waiting { .. }));
    }
    let mut held = bench.perform(&chain, ChainEffect::HoldRoot).await;
    assert_eq!(input(answer(&mut held).await), ChainInput::RootHeld);
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    assert_eq!(input(answer(&mut poured).await), ChainInput::Poured);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_port_is_the_actors_own() {
    let mut bench = start().await;
    let chain = bench.chain().await;
    bench.system.tracker.panics("pour");
    let mut words = bench.perform(&chain, ChainEffect::Pour).await;
    assert!(matches!(bench.above.recv().await, Some(Heard::Failed(_))), "whoever supervises it is told");
    sleep(Duration::from_secs(100)).await;
    assert!(words.try_recv().is_err());
}

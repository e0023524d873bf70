//! Chains: what becomes of a coordinator that fails. The neighbours of the coordinators are not there.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::*;
use crate::actors::doubles::{Script, StubAgent, System, notices};
use crate::ports::Clock;

/// A clock that is broken.
struct Broken;

impl Clock for Broken {
    fn now_ms(&self) -> i64 {
        panic!("a port that panics")
    }
}

async fn chains(system: &System, clock: Arc<dyn Clock>) -> ActorRef<ChainsMsg> {
    let coordinator = Coordinator { clock, ..system.coordinator() };
    Actor::spawn(None, Chains { coordinator, system: system.site.system.clone() }, ()).await.unwrap().0
}

#[tokio::test(start_paused = true)]
async fn a_coordinator_that_fails_is_started_again_a_few_times() {
    let system = System::without_actors(StubAgent::plays([Script::default()])).await;
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    let orders = vec![Operator::Stop { why: "test".into() }];
    // Its first write asks the clock, in each of its lives; the order is not given twice.
    let chains = chains(&system, Arc::new(Broken)).await;
    chains.cast(ChainsMsg::Run(Box::new(CoordinatorArgs { orders, ..args }))).unwrap();
    sleep(Duration::from_secs(5)).await;
    let name = format!("{}/chain/proj-mol-1", system.site.system);
    assert!(ActorRef::<CoordinatorMsg>::where_is(name).is_some(), "the one without orders lives");
}

#[tokio::test(start_paused = true)]
async fn a_chain_whose_log_cannot_be_read_is_given_up_with_the_reason() {
    let system = System::without_actors(StubAgent::plays([Script::default()])).await;
    let args = system.open("proj-mol-1", "proj-x", &[]).await;
    let mut watch = system.watchers.subscribe();
    let chains = chains(&system, Arc::clone(&system.site.clock)).await;
    let args = CoordinatorArgs { chain: "proj-mol-2".into(), ..args };
    chains.cast(ChainsMsg::Run(Box::new(args))).unwrap();
    let seen = notices(&mut watch, "proj-mol-2").await;
    let [NoticeKind::Failed { why, taken_over: false }] = seen.as_slice() else { panic!("{seen:?}") };
    assert!(why.contains("does not begin with its opening"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn an_order_reaches_its_chain_and_an_order_to_all_each() {
    let system = System::without_actors(StubAgent::plays([Script::default()])).await;
    system.tracker.add_root("proj-y");
    let mut watch = system.watchers.subscribe();
    let chains = chains(&system, Arc::clone(&system.site.clock)).await;
    for (chain, bead) in [("proj-mol-1", "proj-x"), ("proj-mol-2", "proj-y")] {
        let args = system.open(chain, bead, &[]).await;
        chains.cast(ChainsMsg::Run(Box::new(args))).unwrap();
    }
    let stop = |why: &str| Operator::Stop { why: why.into() };
    chains.cast(ChainsMsg::Order { chain: "proj-mol-1".into(), order: stop("one") }).unwrap();
    let seen = notices(&mut watch, "proj-mol-1").await;
    assert!(matches!(seen.last(), Some(NoticeKind::AtRest { .. })), "{seen:?}");
    chains.cast(ChainsMsg::OrderAll(stop("all"))).unwrap();
    let seen = notices(&mut watch, "proj-mol-2").await;
    assert!(matches!(seen.last(), Some(NoticeKind::AtRest { .. })), "{seen:?}");
}

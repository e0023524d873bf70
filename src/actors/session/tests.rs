//! The Session on its own: its job is a recorder that holds on to its credits.

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use super::*;
use crate::actors::doubles::{Act, EXECUTOR_DONE, Heard, Script, Site, StubAgent, recorder};
use crate::ports::Agent;

struct Bench {
    _site: Site,
    agent: Arc<StubAgent>,
    session: ActorRef<SessionMsg>,
    words: UnboundedReceiver<Heard<JobMsg>>,
}

async fn session(script: Script) -> Bench {
    let site = Site::new().await;
    let agent = StubAgent::plays([script]);
    let spawned = agent.launch(&site.prepared("executor").launch).await.unwrap();
    let (job, mut words) = recorder::<JobMsg>(None).await;
    let session = Session { job: job.clone(), pulse: Pulse::begin(), started_at_ms: 5 };
    let (session, _) = Actor::spawn_linked(None, session, spawned, job.get_cell()).await.unwrap();
    let Some(Heard::Mail(JobMsg::SessionReady(up))) = words.recv().await else { panic!("the session comes up") };
    let (model, session_id) = (Some("stub/stub-1".to_owned()), "s".to_owned());
    assert_eq!(up.meta, SessionMeta { backend: "pi".into(), model, session_id, started_at_ms: 5 });
    Bench { _site: site, agent, session, words }
}

#[tokio::test(start_paused = true)]
async fn a_flooding_agent_fills_its_pipe_and_not_our_memory() {
    let mut turn = Act::begins();
    turn.push(Act::Flood(200_000));
    let mut bench = session(Script::turns([turn])).await;
    bench.session.cast(SessionMsg::Prompt("flood us".into())).unwrap();
    sleep(Duration::from_secs(1)).await;
    let mut held = Vec::new();
    while let Ok(Heard::Mail(JobMsg::Events(events, credit))) = bench.words.try_recv() {
        held.push((events, credit));
    }
    assert_eq!(held.len(), CREDITS, "batches in flight");
    assert!(held.iter().all(|(events, _)| events.len() <= BATCH));
    let pi = bench.agent.only();
    let written = || pi.flooded.load(std::sync::atomic::Ordering::Relaxed);
    let line = crate::actors::doubles::delta("eight by").len() + 1;
    // What is in flight, one batch in the reader's hand, its buffer and the pipe.
    let bound = (CREDITS + 1) * BATCH + 3 * 64 * 1024 / line;
    assert!(written() <= bound, "{} lines of at most {bound}", written());

    drop(held);
    while written() < 200_000 {
        let heard = bench.words.recv().await;
        assert!(matches!(heard, Some(Heard::Mail(JobMsg::Events(..)))), "{heard:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn killing_twice_has_the_effect_of_once() {
    let script = Script { ignores_term: true, ignores_eof: true, ..Script::default() };
    let mut bench = session(script).await;
    for _ in 0..3 {
        bench.session.cast(SessionMsg::Kill).unwrap();
        bench.session.cast(SessionMsg::Close).unwrap();
    }
    let ended = loop {
        match bench.words.recv().await {
            Some(Heard::Mail(JobMsg::SessionEnded(end))) => break end,
            // Supervision overtakes mail.
            Some(Heard::Ended) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ended.describe(), "pi was ended by signal 9");
    let pi = bench.agent.only();
    assert_eq!((pi.count("TERM"), pi.count("KILL")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_end_is_told_after_all_that_pi_said() {
    let mut turn = Act::says(EXECUTOR_DONE);
    turn.push(Act::Exit(0));
    let mut bench = session(Script::turns([turn])).await;
    bench.session.cast(SessionMsg::Prompt("work".into())).unwrap();
    let mut settled = false;
    loop {
        match bench.words.recv().await {
            Some(Heard::Mail(JobMsg::Events(events, _))) => {
                settled |= events.iter().any(|event| matches!(event, PiEvent::AgentSettled { .. }));
            }
            Some(Heard::Mail(JobMsg::SessionEnded(_))) => break,
            Some(Heard::Ended) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(settled);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_killed_takes_its_process_with_it() {
    let bench = session(Script { ignores_term: true, ignores_eof: true, ..Script::default() }).await;
    bench.session.get_cell().kill_and_wait(None).await.unwrap();
    assert_eq!(bench.agent.only().count("KILL"), 1);
}

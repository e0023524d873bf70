//! Jobs, its preparation and its jobs, on stubs of pi and of the repository; the coordinator is a recorder.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use super::*;
use crate::actors::doubles::{Act, EXECUTOR_DONE, Heard, Script, StubAgent, System, recorder, tree_ready};
use crate::chain::machine::{ChainEvent, fold};

struct Bench {
    system: System,
    jobs: ActorRef<JobsMsg>,
    activation: Activation,
    words: UnboundedReceiver<Heard<CoordinatorMsg>>,
}

const LONG: Duration = Duration::from_secs(100);

impl Bench {
    async fn start(agent: Arc<StubAgent>) -> Self {
        let system = System::without_actors(agent).await;
        let jobs = system.start_jobs().await;
        let mut behind = tree_ready(&system.site.tree());
        let step = StepId::from("executor");
        let job = crate::chain::machine::job_id(&"proj-mol-1".into(), &step, 1);
        behind.push(ChainEvent::StepClaiming { step: step.clone(), epoch: 1 });
        behind.push(ChainEvent::StepDispatched { step: step.clone(), epoch: 1, job: job.clone() });
        let args = system.open("proj-mol-1", "proj-x", &behind).await;
        let chain = Arc::new(fold(&system.log("proj-mol-1")).expect("it begins with its opening"));
        let (reply_to, words) = recorder(None).await;
        let (root, settings) = (args.root, args.settings);
        let activation = Activation { chain, root, settings, step, epoch: 1, job, last_try: false, reply_to };
        Self { system, jobs, activation, words }
    }

    fn ask(&self, activation: Activation) {
        self.jobs.cast(JobsMsg::Start(Box::new(activation))).unwrap();
    }

    fn stop(&self) {
        let Activation { step, epoch, job, reply_to, .. } = self.activation.clone();
        self.jobs.cast(JobsMsg::Stop { step, epoch, job, reply_to }).unwrap();
    }

    async fn settled(&mut self) -> (u32, Outcome) {
        settled_of(&mut self.words).await
    }
}

async fn settled_of(words: &mut UnboundedReceiver<Heard<CoordinatorMsg>>) -> (u32, Outcome) {
    let heard = tokio::time::timeout(Duration::from_secs(600), words.recv()).await.expect("an answer");
    match heard {
        Some(Heard::Mail(CoordinatorMsg::Input(input))) => match *input {
            ChainInput::JobSettled { epoch, outcome, .. } => (epoch, outcome),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn code(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Failed { code, .. } => code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_reports_what_it_came_to() {
    let mut bench = Bench::start(StubAgent::plays([Script::says([EXECUTOR_DONE])])).await;
    bench.ask(bench.activation.clone());
    assert!(matches!(bench.settled().await, (1, Outcome::Answered { .. })));
    sleep(Duration::from_secs(1)).await;
    assert!(bench.words.try_recv().is_err(), "one report");
}

#[tokio::test(start_paused = true)]
async fn the_same_incarnation_asked_for_again_is_not_started_twice() {
    let working = Script::turns([Act::works(LONG, EXECUTOR_DONE)]);
    let mut bench = Bench::start(StubAgent::plays([working])).await;
    bench.ask(bench.activation.clone());
    sleep(Duration::from_secs(10)).await;
    let (again, mut later) = recorder(None).await;
    bench.ask(Activation { reply_to: again, ..bench.activation.clone() });
    assert!(matches!(settled_of(&mut later).await, (1, Outcome::Answered { .. })));
    assert!(bench.words.try_recv().is_err(), "only the one who asked last is told");
    assert_eq!(bench.system.agent.processes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_settled_answers_from_the_store() {
    let mut bench = Bench::start(StubAgent::plays([Script::says([EXECUTOR_DONE])])).await;
    bench.ask(bench.activation.clone());
    let (_, first) = bench.settled().await;
    bench.ask(Activation { epoch: 2, ..bench.activation.clone() });
    assert_eq!(bench.settled().await, (2, first));
    assert_eq!(bench.system.agent.processes().len(), 1, "nothing is launched again");
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_is_tried_again_by_its_next_incarnation_alone() {
    let scripts = [Script { refuses: Some(("prompt", "busy")), ..Script::default() }, Script::says([EXECUTOR_DONE])];
    let mut bench = Bench::start(StubAgent::plays(scripts)).await;
    bench.ask(bench.activation.clone());
    let (_, failed) = bench.settled().await;
    assert_eq!(code(&failed), "prompt_refused");
    bench.ask(bench.activation.clone());
    assert_eq!(bench.settled().await, (1, failed), "the same incarnation has failed");
    bench.ask(Activation { epoch: 2, ..bench.activation.clone() });
    assert!(matches!(bench.settled().await, (2, Outcome::Answered { .. })));
    let log = bench.system.site.layout.job(&bench.activation.job).unwrap().read_events().unwrap();
    let rows = bench.system.site.reader().job_events(&bench.activation.job, 0).unwrap();
    assert_eq!(log.events, rows, "both incarnations write one timeline");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_panics_as_it_starts_is_reported_as_failed() {
    let mut bench = Bench::start(StubAgent::chooses(|_, _| panic!("a port that panics"))).await;
    bench.ask(bench.activation.clone());
    let (_, outcome) = bench.settled().await;
    assert_eq!(code(&outcome), "job_failed");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_dies_at_work_is_reported_as_failed_and_its_process_is_gone() {
    let mut bench = Bench::start(StubAgent::plays([Script::turns([Act::works(LONG, EXECUTOR_DONE)])])).await;
    bench.ask(bench.activation.clone());
    sleep(Duration::from_secs(10)).await;
    bench.jobs.get_cell().get_children()[0].kill();
    let (_, outcome) = bench.settled().await;
    assert_eq!(code(&outcome), "job_failed");
    sleep(Duration::from_secs(1)).await;
    assert!(!bench.system.agent.only().is_alive());
}

#[tokio::test(start_paused = true)]
async fn a_preparation_that_panics_is_reported_as_failed() {
    let mut bench = Bench::start(StubAgent::plays([Script::says([EXECUTOR_DONE])])).await;
    bench.system.workspace.panics.store(1, Ordering::Relaxed);
    bench.ask(bench.activation.clone());
    let (_, outcome) = bench.settled().await;
    assert_eq!(code(&outcome), "preparation_failed");
    bench.ask(Activation { epoch: 2, ..bench.activation.clone() });
    assert!(matches!(bench.settled().await, (2, Outcome::Answered { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_the_preparation_launches_nothing() {
    let mut bench = Bench::start(StubAgent::plays([Script::says([EXECUTOR_DONE])])).await;
    bench.ask(bench.activation.clone());
    bench.stop();
    assert_eq!(bench.settled().await, (1, Outcome::Stopped));
    sleep(LONG).await;
    assert!(bench.system.agent.processes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stop_of_a_job_that_is_gone_is_answered() {
    let mut bench = Bench::start(StubAgent::plays([Script::default()])).await;
    bench.stop();
    assert_eq!(bench.settled().await, (1, Outcome::Stopped));
}

#[tokio::test(start_paused = true)]
async fn gastown_909_a_late_word_of_an_older_incarnation_settles_nothing() {
    let mut bench = Bench::start(StubAgent::plays([Script::turns([Act::works(LONG, EXECUTOR_DONE)])])).await;
    bench.ask(Activation { epoch: 2, ..bench.activation.clone() });
    sleep(Duration::from_secs(1)).await;
    let job = bench.activation.job.clone();
    bench.jobs.cast(JobsMsg::Settled { job, epoch: 1, outcome: Outcome::Stopped }).unwrap();
    assert!(matches!(bench.settled().await, (2, Outcome::Answered { .. })));
    assert_eq!(bench.system.agent.processes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_newer_incarnation_waits_for_the_end_of_a_live_one() {
    let mut bench = Bench::start(StubAgent::plays([Script::turns([Act::works(LONG, EXECUTOR_DONE)])])).await;
    bench.ask(bench.activation.clone());
    sleep(Duration::from_secs(1)).await;
    let (newer, mut later) = recorder(None).await;
    bench.ask(Activation { epoch: 2, reply_to: newer, ..bench.activation.clone() });
    let (epoch, outcome) = settled_of(&mut later).await;
    assert_eq!((epoch, code(&outcome)), (2, "older_epoch_live"));
    assert!(matches!(bench.settled().await, (1, Outcome::Answered { .. })));
    assert_eq!(bench.system.agent.processes().len(), 1);
}

//! The Job and its Session together, on a stub of pi.

mod endings;
mod flow;
mod live;
mod stopping;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use super::*;
use crate::actors::doubles::{Heard, Site, StubAgent, recorder};
use crate::chain::machine::Outcome;
use crate::storage::JobEventRow;

/// A job under test: started, with whoever it reports to.
struct Bench {
    site: Site,
    agent: Arc<StubAgent>,
    job: ActorRef<JobMsg>,
    words: UnboundedReceiver<Heard<JobsMsg>>,
}

impl Bench {
    async fn start(agent: Arc<StubAgent>) -> Self {
        Self::start_with(agent, "executor", |_| {}).await
    }

    async fn start_with(agent: Arc<StubAgent>, role: &str, change: impl FnOnce(&mut Prepared)) -> Self {
        let site = Site::new().await;
        let mut prepared = site.prepared(role);
        change(&mut prepared);
        Self::start_in(site, agent, prepared).await
    }

    async fn start_in(site: Site, agent: Arc<StubAgent>, prepared: Prepared) -> Self {
        let (jobs, words) = recorder(Some(site.door::<JobsMsg>("jobs").name().to_owned())).await;
        let job = Job { tools: site.tools(agent.clone()), jobs: site.door("jobs") };
        let (job, _) = Actor::spawn_linked(None, job, prepared, jobs.get_cell()).await.expect("the job starts");
        Self { site, agent, job, words }
    }

    /// Waits for the job's end: what it reported, if it did.
    async fn end(&mut self) -> Outcome {
        let mut reported = None;
        loop {
            let heard = timeout(Duration::from_secs(3600), self.words.recv()).await.expect("the job ends");
            match heard.expect("the recorder lives") {
                Heard::Mail(JobsMsg::Settled { outcome, .. }) => {
                    assert_eq!(reported, None, "one report");
                    reported = Some(outcome);
                }
                Heard::Mail(other) => panic!("{other:?}"),
                Heard::Failed(error) => panic!("the job failed: {error}"),
                Heard::Ended => {}
            }
            if let Some(outcome) = reported.take_if(|_| self.job.get_status() == ractor::ActorStatus::Stopped) {
                return outcome;
            }
        }
    }

    fn row(&self) -> JobRow {
        self.site.reader().job(&"0a1b2c3d".into()).unwrap().expect("recorded")
    }

    fn rows(&self) -> Vec<JobEventRow> {
        self.site.reader().job_events(&"0a1b2c3d".into(), 0).unwrap()
    }

    fn kinds(&self) -> Vec<String> {
        self.rows().into_iter().map(|row| row.kind).collect()
    }

    fn result(&self) -> Option<String> {
        self.site.reader().result(&"0a1b2c3d".into()).unwrap()
    }

    /// What must hold of every job that is over: files and rows say the same, one terminal row at most, and last.
    fn must_agree(&self) {
        let dir = self.site.layout.job(&"0a1b2c3d".into()).unwrap();
        let (log, rows) = (dir.read_events().unwrap(), self.rows());
        assert_eq!((log.events, log.broken), (rows.clone(), 0));
        assert_eq!(dir.read_status().unwrap(), Some(self.row()));
        assert_eq!(dir.read_result().unwrap(), self.result());
        let ends: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].kind == "run_complete").collect();
        let expected: Vec<usize> = self.row().status.is_terminal().then(|| rows.len() - 1).into_iter().collect();
        assert_eq!(ends, expected, "{rows:?}");
        assert!(self.agent.processes().iter().all(|process| !process.is_alive()), "no process is left");
    }
}

fn failed(outcome: &Outcome) -> (&str, &str) {
    match outcome {
        Outcome::Failed { code, detail, .. } => (code, detail),
        other => panic!("{other:?}"),
    }
}

//! A recorded repository for tests of what commands show.

use std::sync::mpsc::channel;

use serde_json::json;
use tempfile::TempDir;

use super::output::Human;
use super::standing::Alive;
use crate::chain::machine::{ChainEvent, Limits, Opening, Scrutinies};
use crate::chain::shape::Shape;
use crate::chain::{formula, graph};
use crate::formulas::EmbeddedSource;
use crate::ids::{BeadId, ChainId, JobId, StepId};
use crate::specialist::Roster;
use crate::storage::{
    AppendChainEvents, AppendJobEvents, ChainPatch, ChainRow, ChainStatus, JobEventRow, JobFiles, JobRow, JobStatus,
    JobTotals, Layout, OpenChain, Pending, ProcessIdentity, Reader, SettleJob, StagedSettlement, UpsertJob, Write,
    Writer,
};

/// 2026-12-01 09:00:00 UTC.
pub const START_MS: i64 = 1_796_115_600_000;

/// Of all processes only these run.
pub struct OnlyPids(pub &'static [u32]);

impl Alive for OnlyPids {
    fn process(&self, process: &ProcessIdentity) -> bool {
        self.0.contains(&process.pid)
    }

    fn session(&self, pid: u32, _: u64) -> bool {
        self.0.contains(&pid)
    }
}

/// The identity of an sp.
pub fn process(pid: u32) -> ProcessIdentity {
    ProcessIdentity { boot_id: "boot".into(), pid, start_ticks: 7 }
}

/// The shape of code-standard.
pub fn shape() -> Shape {
    let roster = Roster::shipped();
    let tiers = roster.names().map(|name| (name.to_owned(), roster.get(name).unwrap().tier())).collect();
    let resolved = formula::resolve_named("code-standard", &Default::default(), &EmbeddedSource).unwrap();
    graph::compile(&resolved, &tiers).unwrap()
}

/// A database on disk, and the writer that fills it.
pub struct Recorded {
    place: TempDir,
    writer: Writer,
}

impl Recorded {
    /// Makes an empty database.
    pub fn empty() -> Self {
        let place = tempfile::tempdir().unwrap();
        let writer = Writer::start(&Layout::new(place.path()).database(), START_MS).unwrap();
        Self { place, writer }
    }

    /// A chain on `proj-a3f2` by process 10: the executor is done (0aaaaaaa), the seconder runs in session 20 (0bbbbbbb).
    pub fn chain_in_its_second_step() -> Self {
        let recorded = Self::empty();
        recorded.open_chain("proj-mol-1", "proj-a3f2", START_MS);
        let executor = job("0aaaaaaa", "executor", 0);
        recorded.write(UpsertJob(executor.clone()));
        let done = JobRow {
            status: JobStatus::Done,
            updated_at_ms: START_MS + 192_000,
            completed_at_ms: Some(START_MS + 192_000),
            outcome: Some(r#"{"kind":"answered","verdict":{"passed":{"remark":null}},"summary":"done"}"#.into()),
            model: Some("acme/big".into()),
            totals: JobTotals {
                turns: 3,
                tool_calls: 4,
                input_tokens: 12_000,
                output_tokens: 900,
                cost_usd: 0.21,
                ..JobTotals::default()
            },
            ..executor
        };
        recorded.settle(done, r#"{"status":"success"}"#);
        let seconder = JobRow {
            status: JobStatus::Running,
            pid: Some(20),
            start_ticks: Some(7),
            current_tool: Some("read".into()),
            ..job("0bbbbbbb", "seconder", 200_000)
        };
        recorded.write(UpsertJob(seconder));
        recorded.events(
            "0bbbbbbb",
            START_MS + 201_000,
            &[
                json!({"type": "run_start"}),
                json!({"type": "tool", "phase": "start", "tool": "read", "args": "{\"path\":\"src/a\u{1b}.rs\"}"}),
            ],
        );
        recorded
    }

    /// Opens a chain and stores its first events.
    pub fn open_chain(&self, chain: &str, bead: &str, at_ms: i64) {
        let shape = shape();
        let row = ChainRow {
            chain: ChainId::new(chain),
            bead: BeadId::new(bead),
            formula: "code-standard".into(),
            status: ChainStatus::Running,
            shape_json: serde_json::to_string(&shape).unwrap(),
            request_json: "{}".into(),
            base_ref: Some("main".into()),
            base_sha: Some("0".repeat(40)),
            branch: Some(format!("feature/{bead}-executor")),
            worktree_path: None,
            created_at_ms: at_ms,
            updated_at_ms: at_ms,
            report_json: None,
        };
        let epoch = self.write(OpenChain { row, owner: process(10) });
        let opening = Opening {
            chain: ChainId::new(chain),
            bead: BeadId::new(bead),
            shape,
            limits: Limits::default(),
            scrutiny: Scrutinies { stated: "medium".into(), effective: "high".into() },
            base: "0".repeat(40),
            incarnation: u64::from(epoch),
            rehearsal: false,
        };
        let step = |name: &str| StepId::new(name);
        let tree = ChainEvent::TreeReady { path: "/w".into(), branch: "b".into(), head: "1".repeat(40), reused: false };
        let events = [
            ChainEvent::Opened(Box::new(opening)),
            tree,
            ChainEvent::StepClaiming { step: step("executor"), epoch: 1 },
            ChainEvent::StepDispatched { step: step("executor"), epoch: 1, job: JobId::new("0aaaaaaa") },
        ];
        self.chain_events(chain, 1, at_ms, &events, ChainPatch::default());
    }

    /// Appends to the log of a chain.
    pub fn chain_events(&self, chain: &str, first_seq: u64, at_ms: i64, events: &[ChainEvent], patch: ChainPatch) {
        let bodies = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
        self.write(AppendChainEvents { chain: ChainId::new(chain), epoch: 1, first_seq, bodies, at_ms, patch });
    }

    /// Appends to the timeline of a job, one event a second.
    pub fn events(&self, job: &str, at_ms: i64, events: &[serde_json::Value]) {
        let first = self.reader().job_events(&JobId::new(job), 0).unwrap().last().map_or(1, |event| event.seq + 1);
        let rows = (first..).zip(events).map(|(seq, event)| {
            let at_ms = at_ms + 1000 * (seq - first).cast_signed();
            let mut whole = json!({"seq": seq, "t": at_ms});
            whole.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
            JobEventRow { seq, at_ms, kind: event["type"].as_str().unwrap().into(), json: whole.to_string() }
        });
        self.write(AppendJobEvents { job: JobId::new(job), epoch: 1, events: rows.collect(), row: None });
    }

    /// Ends a job with an answer.
    pub fn settle(&self, job: JobRow, answer: &str) {
        let dir = Layout::new(self.place.path()).job(&job.job).unwrap();
        let mut files = JobFiles::open(dir).unwrap();
        let settle = SettleJob { job, events: vec![], result: Some(answer.into()) };
        self.write(StagedSettlement::stage(&mut files, settle).unwrap());
    }

    /// Writes and waits.
    pub fn write<W: Write>(&self, write: W) -> W::Answer
    where
        W::Answer: Send,
    {
        let (tell, told) = channel();
        let ack = move |answer| drop(tell.send(answer));
        assert!(self.writer.submit(Pending::new(write, ack)).is_ok());
        told.recv().unwrap().unwrap()
    }

    /// Opens the database for reading.
    pub fn reader(&self) -> Reader {
        Reader::open(&Layout::new(self.place.path()).database()).unwrap()
    }
}

/// A job of the chain `proj-mol-1`.
pub fn job(id: &str, step: &str, after_ms: i64) -> JobRow {
    JobRow {
        bead: Some(BeadId::new(format!("proj-mol-1-{step}"))),
        chain: Some(ChainId::new("proj-mol-1")),
        root_bead: Some(BeadId::new("proj-a3f2")),
        step: Some(StepId::new(step)),
        ..JobRow::starting(JobId::new(id), step, START_MS + after_ms)
    }
}

/// Returns what a person reads, without colours.
pub fn text(report: &impl Human) -> String {
    let mut out = anstream::StripStream::new(Vec::new());
    report.human(&mut out).unwrap();
    String::from_utf8(out.into_inner()).unwrap()
}

//! What a Job writes: its row, its timeline, its end; and the mirrors of these in files.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use serde_json::{Value, json};

use super::{Activity, Job, locked};
use crate::chain::machine::Outcome;
use crate::job::{Due, TimelineEvent};
use crate::messages::JobMsg;
use crate::storage::{
    AppendJobEvents, Durability, JobEventRow, JobFiles, JobRow, JobStatus, JobTotals, Layout, Reader, SessionMeta,
    SettleJob, StagedSettlement, StoreError, UpsertJob,
};

/// How long a settlement that was not written rests before it is tried again, and how often it is tried.
const SETTLE_REST: Duration = Duration::from_secs(1);
const SETTLE_TRIES: u32 = 30;

impl Job {
    /// Brings the row up to now and returns a copy of it.
    pub(super) fn standing(&self, job: &mut Activity) -> JobRow {
        let totals = job.mapper.totals();
        job.row.totals = JobTotals {
            turns: totals.turns,
            tool_calls: totals.tools,
            input_tokens: totals.input.cast_signed(),
            output_tokens: totals.output.cast_signed(),
            cache_read_tokens: totals.cache_read.cast_signed(),
            cache_write_tokens: totals.cache_write.cast_signed(),
            cost_usd: totals.cost_usd,
        };
        // A run that was cut off names its tools no more.
        let is_at_work = job.machine.expects_activity();
        job.row.current_tool = job.mapper.current_tool().filter(|_| is_at_work).map(str::to_owned);
        job.row.context_pct = job.mapper.context_pct(job.context_window);
        job.row.updated_at_ms = self.tools.clock.now_ms();
        job.row.clone()
    }

    /// Writes how the job stands: its row, and status.json.
    pub(super) async fn record(&self, job: &mut Activity) -> Result<(), StoreError> {
        let row = self.standing(job);
        self.tools.store.write(UpsertJob(row.clone())).await?;
        self.recorded(job, &row)
    }

    fn recorded(&self, job: &mut Activity, row: &JobRow) -> Result<(), StoreError> {
        job.pace.written(row.updated_at_ms);
        job.files().write_status(row, Durability::Lazy)
    }

    /// Has the row written after a time.
    pub(super) fn put_off(&self, me: &ActorRef<JobMsg>, due: Due) {
        if let Due::In(rest) = due {
            me.send_after(rest, || JobMsg::RecordDue);
        }
    }

    /// Appends to the timeline: the file first, then the rows in one write, the job's own with them where it is given.
    /// What can't be written now goes with the next.
    pub(super) async fn append(
        &self,
        job: &mut Activity,
        events: Vec<TimelineEvent>,
        row: Option<JobRow>,
    ) -> Result<(), StoreError> {
        let new = self.rows(job, events);
        job.behind.extend(new);
        if job.behind.is_empty() {
            return if row.is_some() { passing(self.record(job).await) } else { Ok(()) };
        }
        let written = job.files().append_events(&job.behind);
        let (id, epoch) = (job.row.job.clone(), job.row.epoch);
        let append = AppendJobEvents { job: id, epoch, events: job.behind.clone(), row: row.clone() };
        let stored = match written {
            Ok(()) => self.tools.store.write(append).await,
            Err(error) => Err(error),
        };
        let mirrored = match (&stored, row) {
            (Ok(()), Some(row)) => self.recorded(job, &row),
            (Ok(()), None) | (Err(_), _) => Ok(()),
        };
        if stored.is_ok() {
            job.behind.clear();
        }
        passing(stored.and(mirrored))
    }

    /// Returns the first event of an incarnation, once: when its session is up, or before whatever comes earlier.
    pub(super) fn begin(&self, job: &mut Activity, session: Option<&SessionMeta>) -> Vec<TimelineEvent> {
        if std::mem::replace(&mut job.is_begun, true) {
            return Vec::new();
        }
        vec![TimelineEvent::new("run_start", self.startup(job, session))]
    }

    fn rows(&self, job: &mut Activity, mut events: Vec<TimelineEvent>) -> Vec<JobEventRow> {
        if !events.is_empty() {
            events.splice(..0, self.begin(job, None));
        }
        let at_ms = self.tools.clock.now_ms();
        let number = |event: TimelineEvent| {
            job.seq += 1;
            let mut fields = serde_json::Map::new();
            fields.insert("seq".into(), job.seq.into());
            fields.insert("t".into(), at_ms.into());
            fields.insert("type".into(), event.kind.into());
            fields.extend(event.fields);
            JobEventRow { seq: job.seq, at_ms, kind: event.kind.into(), json: Value::Object(fields).to_string() }
        };
        events.into_iter().map(number).collect()
    }

    /// Writes the outcome: for good, or so that a later incarnation goes on.
    pub(super) async fn persist(&self, job: &mut Activity, outcome: &Outcome) -> Result<(), StoreError> {
        let ends = match outcome {
            Outcome::Answered { .. } | Outcome::NoAnswer { .. } => true,
            Outcome::Failed { retry, .. } => !retry || job.prepared.last_try,
            Outcome::Stopped => false,
        };
        job.row.outcome = serde_json::to_string(outcome).ok();
        job.row.pid = None;
        job.row.start_ticks = None;
        job.row.error = match outcome {
            Outcome::Failed { code, detail, .. } => Some(format!("{code}: {detail}")),
            Outcome::NoAnswer { problem } => Some(problem.clone()),
            Outcome::Answered { .. } | Outcome::Stopped => None,
        };
        if !ends {
            job.row.status = JobStatus::Waiting;
            // Not on disk, the next incarnation begins as after a crash: it must not hold up the end of the process.
            passing(self.record(job).await)?;
            let fields = json!({"status": "waiting", "reason": job.row.error});
            return self.append(job, vec![TimelineEvent::new("status_change", fields)], None).await;
        }
        self.settle(job, outcome).await
    }

    async fn settle(&self, job: &mut Activity, outcome: &Outcome) -> Result<(), StoreError> {
        let (status, word) = match outcome {
            Outcome::Answered { .. } => (JobStatus::Done, "COMPLETE"),
            Outcome::NoAnswer { .. } | Outcome::Failed { .. } => (JobStatus::Error, "ERROR"),
            Outcome::Stopped => (JobStatus::Cancelled, "CANCELLED"),
        };
        passing(self.record(job).await)?;
        job.row.status = status;
        let now = self.tools.clock.now_ms();
        job.row.updated_at_ms = now;
        job.row.completed_at_ms = Some(now);
        let complete = self.rows(job, vec![TimelineEvent::new("run_complete", self.completion(job, word))]);
        job.behind.extend(complete);
        let settle = SettleJob { job: job.row.clone(), events: job.behind.clone(), result: job.last_text.clone() };
        let mut tries = 1;
        while let Err(error) = self.settle_once(job, settle.clone()).await {
            // The answer cost work, and nobody may hear of it before it is on disk.
            if !error.may_pass() || tries == SETTLE_TRIES {
                return Err(error);
            }
            tracing::warn!(job = %job.row.job, %error, tries, "the job's end is not on disk yet");
            tries += 1;
            tokio::time::sleep(SETTLE_REST).await;
        }
        // The database holds the truth; the mirror may be behind on a full disk.
        if let Err(error) = job.files().write_status(&job.row, Durability::Synced) {
            tracing::warn!(job = %job.row.job, %error, "status.json is behind");
        }
        Ok(())
    }

    async fn settle_once(&self, job: &Activity, settle: SettleJob) -> Result<(), StoreError> {
        let files = Arc::clone(&job.files);
        let staged = tokio::task::spawn_blocking(move || StagedSettlement::stage(&mut locked(&files), settle)).await;
        // It ends early only by a panic, which goes on here.
        let staged = staged.unwrap_or_else(|gone| std::panic::resume_unwind(gone.into_panic()))?;
        self.tools.store.write(staged).await
    }

    fn completion(&self, job: &Activity, word: &str) -> Value {
        let totals = &job.row.totals;
        json!({
            "status": word,
            "elapsed_s": (job.row.updated_at_ms - job.row.started_at_ms) / 1000,
            "model": job.row.model,
            "bead_id": job.row.bead,
            "error": job.row.error,
            "metrics": {
                "turns": totals.turns, "tool_calls": totals.tool_calls, "cost_usd": totals.cost_usd,
                "token_usage": {
                    "input_tokens": totals.input_tokens, "output_tokens": totals.output_tokens,
                    "cache_read_tokens": totals.cache_read_tokens, "cache_creation_tokens": totals.cache_write_tokens,
                },
            },
        })
    }

    fn startup(&self, job: &Activity, session: Option<&SessionMeta>) -> Value {
        let row = &job.row;
        json!({
            "specialist": row.specialist,
            "bead_id": row.bead,
            "model": row.model,
            "session_id": session.map(|session| &session.session_id),
            "startup_snapshot": {
                "job_id": row.job, "specialist_name": row.specialist, "bead_id": row.bead, "chain_id": row.chain,
                "chain_root_bead_id": row.root_bead, "worktree_path": row.worktree_path, "branch": row.branch,
                "round": row.round, "epoch": row.epoch, "resumed": job.prepared.task.is_some(),
                "bead_context_present": true,
            },
        })
    }
}

/// Goes on where a write may work later: the run is worth more than a row that is behind.
pub(super) fn passing(written: Result<(), StoreError>) -> Result<(), StoreError> {
    match written {
        Err(error) if error.may_pass() => {
            tracing::warn!(%error, "a job's record is behind");
            Ok(())
        }
        written => written,
    }
}

/// The last rows of a job that is left behind: those that a crash kept from the database, and the terminal one.
pub(in crate::actors) fn cancelled(layout: &Layout, row: &JobRow, at_ms: i64) -> Vec<JobEventRow> {
    let open = || {
        let stored = Reader::open(&layout.database())?.job_events(&row.job, 0)?;
        let mut files = JobFiles::open(layout.job(&row.job)?)?;
        let unstored = files.mend(&stored)?;
        Ok::<_, StoreError>((files, unstored))
    };
    let (mut files, mut events) = match open() {
        Ok(opened) => opened,
        Err(error) => {
            tracing::warn!(job = %row.job, %error, "the files of a cancelled job are not read");
            return Vec::new();
        }
    };
    let seq = files.last_seq() + 1;
    let json = json!({"seq": seq, "t": at_ms, "type": "run_complete", "status": "CANCELLED", "bead_id": row.bead});
    let event = JobEventRow { seq, at_ms, kind: "run_complete".to_owned(), json: json.to_string() };
    let mirrored =
        files.append_events(std::slice::from_ref(&event)).and_then(|()| files.write_status(row, Durability::Lazy));
    if let Err(error) = mirrored {
        tracing::warn!(job = %row.job, %error, "the files of a cancelled job are behind");
    }
    events.push(event);
    events
}

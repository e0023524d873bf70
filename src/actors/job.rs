//! The Job: one activation of a specialist. Shell of `job::machine`: mail in, rows to the Store, effects out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use serde_json::{Value, json};

use super::prepare::Prepared;
use super::session::Session;
use super::store::StoreHandle;
use super::watchdog::StallWatchdog;
use crate::chain::machine::Outcome;
use crate::failure::{Explain, FailureKind};
use crate::job::{
    Held, JobEffect, JobInput, JobPhase, JobState, Mapper, PromptKind, TimelineEvent, fatal_code, read, step,
};
use crate::messages::{Door, JobMsg, JobsMsg, Pulse, SessionMsg};
use crate::ports::{Agent, AgentError, Clock};
use crate::storage::{
    AppendJobEvents, Durability, JobEventRow, JobFiles, JobRow, JobStatus, JobTotals, Layout, Ownership,
    ProcessIdentity, Reader, ReleaseOwnership, Resource, SettleJob, StagedSettlement, StoreError, TakeOwnership,
    UpsertJob,
};

/// How long an aborted turn may take to come to rest.
const GRACE: Duration = Duration::from_secs(2);

/// How long a settlement that was not written rests before it is tried again, and how often it is tried.
const SETTLE_REST: Duration = Duration::from_secs(1);
const SETTLE_TRIES: u32 = 30;

/// What every job of a system shares.
#[derive(Clone)]
pub struct JobTools {
    pub(super) agent: Arc<dyn Agent>,
    pub(super) store: StoreHandle,
    pub(super) clock: Arc<dyn Clock>,
    /// This process, for leases.
    pub(super) me: ProcessIdentity,
    /// Tells whether a lease's holder still runs.
    pub(super) is_alive: fn(&ProcessIdentity) -> bool,
}

/// One job.
pub struct Job {
    pub(super) tools: JobTools,
    pub(super) jobs: Door<JobsMsg>,
}

/// The live activation.
pub struct Activity {
    machine: JobState,
    prepared: Prepared,
    mapper: Mapper,
    /// Shared with the blocking thread that ends the job, and with nobody else.
    files: Arc<Mutex<JobFiles>>,
    row: JobRow,
    seq: u64,
    /// Rows that the Store has not taken yet, in order; the file may have them.
    behind: Vec<JobEventRow>,
    pulse: Pulse,
    session: Option<ActorRef<SessionMsg>>,
    watchdog: Option<ractor::ActorCell>,
    lease: Option<u32>,
    messages: u64,
    last_text: Option<String>,
}

impl Activity {
    fn files(&self) -> MutexGuard<'_, JobFiles> {
        locked(&self.files)
    }
}

fn locked(files: &Mutex<JobFiles>) -> MutexGuard<'_, JobFiles> {
    // A file has no half-done state that a panic could leave: each append is one write.
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Actor for Job {
    type Msg = JobMsg;
    type State = Activity;
    type Arguments = Prepared;

    async fn pre_start(&self, _: ActorRef<JobMsg>, prepared: Prepared) -> Result<Activity, ActorProcessingErr> {
        let files = JobFiles::open(prepared.dir.clone())?;
        let seq = files.last_seq();
        let held = match &prepared.task {
            None => Held::Nothing,
            Some(task) if task.is_answered => Held::Answer,
            Some(_) => Held::Task,
        };
        Ok(Activity {
            machine: JobState::new(held),
            mapper: prepared.task.as_ref().map(Mapper::after).unwrap_or_default(),
            row: prepared.row.clone(),
            seq,
            behind: prepared.unstored.clone(),
            files: Arc::new(Mutex::new(files)),
            pulse: Pulse::begin(),
            session: None,
            watchdog: None,
            lease: None,
            messages: 0,
            last_text: None,
            prepared,
        })
    }

    async fn post_start(&self, me: ActorRef<JobMsg>, job: &mut Activity) -> Result<(), ActorProcessingErr> {
        self.record(job).await?;
        let started = TimelineEvent::new("run_start", self.startup(job));
        self.append(job, vec![started]).await?;
        if let Err(input) = self.launch(&me, job).await {
            self.take(&me, job, input).await?;
            // No process was started, so none will report its end.
            self.take(&me, job, JobInput::Exited { how: "no session".to_owned() }).await?;
        }
        if let Some(limit) = job.prepared.timeout {
            let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            me.send_after(limit, move || JobMsg::TimedOut { limit_ms });
        }
        Ok(())
    }

    async fn handle(&self, me: ActorRef<JobMsg>, mail: JobMsg, job: &mut Activity) -> Result<(), ActorProcessingErr> {
        // The outcome is on disk: what was on its way then may neither fail nor change it (gastown#909).
        let is_late = matches!(job.machine.phase, JobPhase::Ending | JobPhase::Ended);
        if is_late && !matches!(mail, JobMsg::SessionEnded(_)) {
            return Ok(());
        }
        let input = match mail {
            JobMsg::SessionReady(state) => {
                job.messages = state.message_count;
                job.row.status = JobStatus::Running;
                if let Some(model) = &state.model {
                    job.row.model = Some(format!("{}/{}", model.provider, model.id));
                }
                passing(self.record(job).await)?;
                JobInput::SessionReady { messages: state.message_count }
            }
            JobMsg::SessionFailed { code, detail } => {
                let fatal = fatal_code(&detail);
                let code = fatal.unwrap_or(code).to_owned();
                JobInput::SessionFailed { retry: fatal.is_none(), code, detail }
            }
            JobMsg::Events(events, credit) => {
                let mut rows = Vec::new();
                for event in &events {
                    job.mapper.map(event, &mut rows);
                }
                self.append(job, rows).await?;
                drop(credit);
                for event in events {
                    self.take(&me, job, JobInput::Event(event)).await?;
                }
                return Ok(());
            }
            JobMsg::TextRead(text) => JobInput::TextRead(text),
            JobMsg::SessionEnded(end) => JobInput::Exited { how: end.describe() },
            JobMsg::Silent { silence_ms, too_long: true } => JobInput::Stalled { silence_ms },
            JobMsg::Silent { silence_ms, too_long: false } => {
                let threshold = u64::try_from(job.prepared.warn.as_millis()).unwrap_or(u64::MAX);
                let fields = json!({"reason": "running_silence", "silence_ms": silence_ms, "threshold_ms": threshold});
                return Ok(self.append(job, vec![TimelineEvent::new("stale_warning", fields)]).await?);
            }
            JobMsg::TimedOut { limit_ms } => JobInput::TimedOut { limit_ms },
            JobMsg::Stop => JobInput::StopAsked,
            JobMsg::GraceOver => JobInput::GraceOver,
        };
        Ok(self.take(&me, job, input).await?)
    }

    /// A session that dies without a word is an exit; a watchdog is started again from the same pulse.
    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<JobMsg>,
        event: SupervisionEvent,
        job: &mut Activity,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(who, error) = event {
            if job.session.as_ref().is_some_and(|session| session.get_id() == who.get_id()) {
                self.take(&me, job, JobInput::Exited { how: format!("the session failed: {error}") }).await?;
            } else if job.watchdog.as_ref().is_some_and(|watchdog| watchdog.get_id() == who.get_id()) {
                self.watch(&me, job).await?;
            }
        }
        Ok(())
    }
}

impl Job {
    /// Feeds the machine and performs what it asks, until it asks nothing more.
    async fn take(&self, me: &ActorRef<JobMsg>, job: &mut Activity, input: JobInput) -> Result<(), StoreError> {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            for effect in step(&mut job.machine, input) {
                if let Some(next) = self.perform(me, job, effect).await? {
                    inputs.push(next);
                }
            }
            job.pulse.expect(job.machine.expects_activity());
        }
        Ok(())
    }

    async fn perform(
        &self,
        me: &ActorRef<JobMsg>,
        job: &mut Activity,
        effect: JobEffect,
    ) -> Result<Option<JobInput>, StoreError> {
        match effect {
            JobEffect::Prompt(kind) => tell(job, SessionMsg::Prompt(words(job, kind))),
            JobEffect::ReadText => tell(job, SessionMsg::ReadText),
            JobEffect::Judge(text) => {
                let prepared = &job.prepared;
                let reading = read(&prepared.row.specialist, prepared.class, &prepared.contract, text.as_deref());
                job.last_text = text;
                return Ok(Some(JobInput::Judged(reading)));
            }
            JobEffect::Abort => {
                tell(job, SessionMsg::Abort);
                me.send_after(GRACE, || JobMsg::GraceOver);
            }
            JobEffect::Persist(outcome) => self.persist(job, &outcome).await?,
            JobEffect::Close => tell(job, SessionMsg::Close),
            JobEffect::Kill => tell(job, SessionMsg::Kill),
            JobEffect::Report(outcome) => {
                self.release(job).await?;
                let (id, epoch) = (job.row.job.clone(), job.row.epoch);
                self.jobs.send(JobsMsg::Settled { job: id, epoch, outcome });
                me.stop(None);
            }
        }
        Ok(None)
    }

    /// Takes the write lease, starts the session and its watchdog; an error is what to feed the machine.
    async fn launch(&self, me: &ActorRef<JobMsg>, job: &mut Activity) -> Result<(), JobInput> {
        if job.prepared.writes {
            self.lease(job).await?;
        }
        let spawned = self.tools.agent.launch(&job.prepared.launch).await.map_err(|error| not_launched(&error))?;
        if let Some((pid, start_ticks)) = spawned.child.identity() {
            (job.row.pid, job.row.start_ticks) = (Some(pid), Some(start_ticks));
        }
        let failed = |code: &str, detail: String| JobInput::SessionFailed { retry: true, code: code.into(), detail };
        let session = Session { job: me.clone(), pulse: job.pulse.clone() };
        let (session, _) = Actor::spawn_linked(None, session, spawned, me.get_cell())
            .await
            .map_err(|error| failed("session_not_started", error.to_string()))?;
        job.session = Some(session);
        self.watch(me, job).await.map_err(|error| failed("watchdog_not_started", error.to_string()))
    }

    async fn watch(&self, me: &ActorRef<JobMsg>, job: &mut Activity) -> Result<(), ActorProcessingErr> {
        let watchdog = StallWatchdog {
            pulse: job.pulse.clone(),
            job: me.clone(),
            warn_after: job.prepared.warn,
            stalled_after: job.prepared.stall,
        };
        let (watchdog, _) = Actor::spawn_linked(None, watchdog, (), me.get_cell()).await?;
        job.watchdog = Some(watchdog.get_cell());
        Ok(())
    }

    async fn lease(&self, job: &mut Activity) -> Result<(), JobInput> {
        let is_alive = self.tools.is_alive;
        let take = TakeOwnership {
            resource: Resource::Worktree(job.prepared.launch.cwd.clone()),
            me: self.tools.me.clone(),
            at_ms: self.tools.clock.now_ms(),
            is_alive: Box::new(is_alive),
        };
        let refused = |code: &str, detail: String| JobInput::SessionFailed { retry: false, code: code.into(), detail };
        match self.tools.store.write(take).await {
            Ok(Ownership::Owned { epoch }) => {
                job.lease = Some(epoch);
                Ok(())
            }
            Ok(Ownership::HeldBy(row)) => {
                let pid = row.holder.map_or(0, |holder| holder.pid);
                Err(refused("worktree_leased", format!("process {pid} writes in this worktree")))
            }
            Err(error) => Err(refused("store", error.to_string())),
        }
    }

    async fn release(&self, job: &mut Activity) -> Result<(), StoreError> {
        let Some(epoch) = job.lease.take() else { return Ok(()) };
        let resource = Resource::Worktree(job.prepared.launch.cwd.clone());
        self.tools.store.write(ReleaseOwnership { resource, me: self.tools.me.clone(), epoch }).await.map(drop)
    }

    /// Writes how the job stands: its row, and status.json.
    async fn record(&self, job: &mut Activity) -> Result<(), StoreError> {
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
        job.row.updated_at_ms = self.tools.clock.now_ms();
        self.tools.store.write(UpsertJob(job.row.clone())).await?;
        job.files().write_status(&job.row, Durability::Lazy)
    }

    /// Appends to the timeline: the file first, then the rows in one write. What can't be written now goes with the next.
    async fn append(&self, job: &mut Activity, events: Vec<TimelineEvent>) -> Result<(), StoreError> {
        let new = self.rows(job, events);
        job.behind.extend(new);
        if job.behind.is_empty() {
            return Ok(());
        }
        let written = job.files().append_events(&job.behind);
        let (id, epoch) = (job.row.job.clone(), job.row.epoch);
        let append = AppendJobEvents { job: id, epoch, events: job.behind.clone() };
        let stored = match written {
            Ok(()) => self.tools.store.write(append).await,
            Err(error) => Err(error),
        };
        if stored.is_ok() {
            job.behind.clear();
        }
        passing(stored)
    }

    fn rows(&self, job: &mut Activity, events: Vec<TimelineEvent>) -> Vec<JobEventRow> {
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
    async fn persist(&self, job: &mut Activity, outcome: &Outcome) -> Result<(), StoreError> {
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
            return self.append(job, vec![TimelineEvent::new("status_change", fields)]).await;
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

    fn startup(&self, job: &Activity) -> Value {
        let row = &job.row;
        json!({
            "specialist": row.specialist,
            "bead_id": row.bead,
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
fn passing(written: Result<(), StoreError>) -> Result<(), StoreError> {
    match written {
        Err(error) if error.may_pass() => {
            tracing::warn!(%error, "a job's record is behind");
            Ok(())
        }
        written => written,
    }
}

fn tell(job: &Activity, message: SessionMsg) {
    if let Some(session) = &job.session {
        // A session that is gone has sent its end already.
        drop(session.cast(message));
    }
}

fn words(job: &Activity, kind: PromptKind) -> String {
    match kind {
        PromptKind::Full if job.prepared.continued && job.messages > 0 => job.prepared.further.clone(),
        PromptKind::Full => job.prepared.first.clone(),
        PromptKind::GoOn => job.prepared.go_on.clone(),
        PromptKind::ReAsk(text) => text,
        PromptKind::ExtraTurn(why) => format!(
            "Your result says that the work is not finished: {why}\n\nFinish it now, within your mandate, and give your \
             result again in the same form. If it can't be finished, say so in the result."
        ),
    }
}

fn not_launched(error: &AgentError) -> JobInput {
    let (kind, code, next) = error.explain();
    let mut detail = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(why) = cause {
        detail = format!("{detail}: {why}");
        cause = why.source();
    }
    let retry = !matches!(kind, FailureKind::Unusable | FailureKind::Refused);
    JobInput::SessionFailed { retry, code: code.to_owned(), detail: format!("{detail} ({next})") }
}

/// The last rows of a job that is left behind: those that a crash kept from the database, and the terminal one.
pub(super) fn cancelled(layout: &Layout, row: &JobRow, at_ms: i64) -> Vec<JobEventRow> {
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

#[cfg(test)]
mod tests;

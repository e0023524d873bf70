//! The Job: one activation of a specialist. Shell of `job::machine`: mail in, rows to the Store, effects out.

mod record;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use serde_json::json;

pub(super) use self::record::cancelled;
use self::record::passing;
use super::prepare::{Prepared, marker};
use super::session::Session;
use super::store::StoreHandle;
use super::watchdog::StallWatchdog;
use crate::failure::{Explain, FailureKind};
use crate::job::{
    Due, Held, JobEffect, JobInput, JobPhase, JobState, Mapper, Pace, PromptKind, TimelineEvent, fatal_code, read, step,
};
use crate::messages::{Door, JobMsg, JobsMsg, Pulse, SessionMsg};
use crate::pi::shell_calls;
use crate::ports::{Agent, AgentError, Clock};
use crate::storage::{
    JobEventRow, JobFiles, JobRow, JobStatus, Ownership, ProcessIdentity, ReleaseOwnership, Resource, StoreError,
    TakeOwnership,
};

/// How long an aborted turn may take to come to rest.
const GRACE: Duration = Duration::from_secs(2);

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
    /// Whether this incarnation's `run_start` is given.
    is_begun: bool,
    /// Rows that the Store has not taken yet, in order; the file may have them.
    behind: Vec<JobEventRow>,
    /// How far the row is behind the timeline.
    pace: Pace,
    /// Tokens that the model's context holds; 0 while that is not known.
    context_window: u64,
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
            is_begun: false,
            behind: prepared.unstored.clone(),
            files: Arc::new(Mutex::new(files)),
            pace: Pace::default(),
            context_window: 0,
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
            JobMsg::SessionReady(up) => {
                (job.messages, job.context_window) = (up.messages, up.context_window);
                job.row.status = JobStatus::Running;
                job.row.model = up.meta.model.clone().or(job.row.model.take());
                let started = self.begin(job, Some(&up.meta));
                job.row.session = Some(up.meta);
                let row = self.standing(job);
                self.append(job, started, Some(row)).await?;
                JobInput::SessionReady { messages: up.messages }
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
                let due = job.pace.hear(&rows, self.tools.clock.now_ms());
                let row = (due == Due::Now).then(|| self.standing(job));
                self.append(job, rows, row).await?;
                drop(credit);
                self.put_off(&me, due);
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
                return Ok(self.append(job, vec![TimelineEvent::new("stale_warning", fields)], None).await?);
            }
            JobMsg::RecordDue => {
                match job.pace.over(self.tools.clock.now_ms()) {
                    Due::Now => passing(self.record(job).await)?,
                    due @ (Due::No | Due::In(_)) => self.put_off(&me, due),
                }
                return Ok(());
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
                // pi appends each message as it ends, so all that ran is there; a take-over reads the same.
                let session = std::fs::read(&prepared.launch.session_file).ok();
                let calls = session.and_then(|bytes| shell_calls(&bytes, &marker(&job.row.job)));
                let role = &prepared.row.specialist;
                let reading = read(role, prepared.class, &prepared.contract, text.as_deref(), calls.as_deref());
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
        let started_at_ms = self.tools.clock.now_ms();
        let session = Session { job: me.clone(), pulse: job.pulse.clone(), started_at_ms };
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

#[cfg(test)]
mod tests;

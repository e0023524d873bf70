//! The Coordinator: shell of `chain::machine`. Mail in, events to the Store, effects out. No decision lives here.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::crash_point;
use super::notice::{Notice, NoticeKind, Watchers};
use super::settings::Settings;
use super::store::StoreHandle;
use crate::chain::machine::{
    Activity, ChainEffect, ChainEvent, ChainInput, ChainState, Status, decide, evolve, fold, newly_outstanding,
    outstanding,
};
use crate::ids::ChainId;
use crate::messages::{Activation, CoordinatorMsg, Door, JobsMsg, Operator, TrackerMsg, TrackerWork, WorkspacesMsg};
use crate::ports::{Bead, Clock};
use crate::storage::{
    AppendChainEvents, ChainPatch, ChainStatus, JobFilter, JobScope, JobStatus, Layout, ProcessIdentity, Reader,
    ReleaseOwnership, Resource, SettleJob, StoreError,
};

/// How long until bd is asked again for ready steps: soon after something closed, then ever more seldom.
const POLLS: [Duration; 5] =
    [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(7), Duration::from_secs(10)];
/// The same while a step works: then bd has hardly news, and each question costs it time.
const BUSY: Duration = Duration::from_secs(15);
/// How long a failed write rests before it is tried again, and how often that is done.
const WRITE_REST: Duration = Duration::from_secs(1);
const WRITE_TRIES: u32 = 30;

/// The Coordinator's configuration.
#[derive(Clone)]
pub struct Coordinator {
    /// Writes.
    pub store: StoreHandle,
    /// bd.
    pub tracker: Door<TrackerMsg>,
    /// Worktrees.
    pub workspaces: Door<WorkspacesMsg>,
    /// Activations.
    pub jobs: Door<JobsMsg>,
    /// Files of the repository.
    pub layout: Layout,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// This process.
    pub me: ProcessIdentity,
    /// Those who watch.
    pub watchers: Watchers,
}

/// What a Coordinator is given.
#[derive(Clone)]
pub struct CoordinatorArgs {
    /// The chain.
    pub chain: ChainId,
    /// Epoch of its ownership row, held by this process.
    pub incarnation: u32,
    /// The contract bead, as read for the request.
    pub root: Arc<Bead>,
    /// Where its models are.
    pub settings: Arc<Settings>,
    /// What the operator wants, in order.
    pub orders: Vec<Operator>,
    /// Told how the run ended; kept apart from the notices, which a slow watcher may miss.
    pub ended: watch::Sender<Option<NoticeKind>>,
}

/// A chain, folded.
pub struct Folded {
    chain: Arc<ChainState>,
    seq: u64,
    args: CoordinatorArgs,
    inbox: VecDeque<ChainInput>,
    /// Consecutive writes that failed; the input stays first in line.
    failed_writes: u32,
    /// Until when no write is tried after one that failed, whatever comes in.
    rest_until: Option<Instant>,
    /// Effects whose owner was not there.
    unsent: Vec<ChainEffect>,
    /// Polls since something last happened.
    idle_polls: usize,
    poll: Option<AbortHandle>,
    /// What the chain as a whole was refused, so that nobody works on it any more.
    refused: Option<String>,
    /// Whether the chain's row says that it waits.
    waiting: bool,
}

impl Actor for Coordinator {
    type Msg = CoordinatorMsg;
    type State = Folded;
    type Arguments = CoordinatorArgs;

    async fn pre_start(
        &self,
        _: ActorRef<CoordinatorMsg>,
        args: CoordinatorArgs,
    ) -> Result<Folded, ActorProcessingErr> {
        let log = read_log(self.layout.database(), args.chain.clone()).await?;
        let chain = fold(&log).ok_or_else(|| format!("the log of {} does not begin with its opening", args.chain))?;
        let mut inbox = VecDeque::from([ChainInput::Started { incarnation: u64::from(args.incarnation) }]);
        inbox.extend(args.orders.iter().cloned().map(order));
        Ok(Folded {
            chain: Arc::new(chain),
            seq: log.len() as u64,
            args,
            inbox,
            failed_writes: 0,
            rest_until: None,
            unsent: Vec::new(),
            idle_polls: 0,
            poll: None,
            refused: None,
            waiting: false,
        })
    }

    async fn post_start(&self, me: ActorRef<CoordinatorMsg>, state: &mut Folded) -> Result<(), ActorProcessingErr> {
        crash_point::after(state.seq);
        // Whatever was asked for before may have happened or not. In a take-over nothing is asked for before that is on
        // disk: see `advance`.
        if u64::from(state.args.incarnation) <= state.chain.incarnation {
            for effect in outstanding(&state.chain) {
                self.ask(&me, state, effect, true);
            }
        }
        self.advance(&me, state).await;
        // A crash may have come between a round and the records of the jobs that it left behind.
        self.cancel_left_behind(state).await;
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<CoordinatorMsg>,
        mail: CoordinatorMsg,
        state: &mut Folded,
    ) -> Result<(), ActorProcessingErr> {
        match mail {
            CoordinatorMsg::Input(input) => {
                if let ChainInput::ChainRefused { code, detail } = input.as_ref() {
                    state.refused = Some(format!("{code}: {detail}"));
                }
                state.inbox.push_back(*input);
                self.show_waiting(state, false).await;
            }
            CoordinatorMsg::RootRead(root) => state.args.root = Arc::new(*root),
            CoordinatorMsg::Waiting { on, why } => {
                self.notify(state, NoticeKind::Waiting { on, why });
                self.show_waiting(state, true).await;
                state.idle_polls = state.idle_polls.max(1);
            }
            CoordinatorMsg::Operator(operator) => state.inbox.push_back(order(operator)),
            CoordinatorMsg::Poll => {
                state.poll = None;
                if state.chain.wants_ready() {
                    state.idle_polls += 1;
                    let chain = state.args.chain.clone();
                    self.tracker.send(TrackerMsg::WantReady { chain, reply_to: me.clone() });
                }
            }
            CoordinatorMsg::Advance => {
                for effect in std::mem::take(&mut state.unsent) {
                    self.ask(&me, state, effect, true);
                }
            }
            CoordinatorMsg::Reask => {
                for effect in outstanding(&state.chain) {
                    self.ask(&me, state, effect, true);
                }
            }
        }
        self.advance(&me, state).await;
        Ok(())
    }
}

impl Coordinator {
    /// Feeds what waits to the machine: events to disk first, then their effects.
    async fn advance(&self, me: &ActorRef<CoordinatorMsg>, state: &mut Folded) {
        if state.rest_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        while let Some(input) = state.inbox.front() {
            let events = decide(&state.chain, input.clone());
            if events.is_empty() {
                tracing::debug!(chain = %state.args.chain, ?input, "nothing new, or a word of an older incarnation");
                state.inbox.pop_front();
                continue;
            }
            let after = events.iter().fold(state.chain.as_ref().clone(), evolve);
            crash_point::before(state.seq + events.len() as u64);
            if let Err(error) = self.append(state, &events, &after).await {
                return self.not_written(me, state, error);
            }
            state.inbox.pop_front();
            (state.failed_writes, state.rest_until) = (0, None);
            let (effects, again) = asked_for(&state.chain, &after, &events);
            for (seq, event) in (state.seq + 1..).zip(&events) {
                self.notify(state, NoticeKind::Event { seq, event: Box::new(event.clone()) });
            }
            state.seq += events.len() as u64;
            state.chain = Arc::new(after);
            crash_point::after(state.seq);
            if events.iter().any(is_progress) {
                state.idle_polls = 0;
                if let Some(poll) = state.poll.take() {
                    poll.abort();
                }
            }
            for effect in effects {
                self.ask(me, state, effect, again);
            }
            if events.iter().any(|event| matches!(event, ChainEvent::RoundReopened { .. })) {
                self.cancel_left_behind(state).await;
            }
        }
        self.rest_or_poll(me, state).await;
    }

    async fn append(&self, state: &Folded, events: &[ChainEvent], after: &ChainState) -> Result<(), StoreError> {
        let bodies = events.iter().map(event_body).collect();
        let append = AppendChainEvents {
            chain: state.args.chain.clone(),
            epoch: state.args.incarnation,
            first_seq: state.seq + 1,
            bodies,
            at_ms: self.clock.now_ms(),
            patch: ChainPatch {
                status: Some(row_status(&after.status)),
                branch: after.tree.as_ref().map(|tree| tree.branch.clone()),
                worktree_path: after.tree.as_ref().map(|tree| tree.path.clone()),
                ..ChainPatch::default()
            },
        };
        self.store.write(append).await
    }

    /// Has the chain's row say that it waits, or no longer, for whoever looks from another process.
    async fn show_waiting(&self, state: &mut Folded, waiting: bool) {
        if state.waiting == waiting || state.chain.status.is_over() {
            return;
        }
        state.waiting = waiting;
        let status = if waiting { ChainStatus::Waiting } else { row_status(&state.chain.status) };
        let append = AppendChainEvents {
            chain: state.args.chain.clone(),
            epoch: state.args.incarnation,
            first_seq: state.seq + 1,
            bodies: Vec::new(),
            at_ms: self.clock.now_ms(),
            patch: ChainPatch { status: Some(status), ..ChainPatch::default() },
        };
        if let Err(error) = self.store.write(append).await {
            tracing::warn!(%error, "the chain's row does not say that it waits");
        }
    }

    /// What is not known to be on disk did not happen: the input stays first in line.
    fn not_written(&self, me: &ActorRef<CoordinatorMsg>, state: &mut Folded, error: StoreError) {
        let taken_over = matches!(error, StoreError::StaleOwner { .. } | StoreError::SecondWriter { .. });
        state.failed_writes += 1;
        if taken_over || state.failed_writes >= WRITE_TRIES {
            self.notify(state, NoticeKind::Failed { why: error.to_string(), taken_over });
            return me.stop(None);
        }
        self.notify(state, NoticeKind::Waiting { on: "store", why: error.to_string() });
        state.rest_until = Some(Instant::now() + WRITE_REST);
        me.send_after(WRITE_REST, || CoordinatorMsg::Advance);
    }

    /// Sends an effect to the actor that owns its resource.
    fn ask(&self, me: &ActorRef<CoordinatorMsg>, state: &mut Folded, effect: ChainEffect, again: bool) {
        let (chain, reply_to) = (Arc::clone(&state.chain), me.clone());
        let sent = match &effect {
            ChainEffect::PrepareTree => self.workspaces.send(WorkspacesMsg::PrepareTree { chain, reply_to }),
            ChainEffect::SettleWork { step, epoch, job } => self.workspaces.send(WorkspacesMsg::SettleWork {
                chain,
                step: step.clone(),
                epoch: *epoch,
                job: job.clone(),
                reply_to,
            }),
            ChainEffect::StartJob { step, epoch, job, last_try } => {
                self.jobs.send(JobsMsg::Start(Box::new(Activation {
                    chain,
                    root: Arc::clone(&state.args.root),
                    settings: Arc::clone(&state.args.settings),
                    step: step.clone(),
                    epoch: *epoch,
                    job: job.clone(),
                    last_try: *last_try,
                    reply_to,
                })))
            }
            ChainEffect::StopJob { step, epoch, job } => {
                self.jobs.send(JobsMsg::Stop { step: step.clone(), epoch: *epoch, job: job.clone(), reply_to })
            }
            ChainEffect::Pour
            | ChainEffect::HoldRoot
            | ChainEffect::Reread
            | ChainEffect::Claim { .. }
            | ChainEffect::Note { .. }
            | ChainEffect::Close { .. }
            | ChainEffect::Reopen { .. }
            | ChainEffect::NoteBlock { .. }
            | ChainEffect::ClosePublished
            | ChainEffect::FreeRoot => {
                let effect = effect.clone();
                self.tracker.send(TrackerMsg::Perform(Box::new(TrackerWork {
                    effect,
                    chain,
                    again,
                    reply_to,
                    tries: 0,
                })))
            }
        };
        if !sent {
            // Its owner is being restarted.
            state.unsent.push(effect);
            me.send_after(Duration::from_millis(100), || CoordinatorMsg::Advance);
        }
    }

    /// Asks bd again in a while, or ends when nothing can happen any more.
    async fn rest_or_poll(&self, me: &ActorRef<CoordinatorMsg>, state: &mut Folded) {
        let chain = &state.chain;
        if chain.wants_ready() {
            if state.poll.is_none() {
                let works = chain.active().next().is_some() && state.idle_polls > 0;
                let wait = if works { BUSY } else { POLLS[state.idle_polls.min(POLLS.len() - 1)] };
                state.poll = Some(me.send_after(wait, || CoordinatorMsg::Poll).abort_handle());
            }
            return;
        }
        if !state.inbox.is_empty() {
            return;
        }
        let last = match chain.status {
            Status::Blocked | Status::Ready if outstanding(chain).is_empty() && chain.asked.is_none() => at_rest(chain),
            // What the next run has to do is in the log.
            Status::Stopped { .. } if outstanding(chain).is_empty() || state.refused.is_some() => at_rest(chain),
            Status::Published | Status::Abandoned | Status::Cancelled { .. } => at_rest(chain),
            _ => match state.refused.clone().filter(|_| waits_for_tracker_alone(chain)) {
                Some(why) => NoticeKind::Failed { why, taken_over: false },
                None => return,
            },
        };
        if chain.status.is_over() {
            self.cancel_left_behind(state).await;
        }
        let resource = Resource::Chain(state.args.chain.clone());
        let release = ReleaseOwnership { resource, me: self.me.clone(), epoch: state.args.incarnation };
        if let Err(error) = self.store.write(release).await {
            tracing::warn!(%error, "the chain's ownership was not released; it is free once this process ends");
        }
        self.notify(state, last);
        me.stop(None);
    }

    /// Ends the records of jobs that no later incarnation will go on with: those of an older round, or of a chain that
    /// is over.
    async fn cancel_left_behind(&self, state: &Folded) {
        let (database, chain) = (self.layout.database(), state.args.chain.clone());
        let live = tokio::task::spawn_blocking(move || {
            let filter = JobFilter { scope: JobScope::Live, chain: Some(chain), ..JobFilter::default() };
            Reader::open(&database)?.jobs(&filter)
        });
        let Ok(Ok(rows)) = live.await else { return };
        for mut row in rows {
            let step = row.step.as_ref().and_then(|step| state.chain.steps.get(step));
            let goes_on = step.is_some_and(|step| step.round == row.round) && !state.chain.status.is_over();
            if goes_on {
                continue;
            }
            let now = self.clock.now_ms();
            (row.status, row.updated_at_ms, row.completed_at_ms) = (JobStatus::Cancelled, now, Some(now));
            row.current_tool = None;
            let event = super::job::cancelled(&self.layout, &row, now);
            let settle = SettleJob { job: row, events: event, result: None };
            if let Err(error) = self.store.write(settle).await {
                tracing::warn!(%error, "a job that was left behind keeps its record");
            }
        }
    }

    fn notify(&self, state: &Folded, kind: NoticeKind) {
        if let NoticeKind::AtRest { .. } | NoticeKind::Failed { .. } = &kind {
            state.args.ended.send_replace(Some(kind.clone()));
        }
        // Nobody may be watching.
        drop(self.watchers.send(Notice { chain: state.args.chain.clone(), at_ms: self.clock.now_ms(), kind }));
    }
}

async fn read_log(database: PathBuf, chain: ChainId) -> Result<Vec<ChainEvent>, ActorProcessingErr> {
    let rows = tokio::task::spawn_blocking(move || Reader::open(&database)?.chain_events(&chain, 0)).await??;
    let read = |row: &crate::storage::ChainEventRow| {
        serde_json::from_str(&row.body).map_err(|error| format!("event {} is not understood: {error}", row.seq))
    };
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}

/// Returns an event as it is stored.
pub(crate) fn event_body(event: &ChainEvent) -> String {
    serde_json::to_string(event).expect("events are plain data under fixed names")
}

fn order(operator: Operator) -> ChainInput {
    match operator {
        Operator::Stop { why } => ChainInput::StopAsked { why },
        Operator::Resume { note, from } => ChainInput::Resumed { note, from },
        Operator::Accept { step } => ChainInput::Accepted { step },
        Operator::Abandon { reason } => ChainInput::AbandonAsked { reason },
        Operator::Judge { head } => ChainInput::BranchMoved { head },
        Operator::Publish => ChainInput::PublishAsked,
    }
}

/// Returns what a step of the log asks for, and whether it must be looked up first: what another incarnation was at may
/// have gone through unseen.
fn asked_for(before: &ChainState, after: &ChainState, events: &[ChainEvent]) -> (Vec<ChainEffect>, bool) {
    if events.iter().any(|event| matches!(event, ChainEvent::Adopted { .. })) {
        return (outstanding(after), true);
    }
    // The rest of a take-over comes once bd was read and the worktree found.
    let again = events.iter().any(|event| matches!(event, ChainEvent::Reread | ChainEvent::TreeReady { .. }));
    (newly_outstanding(before, after), again)
}

fn at_rest(chain: &ChainState) -> NoticeKind {
    NoticeKind::AtRest { status: row_status(&chain.status) }
}

/// Whether a chain that is to stop has nothing under way but calls to bd. One that was refused for good is not answered
/// any more; what it was about is in the log, and the next run asks for it again.
fn waits_for_tracker_alone(chain: &ChainState) -> bool {
    let waits = |activity: &Activity| match activity {
        Activity::Interrupted | Activity::Claiming | Activity::Noting | Activity::Closing => true,
        Activity::Running | Activity::Settling { .. } => false,
    };
    chain.stopping.is_some() && (chain.must_reread || chain.active().all(|(_, _, activity)| waits(activity)))
}

/// Whether something may have become ready.
fn is_progress(event: &ChainEvent) -> bool {
    matches!(
        event,
        ChainEvent::StepClosed { .. }
            | ChainEvent::TreeReady { .. }
            | ChainEvent::RoundReopened { .. }
            | ChainEvent::Reread
    )
}

/// Returns the word for a status that the chain's row has.
fn row_status(status: &Status) -> ChainStatus {
    match status {
        Status::Opened | Status::Poured | Status::Held => ChainStatus::Composing,
        Status::Running => ChainStatus::Running,
        Status::Blocked => ChainStatus::Blocked,
        Status::Stopped { .. } => ChainStatus::Stopped,
        Status::Ready => ChainStatus::ReadyToMerge,
        Status::Published => ChainStatus::Published,
        Status::Abandoned => ChainStatus::Abandoned,
        Status::Cancelled { .. } => ChainStatus::Cancelled,
    }
}

#[cfg(test)]
mod tests;

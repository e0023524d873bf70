//! The Tracker: one call to bd at a time, one `ready` for all chains that want it, and patience with its failures.

mod perform;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ractor::rpc::CallResult;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::chain::machine::{ChainEffect, ChainInput};
use crate::failure::Explain;
use crate::ids::{BeadId, ChainId, StepId};
use crate::messages::{CoordinatorMsg, Door, TrackerMsg, TrackerWork};
use crate::ports::{Bead, Tracker, TrackerError};

/// Waits before a failed call is tried again; after the last one the chain is stopped.
pub(super) const WAITS: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
];
/// How long somebody may wait for the answer to a look.
const LOOK: Duration = Duration::from_secs(240);

/// How long a worktree may take to be made.
const WORKTREE_DEADLINE: Duration = Duration::from_secs(300);

/// The actor's configuration.
pub struct TrackerActor {
    /// bd.
    pub tracker: Arc<dyn Tracker>,
}

/// What waits for its turn.
#[derive(Default)]
pub struct Line {
    waiting: VecDeque<TrackerMsg>,
    busy: bool,
}

impl Actor for TrackerActor {
    type Msg = TrackerMsg;
    type State = Line;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<TrackerMsg>, (): ()) -> Result<Line, ActorProcessingErr> {
        Ok(Line::default())
    }

    async fn handle(
        &self,
        me: ActorRef<TrackerMsg>,
        mail: TrackerMsg,
        line: &mut Line,
    ) -> Result<(), ActorProcessingErr> {
        match mail {
            TrackerMsg::Done => line.busy = false,
            // What it owed is asked for again once it is restarted.
            TrackerMsg::Broken(why) => return Err(why.into()),
            TrackerMsg::Retry(work) => line.waiting.push_back(TrackerMsg::Perform(work)),
            other => line.waiting.push_back(other),
        }
        if !line.busy {
            self.next(&me, line);
        }
        Ok(())
    }
}

impl TrackerActor {
    /// Begins what is first in line; its task tells when it is over.
    fn next(&self, me: &ActorRef<TrackerMsg>, line: &mut Line) {
        let Some(first) = line.waiting.pop_front() else { return };
        line.busy = true;
        let tracker = Arc::clone(&self.tracker);
        match first {
            TrackerMsg::WantReady { chain, reply_to } => {
                let mut wanted = vec![(chain, reply_to)];
                line.waiting.retain(|other| match other {
                    TrackerMsg::WantReady { chain, reply_to } => {
                        wanted.push((chain.clone(), reply_to.clone()));
                        false
                    }
                    _ => true,
                });
                run(me, async move { list_ready(tracker.as_ref(), &wanted).await });
            }
            TrackerMsg::Perform(work) => {
                let again = me.clone();
                run(me, async move { do_work(tracker.as_ref(), work, &again).await });
            }
            TrackerMsg::Show { bead, reply } => {
                run(me, async move { drop(reply.send(tracker.show(&bead).await)) });
            }
            TrackerMsg::CreateWorktree { path, branch, reply } => {
                run(me, async move { drop(reply.send(tracker.create_worktree(&path, &branch).await)) });
            }
            TrackerMsg::Done | TrackerMsg::Broken(_) | TrackerMsg::Retry(_) => line.busy = false,
        }
    }
}

/// Runs a call beside the actor, which hears of its end also when it panics: else all would wait behind it for ever.
fn run(me: &ActorRef<TrackerMsg>, call: impl Future<Output = ()> + Send + 'static) {
    let me = me.clone();
    tokio::spawn(async move {
        let over = match tokio::spawn(call).await {
            Ok(()) => TrackerMsg::Done,
            Err(gone) => TrackerMsg::Broken(gone.to_string()),
        };
        drop(me.cast(over));
    });
}

/// Asks once and gives each chain its own steps.
async fn list_ready(tracker: &dyn Tracker, wanted: &[(ChainId, ActorRef<CoordinatorMsg>)]) {
    let listed = tracker.ready_steps().await;
    for (chain, reply_to) in wanted {
        let mail = match &listed {
            Ok(beads) => {
                let prefix = format!("{chain}-");
                let steps = beads.iter().filter_map(|bead| bead.as_str().strip_prefix(&prefix)).map(StepId::from);
                CoordinatorMsg::Input(Box::new(ChainInput::ReadyListed(steps.collect())))
            }
            // Not knowing is not "none": the chain waits and asks again.
            Err(error) => CoordinatorMsg::Waiting { on: "tracker", why: error.to_string() },
        };
        drop(reply_to.cast(mail));
    }
}

async fn do_work(tracker: &dyn Tracker, mut work: Box<TrackerWork>, me: &ActorRef<TrackerMsg>) {
    let reply = |mail| drop(work.reply_to.cast(mail));
    let error = match perform::perform(tracker, &work).await {
        Ok(answers) => return answers.into_iter().for_each(reply),
        Err(error) => error,
    };
    let wait = WAITS.get(work.tries as usize).filter(|_| may_pass(&error));
    match wait {
        Some(wait) => {
            reply(CoordinatorMsg::Waiting { on: "tracker", why: error.to_string() });
            work.tries += 1;
            work.again = true;
            me.send_after(*wait, move || TrackerMsg::Retry(work));
        }
        None => reply(CoordinatorMsg::Input(Box::new(refusal(&work.effect, &error)))),
    }
}

/// Whether the same call may succeed later.
pub(super) fn may_pass(error: &TrackerError) -> bool {
    matches!(
        error,
        TrackerError::Failed { .. }
            | TrackerError::TimedOut { .. }
            | TrackerError::Garbled { .. }
            | TrackerError::Io { .. }
    )
}

/// A call that can't succeed: the step's matter where there is one, else the chain's.
fn refusal(effect: &ChainEffect, error: &TrackerError) -> ChainInput {
    let (_, code, next) = error.explain();
    let (code, detail) = (code.to_owned(), format!("{error} ({next})"));
    match effect {
        ChainEffect::Claim { step, .. } | ChainEffect::Note { step, .. } | ChainEffect::Close { step }
            if !may_pass(error) =>
        {
            ChainInput::StepRefused { step: step.clone(), code, detail }
        }
        _ => ChainInput::ChainRefused { code, detail },
    }
}

/// The Tracker's typed door.
#[derive(Debug, Clone)]
pub struct TrackerHandle {
    door: Door<TrackerMsg>,
}

impl TrackerHandle {
    /// Names the Tracker of a system.
    pub fn new(door: Door<TrackerMsg>) -> Self {
        Self { door }
    }

    /// Returns the door itself, for effects.
    pub fn door(&self) -> &Door<TrackerMsg> {
        &self.door
    }

    /// Reads one bead.
    pub async fn show(&self, bead: &BeadId) -> Result<Option<Bead>, TrackerError> {
        let bead = bead.clone();
        self.ask("show", LOOK, |reply| TrackerMsg::Show { bead, reply }).await
    }

    /// Makes a worktree on an existing branch.
    pub async fn create_worktree(&self, path: &Path, branch: &str) -> Result<(), TrackerError> {
        let (path, branch): (PathBuf, String) = (path.to_owned(), branch.to_owned());
        self.ask("worktree create", WORKTREE_DEADLINE, |reply| TrackerMsg::CreateWorktree { path, branch, reply }).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        verb: &'static str,
        deadline: Duration,
        message: impl FnOnce(ractor::RpcReplyPort<Result<T, TrackerError>>) -> TrackerMsg,
    ) -> Result<T, TrackerError> {
        let gone = || TrackerError::Failed { verb, reason: "the Tracker is being restarted".to_owned() };
        let actor = self.door.open().ok_or_else(gone)?;
        match actor.call(message, Some(deadline)).await {
            Ok(CallResult::Success(answer)) => answer,
            Ok(CallResult::Timeout) => Err(TrackerError::TimedOut { verb, seconds: deadline.as_secs() }),
            Ok(CallResult::SenderError) | Err(_) => Err(gone()),
        }
    }
}

#[cfg(test)]
mod tests;

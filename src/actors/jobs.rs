//! Jobs: the supervisor of all activations. Not below the coordinators: one that is restarted finds its jobs running.

use std::collections::BTreeMap;
use std::sync::Arc;

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};

use super::job::{Job, JobTools};
use super::prepare::{Prepared, Workshop};
use crate::chain::machine::{ChainInput, Outcome};
use crate::ids::{JobId, StepId};
use crate::messages::{Activation, CoordinatorMsg, Door, JobMsg, JobsMsg};

/// The supervisor's configuration.
pub struct Jobs {
    /// Its own door, for its jobs.
    pub door: Door<JobsMsg>,
}

/// What it is given.
pub struct JobsArgs {
    /// Where activations are prepared.
    pub workshop: Arc<Workshop>,
    /// What jobs share.
    pub tools: JobTools,
}

/// One activation that was asked for and has not settled.
struct Entry {
    step: StepId,
    epoch: u32,
    reply_to: ActorRef<CoordinatorMsg>,
    /// `None` while it is being prepared.
    actor: Option<ActorRef<JobMsg>>,
    stop_asked: bool,
}

/// Its state.
pub struct Roll {
    args: JobsArgs,
    live: BTreeMap<JobId, Entry>,
}

impl Actor for Jobs {
    type Msg = JobsMsg;
    type State = Roll;
    type Arguments = JobsArgs;

    async fn pre_start(&self, _: ActorRef<JobsMsg>, args: JobsArgs) -> Result<Roll, ActorProcessingErr> {
        Ok(Roll { args, live: BTreeMap::new() })
    }

    async fn handle(&self, me: ActorRef<JobsMsg>, mail: JobsMsg, roll: &mut Roll) -> Result<(), ActorProcessingErr> {
        match mail {
            JobsMsg::Start(activation) => start(&me, roll, activation),
            JobsMsg::Stop { step, epoch, job, reply_to } => stop(roll, step, epoch, job, reply_to),
            JobsMsg::Prepared { activation, prepared } => self.prepared(&me, roll, *activation, *prepared).await,
            JobsMsg::Settled { job, epoch, outcome } => settled(roll, &job, epoch, outcome),
            JobsMsg::Gone { actor, detail } => gone(roll, actor, detail),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<JobsMsg>,
        event: SupervisionEvent,
        _: &mut Roll,
    ) -> Result<(), ActorProcessingErr> {
        let (who, detail) = match event {
            SupervisionEvent::ActorFailed(who, error) => (who, error.to_string()),
            SupervisionEvent::ActorTerminated(who, _, reason) => (who, reason.unwrap_or_else(|| "it ended".to_owned())),
            _ => return Ok(()),
        };
        // Supervision overtakes mail: what the job said before it went may still wait in line, and that counts.
        drop(me.cast(JobsMsg::Gone { actor: who.get_id(), detail }));
        Ok(())
    }
}

fn start(me: &ActorRef<JobsMsg>, roll: &mut Roll, activation: Box<Activation>) {
    if let Some(entry) = roll.live.get_mut(&activation.job) {
        // The same incarnation is asked for again, by a coordinator that was restarted: it goes on.
        if entry.epoch >= activation.epoch {
            entry.reply_to = activation.reply_to.clone();
            return;
        }
        tracing::warn!(job = %activation.job, "an older incarnation is still live; the newer one has to wait for its end");
        let outcome =
            Outcome::Failed { retry: true, code: "older_epoch_live".into(), detail: "it has not ended".into() };
        return report(&activation.reply_to, &activation.step, activation.epoch, outcome);
    }
    let entry = Entry {
        step: activation.step.clone(),
        epoch: activation.epoch,
        reply_to: activation.reply_to.clone(),
        actor: None,
        stop_asked: false,
    };
    roll.live.insert(activation.job.clone(), entry);
    let (workshop, me) = (Arc::clone(&roll.args.workshop), me.clone());
    tokio::spawn(async move {
        let wanted = activation.clone();
        let prepared = tokio::spawn(async move { workshop.prepare(&wanted).await }).await;
        // A panic in a preparation says nothing by itself, and the chain would wait for ever.
        let prepared = prepared.unwrap_or_else(|gone| {
            let code = "preparation_failed".to_owned();
            Err(Outcome::Failed { retry: true, code, detail: gone.to_string() })
        });
        drop(me.cast(JobsMsg::Prepared { activation, prepared: Box::new(prepared) }));
    });
}

fn stop(roll: &mut Roll, step: StepId, epoch: u32, job: JobId, reply_to: ActorRef<CoordinatorMsg>) {
    match roll.live.get_mut(&job) {
        Some(entry) => {
            entry.reply_to = reply_to;
            entry.stop_asked = true;
            if let Some(actor) = &entry.actor {
                drop(actor.cast(JobMsg::Stop));
            }
        }
        // It is gone, with the word about it lost or never started.
        None => report(&reply_to, &step, epoch, Outcome::Stopped),
    }
}

fn settled(roll: &mut Roll, job: &JobId, epoch: u32, outcome: Outcome) {
    match roll.live.remove(job) {
        Some(entry) if entry.epoch == epoch => report(&entry.reply_to, &entry.step, epoch, outcome),
        Some(entry) => {
            tracing::info!(%job, epoch, "a word of an older incarnation is dropped");
            roll.live.insert(job.clone(), entry);
        }
        None => {}
    }
}

/// A job that said how it ended is not in the roll any more; one that is panicked, and its session died with it.
fn gone(roll: &mut Roll, actor: ActorId, detail: String) {
    let is_its = |entry: &Entry| entry.actor.as_ref().is_some_and(|job| job.get_id() == actor);
    let found = roll.live.iter().find(|(_, entry)| is_its(entry)).map(|(job, entry)| (job.clone(), entry.epoch));
    if let Some((job, epoch)) = found {
        settled(roll, &job, epoch, Outcome::Failed { retry: true, code: "job_failed".to_owned(), detail });
    }
}

fn report(reply_to: &ActorRef<CoordinatorMsg>, step: &StepId, epoch: u32, outcome: Outcome) {
    let input = ChainInput::JobSettled { step: step.clone(), epoch, outcome };
    // A coordinator that is being restarted asks again.
    drop(reply_to.cast(CoordinatorMsg::Input(Box::new(input))));
}

impl Jobs {
    async fn prepared(
        &self,
        me: &ActorRef<JobsMsg>,
        roll: &mut Roll,
        activation: Activation,
        prepared: Result<Prepared, Outcome>,
    ) {
        let (id, epoch) = (&activation.job, activation.epoch);
        let stop_asked = roll.live.get(id).is_some_and(|entry| entry.stop_asked);
        let prepared = match prepared {
            Ok(prepared) if !stop_asked => prepared,
            Ok(_) => return settled(roll, id, epoch, Outcome::Stopped),
            Err(outcome) => return settled(roll, id, epoch, outcome),
        };
        let job = Job { tools: roll.args.tools.clone(), jobs: self.door.clone() };
        match Actor::spawn_linked(None, job, prepared, me.get_cell()).await {
            Ok((actor, _)) => {
                if let Some(entry) = roll.live.get_mut(id) {
                    entry.actor = Some(actor);
                }
            }
            Err(error) => {
                let detail = error.to_string();
                settled(roll, id, epoch, Outcome::Failed { retry: true, code: "job_not_started".into(), detail });
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! Chains: the supervisor of all coordinators of this process.

use std::collections::BTreeMap;

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};

use super::coordinator::{Coordinator, CoordinatorArgs};
use super::notice::{Notice, NoticeKind};
use crate::ids::ChainId;
use crate::messages::{CoordinatorMsg, Operator};

/// Restarts of one coordinator before its chain is given up in this process.
const RESTARTS: u32 = 3;

/// To Chains.
pub enum ChainsMsg {
    /// From the Orchestrator: run a chain that this process owns.
    Run(Box<CoordinatorArgs>),
    /// From the Orchestrator: the operator's word about a chain.
    Order {
        /// The chain.
        chain: ChainId,
        /// What.
        order: Operator,
    },
    /// From the Orchestrator: the same word about every chain.
    OrderAll(Operator),
    /// From the Orchestrator: an actor that owed answers was restarted.
    Reask,
}

/// The supervisor's configuration: what its coordinators share.
pub struct Chains {
    /// What a coordinator is made of.
    pub coordinator: Coordinator,
    /// Prefix of names.
    pub system: String,
}

struct Entry {
    actor: ActorRef<CoordinatorMsg>,
    args: CoordinatorArgs,
    restarts: u32,
}

/// Its state.
#[derive(Default)]
pub struct Running(BTreeMap<ChainId, Entry>);

impl Actor for Chains {
    type Msg = ChainsMsg;
    type State = Running;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<ChainsMsg>, (): ()) -> Result<Running, ActorProcessingErr> {
        Ok(Running::default())
    }

    async fn handle(
        &self,
        me: ActorRef<ChainsMsg>,
        mail: ChainsMsg,
        running: &mut Running,
    ) -> Result<(), ActorProcessingErr> {
        match mail {
            ChainsMsg::Run(args) => self.start(&me, running, *args, 0).await,
            ChainsMsg::Order { chain, order } => {
                if let Some(entry) = running.0.get(&chain) {
                    drop(entry.actor.cast(CoordinatorMsg::Operator(order)));
                }
            }
            ChainsMsg::OrderAll(order) => {
                for entry in running.0.values() {
                    drop(entry.actor.cast(CoordinatorMsg::Operator(order.clone())));
                }
            }
            ChainsMsg::Reask => {
                for entry in running.0.values() {
                    drop(entry.actor.cast(CoordinatorMsg::Reask));
                }
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<ChainsMsg>,
        event: SupervisionEvent,
        running: &mut Running,
    ) -> Result<(), ActorProcessingErr> {
        let (who, failure) = match event {
            SupervisionEvent::ActorFailed(who, error) => (who, Some(error.to_string())),
            SupervisionEvent::ActorTerminated(who, ..) => (who, None),
            _ => return Ok(()),
        };
        let found = running.0.iter().find(|(_, entry)| entry.actor.get_id() == who.get_id());
        let Some(chain) = found.map(|(chain, _)| chain.clone()) else { return Ok(()) };
        let Some(entry) = running.0.remove(&chain) else { return Ok(()) };
        if let Some(why) = failure {
            tracing::error!(%chain, why, "a coordinator failed");
            if entry.restarts < RESTARTS {
                // Orders were stored as events before they took effect; they are not given twice.
                let args = CoordinatorArgs { orders: Vec::new(), ..entry.args.clone() };
                self.start(&me, running, args, entry.restarts + 1).await;
            } else {
                self.given_up(&entry.args, why);
            }
        }
        Ok(())
    }
}

impl Chains {
    async fn start(&self, me: &ActorRef<ChainsMsg>, running: &mut Running, args: CoordinatorArgs, restarts: u32) {
        let chain = args.chain.clone();
        let name = format!("{}/chain/{chain}", self.system);
        match Actor::spawn_linked(Some(name), self.coordinator.clone(), args.clone(), me.get_cell()).await {
            Ok((actor, _)) => drop(running.0.insert(chain, Entry { actor, args, restarts })),
            Err(error) => self.given_up(&args, error.to_string()),
        }
    }

    fn given_up(&self, args: &CoordinatorArgs, why: String) {
        let (chain, at_ms) = (args.chain.clone(), self.coordinator.clock.now_ms());
        let kind = NoticeKind::Failed { why, taken_over: false };
        args.ended.send_replace(Some(kind.clone()));
        drop(self.coordinator.watchers.send(Notice { chain, at_ms, kind }));
    }
}

#[cfg(test)]
mod tests;

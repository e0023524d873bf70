//! Policy: runs the pure kernel and keeps its findings.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

use super::store::StoreHandle;
use crate::ids::ChainId;
use crate::policy::{Disposition, Preflight, Ruling, evaluate};
use crate::ports::Clock;
use crate::storage::{Finding, RecordFinding, StoreError};

/// To Policy.
pub enum PolicyMsg {
    /// From the Orchestrator: judge this request; with a chain, keep the findings for it.
    Judge {
        /// The request and its facts.
        preflight: Box<Preflight>,
        /// The answer.
        reply: RpcReplyPort<Ruling>,
    },
    /// From the Orchestrator: keep what was found, now that there is a chain to keep it for.
    Keep {
        /// The chain.
        chain: ChainId,
        /// What was found.
        ruling: Box<Ruling>,
        /// The answer.
        reply: RpcReplyPort<Result<(), StoreError>>,
    },
}

/// The actor's configuration.
pub struct Policy {
    /// Where findings are kept.
    pub store: StoreHandle,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
}

impl Actor for Policy {
    type Msg = PolicyMsg;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<PolicyMsg>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(&self, _: ActorRef<PolicyMsg>, mail: PolicyMsg, (): &mut ()) -> Result<(), ActorProcessingErr> {
        match mail {
            PolicyMsg::Judge { preflight, reply } => drop(reply.send(evaluate(&preflight))),
            PolicyMsg::Keep { chain, ruling, reply } => drop(reply.send(self.keep(&chain, &ruling).await)),
        }
        Ok(())
    }
}

impl Policy {
    async fn keep(&self, chain: &ChainId, ruling: &Ruling) -> Result<(), StoreError> {
        for found in &ruling.findings {
            let mode = match found.disposition {
                Disposition::Recorded => "shadow",
                Disposition::Shown => "warn",
                Disposition::Refused => "enforce",
            };
            let finding = Finding {
                chain: Some(chain.clone()),
                job: None,
                step: None,
                code: found.kind.code().to_owned(),
                severity: "warning".to_owned(),
                message: found.message.clone(),
                mode: mode.to_owned(),
                at_ms: self.clock.now_ms(),
            };
            self.store.write(RecordFinding(finding)).await?;
        }
        Ok(())
    }
}

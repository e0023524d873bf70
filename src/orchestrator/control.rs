//! The operator's words about a chain: resume, stop, abandon, publish.

use super::builder::{Orchestrator, owner_is_alive};
use super::error::OrchestratorError;
use super::report::folded;
use super::request::{ResumeRequest, Started};
use crate::actors::ChainsMsg;
use crate::chain::machine::{ChainState, Phase};
use crate::ids::StepId;
use crate::messages::Operator;
use crate::storage::{ChainRow, ChainStatus, Reader, Resource};

impl Orchestrator {
    /// Goes on with a chain, named by its id or its bead.
    ///
    /// A stopped chain goes on where it stood; a blocked one needs a note or an accepted step; one that is ready is
    /// published once its tip is contained in the base, and judged again when people added to its branch.
    pub async fn resume(&self, name: &str, request: ResumeRequest) -> Result<Started, OrchestratorError> {
        let reader = Reader::open(&self.ground.layout.database())?;
        let row = reader.find_chain(name)?;
        refuse_over("resume", &row)?;
        let state = folded(&reader, &row)?;
        let mut orders = Vec::new();
        for step in &request.accept {
            let known = known_step("accept a step of", &state, step)?;
            if !matches!(state.steps.get(known).map(|state| &state.phase), Some(Phase::Blocked { .. })) {
                return Err(OrchestratorError::NotBlocked { chain: row.chain.clone(), step: step.clone() });
            }
            orders.push(Operator::Accept { step: step.clone() });
        }
        if let Some(from) = &request.from {
            known_step("resume", &state, from)?;
        }
        if let Some(note) = &request.note {
            orders.push(Operator::Resume { note: note.clone(), from: request.from.clone() });
        } else if let Some(from) = &request.from {
            let note = "The operator asks for this step to be worked again.".to_owned();
            orders.push(Operator::Resume { note, from: Some(from.clone()) });
        }
        match row.status {
            // What was asked for before is carried out first.
            _ if state.is_in_debt() => {}
            ChainStatus::Blocked if orders.is_empty() => {
                let waits = |(step, state): (&crate::chain::shape::Step, &crate::chain::machine::StepState)| {
                    matches!(state.phase, Phase::Blocked { .. }).then(|| step.id.to_string())
                };
                let steps = state.in_order().filter_map(waits).collect();
                return Err(OrchestratorError::NeedsNote { chain: row.chain, steps });
            }
            ChainStatus::ReadyToMerge if orders.is_empty() => match self.moved_to(&state).await? {
                Some(head) => orders.push(Operator::Judge { head }),
                None => {
                    self.refuse_unmerged(&row, &state).await?;
                    orders.push(Operator::Publish);
                }
            },
            _ => {}
        }
        self.go_on(row, request.rehearse.as_deref(), orders).await
    }

    /// Gives a chain up: closes its molecule, frees its bead, keeps branch and worktree.
    pub async fn abandon(&self, name: &str, reason: String) -> Result<Started, OrchestratorError> {
        let reader = Reader::open(&self.ground.layout.database())?;
        let row = reader.find_chain(name)?;
        refuse_over("abandon", &row)?;
        if let Some(owner) = reader.owner(&Resource::Chain(row.chain.clone()))?.and_then(|owner| owner.holder)
            && owner_is_alive(&owner)
            && owner != self.ground.me
        {
            return Err(OrchestratorError::RunsElsewhere { verb: "abandon", chain: row.chain, pid: owner.pid });
        }
        self.go_on(row, None, vec![Operator::Abandon { reason }]).await
    }

    /// Asks every chain of this process to stop; each ends its jobs, stays resumable and comes to rest.
    pub fn stop_all(&self, why: &str) {
        self.doors.chains.send(ChainsMsg::OrderAll(Operator::Stop { why: why.to_owned() }));
    }

    /// Where the branch stands, if people moved it after the chain was ready; a branch that is gone was merged before.
    async fn moved_to(&self, state: &ChainState) -> Result<Option<String>, OrchestratorError> {
        let Some(tree) = &state.tree else { return Ok(None) };
        let tip = self.ground.workspace.branch_tip(&tree.branch).await?;
        Ok(tip.filter(|tip| *tip != tree.head))
    }

    /// The tip must be contained in the base branch before the beads are closed.
    async fn refuse_unmerged(&self, row: &ChainRow, state: &ChainState) -> Result<(), OrchestratorError> {
        let base = row.base_ref.clone().unwrap_or_else(|| "HEAD".to_owned());
        let (head, branch) =
            state.tree.as_ref().map(|tree| (tree.head.clone(), tree.branch.clone())).unwrap_or_default();
        // A base that was named by a bare commit can't move: then HEAD of the main checkout is where work lands.
        let whole = match self.ground.workspace.branch_tip(&base).await? {
            Some(tip) => tip,
            None => self.ground.workspace.facts().await?.head,
        };
        if self.ground.workspace.contains(&whole, &head).await? {
            return Ok(());
        }
        Err(OrchestratorError::NotMerged { chain: row.chain.clone(), branch, base })
    }
}

fn refuse_over(verb: &'static str, row: &ChainRow) -> Result<(), OrchestratorError> {
    if row.status.is_live() {
        return Ok(());
    }
    Err(OrchestratorError::Over { verb, chain: row.chain.clone(), status: row.status.as_str() })
}

fn known_step<'a>(verb: &'static str, state: &ChainState, step: &'a StepId) -> Result<&'a StepId, OrchestratorError> {
    if state.steps.contains_key(step) {
        return Ok(step);
    }
    let steps = state.shape.steps.iter().map(|step| step.id.to_string()).collect();
    Err(OrchestratorError::NoSuchStep { verb, chain: state.chain.clone(), step: step.clone(), steps })
}

//! Going on with a chain whose molecule is in bd and of which the database knows nothing: the database was lost.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::builder::Orchestrator;
use super::compose::Composed;
use super::error::OrchestratorError;
use super::request::RunRequest;
use crate::actors::home;
use crate::chain::machine::{ChainEvent, StepRecord, recovered};
use crate::chain::shape::Shape;
use crate::ids::{BeadId, ChainId, StepId};
use crate::ports::Bead;
use crate::rehearsal::{Script, load};
use crate::storage::{Reader, StoreError};

/// A chain by what its molecule says.
#[derive(Debug, Clone)]
pub(super) struct Unrecorded {
    /// Its id.
    pub chain: ChainId,
    /// Commit that its branch started from.
    pub base: String,
    /// Whether its models are a script.
    pub rehearsal: bool,
}

impl Orchestrator {
    /// Finds the open molecule of a bead that the database does not know; one that can't be gone on with is refused, so
    /// that no second one is poured beside it.
    pub(super) async fn unrecorded(&self, request: &RunRequest) -> Result<Option<Unrecorded>, OrchestratorError> {
        let found = self.ground.tracker.molecules_of(&request.bead).await?;
        let reader = match Reader::open(&self.ground.layout.database()) {
            Ok(reader) => Some(reader),
            Err(StoreError::NotThere { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let mut open = Vec::new();
        for bead in found.into_iter().filter(|bead| bead.status != "closed") {
            let row =
                reader.as_ref().map(|reader| reader.chain(&ChainId::from(bead.id.as_str()))).transpose()?.flatten();
            if row.is_none() {
                open.push(bead);
            }
        }
        let refuse = |why: String| OrchestratorError::Unrecorded {
            bead: request.bead.clone(),
            molecules: open.iter().map(|bead| bead.id.clone()).collect(),
            why,
        };
        match open.as_slice() {
            [] => Ok(None),
            [molecule] => by_molecule(molecule, &request.formula).map(Some).map_err(refuse),
            [_, _, ..] => Err(refuse("they are more than one".to_owned())),
        }
    }

    /// Returns what stands for the chain's log: where its steps stand by their beads, and the work that is on its branch.
    pub(super) async fn recover(
        &self,
        bead: &BeadId,
        found: &Unrecorded,
        composed: &Composed,
    ) -> Result<ChainEvent, OrchestratorError> {
        let refuse = |why: String| OrchestratorError::Unrecorded {
            bead: bead.clone(),
            molecules: vec![found.chain.to_string()],
            why,
        };
        let records = self.records(&found.chain).await?;
        same_steps(&composed.shape, &records).map_err(refuse)?;
        let event = recovered(&found.chain, &composed.shape, &records);
        if let ChainEvent::Recovered { steps, .. } = &event {
            let (branch, _) = home(&self.ground.root, bead, &composed.shape)?;
            let tip = self.ground.workspace.branch_tip(&branch).await?;
            let writes = |step: &StepId| composed.shape.step(step).is_some_and(|step| step.writer.is_some());
            for step in steps.iter().filter(|step| writes(&step.step)) {
                let Some(commit) = &step.commit else { continue };
                let is_there = match &tip {
                    // A commit that git does not know is not on the branch either.
                    Some(tip) => self.ground.workspace.contains(tip, commit).await.unwrap_or(false),
                    None => false,
                };
                if !is_there {
                    return Err(refuse(format!(
                        "{} passed with commit {commit}, which is not on branch {branch} (`git branch -f {branch} \
                         {commit}` brings it back while git still has it)",
                        step.step
                    )));
                }
            }
        }
        Ok(event)
    }

    async fn records(&self, chain: &ChainId) -> Result<BTreeMap<StepId, StepRecord>, OrchestratorError> {
        let prefix = format!("{chain}-");
        let mut records = BTreeMap::new();
        for child in self.ground.tracker.children(&chain.molecule()).await? {
            let Some(step) = child.id.strip_prefix(&prefix).map(StepId::from) else { continue };
            // A listing has no notes.
            let bead = self.ground.tracker.show(&BeadId::new(child.id.as_str())).await?.unwrap_or(child);
            records.insert(step, StepRecord { status: bead.status, assignee: bead.assignee, notes: bead.notes });
        }
        Ok(records)
    }

    /// Returns the script that the chain goes on with: the one that was kept, or the same again where that is lost too.
    pub(super) fn recovered_script(
        &self,
        found: &Unrecorded,
        asked: Option<(Script, String)>,
    ) -> Result<Option<(Script, String)>, OrchestratorError> {
        let kept = self.ground.layout.chain(&found.chain)?.rehearsal();
        let kept = if kept.exists() { Some(load(&kept)?) } else { None };
        let other = |begun, asked| OrchestratorError::OtherModel { chain: found.chain.clone(), begun, asked };
        match (found.rehearsal, kept, asked) {
            (false, _, None) => Ok(None),
            (false, _, Some(_)) => Err(other("with a real model", "as a rehearsal")),
            (true, Some(kept), Some(asked)) if kept.1 != asked.1 => {
                Err(other("with one script", "with another script"))
            }
            (true, Some(script), _) | (true, None, Some(script)) => Ok(Some(script)),
            (true, None, None) => Err(other("as a rehearsal", "with a real model")),
        }
    }
}

/// What people are told of it.
pub(super) fn recovery_remark(chain: &ChainId) -> String {
    format!("chain_recovered: the database lacks chain {chain}; it goes on from what bd knows")
}

/// Reads what a pour left in the metadata of its molecule; `Err` says why the chain can't be gone on with.
fn by_molecule(molecule: &Bead, formula: &str) -> Result<Unrecorded, String> {
    let text = |key: &str| molecule.metadata.get(key).and_then(Value::as_str);
    match text("sp_formula") {
        Some(begun) if begun == formula => {}
        Some(begun) => return Err(format!("it was begun with formula {begun}, not {formula}")),
        None => return Err("it does not say its formula (metadata `sp_formula`)".to_owned()),
    }
    let base = text("sp_base").ok_or("it does not say what its branch started from (metadata `sp_base`)")?;
    let rehearsal = molecule.metadata.get("sp_rehearsal").and_then(Value::as_bool);
    Ok(Unrecorded {
        chain: ChainId::from(molecule.id.as_str()),
        base: base.to_owned(),
        rehearsal: rehearsal.ok_or("it does not say whether it is a rehearsal (metadata `sp_rehearsal`)")?,
    })
}

fn same_steps(shape: &Shape, records: &BTreeMap<StepId, StepRecord>) -> Result<(), String> {
    let wanted: BTreeSet<&StepId> = shape.steps.iter().map(|step| &step.id).collect();
    let found: BTreeSet<&StepId> = records.keys().collect();
    if wanted == found {
        return Ok(());
    }
    let names = |steps: &BTreeSet<&StepId>| steps.iter().map(|step| step.as_str()).collect::<Vec<_>>().join(", ");
    Err(format!("its steps are {}, those of the formula {}", names(&found), names(&wanted)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_molecule_that_does_not_say_enough_is_not_gone_on_with() {
        let whole = json!({"sp_formula": "pair", "sp_base": "c0", "sp_rehearsal": true});
        let mut cases = vec![(whole.clone(), "pair", None), (whole.clone(), "code-standard", Some("formula pair"))];
        for key in ["sp_formula", "sp_base", "sp_rehearsal"] {
            let mut lacking = whole.clone();
            lacking.as_object_mut().unwrap().remove(key);
            cases.push((lacking, "pair", Some(key)));
        }
        for (metadata, formula, why) in cases {
            let metadata = serde_json::from_value(metadata).unwrap();
            let molecule = Bead { id: "proj-mol-1".into(), metadata, ..Bead::default() };
            match (by_molecule(&molecule, formula), why) {
                (Ok(found), None) => assert_eq!((found.base.as_str(), found.rehearsal), ("c0", true)),
                (Err(error), Some(why)) => assert!(error.contains(why), "{error}"),
                (got, why) => panic!("{got:?}, wanted {why:?}"),
            }
        }
    }
}

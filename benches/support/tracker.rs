//! A tracker in memory that counts its calls. It keeps what a passing chain needs of bd: blockers, claims, closing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use specialists::ports::{BatchOp, Bead, ClaimAnswer, GraphPlan, Pour, Release, Tracker, TrackerError, TrackerInfo};
use specialists::{BeadId, ChainId, StepId};

/// A tracker without bd.
#[derive(Debug, Default)]
pub(crate) struct StubTracker {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    beads: HashMap<String, Bead>,
    /// Open blockers of each bead.
    blockers: HashMap<String, BTreeSet<String>>,
    /// Beads that wait for each bead.
    waiting: HashMap<String, Vec<String>>,
    ready: BTreeSet<String>,
    calls: BTreeMap<&'static str, u64>,
}

impl Held {
    fn settle(&mut self, id: &str) {
        let blocked = self.blockers.get(id).is_some_and(|open| !open.is_empty());
        let Some(bead) = self.beads.get(id) else { return };
        let is_step = bead.labels.iter().any(|label| label == "kind:step");
        if is_step && bead.status == "open" && bead.assignee.is_none() && !blocked {
            self.ready.insert(id.to_owned());
        } else {
            self.ready.remove(id);
        }
    }

    fn close(&mut self, id: &str) {
        if let Some(bead) = self.beads.get_mut(id) {
            bead.status = "closed".to_owned();
        }
        self.settle(id);
        for waits in self.waiting.get(id).cloned().unwrap_or_default() {
            if let Some(open) = self.blockers.get_mut(&waits) {
                open.remove(id);
            }
            self.settle(&waits);
        }
    }
}

impl StubTracker {
    /// Adds a contract bead.
    pub(crate) fn add(&self, bead: Bead) {
        self.held().beads.insert(bead.id.clone(), bead);
    }

    /// Returns how often each call came.
    pub(crate) fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.held().calls.clone()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn called(&self, name: &'static str) -> MutexGuard<'_, Held> {
        let mut held = self.held();
        *held.calls.entry(name).or_default() += 1;
        held
    }
}

#[async_trait]
impl Tracker for StubTracker {
    async fn probe(&self) -> Result<TrackerInfo, TrackerError> {
        drop(self.called("probe"));
        let version = "1.3.0".to_owned();
        Ok(TrackerInfo { version, project_id: "stub".into(), prefix: "stub".into(), beads_dir: PathBuf::new() })
    }

    async fn show(&self, bead: &BeadId) -> Result<Option<Bead>, TrackerError> {
        Ok(self.called("show").beads.get(bead.as_str()).cloned())
    }

    async fn children(&self, parent: &BeadId) -> Result<Vec<Bead>, TrackerError> {
        let held = self.called("children");
        Ok(held.beads.values().filter(|bead| bead.parent.as_deref() == Some(parent.as_str())).cloned().collect())
    }

    async fn molecules_of(&self, _: &BeadId) -> Result<Vec<Bead>, TrackerError> {
        drop(self.called("molecules_of"));
        Ok(Vec::new())
    }

    async fn ready_steps(&self) -> Result<Vec<BeadId>, TrackerError> {
        Ok(self.called("ready").ready.iter().map(|id| BeadId::new(id.as_str())).collect())
    }

    async fn claim_step(&self, chain: &ChainId, step: &StepId, actor: &str) -> Result<ClaimAnswer, TrackerError> {
        let id = chain.step_bead(step).to_string();
        let mut held = self.called("claim");
        if !held.ready.remove(&id) {
            let status = held.beads.get(&id).map(|bead| bead.status.clone()).unwrap_or_default();
            return Ok(ClaimAnswer::NotReady { status });
        }
        if let Some(bead) = held.beads.get_mut(&id) {
            bead.status = "in_progress".to_owned();
            bead.assignee = Some(actor.to_owned());
        }
        Ok(ClaimAnswer::Claimed)
    }

    async fn hold(&self, bead: &BeadId, chain: &ChainId) -> Result<(), TrackerError> {
        if let Some(bead) = self.called("hold").beads.get_mut(bead.as_str()) {
            bead.status = "in_progress".to_owned();
            bead.assignee = Some(format!("sp/{chain}"));
        }
        Ok(())
    }

    async fn release(&self, _: &BeadId, _: &str, _: &str) -> Result<Release, TrackerError> {
        drop(self.called("release"));
        Ok(Release::NotHeld)
    }

    async fn append_note(&self, bead: &BeadId, text: &str, _: &str) -> Result<(), TrackerError> {
        if let Some(bead) = self.called("note").beads.get_mut(bead.as_str()) {
            bead.notes.push_str(text);
        }
        Ok(())
    }

    async fn batch(&self, operations: &[BatchOp], _: &str) -> Result<(), TrackerError> {
        let closes = operations.iter().all(|operation| matches!(operation, BatchOp::Close { .. }));
        let mut held = self.called(if closes { "close" } else { "update" });
        for operation in operations {
            match operation {
                BatchOp::Close { bead, .. } => held.close(bead.as_str()),
                BatchOp::Update { bead, status, assignee } => {
                    if let Some(bead) = held.beads.get_mut(bead.as_str()) {
                        bead.status = (*status).to_owned();
                        if let Some(assignee) = assignee {
                            bead.assignee = Some(assignee.clone()).filter(|name| !name.is_empty());
                        }
                    }
                    held.settle(bead.as_str());
                }
            }
        }
        Ok(())
    }

    async fn check_pour(&self, _: &GraphPlan) -> Result<(), TrackerError> {
        drop(self.called("check_pour"));
        Ok(())
    }

    async fn pour(&self, plan: &GraphPlan) -> Result<Pour, TrackerError> {
        let mut held = self.called("pour");
        for node in &plan.nodes {
            let bead = Bead {
                id: node.id.clone(),
                title: node.title.clone(),
                status: "open".to_owned(),
                issue_type: node.issue_type.clone(),
                description: node.description.clone(),
                labels: node.labels.clone(),
                metadata: node.metadata.clone(),
                parent: node.parent_key.clone(),
                ..Bead::default()
            };
            held.beads.insert(node.id.clone(), bead);
        }
        for edge in plan.edges.iter().filter(|edge| edge.edge_type == "blocks") {
            let ends = (edge.from_key.as_ref().or(edge.from_id.as_ref()), edge.to_key.as_ref().or(edge.to_id.as_ref()));
            if let (Some(from), Some(to)) = ends {
                held.blockers.entry(from.clone()).or_default().insert(to.clone());
                held.waiting.entry(to.clone()).or_default().push(from.clone());
            }
        }
        plan.nodes.iter().for_each(|node| held.settle(&node.id));
        Ok(Pour::Created)
    }

    async fn create_worktree(&self, path: &Path, _: &str) -> Result<(), TrackerError> {
        drop(self.called("worktree"));
        fs::create_dir_all(path).map_err(|source| TrackerError::Io { verb: "worktree create", source })
    }
}

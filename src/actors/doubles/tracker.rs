//! A tracker in memory: beads, readiness, claims, notes, batches; it can fail, refuse, dawdle and panic.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::sleep;

use crate::ids::{BeadId, ChainId, StepId};
use crate::ports::{BatchOp, Bead, ClaimAnswer, GraphPlan, Pour, Release, Tracker, TrackerError, TrackerInfo};

/// The tracker port.
#[derive(Default)]
pub(in crate::actors) struct StubTracker {
    beads: Mutex<BTreeMap<String, Bead>>,
    /// What each bead waits for.
    blockers: Mutex<BTreeMap<String, BTreeSet<String>>>,
    calls: Mutex<Vec<String>>,
    faults: Mutex<VecDeque<Fault>>,
    delay: Mutex<Duration>,
}

struct Fault {
    verb: &'static str,
    error: Option<TrackerError>,
}

impl StubTracker {
    /// Holds one open contract bead.
    pub(in crate::actors) fn with_root(bead: &str) -> Arc<Self> {
        let tracker = Self::default();
        tracker.add_root(bead);
        Arc::new(tracker)
    }

    /// Adds an open contract bead.
    pub(in crate::actors) fn add_root(&self, id: &str) {
        let description = "# Contract\nFix the last page.".to_owned();
        let root =
            Bead { id: id.into(), title: "last page".into(), status: "open".into(), description, ..Bead::default() };
        self.beads.lock().unwrap().insert(id.to_owned(), root);
    }

    /// Makes the next call of a verb fail.
    pub(in crate::actors) fn fails(&self, verb: &'static str, error: TrackerError) {
        self.faults.lock().unwrap().push_back(Fault { verb, error: Some(error) });
    }

    /// Makes the next call of a verb panic.
    pub(in crate::actors) fn panics(&self, verb: &'static str) {
        self.faults.lock().unwrap().push_back(Fault { verb, error: None });
    }

    /// Makes the next calls of a verb fail in a way that may pass.
    pub(in crate::actors) fn fails_times(&self, verb: &'static str, times: usize) {
        (0..times).for_each(|_| self.fails(verb, TrackerError::Failed { verb, reason: "database is locked".into() }));
    }

    /// Makes every call take so long, in virtual time.
    pub(in crate::actors) fn dawdles(&self, delay: Duration) {
        *self.delay.lock().unwrap() = delay;
    }

    /// Returns the calls of a verb, each with what it was about.
    pub(in crate::actors) fn calls(&self, verb: &str) -> Vec<String> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|call| call.split(' ').next() == Some(verb)).cloned().collect()
    }

    /// Returns a bead.
    pub(in crate::actors) fn bead(&self, id: &str) -> Bead {
        self.beads.lock().unwrap().get(id).cloned().unwrap_or_else(|| panic!("no bead {id}"))
    }

    /// Changes a bead behind the back of sp.
    pub(in crate::actors) fn meddle(&self, id: &str, change: impl FnOnce(&mut Bead)) {
        change(self.beads.lock().unwrap().get_mut(id).unwrap_or_else(|| panic!("no bead {id}")));
    }

    async fn begin(&self, verb: &'static str, about: &str) -> Result<(), TrackerError> {
        self.calls.lock().unwrap().push(format!("{verb} {about}"));
        let delay = *self.delay.lock().unwrap();
        if !delay.is_zero() {
            sleep(delay).await;
        }
        let fault = {
            let mut faults = self.faults.lock().unwrap();
            let at = faults.iter().position(|fault| fault.verb == verb);
            at.and_then(|at| faults.remove(at))
        };
        match fault {
            None => Ok(()),
            Some(Fault { error: Some(error), .. }) => Err(error),
            Some(Fault { error: None, .. }) => panic!("a port that panics"),
        }
    }

    fn is_ready(&self, bead: &Bead) -> bool {
        let beads = self.beads.lock().unwrap();
        let closed = |id: &String| beads.get(id).is_none_or(|bead| bead.status == "closed");
        let blockers = self.blockers.lock().unwrap();
        bead.status == "open"
            && bead.assignee.is_none()
            && blockers.get(&bead.id).is_none_or(|ids| ids.iter().all(closed))
    }
}

#[async_trait]
impl Tracker for StubTracker {
    async fn probe(&self) -> Result<TrackerInfo, TrackerError> {
        self.begin("probe", "").await?;
        Ok(TrackerInfo {
            version: "1.3.0".into(),
            project_id: "stub".into(),
            prefix: "proj".into(),
            beads_dir: "/stub".into(),
        })
    }

    async fn show(&self, bead: &BeadId) -> Result<Option<Bead>, TrackerError> {
        self.begin("show", bead.as_str()).await?;
        Ok(self.beads.lock().unwrap().get(bead.as_str()).cloned())
    }

    async fn children(&self, parent: &BeadId) -> Result<Vec<Bead>, TrackerError> {
        self.begin("children", parent.as_str()).await?;
        let beads = self.beads.lock().unwrap();
        Ok(beads.values().filter(|bead| bead.parent.as_deref() == Some(parent.as_str())).cloned().collect())
    }

    async fn molecules_of(&self, bead: &BeadId) -> Result<Vec<Bead>, TrackerError> {
        self.begin("molecules", bead.as_str()).await?;
        Ok(Vec::new())
    }

    async fn ready_steps(&self) -> Result<Vec<BeadId>, TrackerError> {
        self.begin("ready", "").await?;
        let children: Vec<Bead> =
            self.beads.lock().unwrap().values().filter(|bead| bead.parent.is_some()).cloned().collect();
        Ok(children.iter().filter(|bead| self.is_ready(bead)).map(|bead| BeadId::new(bead.id.as_str())).collect())
    }

    async fn claim_step(&self, chain: &ChainId, step: &StepId, actor: &str) -> Result<ClaimAnswer, TrackerError> {
        let id = chain.step_bead(step);
        self.begin("claim", &format!("{id} {actor}")).await?;
        let bead = self.bead(id.as_str());
        match &bead.assignee {
            Some(holder) if holder == actor => Ok(ClaimAnswer::Claimed),
            Some(holder) => Ok(ClaimAnswer::HeldBy(holder.clone())),
            None if self.is_ready(&bead) => {
                self.meddle(id.as_str(), |bead| {
                    (bead.status, bead.assignee) = ("in_progress".into(), Some(actor.to_owned()));
                });
                Ok(ClaimAnswer::Claimed)
            }
            None => Ok(ClaimAnswer::NotReady { status: bead.status }),
        }
    }

    async fn hold(&self, bead: &BeadId, chain: &ChainId) -> Result<(), TrackerError> {
        self.begin("hold", &format!("{bead} {chain}")).await?;
        self.meddle(bead.as_str(), |bead| {
            (bead.status, bead.assignee) = ("in_progress".into(), Some(format!("sp/{chain}")));
            bead.metadata.insert("sp_chain".into(), chain.as_str().into());
        });
        Ok(())
    }

    async fn release(&self, bead: &BeadId, holder: &str, _: &str) -> Result<Release, TrackerError> {
        self.begin("release", &format!("{bead} {holder}")).await?;
        if self.bead(bead.as_str()).assignee.as_deref() != Some(holder) {
            return Ok(Release::NotHeld);
        }
        self.meddle(bead.as_str(), |bead| (bead.status, bead.assignee) = ("open".into(), None));
        Ok(Release::Released)
    }

    async fn append_note(&self, bead: &BeadId, text: &str, _: &str) -> Result<(), TrackerError> {
        self.begin("note", bead.as_str()).await?;
        self.meddle(bead.as_str(), |bead| bead.notes.push_str(&format!("{text}\n")));
        Ok(())
    }

    async fn batch(&self, operations: &[BatchOp], message: &str) -> Result<(), TrackerError> {
        self.begin("batch", message).await?;
        for operation in operations {
            match operation {
                BatchOp::Close { bead, reason } => self.meddle(bead.as_str(), |bead| {
                    (bead.status, bead.close_reason) = ("closed".into(), Some(reason.clone()));
                }),
                BatchOp::Update { bead, status, assignee } => self.meddle(bead.as_str(), |bead| {
                    bead.status = (*status).to_owned();
                    if let Some(assignee) = assignee {
                        bead.assignee = Some(assignee.clone()).filter(|name| !name.is_empty());
                    }
                }),
            }
        }
        Ok(())
    }

    async fn check_pour(&self, plan: &GraphPlan) -> Result<(), TrackerError> {
        self.begin("check", &plan.commit_message).await
    }

    async fn pour(&self, plan: &GraphPlan) -> Result<Pour, TrackerError> {
        self.begin("pour", &plan.commit_message).await?;
        let id = |key: &Option<String>, id: &Option<String>| {
            let by_key = plan.nodes.iter().find(|node| Some(&node.key) == key.as_ref()).map(|node| node.id.clone());
            by_key.or_else(|| id.clone()).unwrap_or_default()
        };
        if self.beads.lock().unwrap().contains_key(&plan.nodes[0].id) {
            return Ok(Pour::AlreadyThere);
        }
        for node in &plan.nodes {
            let parent = node.parent_key.as_ref().map(|_| id(&node.parent_key, &None));
            let bead = Bead {
                id: node.id.clone(),
                title: node.title.clone(),
                status: "open".into(),
                parent,
                ..Bead::default()
            };
            self.beads.lock().unwrap().insert(node.id.clone(), bead);
        }
        for edge in plan.edges.iter().filter(|edge| edge.edge_type == "blocks") {
            let (from, to) = (id(&edge.from_key, &edge.from_id), id(&edge.to_key, &edge.to_id));
            self.blockers.lock().unwrap().entry(from).or_default().insert(to);
        }
        Ok(Pour::Created)
    }

    async fn create_worktree(&self, path: &Path, branch: &str) -> Result<(), TrackerError> {
        self.begin("worktree", branch).await?;
        std::fs::create_dir_all(path).map_err(|source| TrackerError::Io { verb: "worktree", source })
    }
}

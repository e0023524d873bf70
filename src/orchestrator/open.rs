//! Beginning a chain, or going on with one that is there.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ractor::rpc::CallResult;
use tokio::sync::watch;
use ulid::Ulid;

use super::adopt::recovery_remark;
use super::builder::{Orchestrator, owner_is_alive};
use super::compose::Composed;
use super::error::OrchestratorError;
use super::handle::ChainHandle;
use super::report::folded;
use super::request::{Kept, RunRequest, Started};
use crate::actors::{ChainsMsg, CoordinatorArgs, PolicyMsg, Settings, event_body};
use crate::chain::machine::{ChainEvent, Limits, Opening};
use crate::chain::shape::Shape;
use crate::ids::ChainId;
use crate::messages::Operator;
use crate::ports::{Bead, TrackerError, TrackerInfo};
use crate::rehearsal::{FileLedger, Rehearsal, Script, load};
use crate::storage::{
    AppendChainEvents, ChainPatch, ChainRow, ChainStatus, OpenChain, Ownership, Reader, Resource, StoreError,
    TakeOwnership,
};

impl Orchestrator {
    /// Runs a formula on a bead: begins a chain, goes on with the one that rests, or says who runs it.
    pub async fn run_chain(&self, request: RunRequest) -> Result<Started, OrchestratorError> {
        if let Some(row) = self.live_chain(&request)? {
            return self.go_on(row, request.rehearse.as_deref(), Vec::new()).await;
        }
        let script = self.read_files(&request)?;
        // Of bd's calls this comes first: another version answers what was not asked.
        let info = self.ground.tracker.probe().await?;
        let found = self.unrecorded(&request).await?;
        let composed = self.composed(&request, &info, found.as_ref()).await?;
        if let (Some((script, _)), Some(file)) = (&script, &request.rehearse) {
            covered(script, &composed.shape, file)?;
        }
        let recovered = match &found {
            Some(found) => Some((found.chain.clone(), self.recover(&request.bead, found, &composed).await?)),
            None => None,
        };
        let script = match &found {
            Some(found) => self.recovered_script(found, script)?,
            None => script,
        };
        match self.begin(&request, info, composed, script, recovered).await {
            // Another process was faster by a moment: what it began is what was asked for.
            Err(OrchestratorError::Store(StoreError::LiveChainExists { .. })) => match self.live_chain(&request)? {
                Some(row) => self.go_on(row, request.rehearse.as_deref(), Vec::new()).await,
                None => Err(OrchestratorError::System { reason: "the chain of this bead came and went".to_owned() }),
            },
            begun => begun,
        }
    }

    /// Returns the live chain on the bead of a request.
    fn live_chain(&self, request: &RunRequest) -> Result<Option<ChainRow>, OrchestratorError> {
        let reader = match Reader::open(&self.ground.layout.database()) {
            Ok(reader) => reader,
            Err(StoreError::NotThere { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let row = reader.chain_by_bead(&request.bead)?.filter(|row| row.status.is_live());
        // Another formula on the same bead is a matter for policy, which refuses it by name.
        Ok(row.filter(|row| row.formula == request.formula))
    }

    async fn begin(
        &self,
        request: &RunRequest,
        info: TrackerInfo,
        composed: Composed,
        script: Option<(Script, String)>,
        recovered: Option<(ChainId, ChainEvent)>,
    ) -> Result<Started, OrchestratorError> {
        self.ground.agent.check().await?;
        self.refuse_other_checkout(&request.bead, &composed.shape).await?;
        let mut remarks = composed.composition.findings.clone();
        let (chain, recovered) = match recovered {
            Some((chain, event)) => {
                remarks.push(recovery_remark(&chain));
                // The steps are in bd, so the molecule is.
                (chain, vec![ChainEvent::Poured, event])
            }
            None => (composed.chain.clone(), Vec::new()),
        };
        let opening = Opening {
            chain: chain.clone(),
            bead: request.bead.clone(),
            shape: composed.shape.clone(),
            limits: Limits { fix_loops: request.fix_loops, ..Limits::default() },
            scrutiny: composed.scrutiny.clone(),
            base: composed.composition.base_sha.clone(),
            incarnation: 1,
            rehearsal: script.is_some(),
        };
        let kept = Kept {
            opening,
            recovered,
            model: request.model.clone(),
            models: request.models.clone(),
            stall_seconds: request.stall_seconds,
            rehearsal: script.is_some(),
            contract: composed.composition.contract.clone(),
            scope: composed.scope.clone(),
            project_id: info.project_id,
        };
        // Before the first file of ours, so that `git status` never shows one.
        self.ground.workspace.exclude_own_paths().await?;
        if let Some((_, text)) = &script {
            self.keep_script(&chain, text).inspect_err(|_| self.forget_script(&kept))?;
        }
        let incarnation = match self.record(request, &composed, &kept).await {
            Ok(incarnation) => incarnation,
            Err(error) => {
                self.forget_script(&kept);
                return Err(error);
            }
        };
        self.keep_findings(&chain, &composed).await?;
        let settings = self.settings(&kept, script.map(|(script, _)| script)).await?;
        let mut started = self.start(chain, incarnation, composed.root, settings, Vec::new()).await?;
        if let Started::Running(handle) = &mut started {
            handle.remarks = remarks;
        }
        Ok(started)
    }

    /// Makes the chain durable before anything of it exists outside the database.
    async fn record(&self, request: &RunRequest, composed: &Composed, kept: &Kept) -> Result<u32, OrchestratorError> {
        let json = |what: Result<String, serde_json::Error>| {
            what.map_err(|error| OrchestratorError::System { reason: format!("encode the request: {error}") })
        };
        let now = self.ground.clock.now_ms();
        let chain = kept.opening.chain.clone();
        let row = ChainRow {
            chain: chain.clone(),
            bead: request.bead.clone(),
            formula: request.formula.clone(),
            status: ChainStatus::Composing,
            shape_json: json(serde_json::to_string(&composed.shape))?,
            request_json: json(serde_json::to_string(kept))?,
            base_ref: Some(composed.composition.base_ref.clone()),
            base_sha: Some(composed.composition.base_sha.clone()),
            branch: None,
            worktree_path: None,
            created_at_ms: now,
            updated_at_ms: now,
            report_json: None,
        };
        let epoch = self.doors.store.write(OpenChain { row, owner: self.ground.me.clone() }).await?;
        self.append_opening(kept, epoch).await?;
        Ok(epoch)
    }

    async fn append_opening(&self, kept: &Kept, epoch: u32) -> Result<(), OrchestratorError> {
        // What was recovered is old: the first to run it takes it over.
        let incarnation = u64::from(epoch).saturating_sub(u64::from(!kept.recovered.is_empty()));
        let opened = ChainEvent::Opened(Box::new(Opening { incarnation, ..kept.opening.clone() }));
        let append = AppendChainEvents {
            chain: kept.opening.chain.clone(),
            epoch,
            first_seq: 1,
            bodies: [&opened].into_iter().chain(&kept.recovered).map(event_body).collect(),
            at_ms: self.ground.clock.now_ms(),
            patch: ChainPatch::default(),
        };
        Ok(self.doors.store.write(append).await?)
    }

    async fn keep_findings(&self, chain: &ChainId, composed: &Composed) -> Result<(), OrchestratorError> {
        let Some(policy) = self.doors.policy.open() else { return Ok(()) };
        let keep = |reply| PolicyMsg::Keep { chain: chain.clone(), ruling: Box::new(composed.ruling.clone()), reply };
        match policy.call(keep, Some(std::time::Duration::from_secs(30))).await {
            Ok(CallResult::Success(kept)) => Ok(kept?),
            Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => Ok(()),
        }
    }

    /// Goes on with a chain that is there: takes it if nobody runs it.
    pub(super) async fn go_on(
        &self,
        row: ChainRow,
        rehearse: Option<&Path>,
        orders: Vec<Operator>,
    ) -> Result<Started, OrchestratorError> {
        let chain = row.chain.clone();
        let kept = kept(&row)?;
        self.same_model(&kept, rehearse)?;
        let take = TakeOwnership {
            resource: Resource::Chain(chain.clone()),
            me: self.ground.me.clone(),
            at_ms: self.ground.clock.now_ms(),
            is_alive: Box::new(owner_is_alive),
        };
        let rests = matches!(row.status, ChainStatus::Blocked | ChainStatus::ReadyToMerge);
        let resting = rests && !folded(&Reader::open(&self.ground.layout.database())?, &row)?.is_in_debt();
        let epoch = match self.doors.store.write(take).await? {
            Ownership::Owned { epoch } => epoch,
            Ownership::HeldBy(owner) => {
                let pid = owner.holder.map_or(0, |holder| holder.pid);
                // Only a view can be had of it; what the operator has to say would be lost.
                if !orders.is_empty() {
                    return Err(OrchestratorError::RunsElsewhere { verb: "say something to", chain, pid });
                }
                return Ok(Started::Elsewhere { chain, pid });
            }
        };
        if resting && orders.is_empty() {
            self.give_back(&chain, epoch).await?;
            return Ok(Started::Resting { chain });
        }
        self.ground.agent.check().await?;
        self.same_workspace(&kept).await?;
        self.sweep_orphans(&chain)?;
        let root = self.ground.tracker.show(&row.bead).await?;
        let root = root.ok_or_else(|| TrackerError::NotFound { verb: "show", bead: row.bead.clone() })?;
        if Reader::open(&self.ground.layout.database())?.chain_events(&chain, 0)?.is_empty() {
            self.append_opening(&kept, epoch).await?;
        }
        let script = match kept.rehearsal {
            true => Some(self.kept_script(&chain)?),
            false => None,
        };
        let settings = self.settings(&kept, script).await?;
        self.start(chain, epoch, root, settings, orders).await
    }

    async fn give_back(&self, chain: &ChainId, epoch: u32) -> Result<(), OrchestratorError> {
        let resource = Resource::Chain(chain.clone());
        let release = crate::storage::ReleaseOwnership { resource, me: self.ground.me.clone(), epoch };
        Ok(self.doors.store.write(release).await.map(drop)?)
    }

    async fn start(
        &self,
        chain: ChainId,
        incarnation: u32,
        root: Bead,
        settings: Settings,
        orders: Vec<Operator>,
    ) -> Result<Started, OrchestratorError> {
        let notices = self.watchers.subscribe();
        let (ended, ending) = watch::channel(None);
        let args = CoordinatorArgs {
            chain: chain.clone(),
            incarnation,
            root: Arc::new(root),
            settings: Arc::new(settings),
            orders,
            ended,
        };
        if !self.doors.chains.send(ChainsMsg::Run(Box::new(args))) {
            return Err(OrchestratorError::System { reason: "Chains is being restarted".to_owned() });
        }
        Ok(Started::Running(ChainHandle {
            chain,
            notices,
            chains: self.doors.chains.clone(),
            ended: ending,
            remarks: Vec::new(),
        }))
    }

    /// Ends what is left of this chain's agents: tools that escaped a process group that is gone.
    fn sweep_orphans(&self, chain: &ChainId) -> Result<(), OrchestratorError> {
        let reader = Reader::open(&self.ground.layout.database())?;
        let filter = crate::storage::JobFilter {
            scope: crate::storage::JobScope::All,
            chain: Some(chain.clone()),
            ..Default::default()
        };
        let jobs: Vec<crate::ids::JobId> = reader.jobs(&filter)?.into_iter().map(|row| row.job).collect();
        Ok(crate::exec::end_marked(&self.ground.root, |job| jobs.contains(job))?)
    }

    async fn settings(&self, kept: &Kept, script: Option<Script>) -> Result<Settings, OrchestratorError> {
        let rehearsal = match script {
            Some(script) => {
                let ledger = Arc::new(FileLedger::new(self.ground.layout.jobs()));
                Some(Rehearsal::serve(Arc::new(script), ledger).await?)
            }
            None => None,
        };
        let stall = kept.stall_seconds.map(|seconds| std::time::Duration::from_secs(u64::from(seconds)));
        Ok(Settings { model: kept.model.clone(), models: kept.models.clone(), stall, rehearsal })
    }

    fn keep_script(&self, chain: &ChainId, text: &str) -> Result<(), OrchestratorError> {
        let dir = self.ground.layout.chain(chain)?;
        let file = dir.rehearsal();
        fs::create_dir_all(dir.path()).and_then(|()| fs::write(&file, text)).map_err(|source| OrchestratorError::File {
            what: "keep the rehearsal's script in",
            path: file,
            source,
        })
    }

    /// Takes back what was kept for a chain that was never recorded.
    fn forget_script(&self, kept: &Kept) {
        // Of a chain that was recovered it may be the only copy.
        if kept.recovered.is_empty()
            && let Ok(dir) = self.ground.layout.chain(&kept.opening.chain)
        {
            // They may not be there at all, or hold what is not this chain's.
            drop(fs::remove_dir_all(dir.path()));
            drop(dir.path().parent().map(fs::remove_dir));
            drop(fs::remove_dir(self.ground.layout.base()));
        }
    }

    fn kept_script(&self, chain: &ChainId) -> Result<Script, OrchestratorError> {
        Ok(load(&self.ground.layout.chain(chain)?.rehearsal())?.0)
    }

    /// Another `project_id` is another database: a lost `metadata.json` gives an empty new one without an error.
    async fn same_workspace(&self, kept: &Kept) -> Result<(), OrchestratorError> {
        let found = self.ground.tracker.probe().await?.project_id;
        if found == kept.project_id {
            return Ok(());
        }
        let (chain, begun) = (kept.opening.chain.clone(), kept.project_id.clone());
        Err(OrchestratorError::OtherWorkspace { chain, begun, found })
    }

    /// A chain goes on with the model it was begun with: a rehearsal never turns into a real one, nor into another.
    fn same_model(&self, kept: &Kept, rehearse: Option<&Path>) -> Result<(), OrchestratorError> {
        let chain = kept.opening.chain.clone();
        let other = |begun, asked| Err(OrchestratorError::OtherModel { chain: chain.clone(), begun, asked });
        let Some(file) = rehearse else { return Ok(()) };
        if !kept.rehearsal {
            return other("with a real model", "as a rehearsal");
        }
        let (_, text) = load(file)?;
        let (_, first) = load(&self.ground.layout.chain(&chain)?.rehearsal())?;
        if text == first { Ok(()) } else { other("with one script", "with another script") }
    }
}

/// Reads what was kept of the request.
pub(super) fn kept(row: &ChainRow) -> Result<Kept, OrchestratorError> {
    serde_json::from_str(&row.request_json)
        .map_err(|error| OrchestratorError::Log { chain: row.chain.clone(), reason: error.to_string() })
}

pub(super) fn covered(script: &Script, shape: &Shape, file: &Path) -> Result<(), OrchestratorError> {
    let steps = shape.steps.iter().map(|step| (step.id.as_str(), step.role.as_str()));
    let roles: Vec<String> = script.uncovered(steps).into_iter().map(str::to_owned).collect();
    if roles.is_empty() {
        return Ok(());
    }
    Err(OrchestratorError::Uncovered { formula: shape.formula.clone(), file: file.to_owned(), roles })
}

/// The last digits of a number in base 36.
/// Makes an id for a chain, which is that of its molecule.
pub(super) fn new_chain(prefix: &str) -> ChainId {
    ChainId::new(format!("{prefix}-mol-{}", base36(Ulid::generate().random(), 8)))
}

fn base36(mut number: u128, digits: usize) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut text = String::with_capacity(digits);
    for _ in 0..digits {
        text.push(char::from(DIGITS[(number % 36) as usize]));
        number /= 36;
    }
    text
}

//! bd as a [`Tracker`]: one typed method a verb. Contract: bd 1.3.x; rules of a chain: pour, ready, claim, close.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::Value;

use super::classify::{Class, Trouble, batch_line};
use super::decode;
use super::run::{Call, Runner};
use super::{batch, locate};
use crate::ids::{BeadId, ChainId, StepId};
use crate::ports::{BatchOp, Bead, ClaimAnswer, GraphPlan, Pour, Release, Tracker, TrackerError, TrackerInfo};

/// The versions whose behaviour sp knows.
const NEEDED: &str = "1.3.x";

/// Pauses before a read that failed is asked again.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];

/// Time that one node of a graph may take on top.
const PER_NODE: Duration = Duration::from_millis(300);

/// The verb of a graph.
const CREATE: &str = "create";

/// Where bd, its workspace and the lock around it are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BdConfig {
    /// The program.
    pub program: PathBuf,
    /// Root of the main checkout; bd runs there.
    pub repository: PathBuf,
    /// The workspace: `.beads` of the main checkout, shared by all its worktrees.
    pub beads_dir: PathBuf,
    /// The lock file around each call, `.specialists/bd.lock`. Its directory is made by the first write.
    pub lock_file: PathBuf,
}

/// The tracker of one repository, driven as a subprocess.
#[derive(Debug)]
pub struct Bd {
    runner: Runner,
    /// Before each further try of a read that failed.
    pauses: [Duration; 2],
}

impl Bd {
    /// Prepares calls; nothing runs yet.
    pub fn new(config: BdConfig) -> Self {
        let BdConfig { program, repository, beads_dir, lock_file } = config;
        Self { runner: Runner::new(program, repository, beads_dir, lock_file), pauses: PAUSES }
    }

    /// Sets a variable for every bd process, over all others.
    #[cfg(test)]
    pub fn with_variable(mut self, name: &str, value: impl Into<std::ffi::OsString>) -> Self {
        self.runner.variables.push((name.into(), value.into()));
        self
    }

    /// Returns the program's version, such as `1.3.0`, supported or not; needs no workspace.
    ///
    /// # Errors
    /// `Missing` without bd, `Garbled` when the program is something else.
    pub async fn version(&self) -> Result<String, TrackerError> {
        let call = Call::bare("version");
        let answer = self.runner.run(&call).await?;
        decode::payload(&answer).and_then(decode::version).map_err(|trouble| self.error(&call, None, trouble))
    }

    /// Runs one call once and returns its payload. Writes go this way: they are never repeated blindly.
    async fn tell(&self, call: &Call) -> Result<Value, Trouble> {
        locate::check(&self.runner.beads_dir, &self.runner.repository).map_err(Trouble::Unanswered)?;
        let answer = self.runner.run(call).await.map_err(Trouble::Unanswered)?;
        decode::payload(&answer)
    }

    /// Runs one read and returns its payload; asks again where the failure may pass.
    async fn ask(&self, call: &Call) -> Result<Value, Trouble> {
        for pause in self.pauses {
            match self.tell(call).await {
                Err(trouble) if trouble.class() == Some(Class::Failed) => tokio::time::sleep(pause).await,
                settled => return settled,
            }
        }
        self.tell(call).await
    }

    fn error(&self, call: &Call, bead: Option<&BeadId>, trouble: Trouble) -> TrackerError {
        trouble.into_error(call.verb, bead, &self.runner.repository)
    }

    async fn list(&self, call: Call) -> Result<Vec<Bead>, TrackerError> {
        self.ask(&call).await.and_then(decode::beads).map_err(|trouble| self.error(&call, None, trouble))
    }

    /// Looks whether the beads of a plan are there.
    async fn is_poured(&self, plan: &GraphPlan) -> Result<bool, TrackerError> {
        let ids: Vec<&str> = plan.nodes.iter().map(|node| node.id.as_str()).collect();
        let call = Call::read("list").with("--id", ids.join(",")).with("--limit", "0");
        let found = self.list(call.flag("--all").flag("--include-gates").flag("--brief")).await?;
        Ok(decode::is_poured(plan, &found))
    }

    /// Looks who has a step, after a claim that gave nothing or no clear answer.
    async fn holder_of(&self, step: &BeadId, actor: &str) -> Result<ClaimAnswer, TrackerError> {
        let bead = self.show(step).await?;
        let bead = bead.ok_or_else(|| TrackerError::NotFound { verb: "ready", bead: step.clone() })?;
        Ok(claim_answer(bead, actor))
    }
}

/// Reads a claim from the bead's state. A bead at rest keeps its assignee; that is no hold.
fn claim_answer(bead: Bead, actor: &str) -> ClaimAnswer {
    match (bead.status.as_str(), bead.assignee) {
        ("in_progress" | "hooked", Some(holder)) if holder == actor => ClaimAnswer::Claimed,
        ("open" | "in_progress" | "hooked", Some(holder)) if holder != actor => ClaimAnswer::HeldBy(holder),
        _ => ClaimAnswer::NotReady { status: bead.status },
    }
}

/// Reads a release from the bead's state; `None` when the holder still has it.
fn release_answer(bead: &Bead, holder: &str) -> Option<Release> {
    match bead.assignee.as_deref() {
        None => Some(Release::Released),
        Some(other) if other != holder || bead.status == "closed" => Some(Release::NotHeld),
        Some(_) => None,
    }
}

/// A text for bd to read by a path: an argument of 200 kB fails in the kernel. In memory, so that no directory has to be
/// writable and nothing stays behind a kill.
struct Text(File);

impl Text {
    fn new(verb: &'static str, text: &[u8]) -> Result<Self, TrackerError> {
        let written = memfd_create("sp-bd", MemfdFlags::CLOEXEC).map_err(io::Error::from).and_then(|made| {
            let mut file = File::from(made);
            file.write_all(text)?;
            Ok(Self(file))
        });
        written.map_err(|source| TrackerError::Io { verb, source })
    }

    /// Returns its path for as long as it is held. By our process id: bd inherits nothing of it.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

fn plan_text(plan: &GraphPlan) -> Result<Text, TrackerError> {
    let text = serde_json::to_vec(plan).map_err(|source| TrackerError::Garbled { verb: CREATE, source })?;
    Text::new(CREATE, &text)
}

#[async_trait]
impl Tracker for Bd {
    async fn probe(&self) -> Result<TrackerInfo, TrackerError> {
        let version = self.version().await?;
        if !decode::is_supported(&version) {
            let program = self.runner.program.display().to_string();
            return Err(TrackerError::Unsupported { program, found: version, needed: NEEDED });
        }
        let call = Call::read("context");
        let context = self.ask(&call).await.and_then(decode::context);
        let context = context.map_err(|trouble| self.error(&call, None, trouble))?;
        let call = Call::read("where");
        let prefix = self.ask(&call).await.and_then(decode::prefix);
        let prefix = prefix.map_err(|trouble| self.error(&call, None, trouble))?;
        Ok(TrackerInfo { version, project_id: context.project_id, prefix, beads_dir: context.beads_dir })
    }

    async fn show(&self, bead: &BeadId) -> Result<Option<Bead>, TrackerError> {
        // Dependents bring the children in the same call; brief, since a hub may have many long ones.
        let call = Call::read("show").with("--id", bead.as_str()).flag("--include-dependents").flag("--brief-deps");
        match self.ask(&call).await.and_then(decode::beads) {
            // bd takes an abbreviation too and answers with another id; to us that is no such bead.
            Ok(found) => Ok(found.into_iter().find(|found| found.id == bead.as_str())),
            Err(trouble) if trouble.class() == Some(Class::NotFound) => Ok(None),
            Err(trouble) => Err(self.error(&call, Some(bead), trouble)),
        }
    }

    async fn children(&self, parent: &BeadId) -> Result<Vec<Bead>, TrackerError> {
        let call = Call::read("list").with("--parent", parent.as_str()).with("--status", "all").with("--limit", "0");
        self.list(call.flag("--include-gates")).await
    }

    async fn molecules_of(&self, bead: &BeadId) -> Result<Vec<Bead>, TrackerError> {
        let call = Call::read("list").with("--metadata-field", format!("sp_bead={bead}")).with("--type", "molecule");
        self.list(call.with("--limit", "0").flag("--all")).await
    }

    async fn ready_steps(&self) -> Result<Vec<BeadId>, TrackerError> {
        let call = Call::read("ready").with("--label", "kind:step").with("--limit", "0");
        let ready = self.list(call.flag("--unassigned").flag("--brief")).await?;
        Ok(ready.into_iter().map(|bead| BeadId::new(bead.id)).collect())
    }

    async fn claim_step(&self, chain: &ChainId, step: &StepId, actor: &str) -> Result<ClaimAnswer, TrackerError> {
        let bead = chain.step_bead(step);
        let call = Call::write("ready").flag("--claim").flag("--unassigned").with("--actor", actor);
        let call = call.with("--parent", chain.as_str()).with("--metadata-field", format!("sp_step={step}"));
        let trouble = match self.tell(&call).await.and_then(decode::beads) {
            Ok(claimed)
                if claimed
                    .iter()
                    .any(|found| found.id == bead.as_str() && found.assignee.as_deref() == Some(actor)) =>
            {
                return Ok(ClaimAnswer::Claimed);
            }
            Ok(claimed) if claimed.is_empty() => return self.holder_of(&bead, actor).await,
            Ok(other) => {
                let reason = format!("asked for {bead}, claimed {}", other[0].id);
                return Err(TrackerError::Failed { verb: call.verb, reason });
            }
            Err(trouble) => trouble,
        };
        // The actor's name is new for each epoch, so a bead held under it can only be the fruit of this call.
        if trouble.is_uncertain() && matches!(self.holder_of(&bead, actor).await, Ok(ClaimAnswer::Claimed)) {
            return Ok(ClaimAnswer::Claimed);
        }
        Err(self.error(&call, Some(&bead), trouble))
    }

    async fn hold(&self, bead: &BeadId, chain: &ChainId) -> Result<(), TrackerError> {
        // `update`, since `batch` sets no metadata. It makes no lease, as a claim would, and protects another's hold.
        let holder = format!("sp/{chain}");
        let call = Call::write("update").with("--status", "in_progress").with("--assignee", &holder);
        let call = call.with("--set-metadata", format!("sp_chain={chain}")).on(bead.as_str());
        let held = self.tell(&call).await.and_then(|payload| decode::held(payload, bead, &holder));
        held.map_err(|trouble| self.error(&call, Some(bead), trouble))
    }

    async fn release(&self, bead: &BeadId, holder: &str, reason: &str) -> Result<Release, TrackerError> {
        let call = Call::write("unclaim").with("--if-assignee", holder).with("--reason", reason).on(bead.as_str());
        let trouble = match self.tell(&call).await.and_then(decode::beads) {
            Ok(_) => return Ok(Release::Released),
            Err(trouble) if trouble.class() == Some(Class::NotHeld) => return Ok(Release::NotHeld),
            Err(trouble) => trouble,
        };
        // A closed or blocked bead is refused in words that don't say who holds it.
        let worth_a_look = trouble.is_uncertain() || trouble.class() == Some(Class::Refused);
        if worth_a_look
            && let Ok(Some(found)) = self.show(bead).await
            && let Some(answer) = release_answer(&found, holder)
        {
            return Ok(answer);
        }
        Err(self.error(&call, Some(bead), trouble))
    }

    async fn append_note(&self, bead: &BeadId, text: &str, actor: &str) -> Result<(), TrackerError> {
        let verb = "note";
        // By file, since `--stdin` drops line breaks at the end.
        let file = Text::new(verb, text.as_bytes())?;
        let call = Call::write(verb).with("--file", file.path()).with("--actor", actor).on(bead.as_str());
        let noted = self.tell(&call).await.and_then(decode::beads);
        let noted = noted.map_err(|trouble| self.error(&call, Some(bead), trouble))?;
        if noted.iter().any(|found| found.id == bead.as_str()) {
            return Ok(());
        }
        Err(TrackerError::NotFound { verb, bead: bead.clone() })
    }

    async fn batch(&self, operations: &[BatchOp], message: &str) -> Result<(), TrackerError> {
        if operations.is_empty() {
            return Ok(());
        }
        let file = Text::new("batch", batch::script(operations).as_bytes())?;
        let call = Call::write("batch").with("--file", file.path()).with("--message", message);
        let trouble = match self.tell(&call).await.and_then(|payload| decode::applied(payload, operations.len())) {
            Ok(()) => return Ok(()),
            Err(trouble) => trouble,
        };
        let line = match &trouble {
            Trouble::Said(complaint) => batch_line(&complaint.reason),
            Trouble::Garbled(_) | Trouble::Unanswered(_) => None,
        };
        let bead = line.and_then(|line| operations.get(line.checked_sub(1)?)).map(|operation| match operation {
            BatchOp::Close { bead, .. } | BatchOp::Update { bead, .. } => bead,
        });
        Err(self.error(&call, bead, trouble))
    }

    async fn check_pour(&self, plan: &GraphPlan) -> Result<(), TrackerError> {
        let file = plan_text(plan)?;
        let call = Call::read(CREATE).with("--graph", file.path()).flag("--dry-run");
        let checked = self.ask(&call).await.and_then(|payload| decode::checked(payload, plan));
        checked.map_err(|trouble| self.error(&call, None, trouble))
    }

    async fn pour(&self, plan: &GraphPlan) -> Result<Pour, TrackerError> {
        let file = plan_text(plan)?;
        let nodes = u32::try_from(plan.nodes.len()).unwrap_or(u32::MAX);
        let call = Call::write(CREATE).with("--graph", file.path()).longer(PER_NODE.saturating_mul(nodes));
        let trouble = match self.tell(&call).await.and_then(|payload| decode::created(payload, plan)) {
            Ok(()) => return Ok(Pour::Created),
            Err(trouble) => trouble,
        };
        // "Already exists" may also be a foreign bead under one of our ids: adopt only what is wholly ours.
        let worth_a_look = trouble.is_uncertain() || trouble.class() == Some(Class::AlreadyExists);
        if worth_a_look && matches!(self.is_poured(plan).await, Ok(true)) {
            return Ok(Pour::AlreadyThere);
        }
        Err(self.error(&call, None, trouble))
    }

    async fn create_worktree(&self, path: &Path, branch: &str) -> Result<(), TrackerError> {
        let call = Call::write("worktree create").with("--branch", branch).on(path);
        let made = self.tell(&call).await.and_then(|payload| decode::worktree_on(payload, branch));
        // Raised at once with bd's words (R0-055), unless it is known to pass: git has many ways to say no.
        made.map_err(|trouble| self.error(&call, None, trouble.unknown_is_refusal()))
    }
}

#[cfg(test)]
mod tests;

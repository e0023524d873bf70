//! What an activation needs before its session can start: prompt, files, and where its model is.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::chain::context::{
    Access, DiffText, Handoff, PromptInput, PromptParts, RoundFinding, StepProgress, StepStatus, compose, facts_from,
    resume_text, round_text,
};
use crate::chain::machine::{Activity, ChainState, Outcome, Phase, StepState};
use crate::chain::scrutiny::Scrutiny;
use crate::chain::shape::{Class, Step, Writer};
use crate::chain::test_paths::TEST_PATHS;
use crate::ids::{JobId, StepId};
use crate::messages::Activation;
use crate::pi::SessionTask;
use crate::ports::{Clock, DiffStat, Launch, ModelSource, TreeState, Workspace};
use crate::specialist::{Contract, Roster, Specialist, TaskVars, Tier, render_task, system_text};
use crate::storage::{JobDir, JobEventRow, JobFiles, JobRow, JobStatus, Layout, Reader, StoreError};

/// Silence that counts as a stall where the specialist does not say (chain-rules, "Work").
const STALL: Duration = Duration::from_secs(300);
/// Silence that is remarked.
const WARN: Duration = Duration::from_secs(60);

/// Where activations are prepared: what does not change while a system runs.
pub struct Workshop {
    /// Root of the repository.
    pub root: PathBuf,
    /// Its files.
    pub layout: Layout,
    /// Its branches and diffs.
    pub workspace: Arc<dyn Workspace>,
    /// Its specialists.
    pub roster: Arc<Roster>,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
}

/// Everything that a Job needs.
#[derive(Debug)]
pub struct Prepared {
    pub(super) launch: Launch,
    /// The whole task, for a session that holds nothing.
    pub(super) first: String,
    /// The task of a further round, for a session that holds an earlier one.
    pub(super) further: String,
    /// What an interrupted session is told.
    pub(super) go_on: String,
    /// What the session holds of this job's task already.
    pub(super) task: Option<SessionTask>,
    /// Rows of the timeline that an earlier incarnation wrote to its file and not to the database.
    pub(super) unstored: Vec<JobEventRow>,
    /// Whether the session holds an earlier round of the step.
    pub(super) continued: bool,
    pub(super) contract: Arc<Contract>,
    pub(super) class: Class,
    pub(super) row: JobRow,
    pub(super) dir: JobDir,
    pub(super) stall: Duration,
    pub(super) warn: Duration,
    pub(super) timeout: Option<Duration>,
    pub(super) writes: bool,
    pub(super) last_try: bool,
}

impl Workshop {
    /// Prepares an activation, or returns what it came to: an earlier incarnation may have settled it.
    pub(super) async fn prepare(&self, activation: &Activation) -> Result<Prepared, Outcome> {
        let chain = &activation.chain;
        let step =
            chain.shape.step(&activation.step).ok_or_else(|| fault("no_such_step", activation.step.to_string()))?;
        let specialist = self.roster.get(&step.role).map_err(|error| fault("no_such_specialist", error.to_string()))?;
        let tree = chain.tree.as_ref().ok_or_else(|| fault("no_worktree", "the chain has no worktree yet".into()))?;
        if !Path::new(&tree.path).is_dir() {
            return Err(fault("worktree_missing", format!("the worktree {} is missing", tree.path)));
        }
        let dir = self.layout.job(&activation.job).map_err(|error| fault("bad_job_id", error.to_string()))?;
        // One reader for all that is asked: opening one costs more than the questions.
        let reader = Reader::open(&self.layout.database()).map_err(|error| fault("store", error.to_string()))?;
        let stored = stored(&reader, activation)?;
        fs::create_dir_all(dir.upstream()).map_err(written(dir.path()))?;
        let upstream = handoffs(&reader, chain, step, &dir)?;
        drop(reader);
        self.look(&dir, Path::new(&tree.path)).await?;

        let continued = self.continue_session(chain, step, &activation.job, &dir)?;
        let marker = marker(&activation.job);
        let task = fs::read(dir.session()).ok().and_then(|bytes| SessionTask::read(&bytes, &marker));
        let unstored = match &stored {
            Some(_) => self.mend_timeline(&activation.job, &dir)?,
            None => Vec::new(),
        };
        let parts = self.parts(activation, step, &dir, upstream).await?;
        let first = format!("{}\n\n{marker}\n", render_task(specialist, &vars(&parts)));
        let round = chain.steps.get(&step.id).map_or(1, |state| state.round);
        let further = format!("{}\n{marker}\n", round_text(&parts, round));
        fs::write(dir.prompt(), if continued { &further } else { &first }).map_err(written(&dir.prompt()))?;
        fs::write(dir.system(), system_text(specialist)).map_err(written(&dir.system()))?;
        let stall = activation.settings.stall.or_else(|| specialist.stall()).unwrap_or(STALL);
        Ok(Prepared {
            launch: self.launch(activation, step, specialist, &dir, PathBuf::from(&tree.path), round),
            first,
            further,
            go_on: resume_text(&step.description),
            task,
            unstored,
            continued,
            contract: Arc::clone(specialist.contract()),
            class: step.class,
            row: self.row(activation, step, stored),
            stall,
            warn: WARN.min(stall / 2),
            timeout: specialist.timeout(),
            writes: step.writer.is_some(),
            last_try: activation.last_try,
            dir,
        })
    }

    /// Brings file and rows of an earlier incarnation together; returns the rows that the database lacks.
    fn mend_timeline(&self, job: &JobId, dir: &JobDir) -> Result<Vec<JobEventRow>, Outcome> {
        let store = |error: StoreError| fault("store", error.to_string());
        let stored = Reader::open(&self.layout.database()).and_then(|reader| reader.job_events(job, 0));
        JobFiles::open(dir.clone()).and_then(|mut files| files.mend(&stored?)).map_err(store)
    }

    /// Keeps how the tree was when the job first began: what a reader changes is judged against that.
    async fn look(&self, dir: &JobDir, tree: &Path) -> Result<(), Outcome> {
        let file = before_file(dir);
        if file.exists() {
            return Ok(());
        }
        let state = self.workspace.state(tree).await.map_err(|error| fault("git", error.to_string()))?;
        let text = serde_json::to_vec(&state).map_err(|error| fault("internal", error.to_string()))?;
        replace(&file, &text).map_err(written(&file))
    }

    /// A further round goes on in the session of the newest earlier one: its file is copied once.
    fn continue_session(&self, chain: &ChainState, step: &Step, job: &JobId, dir: &JobDir) -> Result<bool, Outcome> {
        let round = chain.steps.get(&step.id).map_or(1, |state| state.round);
        let earlier = (1..round).rev().find_map(|round| {
            let session = self.layout.job(&chain.job_of(&step.id, round)).ok()?.session();
            session.is_file().then_some(session)
        });
        let Some(earlier) = earlier else { return Ok(false) };
        debug_assert_ne!(chain.job_of(&step.id, round - 1), *job);
        if !dir.session().exists() {
            let bytes = fs::read(&earlier).map_err(written(&earlier))?;
            replace(&dir.session(), &bytes).map_err(written(&dir.session()))?;
        }
        Ok(true)
    }

    async fn parts(
        &self,
        activation: &Activation,
        step: &Step,
        dir: &JobDir,
        upstream: Vec<Handoff>,
    ) -> Result<PromptParts, Outcome> {
        let chain = &activation.chain;
        let tree = chain.tree.as_ref().map(|tree| tree.path.clone()).unwrap_or_default();
        let progress = progress(chain);
        let scrutiny = |name: &str| name.parse::<Scrutiny>().unwrap_or(Scrutiny::Medium);
        let levels = (scrutiny(&chain.scrutiny.stated), scrutiny(&chain.scrutiny.effective));
        let facts = facts_from(&chain.shape, &chain.chain, &chain.bead, &step.id, levels, &progress, &tree)
            .map_err(|error| fault("internal", error.to_string()))?;
        let state = chain.steps.get(&step.id);
        let round = state.map_or(1, |state| state.round);
        let (findings, operator_note) = self.findings(chain, step, state, round);
        let access = match step.writer {
            None => Access::ReadOnly,
            Some(Writer::Primary) => Access::Write,
            Some(Writer::Secondary) => Access::WriteOnly(TEST_PATHS.iter().map(|glob| (*glob).to_owned()).collect()),
        };
        let agents_md = match step.writer {
            Some(_) => fs::read_to_string(Path::new(&tree).join("AGENTS.md")).ok(),
            None => None,
        };
        let input = PromptInput {
            facts,
            access,
            shell: step.tier >= Tier::Low,
            root_title: activation.root.title.clone(),
            contract: activation.root.description.clone(),
            mandate: step.description.clone(),
            step_notes: step.notes.clone(),
            round,
            findings,
            operator_note,
            upstream,
            diff: self.diff(chain, step, dir).await?,
            agents_md,
        };
        Ok(compose(&input))
    }

    /// What this round asks of the step: the findings of the gate that opened it, or the operator's note.
    fn findings(
        &self,
        chain: &ChainState,
        step: &Step,
        state: Option<&StepState>,
        round: u32,
    ) -> (Vec<RoundFinding>, Option<String>) {
        let Some(text) = state.and_then(|state| state.findings.clone()) else { return (Vec::new(), None) };
        let Some(gate) = state.and_then(|state| state.sent_back_by.clone()) else { return (Vec::new(), Some(text)) };
        let job = chain.job_of(&gate, round.saturating_sub(1));
        let file = self.layout.job(&job).ok().map(|dir| dir.result().to_string_lossy().into_owned());
        let role = chain.shape.step(&gate).map_or_else(|| step.role.clone(), |gate| gate.role.clone());
        (vec![RoundFinding { role, job, verdict: "FAIL".to_owned(), text, file }], None)
    }

    async fn diff(&self, chain: &ChainState, step: &Step, dir: &JobDir) -> Result<Option<DiffText>, Outcome> {
        let head = chain.upstream_commit(&step.id).to_owned();
        if head == chain.base {
            return Ok(None);
        }
        let git = |error: crate::ports::WorkspaceError| fault("git", error.to_string());
        let bytes = self.workspace.diff(&chain.base, &head).await.map_err(git)?;
        let stat: DiffStat = self.workspace.diff_stat(&chain.base, &head).await.map_err(git)?;
        replace(&dir.diff(), &bytes).map_err(written(&dir.diff()))?;
        Ok(Some(DiffText {
            base: chain.base.clone(),
            head,
            stat,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            file: dir.diff().to_string_lossy().into_owned(),
        }))
    }

    fn launch(
        &self,
        activation: &Activation,
        step: &Step,
        specialist: &Specialist,
        dir: &JobDir,
        tree: PathBuf,
        round: u32,
    ) -> Launch {
        let tier: Tier = step.tier;
        let model = match &activation.settings.rehearsal {
            Some(serving) => ModelSource::Rehearsal {
                base_url: serving.base_url(&activation.job, &step.id, &step.role, round),
                model: format!("rehearsal/{}", step.role),
                agent_dir: dir.agent_dir(),
            },
            None => ModelSource::User {
                model: {
                    let by_role = activation.settings.models.of(&step.role, specialist.model()).map(str::to_owned);
                    activation.settings.model.clone().or(by_role)
                },
            },
        };
        Launch {
            job: activation.job.clone(),
            root: self.root.clone(),
            cwd: tree.clone(),
            session_file: dir.session(),
            system_prompt_file: dir.system(),
            tools: tier.tools(),
            boundary: Some(tree),
            job_dir: dir.path().to_owned(),
            model,
            thinking: specialist.thinking().map(|level| level.as_str().to_owned()),
        }
    }

    fn row(&self, activation: &Activation, step: &Step, stored: Option<JobRow>) -> JobRow {
        let now = self.clock.now_ms();
        let chain = &activation.chain;
        let mut row = stored.unwrap_or_else(|| JobRow::starting(activation.job.clone(), step.role.clone(), now));
        row.status = JobStatus::Starting;
        row.epoch = activation.epoch;
        row.round = chain.steps.get(&step.id).map_or(1, |state| state.round);
        row.bead = Some(chain.chain.step_bead(&step.id));
        row.chain = Some(chain.chain.clone());
        row.root_bead = Some(chain.bead.clone());
        row.step = Some(step.id.clone());
        row.outcome = None;
        row.error = None;
        row.worktree_path = chain.tree.as_ref().map(|tree| tree.path.clone());
        row.branch = chain.tree.as_ref().map(|tree| tree.branch.clone());
        row.updated_at_ms = now;
        row
    }
}

/// Returns the stored record of the job; `Err` when an incarnation settled what is asked for.
fn stored(reader: &Reader, activation: &Activation) -> Result<Option<JobRow>, Outcome> {
    let Some(row) = reader.job(&activation.job).map_err(|error| fault("store", error.to_string()))? else {
        return Ok(None);
    };
    let outcome = row.outcome.as_deref().and_then(|text| serde_json::from_str::<Outcome>(text).ok());
    match outcome {
        Some(outcome) if outcome.is_final() || row.epoch == activation.epoch || row.status.is_terminal() => {
            Err(outcome)
        }
        Some(_) | None => Ok(Some(row)),
    }
}

/// The results of the steps above, each also as a file of this job that a role without a shell can read.
fn handoffs(reader: &Reader, chain: &ChainState, step: &Step, dir: &JobDir) -> Result<Vec<Handoff>, Outcome> {
    let mut handoffs = Vec::new();
    for above in chain.shape.ancestors(&step.id) {
        let Some(state) = chain.steps.get(&above.id) else { continue };
        let Some(job) = state.job.clone() else { continue };
        let result = reader.result(&job).map_err(|error| fault("store", error.to_string()))?;
        let Some(result) = result else { continue };
        let file = dir.upstream().join(format!("{}.txt", above.id));
        replace(&file, result.as_bytes()).map_err(written(&file))?;
        handoffs.push(Handoff {
            role: above.role.clone(),
            bead: chain.chain.step_bead(&above.id),
            job,
            verdict: state.summary.clone().filter(|_| above.class == Class::Gate),
            accepted: state.by_operator,
            result,
            file: file.to_string_lossy().into_owned(),
        });
    }
    Ok(handoffs)
}

/// Reads how the tree was when a job first began.
pub(super) fn before(dir: &JobDir) -> io::Result<TreeState> {
    serde_json::from_slice(&fs::read(before_file(dir))?).map_err(io::Error::other)
}

fn before_file(dir: &JobDir) -> PathBuf {
    dir.path().join("before.json")
}

/// The line that tells, in a session file, that it holds the task of this job.
pub(super) fn marker(job: &JobId) -> String {
    format!("(sp job {job})")
}

fn vars(parts: &PromptParts) -> TaskVars<'_> {
    TaskVars {
        chain_context: &parts.chain_context,
        contract: &parts.contract,
        step_contract: &parts.step_contract,
        upstream: &parts.upstream,
        diff: &parts.diff,
        notes: &parts.notes,
        worktree_boundary: &parts.worktree_boundary,
        findings: &parts.findings,
    }
}

/// How far each step is, in the words of the envelope.
fn progress(chain: &ChainState) -> BTreeMap<StepId, StepProgress> {
    chain
        .steps
        .iter()
        .map(|(id, state)| {
            let status = match &state.phase {
                Phase::Pending => StepStatus::Pending,
                Phase::Active(Activity::Interrupted | Activity::Claiming) => StepStatus::Waiting,
                Phase::Active(_) => StepStatus::Running,
                Phase::Closed => StepStatus::Completed,
                Phase::Blocked { .. } => StepStatus::Failed,
            };
            (id.clone(), StepProgress { status, job: state.job.clone() })
        })
        .collect()
}

fn fault(code: &str, detail: String) -> Outcome {
    Outcome::Failed { retry: false, code: code.to_owned(), detail }
}

fn written(path: &Path) -> impl FnOnce(io::Error) -> Outcome + use<> {
    let path = path.to_owned();
    move |error| fault("job_file", format!("write {}: {error}", path.display()))
}

/// Writes beside the file and renames, so that a reader sees the old or the new one.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    fs::write(&draft, bytes)?;
    fs::rename(&draft, path)
}

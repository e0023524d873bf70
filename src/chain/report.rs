//! What a run of a chain came to: the one report at its end, also for `sp chain show`.

use serde::Serialize;

use super::contract::ContractView;
use super::machine::{Activity, ChainState, Phase, Status, StepState};
use super::shape::{Class, Step};
use crate::ports::DiffStat;

/// What a job used, as its row has it.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFacts {
    /// Job.
    pub job: String,
    /// Its step.
    pub step: String,
    /// How it stands, in the job's words.
    pub status: String,
    /// Wall clock of its start and of its last word, ms since 1970 UTC.
    pub started_ms: i64,
    /// Wall clock of its last word.
    pub ended_ms: i64,
    /// Tokens read, cached ones included.
    pub input_tokens: i64,
    /// Tokens written.
    pub output_tokens: i64,
    /// US dollars.
    pub cost_usd: f64,
}

/// All that a report is made of.
#[derive(Debug, Clone)]
pub struct ReportFacts<'a> {
    /// The chain, folded.
    pub chain: &'a ChainState,
    /// Ref that the base was named by.
    pub base_ref: Option<&'a str>,
    /// The contract as it was understood when the chain began.
    pub contract: Option<ContractView>,
    /// Wall clock of the chain's opening and of its newest event, ms since 1970 UTC.
    pub opened_ms: i64,
    /// Wall clock of its newest event.
    pub last_ms: i64,
    /// Its jobs.
    pub jobs: &'a [JobFacts],
    /// Size of the change, where it is known.
    pub diff: Option<DiffStat>,
    /// What policy and the chain remarked.
    pub findings: &'a [String],
}

/// One step of a report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepReport {
    /// Step.
    pub step: String,
    /// Its specialist.
    pub role: String,
    /// `step` or `gate`.
    pub class: Class,
    /// pending, running, passed, accepted or blocked.
    pub outcome: &'static str,
    /// Bead of the step.
    pub bead: String,
    /// Newest job; its result is shown by `sp result`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Jobs it took, one a round.
    pub rounds: u32,
    /// Time that its jobs ran, in ms.
    pub duration_ms: i64,
    /// Tokens read, cached ones included.
    pub input_tokens: i64,
    /// Tokens written.
    pub output_tokens: i64,
    /// US dollars, as pi reckons them.
    pub cost_usd: f64,
    /// Commit that it made or judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// One line of its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why it waits for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<BlockedReport>,
    /// Steps that it needs.
    pub needs: Vec<String>,
}

/// Why a step waits for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockedReport {
    /// Stable code.
    pub code: String,
    /// What happened.
    pub detail: String,
}

/// Scrutiny as stated and as it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScrutinyReport {
    /// As stated.
    pub stated: String,
    /// Never below.
    pub effective: String,
}

/// Where the work is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkReport {
    /// Ref that the work is based on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_ref: Option<String>,
    /// Its commit.
    pub base_sha: String,
    /// Branch of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Newest commit of the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_sha: Option<String>,
    /// Worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// Size of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<DiffStat>,
}

/// What a run of a chain came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChainReport {
    /// The chain, and its molecule in bd.
    pub chain_id: String,
    /// The contract bead.
    pub root_bead_id: String,
    /// Formula.
    pub formula: String,
    /// composing, running, blocked, ready_to_merge, published, stopped, cancelled or abandoned.
    pub status: &'static str,
    /// Why it stands so, where that needs a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Scrutiny.
    pub scrutiny: ScrutinyReport,
    /// The contract as it was understood when the chain began; bd has the text, and the present one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<ContractView>,
    /// Rounds, from 1.
    pub rounds: u32,
    /// From the opening to the newest event, in ms.
    pub duration_ms: i64,
    /// Sums over all steps.
    pub input_tokens: i64,
    /// Tokens written.
    pub output_tokens: i64,
    /// US dollars.
    pub cost_usd: f64,
    /// Where the work is.
    pub work: WorkReport,
    /// Steps in order.
    pub steps: Vec<StepReport>,
    /// Remarks that decide nothing.
    pub findings: Vec<String>,
    /// What to do next: commands that are safe to run.
    pub next: Vec<String>,
}

impl ChainReport {
    /// Makes a report.
    pub fn new(facts: &ReportFacts<'_>) -> Self {
        let chain = facts.chain;
        let steps: Vec<StepReport> = chain.in_order().map(|(step, state)| step_report(facts, step, state)).collect();
        let tree = chain.tree.as_ref();
        Self {
            chain_id: chain.chain.to_string(),
            root_bead_id: chain.bead.to_string(),
            formula: chain.shape.formula.clone(),
            status: status_word(&chain.status),
            why: why(&chain.status),
            scrutiny: ScrutinyReport {
                stated: chain.scrutiny.stated.clone(),
                effective: chain.scrutiny.effective.clone(),
            },
            contract: facts.contract.clone(),
            rounds: chain.round,
            duration_ms: facts.last_ms - facts.opened_ms,
            input_tokens: steps.iter().map(|step| step.input_tokens).sum(),
            output_tokens: steps.iter().map(|step| step.output_tokens).sum(),
            cost_usd: sum(steps.iter().map(|step| step.cost_usd)),
            work: WorkReport {
                base_ref: facts.base_ref.map(str::to_owned),
                base_sha: chain.base.clone(),
                branch: tree.map(|tree| tree.branch.clone()),
                head_sha: tree.map(|tree| tree.head.clone()),
                worktree: tree.map(|tree| tree.path.clone()),
                diff: facts.diff,
            },
            next: next(chain),
            steps,
            findings: facts.findings.to_vec(),
        }
    }

    /// Returns the steps that wait for people.
    pub fn blocked(&self) -> impl Iterator<Item = (&StepReport, &BlockedReport)> {
        self.steps.iter().filter_map(|step| step.blocked.as_ref().map(|why| (step, why)))
    }

    /// Returns how many steps passed.
    pub fn passed(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.outcome, "passed" | "accepted")).count()
    }
}

fn step_report(facts: &ReportFacts<'_>, step: &Step, state: &StepState) -> StepReport {
    let jobs: Vec<&JobFacts> = facts.jobs.iter().filter(|job| job.step == step.id.as_str()).collect();
    let blocked = match &state.phase {
        Phase::Blocked { why, .. } => Some(BlockedReport { code: why.code.clone(), detail: why.detail.clone() }),
        Phase::Pending | Phase::Active(_) | Phase::Closed => None,
    };
    StepReport {
        step: step.id.to_string(),
        role: step.role.clone(),
        class: step.class,
        outcome: outcome(state),
        bead: facts.chain.chain.step_bead(&step.id).to_string(),
        job: state.job.as_ref().map(ToString::to_string),
        rounds: u32::try_from(jobs.len()).unwrap_or(u32::MAX),
        duration_ms: jobs.iter().map(|job| (job.ended_ms - job.started_ms).max(0)).sum(),
        input_tokens: jobs.iter().map(|job| job.input_tokens).sum(),
        output_tokens: jobs.iter().map(|job| job.output_tokens).sum(),
        cost_usd: sum(jobs.iter().map(|job| job.cost_usd)),
        commit: state.commit.clone(),
        summary: state.summary.clone(),
        blocked,
        needs: step.needs.iter().map(ToString::to_string).collect(),
    }
}

/// Adds up from zero: `sum()` of no floats at all is -0, which JSON shows.
fn sum(costs: impl Iterator<Item = f64>) -> f64 {
    costs.fold(0.0, |sum, cost| sum + cost)
}

fn outcome(state: &StepState) -> &'static str {
    match &state.phase {
        Phase::Pending => "pending",
        Phase::Active(Activity::Interrupted) => "interrupted",
        Phase::Active(_) => "running",
        Phase::Closed if state.by_operator => "accepted",
        Phase::Closed => "passed",
        Phase::Blocked { .. } => "blocked",
    }
}

/// Returns the word for a chain's status, as the database and `--json` have it.
pub fn status_word(status: &Status) -> &'static str {
    match status {
        Status::Opened | Status::Poured | Status::Held => "composing",
        Status::Running => "running",
        Status::Blocked => "blocked",
        Status::Stopped { .. } => "stopped",
        Status::Ready => "ready_to_merge",
        Status::Published => "published",
        Status::Abandoned => "abandoned",
        Status::Cancelled { .. } => "cancelled",
    }
}

fn why(status: &Status) -> Option<String> {
    match status {
        Status::Stopped { why } | Status::Cancelled { why } => Some(why.clone()),
        _ => None,
    }
}

/// Whether a step is blocked in a way that files which git ignores may have caused.
fn lacks_files(state: &StepState) -> bool {
    let codes = ["hook_refused", "test_infrastructure", "tests_not_runnable"];
    matches!(&state.phase, Phase::Blocked { why, .. } if codes.contains(&why.code.as_str()))
}

fn next(chain: &ChainState) -> Vec<String> {
    let id = &chain.chain;
    let branch = chain.tree.as_ref().map_or("", |tree| tree.branch.as_str());
    match &chain.status {
        Status::Opened | Status::Poured | Status::Held | Status::Running => vec![format!("sp feed {id} -f")],
        Status::Stopped { .. } => vec![format!("sp chain resume {id}")],
        Status::Ready => vec![
            format!("git diff {}...{branch}", chain.base.get(..12).unwrap_or(&chain.base)),
            format!("git merge --no-ff {branch}"),
            format!("sp chain resume {id}   # after the merge: closes {id} and {}", chain.bead),
        ],
        Status::Blocked => {
            let mut next: Vec<String> = chain
                .in_order()
                .filter(|(_, state)| matches!(state.phase, Phase::Blocked { .. }))
                .filter_map(|(_, state)| state.job.as_ref().map(|job| format!("sp result {job}")))
                .collect();
            if chain.steps.values().any(lacks_files) {
                next.push("# git-ignored files (node_modules, .env) are not in a fresh worktree: make them there if a command needs them".to_owned());
            }
            next.push(format!("sp chain resume {id} --note \"what to do\" [--from STEP]"));
            next
        }
        Status::Published | Status::Abandoned | Status::Cancelled { .. } => Vec::new(),
    }
}

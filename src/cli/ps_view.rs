//! Jobs as `sp ps` shows them: a table of many, a card of one.

use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::figures::{cost, count, moment, span};
use super::output::Human;
use super::standing::Owners;
use super::table::{Table, one_line};
use crate::ids::{BeadId, ChainId, JobId, StepId};
use crate::storage::{JobRow, JobTotals};

/// One job. Times are ms since 1970 UTC.
#[derive(Debug, Serialize)]
pub struct JobView {
    id: JobId,
    specialist: String,
    /// The stored word, or `dead`.
    status: &'static str,
    is_dead: bool,
    chain_id: Option<ChainId>,
    step: Option<StepId>,
    /// The bead it works on: the step's in a chain.
    bead_id: Option<BeadId>,
    root_bead_id: Option<BeadId>,
    round: u32,
    epoch: u32,
    model: Option<String>,
    started_at_ms: i64,
    updated_at_ms: i64,
    completed_at_ms: Option<i64>,
    /// Until its end, or until now.
    elapsed_ms: i64,
    totals: JobTotals,
    context_pct: Option<f64>,
    current_tool: Option<String>,
    /// JSON as it is stored: read only where it is printed.
    #[serde(serialize_with = "as_json")]
    outcome: Option<String>,
    error: Option<String>,
    branch: Option<String>,
    worktree_path: Option<String>,
    pid: Option<u32>,
}

impl JobView {
    /// Looks at a job, at `now_ms`.
    pub fn of(job: JobRow, owners: &Owners<'_>, now_ms: i64) -> Self {
        let (status, is_dead) = (owners.job_word(&job), owners.is_dead(&job));
        // Nobody knows when a dead one died; the last record is the nearest.
        let until = job.completed_at_ms.unwrap_or(if is_dead { job.updated_at_ms } else { now_ms });
        Self {
            elapsed_ms: (until - job.started_at_ms).max(0),
            id: job.job,
            specialist: job.specialist,
            status,
            is_dead,
            chain_id: job.chain,
            step: job.step,
            bead_id: job.bead,
            root_bead_id: job.root_bead,
            round: job.round,
            epoch: job.epoch,
            model: job.model,
            started_at_ms: job.started_at_ms,
            updated_at_ms: job.updated_at_ms,
            completed_at_ms: job.completed_at_ms,
            totals: job.totals,
            context_pct: job.context_pct,
            current_tool: job.current_tool,
            outcome: job.outcome,
            error: job.error,
            branch: job.branch,
            worktree_path: job.worktree_path,
            pid: job.pid,
        }
    }

    /// Returns what it works on: the contract bead, with the step where that says more than the specialist's name.
    fn work(&self) -> String {
        let bead = self.root_bead_id.as_ref().or(self.bead_id.as_ref()).map(BeadId::as_str);
        let step = self.step.as_ref().map(StepId::as_str).filter(|step| *step != self.specialist);
        match (bead, step) {
            (Some(bead), Some(step)) => format!("{bead} {step}"),
            (Some(one), None) | (None, Some(one)) => one.to_owned(),
            (None, None) => "-".to_owned(),
        }
    }

    fn tokens(&self) -> i64 {
        let totals = &self.totals;
        totals.input_tokens + totals.output_tokens + totals.cache_read_tokens + totals.cache_write_tokens
    }
}

/// Writes stored JSON as what it says; what is none as a text.
fn as_json<S: Serializer>(stored: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    let value = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
    stored.as_ref().map(value).serialize(serializer)
}

/// Many jobs.
#[derive(Debug, Serialize)]
pub struct JobList {
    /// The newest start first.
    pub jobs: Vec<JobView>,
    /// Width of the screen.
    #[serde(skip)]
    pub width: Option<usize>,
}

impl Human for JobList {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let headings = ["JOB", "SPECIALIST", "STATUS", "WORK", "ROUND", "ELAPSED", "TOKENS", "COST", "MODEL"];
        let mut table = Table::new(headings, &[8, 3, 1]);
        for job in &self.jobs {
            table.row([
                job.id.to_string(),
                job.specialist.clone(),
                job.status.to_owned(),
                job.work(),
                job.round.to_string(),
                span(job.elapsed_ms),
                count(job.tokens()),
                cost(job.totals.cost_usd),
                job.model.clone().unwrap_or_else(|| "-".to_owned()),
            ]);
        }
        if self.jobs.is_empty() { Ok(()) } else { table.write(out, self.width) }
    }
}

/// One job, whole.
#[derive(Debug, Serialize)]
pub struct JobCard {
    /// The job.
    pub job: JobView,
}

impl Human for JobCard {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let job = &self.job;
        let totals = &job.totals;
        let text = |value: &Option<String>| value.clone();
        let share = job.context_pct.map(|pct| format!("{pct:.0}%"));
        let ended = job.completed_at_ms.map(moment);
        let used = format!(
            "tokens: {} in, {} out, {} from cache; {} turns, {} tool calls; {}",
            totals.input_tokens,
            totals.output_tokens,
            totals.cache_read_tokens,
            totals.turns,
            totals.tool_calls,
            cost(totals.cost_usd)
        );
        let lines = [
            ("job", Some(job.id.to_string())),
            ("specialist", Some(job.specialist.clone())),
            ("status", Some(job.status.to_owned())),
            ("chain", job.chain_id.as_ref().map(ChainId::to_string)),
            ("contract", job.root_bead_id.as_ref().map(BeadId::to_string)),
            ("step", job.step.as_ref().map(|step| format!("{step}, round {}, epoch {}", job.round, job.epoch))),
            ("bead", job.bead_id.as_ref().map(BeadId::to_string)),
            ("model", text(&job.model)),
            ("started", Some(moment(job.started_at_ms))),
            ("ended", ended),
            ("elapsed", Some(span(job.elapsed_ms))),
            ("used", Some(used)),
            ("context", share),
            ("tool", text(&job.current_tool)),
            ("process", job.pid.map(|pid| pid.to_string())),
            ("branch", text(&job.branch)),
            ("worktree", text(&job.worktree_path)),
            ("error", text(&job.error)),
        ];
        for (name, value) in lines {
            if let Some(value) = value {
                writeln!(out, "{name:<10}  {}", one_line(&value))?;
            }
        }
        Ok(())
    }
}

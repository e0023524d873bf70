//! Table `specialist_jobs`: one row a job. Its JSON is the same record as `status.json`.

use rusqlite::{Connection, OptionalExtension, Row, ToSql, Transaction, named_params, params};
use serde::{Deserialize, Serialize};

use super::error::{StoreError, failed};
use super::words::JobStatus;
use super::writer::Write;
use crate::ids::{BeadId, ChainId, JobId, StepId};

/// What a job used so far. Tokens as the provider reports them; cost in US dollars, 0 where it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct JobTotals {
    /// Assistant turns.
    pub turns: u32,
    /// Tool calls that ended.
    pub tool_calls: u32,
    /// Tokens read, cached ones apart.
    pub input_tokens: i64,
    /// Tokens written.
    pub output_tokens: i64,
    /// Tokens read from the provider's cache.
    pub cache_read_tokens: i64,
    /// Tokens written to the provider's cache.
    pub cache_write_tokens: i64,
    /// Cost; a finite number.
    pub cost_usd: f64,
}

/// The session of a job that came up last: what is needed to find it again, also outside of sp.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMeta {
    /// The agent that runs it: `pi`.
    pub backend: String,
    /// Model that answers, `provider/model`, where the agent says it.
    pub model: Option<String>,
    /// The agent's own id of the session. A session that is continued keeps it.
    pub session_id: String,
    /// When its process was started. Wall clock, ms since 1970 UTC.
    pub started_at_ms: i64,
}

/// One job as it stands: the row, and the content of `status.json` (spec 000 §5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    /// The job.
    #[serde(rename = "id")]
    pub job: JobId,
    /// Name of its specialist.
    pub specialist: String,
    /// How it stands.
    pub status: JobStatus,
    /// The bead it works on; the step's bead in a chain.
    #[serde(rename = "bead_id", default, skip_serializing_if = "Option::is_none")]
    pub bead: Option<BeadId>,
    /// Its chain.
    #[serde(rename = "chain_id", default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainId>,
    /// The contract bead of its chain.
    #[serde(rename = "chain_root_bead_id", default, skip_serializing_if = "Option::is_none")]
    pub root_bead: Option<BeadId>,
    /// Its step in the chain.
    #[serde(rename = "chain_step", default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepId>,
    /// Pass of the fix loop, from 1.
    pub round: u32,
    /// Incarnation that speaks, from 1; 0 in rows of the existing system.
    pub epoch: u32,
    /// How it ended, in the word of the job's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Model that answers, `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its session. In the JSON alone: no query asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionMeta>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree_path: Option<String>,
    /// Branch of the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Process of the session, where there is a local one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its start time in clock ticks since boot: with the pid it names one process for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ticks: Option<u64>,
    /// Wall clock, ms since 1970 UTC.
    pub started_at_ms: i64,
    /// Wall clock of this record.
    pub updated_at_ms: i64,
    /// Wall clock of the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at_ms: Option<i64>,
    /// Tool that runs now; of several the one that began last.
    #[serde(default)]
    pub current_tool: Option<String>,
    /// Share of the model's context in use, 0 to 100.
    #[serde(default)]
    pub context_pct: Option<f64>,
    /// What it used so far.
    pub totals: JobTotals,
}

impl JobRow {
    /// Makes the first record of a job: starting, round 1, epoch 1, bound to nothing.
    pub fn starting(job: JobId, specialist: impl Into<String>, now_ms: i64) -> Self {
        Self {
            job,
            specialist: specialist.into(),
            status: JobStatus::Starting,
            bead: None,
            chain: None,
            root_bead: None,
            step: None,
            round: 1,
            epoch: 1,
            outcome: None,
            model: None,
            session: None,
            error: None,
            worktree_path: None,
            branch: None,
            pid: None,
            start_ticks: None,
            started_at_ms: now_ms,
            updated_at_ms: now_ms,
            completed_at_ms: None,
            current_tool: None,
            context_pct: None,
            totals: JobTotals::default(),
        }
    }

    /// Returns the record as one line of JSON.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a record of strings and numbers under fixed names always encodes")
    }

    /// Reads a row of [`COLUMNS`].
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        // By position, in the order of COLUMNS: finding 28 columns by name costs more than all else in a listing.
        let mut place = 0..;
        let mut next = || place.next().unwrap_or_default();
        Ok(Self {
            job: JobId::new(row.get::<_, String>(next())?),
            specialist: row.get(next())?,
            status: row.get(next())?,
            bead: row.get::<_, Option<String>>(next())?.map(BeadId::new),
            chain: row.get::<_, Option<String>>(next())?.map(ChainId::new),
            root_bead: row.get::<_, Option<String>>(next())?.map(BeadId::new),
            step: row.get::<_, Option<String>>(next())?.map(StepId::new),
            round: row.get(next())?,
            epoch: row.get(next())?,
            outcome: row.get(next())?,
            model: row.get(next())?,
            // A record of another sp may have another shape there.
            session: row.get::<_, Option<String>>(next())?.and_then(|json| serde_json::from_str(&json).ok()),
            error: row.get(next())?,
            worktree_path: row.get(next())?,
            branch: row.get(next())?,
            pid: row.get(next())?,
            start_ticks: row.get::<_, Option<i64>>(next())?.map(i64::cast_unsigned),
            started_at_ms: row.get(next())?,
            updated_at_ms: row.get(next())?,
            completed_at_ms: row.get(next())?,
            current_tool: row.get(next())?,
            context_pct: row.get(next())?,
            totals: JobTotals {
                turns: row.get(next())?,
                tool_calls: row.get(next())?,
                input_tokens: row.get(next())?,
                output_tokens: row.get(next())?,
                cache_read_tokens: row.get(next())?,
                cache_write_tokens: row.get(next())?,
                cost_usd: row.get(next())?,
            },
        })
    }
}

/// The columns in the order of [`JobRow::read`]. Of the JSON only what no column has, so that a listing reads little.
const COLUMNS: &str = "job_id, specialist, status, bead_id, chain_id, chain_root_bead_id, chain_step, round, epoch, \
    outcome, model, \
    CASE WHEN json_valid(status_json) THEN status_json -> '$.session' END, error, worktree_column, branch, pid, start_ticks, started_at_ms, updated_at_ms, completed_at_ms, \
    current_tool, context_pct, turns, tool_calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, \
    cost_usd";

/// Records how a job stands. Refused when the job has ended, when a later epoch has spoken, or when another live job
/// of the same specialist is on the bead. A terminal status goes through [`super::SettleJob`].
#[derive(Debug, Clone)]
pub struct UpsertJob(pub JobRow);

impl Write for UpsertJob {
    type Answer = ();

    fn apply(&self, tx: &Transaction<'_>) -> Result<(), StoreError> {
        Self::record(tx, &self.0)
    }
}

impl UpsertJob {
    /// The same within another write.
    pub(super) fn record(tx: &Transaction<'_>, job: &JobRow) -> Result<(), StoreError> {
        if job.status.is_terminal() {
            let (job, status) = (job.job.clone(), job.status);
            return Err(StoreError::WrongStatus { what: "update", job, status });
        }
        if let Some(stored) = standing(tx, &job.job)? {
            stored.admit(&job.job, job.epoch)?;
        }
        refuse_second_live_job(tx, job)?;
        put(tx, job)
    }
}

/// What the guards need of a stored job.
pub(super) struct Standing {
    pub(super) status: JobStatus,
    pub(super) epoch: u32,
    pub(super) specialist: String,
    pub(super) bead: Option<String>,
    pub(super) json: String,
}

impl Standing {
    /// Refuses words of an earlier epoch, and any word about a job that has ended.
    pub(super) fn admit(&self, job: &JobId, epoch: u32) -> Result<(), StoreError> {
        if self.status.is_terminal() {
            return Err(StoreError::AlreadySettled { job: job.clone(), status: self.status });
        }
        self.admit_epoch(job, epoch)
    }

    /// Refuses words of an earlier epoch.
    pub(super) fn admit_epoch(&self, job: &JobId, epoch: u32) -> Result<(), StoreError> {
        if epoch < self.epoch {
            return Err(StoreError::StaleEpoch { job: job.clone(), epoch, current: self.epoch });
        }
        Ok(())
    }
}

/// Reads how a job stands, if it is known.
pub(super) fn standing(tx: &Transaction<'_>, job: &JobId) -> Result<Option<Standing>, StoreError> {
    let sql = "SELECT status, epoch, specialist, bead_id, status_json FROM specialist_jobs WHERE job_id = ?1";
    let read = |row: &Row<'_>| {
        Ok(Standing {
            status: row.get("status")?,
            epoch: row.get("epoch")?,
            specialist: row.get("specialist")?,
            bead: row.get("bead_id")?,
            json: row.get("status_json")?,
        })
    };
    tx.prepare_cached(sql)
        .and_then(|mut select| select.query_row(params![job.as_str()], read).optional())
        .map_err(failed("read how a job stands"))
}

/// The unique index holds this too; asked first so that the answer names the job in the way.
fn refuse_second_live_job(tx: &Transaction<'_>, job: &JobRow) -> Result<(), StoreError> {
    let Some(bead) = &job.bead else { return Ok(()) };
    let sql = format!(
        "SELECT job_id FROM specialist_jobs
         WHERE bead_id = ?1 AND specialist = ?2 AND job_id <> ?3 AND epoch > 0 AND status IN ({})",
        JobStatus::live_list()
    );
    let other: Option<String> = tx
        .prepare_cached(&sql)
        .and_then(|mut select| {
            let key = params![bead.as_str(), job.specialist, job.job.as_str()];
            select.query_row(key, |row| row.get("job_id")).optional()
        })
        .map_err(failed("look for a live job on the bead"))?;
    match other {
        Some(other) => Err(StoreError::LiveJobExists {
            bead: bead.clone(),
            specialist: job.specialist.clone(),
            job: JobId::new(other),
        }),
        None => Ok(()),
    }
}

/// Writes the row, whatever stood there.
pub(super) fn put(tx: &Transaction<'_>, job: &JobRow) -> Result<(), StoreError> {
    let sql = "
        INSERT INTO specialist_jobs (job_id, specialist, status, status_json, bead_id, chain_id, chain_kind,
          chain_root_bead_id, chain_step, round, epoch, outcome, model, error, worktree_column, branch, pid,
          start_ticks, started_at_ms, updated_at_ms, completed_at_ms, current_tool, context_pct, turns, tool_calls,
          input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd)
        VALUES (:job, :specialist, :status, :json, :bead, :chain, :kind, :root, :step, :round, :epoch, :outcome,
          :model, :error, :worktree, :branch, :pid, :ticks, :started, :updated, :completed, :tool, :context, :turns,
          :tool_calls, :input, :output, :cache_read, :cache_write, :cost)
        ON CONFLICT (job_id) DO UPDATE SET specialist = excluded.specialist, status = excluded.status,
          status_json = excluded.status_json, bead_id = excluded.bead_id, chain_id = excluded.chain_id,
          chain_kind = excluded.chain_kind, chain_root_bead_id = excluded.chain_root_bead_id,
          chain_step = excluded.chain_step, round = excluded.round, epoch = excluded.epoch,
          outcome = excluded.outcome, model = excluded.model, error = excluded.error,
          worktree_column = excluded.worktree_column, branch = excluded.branch, pid = excluded.pid,
          start_ticks = excluded.start_ticks, started_at_ms = excluded.started_at_ms,
          updated_at_ms = excluded.updated_at_ms, completed_at_ms = excluded.completed_at_ms,
          current_tool = excluded.current_tool, context_pct = excluded.context_pct, turns = excluded.turns,
          tool_calls = excluded.tool_calls, input_tokens = excluded.input_tokens,
          output_tokens = excluded.output_tokens, cache_read_tokens = excluded.cache_read_tokens,
          cache_write_tokens = excluded.cache_write_tokens, cost_usd = excluded.cost_usd";
    let values = named_params! {
        ":job": job.job.as_str(), ":specialist": job.specialist, ":status": job.status, ":json": job.to_json(),
        ":bead": job.bead.as_ref().map(BeadId::as_str), ":chain": job.chain.as_ref().map(ChainId::as_str),
        ":kind": if job.chain.is_some() { "chain" } else { "prep" },
        ":root": job.root_bead.as_ref().map(BeadId::as_str), ":step": job.step.as_ref().map(StepId::as_str),
        ":round": job.round, ":epoch": job.epoch, ":outcome": job.outcome, ":model": job.model, ":error": job.error,
        ":worktree": job.worktree_path, ":branch": job.branch, ":pid": job.pid,
        ":ticks": job.start_ticks.map(u64::cast_signed), ":started": job.started_at_ms,
        ":updated": job.updated_at_ms, ":completed": job.completed_at_ms, ":tool": job.current_tool,
        ":context": job.context_pct, ":turns": job.totals.turns, ":tool_calls": job.totals.tool_calls,
        ":input": job.totals.input_tokens, ":output": job.totals.output_tokens,
        ":cache_read": job.totals.cache_read_tokens, ":cache_write": job.totals.cache_write_tokens,
        ":cost": job.totals.cost_usd,
    };
    tx.prepare_cached(sql)
        .and_then(|mut upsert| upsert.execute(values))
        .map(|_| ())
        .map_err(failed("record how a job stands"))
}

/// Which jobs a listing holds by how they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobScope {
    /// Every job.
    #[default]
    All,
    /// Those that may still do something.
    Live,
}

/// Which jobs a listing holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFilter {
    /// By how they stand.
    pub scope: JobScope,
    /// Of this chain.
    pub chain: Option<ChainId>,
    /// On this bead: their own or their chain's contract bead.
    pub bead: Option<BeadId>,
    /// At most so many; the newest are kept.
    pub limit: Option<u32>,
}

/// Lists jobs, the newest start first.
pub(super) fn list(connection: &Connection, filter: &JobFilter) -> Result<Vec<JobRow>, StoreError> {
    let mut clauses: Vec<String> = Vec::new();
    let mut values: Vec<(&str, &dyn ToSql)> = Vec::new();
    match &filter.scope {
        JobScope::All => {}
        JobScope::Live => clauses.push(format!("status IN ({})", JobStatus::live_list())),
    }
    let (chain, bead) = (filter.chain.as_ref().map(ChainId::as_str), filter.bead.as_ref().map(BeadId::as_str));
    if chain.is_some() {
        clauses.push("chain_id = :chain".to_owned());
        values.push((":chain", &chain));
    }
    if bead.is_some() {
        clauses.push("(bead_id = :bead OR chain_root_bead_id = :bead)".to_owned());
        values.push((":bead", &bead));
    }
    let wanted = if clauses.is_empty() { String::new() } else { format!("WHERE {}", clauses.join(" AND ")) };
    // A negative limit is none.
    let limit = filter.limit.map_or(-1, i64::from);
    let sql =
        format!("SELECT {COLUMNS} FROM specialist_jobs {wanted} ORDER BY started_at_ms DESC, job_id LIMIT {limit}");
    connection
        .prepare(&sql)
        .and_then(|mut select| select.query_map(values.as_slice(), JobRow::read)?.collect())
        .map_err(failed("list jobs"))
}

/// Reads one job.
pub(super) fn get(connection: &Connection, job: &JobId) -> Result<Option<JobRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM specialist_jobs WHERE job_id = ?1");
    connection
        .prepare_cached(&sql)
        .and_then(|mut select| select.query_row(params![job.as_str()], JobRow::read).optional())
        .map_err(failed("read a job"))
}

/// Returns the ids that begin with `prefix`, sorted, at most `limit`.
pub(super) fn with_prefix(connection: &Connection, prefix: &str, limit: u32) -> Result<Vec<JobId>, StoreError> {
    // A range on the key's own index; no id holds a character above the last one of Unicode.
    let sql = "SELECT job_id FROM specialist_jobs
               WHERE job_id >= ?1 AND job_id < ?1 || char(1114111) ORDER BY job_id LIMIT ?2";
    connection
        .prepare_cached(sql)
        .and_then(|mut select| {
            select
                .query_map(params![prefix, limit], |row| row.get("job_id").map(|id: String| JobId::new(id)))?
                .collect()
        })
        .map_err(failed("find jobs by the beginning of their id"))
}

#[cfg(test)]
mod tests;

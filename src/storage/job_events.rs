//! Table `specialist_events`: the timeline of each job. One row a block, never one a delta.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::Deserialize;

use super::error::{StoreError, failed};
use super::jobs::{self, JobRow, Standing, UpsertJob};
use super::writer::Write;
use crate::ids::{ChainId, JobId};

/// One event of a job's timeline (spec 000 §6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEventRow {
    /// Place in the job's timeline, from 1; counted by the job, never reused.
    pub seq: u64,
    /// Wall clock, ms since 1970 UTC.
    pub at_ms: i64,
    /// The event's type, such as `tool`.
    pub kind: String,
    /// The whole event: a JSON object that repeats `seq`, `t` and `type`, as in `events.jsonl`.
    pub json: String,
}

impl JobEventRow {
    /// Reads a line of `events.jsonl`; `None` when it is no whole event.
    pub fn from_line(line: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Head {
            seq: u64,
            t: i64,
            #[serde(rename = "type")]
            kind: String,
        }
        let head: Head = serde_json::from_str(line).ok()?;
        Some(Self { seq: head.seq, at_ms: head.t, kind: head.kind, json: line.to_owned() })
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get::<_, i64>("seq")?.cast_unsigned(),
            at_ms: row.get("t")?,
            kind: row.get("type")?,
            json: row.get("event_json")?,
        })
    }
}

/// One event of a feed over several jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedRow {
    /// Place among all events of the database, in the order of their commits.
    pub id: i64,
    /// The job.
    pub job: JobId,
    /// Its specialist.
    pub specialist: String,
    /// The event.
    pub event: JobEventRow,
}

/// Appends to the timeline of a job that has not ended. The same rows again are fine (an acknowledgement was lost).
#[derive(Debug, Clone)]
pub struct AppendJobEvents {
    /// The job.
    pub job: JobId,
    /// The incarnation that speaks.
    pub epoch: u32,
    /// What happened, in order.
    pub events: Vec<JobEventRow>,
    /// How it stands with them, where that is recorded as well: one transaction for both.
    pub row: Option<JobRow>,
}

impl Write for AppendJobEvents {
    type Answer = ();

    fn apply(&self, tx: &Transaction<'_>) -> Result<(), StoreError> {
        let stored =
            jobs::standing(tx, &self.job)?.ok_or_else(|| StoreError::NoSuchJob { job: self.job.to_string() })?;
        // A repeat of what was stored before the end is harmless; anything new after it is refused.
        if stored.status.is_terminal() && all_stored(tx, &self.job, &self.events)? {
            return Ok(());
        }
        stored.admit(&self.job, self.epoch)?;
        append(tx, &self.job, &stored, &self.events)?;
        self.row.as_ref().map_or(Ok(()), |row| UpsertJob::record(tx, row))
    }
}

/// Returns whether each of the events is stored as it is here.
pub(super) fn all_stored(tx: &Transaction<'_>, job: &JobId, events: &[JobEventRow]) -> Result<bool, StoreError> {
    let sql = "SELECT event_json = ?3 FROM specialist_events WHERE job_id = ?1 AND seq = ?2";
    let mut select = tx.prepare_cached(sql).map_err(failed("look for events of a job"))?;
    for event in events {
        let same = select
            .query_row(params![job.as_str(), event.seq.cast_signed(), event.json], |row| row.get(0))
            .optional()
            .map_err(failed("look for events of a job"))?;
        if same != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Appends events of a job whose standing was checked.
pub(super) fn append(
    tx: &Transaction<'_>,
    job: &JobId,
    stored: &Standing,
    events: &[JobEventRow],
) -> Result<(), StoreError> {
    // Rewriting the row with itself counts as written; another row at its place is left alone and counts as none.
    let sql = "INSERT INTO specialist_events (job_id, seq, specialist, bead_id, t, type, event_json)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
               ON CONFLICT (job_id, seq) DO UPDATE SET seq = seq WHERE event_json = excluded.event_json";
    let mut insert = tx.prepare_cached(sql).map_err(failed("append events of a job"))?;
    for event in events {
        let seq = event.seq.cast_signed();
        let values = params![job.as_str(), seq, stored.specialist, stored.bead, event.at_ms, event.kind, event.json];
        let written = insert.execute(values).map_err(failed("append events of a job"))?;
        if written == 0 {
            return Err(StoreError::SecondWriter { log: job.to_string(), seq: event.seq });
        }
    }
    Ok(())
}

const COLUMNS: &str = "seq, t, type, event_json";

/// Reads a job's timeline after a place in it; 0 reads all.
pub(super) fn after(connection: &Connection, job: &JobId, after_seq: u64) -> Result<Vec<JobEventRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM specialist_events WHERE job_id = ?1 AND seq > ?2 ORDER BY seq");
    connection
        .prepare_cached(&sql)
        .and_then(|mut select| {
            select.query_map(params![job.as_str(), after_seq.cast_signed()], JobEventRow::read)?.collect()
        })
        .map_err(failed("read the events of a job"))
}

/// Reads what the jobs of a chain did after a place among all events, in commit order, at most `limit`.
pub(super) fn feed(
    connection: &Connection,
    chain: &ChainId,
    after_id: i64,
    limit: u32,
) -> Result<Vec<FeedRow>, StoreError> {
    let sql = "SELECT e.id, e.job_id, e.specialist, e.seq, e.t, e.type, e.event_json
               FROM specialist_events e JOIN specialist_jobs j ON j.job_id = e.job_id
               WHERE j.chain_id = ?1 AND e.id > ?2 ORDER BY e.id LIMIT ?3";
    let read = |row: &Row<'_>| {
        Ok(FeedRow {
            id: row.get("id")?,
            job: JobId::new(row.get::<_, String>("job_id")?),
            specialist: row.get("specialist")?,
            event: JobEventRow::read(row)?,
        })
    };
    connection
        .prepare_cached(sql)
        .and_then(|mut select| select.query_map(params![chain.as_str(), after_id, limit], read)?.collect())
        .map_err(failed("read the feed of a chain"))
}

#[cfg(test)]
mod tests;

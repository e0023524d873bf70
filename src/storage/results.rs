//! Table `specialist_results`: what each job answered in the end.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::error::{StoreError, failed};
use crate::ids::JobId;

/// Stores the answer of a job; called once, when it settles.
pub(super) fn put(tx: &Transaction<'_>, job: &JobId, output: &str, now_ms: i64) -> Result<(), StoreError> {
    // An upgraded database may hold the answer of an earlier turn.
    let sql = "INSERT INTO specialist_results (job_id, output, updated_at_ms) VALUES (?1, ?2, ?3)
               ON CONFLICT (job_id) DO UPDATE SET output = excluded.output, updated_at_ms = excluded.updated_at_ms";
    tx.prepare_cached(sql)
        .and_then(|mut insert| insert.execute(params![job.as_str(), output, now_ms]))
        .map(|_| ())
        .map_err(failed("store the result of a job"))
}

/// Reads the answer of a job.
pub(super) fn get(connection: &Connection, job: &JobId) -> Result<Option<String>, StoreError> {
    connection
        .prepare_cached("SELECT output FROM specialist_results WHERE job_id = ?1")
        .and_then(|mut select| select.query_row(params![job.as_str()], |row| row.get("output")).optional())
        .map_err(failed("read the result of a job"))
}

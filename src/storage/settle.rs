//! The end of a job: row, last events and result in one transaction, between its two files.

use rusqlite::Transaction;

use super::error::StoreError;
use super::files::{JobFiles, Staged};
use super::job_events::{self, JobEventRow};
use super::jobs::{self, JobRow};
use super::results;
use super::writer::Write;

/// Ends a job, once. The same settlement again is fine; another one is refused.
///
/// A job that the database never saw (it ran on its files alone) is taken in whole.
#[derive(Debug, Clone)]
pub struct SettleJob {
    /// The record with its terminal status.
    pub job: JobRow,
    /// Events not yet stored; the terminal one is the last.
    pub events: Vec<JobEventRow>,
    /// The final answer, if there is one.
    pub result: Option<String>,
}

impl Write for SettleJob {
    type Answer = ();

    fn apply(&self, tx: &Transaction<'_>) -> Result<(), StoreError> {
        let (job, status) = (&self.job.job, self.job.status);
        if !status.is_terminal() {
            return Err(StoreError::WrongStatus { what: "settle", job: job.clone(), status });
        }
        if let Some(stored) = jobs::standing(tx, job)? {
            if stored.status.is_terminal() && self.is_stored(tx, &stored)? {
                return Ok(());
            }
            stored.admit(job, self.job.epoch)?;
        }
        jobs::put(tx, &self.job)?;
        if let Some(stored) = jobs::standing(tx, job)? {
            job_events::append(tx, job, &stored, &self.events)?;
        }
        match &self.result {
            Some(output) => results::put(tx, job, output, self.job.updated_at_ms),
            None => Ok(()),
        }
    }
}

impl SettleJob {
    fn is_stored(&self, tx: &Transaction<'_>, stored: &jobs::Standing) -> Result<bool, StoreError> {
        let job = &self.job.job;
        Ok(stored.json == self.job.to_json()
            && results::get(tx, job)? == self.result
            && job_events::all_stored(tx, job, &self.events)?)
    }
}

/// Ends a job in its files and in the database: whoever writes this, then writes status.json.
///
/// The order is result.txt, commit, status.json: whoever reads a terminal status finds the result, and a crash in
/// between leaves a job that is not settled yet and can be settled again. The result gets its name within the
/// transaction, after the guards, so that a refused settlement can't replace what an accepted one has written.
pub struct StagedSettlement {
    settle: SettleJob,
    staged: Option<Staged>,
}

impl StagedSettlement {
    /// Appends the events to the job's file, syncs it, and stages the result beside its final name. Blocks.
    pub fn stage(files: &mut JobFiles, settle: SettleJob) -> Result<Self, StoreError> {
        files.append_events(&settle.events)?;
        files.sync_events()?;
        let staged = settle.result.as_deref().map(|result| files.stage_result(result)).transpose()?;
        Ok(Self { settle, staged })
    }
}

impl Write for StagedSettlement {
    type Answer = ();

    fn apply(&self, tx: &Transaction<'_>) -> Result<(), StoreError> {
        self.settle.apply(tx)?;
        self.staged.as_ref().map_or(Ok(()), Staged::publish)
    }
}

#[cfg(test)]
mod tests;

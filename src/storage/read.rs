//! Reading: each reader has a read-only connection of its own and waits for no writer.

use std::path::Path;

use rusqlite::Connection;

use super::chain_events::{self, ChainEventRow};
use super::chains::{self, ChainHead, ChainRow, LiveRequest};
use super::connection;
use super::error::StoreError;
use super::findings::{self, FindingRow};
use super::job_events::{self, FeedRow, JobEventRow};
use super::jobs::{self, JobFilter, JobRow};
use super::owners::{self, OwnerRow, Resource};
use super::results;
use crate::ids::{BeadId, ChainId, JobId};

/// A read-only view of the database; sees every commit made before a call. Blocks for micro- to milliseconds.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
}

impl Reader {
    /// Opens the database; [`StoreError::NotThere`] when nothing was recorded yet.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { connection: connection::open_reader(path)? })
    }

    /// Lists jobs, the newest start first.
    pub fn jobs(&self, filter: &JobFilter) -> Result<Vec<JobRow>, StoreError> {
        jobs::list(&self.connection, filter)
    }

    /// Reads one job.
    pub fn job(&self, job: &JobId) -> Result<Option<JobRow>, StoreError> {
        jobs::get(&self.connection, job)
    }

    /// Finds a job by its id or by a beginning of it that no other job has.
    pub fn find_job(&self, text: &str) -> Result<JobId, StoreError> {
        let mut matches = jobs::with_prefix(&self.connection, text, 9)?;
        let exact = matches.iter().any(|job| job.as_str() == text);
        match (matches.len(), exact) {
            _ if text.is_empty() => Err(StoreError::NoSuchJob { job: text.to_owned() }),
            (_, true) => Ok(JobId::new(text)),
            (1, false) => Ok(matches.remove(0)),
            (0, false) => Err(StoreError::NoSuchJob { job: text.to_owned() }),
            (_, false) => Err(StoreError::Ambiguous { prefix: text.to_owned(), matches }),
        }
    }

    /// Reads a job's timeline after a place in it; 0 reads all.
    pub fn job_events(&self, job: &JobId, after_seq: u64) -> Result<Vec<JobEventRow>, StoreError> {
        job_events::after(&self.connection, job, after_seq)
    }

    /// Reads what the jobs of a chain did after a place among all events (0: from the start), at most `limit`.
    pub fn chain_feed(&self, chain: &ChainId, after_id: i64, limit: u32) -> Result<Vec<FeedRow>, StoreError> {
        job_events::feed(&self.connection, chain, after_id, limit)
    }

    /// Reads the final answer of a job.
    pub fn result(&self, job: &JobId) -> Result<Option<String>, StoreError> {
        results::get(&self.connection, job)
    }

    /// Reads one chain.
    pub fn chain(&self, chain: &ChainId) -> Result<Option<ChainRow>, StoreError> {
        chains::get(&self.connection, chain)
    }

    /// Reads the chain of a bead: the live one, else the newest.
    pub fn chain_by_bead(&self, bead: &BeadId) -> Result<Option<ChainRow>, StoreError> {
        chains::by_bead(&self.connection, bead)
    }

    /// Finds a chain by its id or by its contract bead.
    pub fn find_chain(&self, text: &str) -> Result<ChainRow, StoreError> {
        let found = match self.chain(&ChainId::new(text))? {
            Some(chain) => Some(chain),
            None => self.chain_by_bead(&BeadId::new(text))?,
        };
        found.ok_or_else(|| StoreError::NoSuchChain { chain: text.to_owned() })
    }

    /// Lists chains, the newest first.
    pub fn chains(&self) -> Result<Vec<ChainHead>, StoreError> {
        chains::list(&self.connection)
    }

    /// Reads the log of a chain after a place in it; 0 reads all.
    pub fn chain_events(&self, chain: &ChainId, after_seq: u64) -> Result<Vec<ChainEventRow>, StoreError> {
        chain_events::after(&self.connection, chain, after_seq)
    }

    /// Lists the requests of live chains, the newest first.
    pub fn live_requests(&self) -> Result<Vec<LiveRequest>, StoreError> {
        chains::live_requests(&self.connection)
    }

    /// Reads the findings about a chain.
    pub fn findings(&self, chain: &ChainId) -> Result<Vec<FindingRow>, StoreError> {
        findings::of_chain(&self.connection, chain)
    }

    /// Reads who owns a resource; `None` when nobody ever did.
    pub fn owner(&self, resource: &Resource) -> Result<Option<OwnerRow>, StoreError> {
        owners::get(&self.connection, resource)
    }

    /// Lists what is held now, by live and by dead processes.
    pub fn owners(&self) -> Result<Vec<OwnerRow>, StoreError> {
        owners::held(&self.connection)
    }
}

#[cfg(test)]
mod tests;

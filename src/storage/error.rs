//! Why something was not stored or not found.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::ErrorCode;

use super::migrations::EXISTING as UPGRADABLE_SCHEMA;
use super::words::JobStatus;
use crate::failure::{Explain, FailureKind};
use crate::ids::{BeadId, ChainId, JobId};

/// Why something was not stored or not found.
///
/// Clonable, since one failed commit is the answer to every write that shared it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No database yet: nothing was ever recorded in this repository.
    #[error("open the database {path}: it does not exist yet")]
    NotThere {
        /// The file.
        path: PathBuf,
    },
    /// The file can't be opened as a database.
    #[error("open the database {path}")]
    Open {
        /// The file.
        path: PathBuf,
        /// SQLite's reason.
        #[source]
        source: Arc<rusqlite::Error>,
    },
    /// The file system can't hold a write-ahead log, so writers and readers would block each other.
    #[error("open the database {path}: write-ahead logging was refused, journal mode is {mode}")]
    NoWal {
        /// The file.
        path: PathBuf,
        /// SQLite's word for the mode it offers.
        mode: String,
    },
    /// A later sp wrote the database.
    #[error("open the database {path}: its schema is version {found}, this sp knows {known}")]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The schema is older than what can be read or upgraded.
    #[error("open the database {path}: its schema is version {found}, needed is {needed}")]
    OlderSchema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The oldest version that would do.
        needed: u32,
    },
    /// A statement failed.
    #[error("{what}")]
    Query {
        /// What was tried, on what.
        what: &'static str,
        /// SQLite's reason.
        #[source]
        source: Arc<rusqlite::Error>,
    },
    /// The transaction was not committed; nothing of it is known to be on disk.
    #[error("commit to the database")]
    NotWritten {
        /// SQLite's reason.
        #[source]
        source: Arc<rusqlite::Error>,
    },
    /// The writer has ended; whether the write is on disk is unknown.
    #[error("write to the database: the writer has ended")]
    Closed,
    /// The writer's thread could not be started.
    #[error("start the writer of the database")]
    Thread {
        /// The system's reason.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// A file was not read or written.
    #[error("{verb} {path}")]
    File {
        /// What was tried.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// A file was read and not understood.
    #[error("understand {path}")]
    Garbled {
        /// The file.
        path: PathBuf,
        /// What the decoder says.
        #[source]
        source: Arc<serde_json::Error>,
    },
    /// Text that is no id: it could name another directory.
    #[error("use `{text}` as the id of a {what}: only letters, digits, `.`, `_` and `-` after a letter or digit")]
    BadId {
        /// Job or chain.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// The bead has a live chain already.
    #[error("open a chain on bead {bead}: chain {chain} is live on it")]
    LiveChainExists {
        /// The bead.
        bead: BeadId,
        /// The chain that holds it.
        chain: ChainId,
    },
    /// Another chain was recorded under this id.
    #[error("open chain {chain}: the id is taken by another chain")]
    ChainIdTaken {
        /// The id.
        chain: ChainId,
    },
    /// The bead has a live job of the same specialist already.
    #[error("start {specialist} on bead {bead}: job {job} is live on it")]
    LiveJobExists {
        /// The bead.
        bead: BeadId,
        /// The specialist.
        specialist: String,
        /// The live job.
        job: JobId,
    },
    /// Another row stands at this place of a log: somebody else writes it too.
    #[error("append event {seq} of {log}: another one is stored there")]
    SecondWriter {
        /// Id of the chain or job.
        log: String,
        /// Place in its log.
        seq: u64,
    },
    /// The events would leave a hole.
    #[error("append event {seq} of chain {chain}: the next one is {expected}")]
    Gap {
        /// The chain.
        chain: ChainId,
        /// Place asked for.
        seq: u64,
        /// Next free place.
        expected: u64,
    },
    /// The caller does not own the chain any more.
    #[error("write to chain {chain} under ownership {epoch}: {current}", current = describe_owner(.current))]
    StaleOwner {
        /// The chain.
        chain: ChainId,
        /// The caller's ownership epoch.
        epoch: u32,
        /// Epoch of the present holder; `None` when nobody holds it.
        current: Option<u32>,
    },
    /// A later incarnation of the job has spoken.
    #[error("write to job {job} in epoch {epoch}: it is in epoch {current}")]
    StaleEpoch {
        /// The job.
        job: JobId,
        /// The caller's epoch.
        epoch: u32,
        /// The stored one.
        current: u32,
    },
    /// The job has ended, otherwise than this write says.
    #[error("write to job {job}: it has ended as {status}")]
    AlreadySettled {
        /// The job.
        job: JobId,
        /// Its terminal status.
        status: JobStatus,
    },
    /// A terminal status outside of a settlement, or a settlement without one.
    #[error("{what} job {job} with status {status}")]
    WrongStatus {
        /// What was tried.
        what: &'static str,
        /// The job.
        job: JobId,
        /// The status handed in.
        status: JobStatus,
    },
    /// No such job.
    #[error("find job {job}: there is none")]
    NoSuchJob {
        /// What was asked for.
        job: String,
    },
    /// No such chain.
    #[error("find chain {chain}: no chain and no bead with a chain has this id")]
    NoSuchChain {
        /// What was asked for.
        chain: String,
    },
    /// The beginning of an id fits several jobs.
    #[error("find job {prefix}: it is the beginning of {count} or more jobs", count = .matches.len())]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// Some of the jobs, sorted.
        matches: Vec<JobId>,
    },
}

fn describe_owner(current: &Option<u32>) -> String {
    match current {
        Some(epoch) => format!("it is owned under {epoch}"),
        None => "nobody owns it".to_owned(),
    }
}

impl StoreError {
    /// Returns whether the same call may succeed later without anybody changing it: disk full, file locked, I/O error.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Closed | Self::Thread { .. } | Self::File { .. } => true,
            Self::NotWritten { source } | Self::Query { source, .. } | Self::Open { source, .. } => matches!(
                source.sqlite_error_code(),
                Some(
                    ErrorCode::DiskFull
                        | ErrorCode::SystemIoFailure
                        | ErrorCode::DatabaseBusy
                        | ErrorCode::DatabaseLocked
                        | ErrorCode::CannotOpen
                        | ErrorCode::OutOfMemory
                )
            ),
            Self::NotThere { .. }
            | Self::NoWal { .. }
            | Self::NewerSchema { .. }
            | Self::OlderSchema { .. }
            | Self::Garbled { .. }
            | Self::BadId { .. }
            | Self::LiveChainExists { .. }
            | Self::ChainIdTaken { .. }
            | Self::LiveJobExists { .. }
            | Self::SecondWriter { .. }
            | Self::Gap { .. }
            | Self::StaleOwner { .. }
            | Self::StaleEpoch { .. }
            | Self::AlreadySettled { .. }
            | Self::WrongStatus { .. }
            | Self::NoSuchJob { .. }
            | Self::NoSuchChain { .. }
            | Self::Ambiguous { .. } => false,
        }
    }

    /// Returns SQLite's reason if the disk or the file failed, so that no statement of the transaction can be trusted.
    pub(super) fn disk_fault(&self) -> Option<Arc<rusqlite::Error>> {
        match self {
            Self::Query { source, .. } if is_disk_fault(source) => Some(Arc::clone(source)),
            _ => None,
        }
    }
}

fn is_disk_fault(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::OutOfMemory
        )
    )
}

/// Wraps a failed statement; `what` says what was tried, on what.
pub(super) fn failed(what: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |source| StoreError::Query { what, source: Arc::new(source) }
}

/// Wraps a failed begin or commit.
pub(super) fn not_written(source: rusqlite::Error) -> StoreError {
    StoreError::NotWritten { source: Arc::new(source) }
}

const RETRY: &str = "make sure that the disk has space and can be written, then run the same command again";

impl Explain for StoreError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        use FailureKind::{Contested, Internal, NotFound, Refused, Store, Unusable, Usage};
        let report = || "please report this with the output of `sp doctor`".to_owned();
        match self {
            Self::NotThere { .. } => {
                (NotFound, "store_not_there", "start a chain first: `sp chain run <formula> --bead <bead>`".into())
            }
            Self::Open { .. } => (Store, "store_not_opened", "see what is wrong with the file: `sp doctor`".into()),
            Self::NoWal { .. } => {
                (Unusable, "store_no_wal", "keep the repository on a local file system, then run again".into())
            }
            Self::NewerSchema { .. } => {
                (Unusable, "store_newer", "use the sp that wrote this database, or a later one".into())
            }
            Self::OlderSchema { found, .. } if *found >= UPGRADABLE_SCHEMA => (
                Unusable,
                "store_older",
                "start a chain with this sp, which upgrades it: `sp chain run <formula> --bead <bead>`".into(),
            ),
            Self::OlderSchema { .. } => (
                Unusable,
                "store_older",
                format!(
                    "bring it to version {UPGRADABLE_SCHEMA} with the program that wrote it, then start a chain with this sp"
                ),
            ),
            Self::Query { .. } => (Store, "store_query_failed", RETRY.into()),
            Self::NotWritten { .. } => (Store, "store_not_written", RETRY.into()),
            Self::Closed | Self::Thread { .. } => (Store, "store_closed", "run the same command again".into()),
            Self::File { .. } => (Store, "job_file_failed", RETRY.into()),
            Self::Garbled { path, .. } => {
                (Store, "job_file_garbled", format!("look at {}; the database may have the same facts", path.display()))
            }
            Self::BadId { .. } => (Usage, "bad_id", "list what there is: `sp ps`, `sp chain list`".into()),
            Self::LiveChainExists { chain, .. } => {
                (Contested, "live_chain_exists", format!("see it: `sp chain show {chain}`"))
            }
            Self::ChainIdTaken { .. } => (Contested, "chain_id_taken", "run the same command again".into()),
            Self::LiveJobExists { job, .. } => (Contested, "live_job_exists", format!("follow it: `sp feed {job} -f`")),
            Self::SecondWriter { .. } => {
                (Contested, "second_writer", "see who works on it: `sp ps`, then run the same command again".into())
            }
            Self::Gap { .. } => (Internal, "event_gap", report()),
            Self::StaleOwner { chain, .. } => {
                (Contested, "stale_owner", format!("another sp took the chain over; follow it: `sp feed {chain} -f`"))
            }
            Self::StaleEpoch { job, .. } => {
                (Contested, "stale_epoch", format!("a later run of the job goes on; follow it: `sp feed {job} -f`"))
            }
            Self::AlreadySettled { job, .. } => (Refused, "already_settled", format!("read it: `sp result {job}`")),
            Self::WrongStatus { .. } => (Internal, "wrong_status", report()),
            Self::NoSuchJob { .. } => (NotFound, "no_such_job", "list the jobs: `sp ps --all`".into()),
            Self::NoSuchChain { .. } => (NotFound, "no_such_chain", "list the chains: `sp chain list --all`".into()),
            Self::Ambiguous { .. } => (Usage, "ambiguous_job", "give more of the id".into()),
        }
    }

    fn blocked_by(&self) -> Vec<String> {
        match self {
            Self::LiveChainExists { chain, .. } | Self::ChainIdTaken { chain } | Self::StaleOwner { chain, .. } => {
                vec![chain.to_string()]
            }
            Self::LiveJobExists { job, .. } => vec![job.to_string()],
            Self::Ambiguous { matches, .. } => matches.iter().map(JobId::to_string).collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;

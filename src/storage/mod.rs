//! SQLite database and job files. Design: docs/design/storage.md.

mod chain_events;
mod chains;
mod connection;
mod error;
mod files;
mod findings;
mod job_events;
mod jobs;
mod migrations;
mod owners;
mod paths;
mod read;
mod results;
#[cfg(test)]
mod sample;
mod settle;
mod words;
mod writer;

pub use chain_events::{AppendChainEvents, ChainEventRow};
pub use chains::{ChainPatch, ChainRow, OpenChain};
pub use error::StoreError;
pub use files::{Durability, JobFiles};
pub use findings::{Finding, RecordFinding};
pub use job_events::{AppendJobEvents, JobEventRow};
pub use jobs::{JobFilter, JobRow, JobScope, JobTotals, SessionMeta, UpsertJob};
pub(crate) use migrations::{CURRENT as SCHEMA_VERSION, EXISTING as UPGRADABLE_SCHEMA};
#[cfg(test)]
pub use owners::Released;
pub use owners::{OwnerRow, Ownership, ProcessIdentity, ReleaseOwnership, Resource, TakeOwnership};
pub use paths::{JobDir, Layout};
pub use read::Reader;
pub use settle::{SettleJob, StagedSettlement};
pub use words::{ChainStatus, JobStatus};
pub use writer::{Pending, Write, Writer};

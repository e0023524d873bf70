//! Table `owners`: who may write to what, across processes. Taken in one transaction, fenced by an epoch.

use std::fmt;
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use super::error::{StoreError, failed};
use super::writer::Write;
use crate::ids::ChainId;

/// One process for good: no later process has the same three.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Boot of the machine (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start_ticks: u64,
}

/// What can be owned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resource {
    /// The right to run a chain.
    Chain(ChainId),
    /// The right to write in a worktree.
    Worktree(PathBuf),
}

impl fmt::Display for Resource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(chain) => write!(out, "chain:{chain}"),
            // Two paths that differ in bytes that are no UTF-8 share a key; then one waits for the other.
            Self::Worktree(path) => write!(out, "worktree:{}", path.display()),
        }
    }
}

/// One resource that was ever owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerRow {
    /// The resource, as its `Display` has it.
    pub resource: String,
    /// Raised each time the holder changes; never goes back.
    pub epoch: u32,
    /// The process that holds it; `None` after a release.
    pub holder: Option<ProcessIdentity>,
    /// Wall clock of the last taking, ms since 1970 UTC.
    pub taken_at_ms: i64,
}

impl OwnerRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let boot_id: Option<String> = row.get("boot_id")?;
        let holder = match boot_id {
            Some(boot_id) => Some(ProcessIdentity {
                boot_id,
                pid: row.get("pid")?,
                start_ticks: row.get::<_, i64>("start_ticks")?.cast_unsigned(),
            }),
            None => None,
        };
        Ok(Self {
            resource: row.get("resource")?,
            epoch: row.get("epoch")?,
            holder,
            taken_at_ms: row.get("taken_at_ms")?,
        })
    }
}

/// What came of asking for a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// The caller holds it under this epoch.
    Owned {
        /// Epoch; every write under the resource carries it.
        epoch: u32,
    },
    /// A live process holds it.
    HeldBy(OwnerRow),
}

/// Takes a resource that is free, or whose holder is dead. Who holds it already gets the same epoch again.
pub struct TakeOwnership {
    /// What.
    pub resource: Resource,
    /// Who.
    pub me: ProcessIdentity,
    /// Wall clock, ms since 1970 UTC.
    pub at_ms: i64,
    /// Tells whether a holder still runs. Asked within the transaction, so it must be quick.
    pub is_alive: Box<dyn Fn(&ProcessIdentity) -> bool + Send>,
}

impl Write for TakeOwnership {
    type Answer = Ownership;

    fn apply(&self, tx: &Transaction<'_>) -> Result<Ownership, StoreError> {
        take(tx, &self.resource, &self.me, self.at_ms, &self.is_alive)
    }
}

/// What came of giving a resource back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// It is free now.
    Released,
    /// The caller did not hold it under that epoch; nothing changed.
    NotHeld,
}

/// Gives a resource back. Its epoch stays, so that words of this holder that come late are still refused.
#[derive(Debug, Clone)]
pub struct ReleaseOwnership {
    /// What.
    pub resource: Resource,
    /// Who.
    pub me: ProcessIdentity,
    /// The epoch it was taken under.
    pub epoch: u32,
}

impl Write for ReleaseOwnership {
    type Answer = Released;

    fn apply(&self, tx: &Transaction<'_>) -> Result<Released, StoreError> {
        let sql = "UPDATE owners SET boot_id = NULL, pid = NULL, start_ticks = NULL
                   WHERE resource = ?1 AND epoch = ?2 AND boot_id = ?3 AND pid = ?4 AND start_ticks = ?5";
        let key = params![
            self.resource.to_string(),
            self.epoch,
            self.me.boot_id,
            self.me.pid,
            self.me.start_ticks.cast_signed()
        ];
        let freed =
            tx.prepare_cached(sql).and_then(|mut update| update.execute(key)).map_err(failed("release a resource"))?;
        Ok(if freed == 1 { Released::Released } else { Released::NotHeld })
    }
}

/// Takes a resource within a transaction.
pub(super) fn take(
    tx: &Transaction<'_>,
    resource: &Resource,
    me: &ProcessIdentity,
    at_ms: i64,
    is_alive: &dyn Fn(&ProcessIdentity) -> bool,
) -> Result<Ownership, StoreError> {
    let epoch = match get(tx, resource)? {
        None => 1,
        Some(OwnerRow { holder: None, epoch, .. }) => epoch + 1,
        Some(row @ OwnerRow { .. }) => match &row.holder {
            Some(holder) if holder == me => return Ok(Ownership::Owned { epoch: row.epoch }),
            Some(holder) if is_alive(holder) => return Ok(Ownership::HeldBy(row)),
            Some(_) | None => row.epoch + 1,
        },
    };
    let sql = "INSERT INTO owners (resource, epoch, boot_id, pid, start_ticks, taken_at_ms)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)
               ON CONFLICT (resource) DO UPDATE SET epoch = excluded.epoch, boot_id = excluded.boot_id,
                 pid = excluded.pid, start_ticks = excluded.start_ticks, taken_at_ms = excluded.taken_at_ms";
    tx.prepare_cached(sql)
        .and_then(|mut upsert| {
            let ticks = me.start_ticks.cast_signed();
            upsert.execute(params![resource.to_string(), epoch, me.boot_id, me.pid, ticks, at_ms])
        })
        .map_err(failed("take a resource"))?;
    Ok(Ownership::Owned { epoch })
}

/// Reads who owns a resource; `None` when nobody ever did.
pub(super) fn get(connection: &Connection, resource: &Resource) -> Result<Option<OwnerRow>, StoreError> {
    connection
        .prepare_cached("SELECT * FROM owners WHERE resource = ?1")
        .and_then(|mut select| select.query_row(params![resource.to_string()], OwnerRow::read).optional())
        .map_err(failed("read the owner of a resource"))
}

/// Returns the epoch a resource is held under; `None` when nobody holds it.
pub(super) fn held_epoch(connection: &Connection, resource: &Resource) -> Result<Option<u32>, StoreError> {
    Ok(get(connection, resource)?.filter(|row| row.holder.is_some()).map(|row| row.epoch))
}

/// Lists what is held now.
pub(super) fn held(connection: &Connection) -> Result<Vec<OwnerRow>, StoreError> {
    connection
        .prepare_cached("SELECT * FROM owners WHERE boot_id IS NOT NULL ORDER BY resource")
        .and_then(|mut select| select.query_map([], OwnerRow::read)?.collect())
        .map_err(failed("list the owners"))
}

#[cfg(test)]
mod tests;

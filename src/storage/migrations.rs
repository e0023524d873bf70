//! Brings a database to the version this program writes: one list, one transaction.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::error::{StoreError, failed, not_written};

/// The schema that this program reads and writes.
pub(crate) const CURRENT: u32 = 13;

/// The last schema of the existing system, the oldest one we upgrade. It brings its own files to it at every opening.
pub(crate) const EXISTING: u32 = 12;

/// The tables we took over, for a new file.
const EXISTING_TABLES: &str = include_str!("migrations/012_existing.sql");

/// (version, statements). Append-only: a released entry is never edited.
const MIGRATIONS: &[(u32, &str)] = &[(13, include_str!("migrations/013_chains.sql"))];

/// Returns the version of a database; `None` when it has none yet.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<Option<u32>> {
    let table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'";
    match connection.query_row(table, [], |_| Ok(())).optional()? {
        Some(()) => connection.query_row("SELECT max(version) FROM schema_version", [], |row| row.get(0)),
        None => Ok(None),
    }
}

/// Brings the database to [`CURRENT`]. Looks first, so that an up-to-date file is not locked for writing.
pub(super) fn migrate(connection: &mut Connection, path: &Path, now_ms: i64) -> Result<(), StoreError> {
    let read_version = failed("read the version of the schema");
    if version(connection).map_err(&read_version)? == Some(CURRENT) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(not_written)?;
    // Read again under the lock: another process may have been first.
    let found = match version(&transaction).map_err(&read_version)? {
        None => {
            transaction.execute_batch(EXISTING_TABLES).map_err(failed("create the tables"))?;
            EXISTING
        }
        Some(found) if found > CURRENT => {
            return Err(StoreError::NewerSchema { path: path.to_owned(), found, known: CURRENT });
        }
        Some(found) if found < EXISTING => {
            return Err(StoreError::OlderSchema { path: path.to_owned(), found, needed: EXISTING });
        }
        Some(found) => found,
    };
    for (version, statements) in MIGRATIONS.iter().filter(|(version, _)| *version > found) {
        transaction.execute_batch(statements).map_err(failed("upgrade the schema"))?;
        transaction
            .execute("INSERT INTO schema_version (version, applied_at_ms) VALUES (?1, ?2)", params![version, now_ms])
            .map_err(failed("record the version of the schema"))?;
    }
    transaction.commit().map_err(not_written)
}

#[cfg(test)]
mod tests;

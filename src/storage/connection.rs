//! Opens the database, for the one writer of a process and for readers.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::error::StoreError;
use super::migrations::{self, CURRENT};

/// How long a connection waits for a lock of another process.
const BUSY: Duration = Duration::from_secs(5);

/// Opens the database for writing: creates it, upgrades it.
pub(super) fn open_writer(path: &Path, now_ms: i64) -> Result<Connection, StoreError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|source| StoreError::File {
            verb: "create",
            path: parent.to_owned(),
            source: Arc::new(source),
        })?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(not_opened(path))?;
    connection.busy_timeout(BUSY).map_err(not_opened(path))?;
    // A newer database is refused before anything of it is changed.
    refuse_newer(path, migrations::version(&connection).map_err(not_opened(path))?)?;
    let mode = use_write_ahead_log(&connection).map_err(not_opened(path))?;
    if mode != "wal" {
        return Err(StoreError::NoWal { path: path.to_owned(), mode });
    }
    prepare(&connection).map_err(not_opened(path))?;
    migrations::migrate(&mut connection, path, now_ms)?;
    Ok(connection)
}

/// Switches the file to write-ahead logging; returns the mode it has then.
///
/// Two processes that switch one new file at once both hold a shared lock and want the exclusive one; SQLite then
/// fails one of them without asking its busy handler. The loser finds the file switched when it asks again.
fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<String> {
    let switch = || connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0));
    let mut answer = switch();
    for pause_ms in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048] {
        match &answer {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                thread::sleep(Duration::from_millis(pause_ms));
                answer = switch();
            }
            Ok(_) | Err(_) => break,
        }
    }
    answer
}

/// Sets what a writing connection needs beside the journal mode, which the file remembers.
pub(super) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    // FULL: an acknowledged commit survives a power cut. Shared commits make it cheap.
    connection.pragma_update(None, "synchronous", "full")?;
    // In KiB. Writes append; what is older is read again from the system's own cache.
    connection.pragma_update(None, "cache_size", -512)?;
    // All that a writer says, so that none is parsed twice; the default holds 16.
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "foreign_keys", true)
}

/// Opens the database for reading; never creates, upgrades or locks anything.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let not_there = || StoreError::NotThere { path: path.to_owned() };
    if !path.exists() {
        return Err(not_there());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(not_opened(path))?;
    connection.busy_timeout(BUSY).map_err(not_opened(path))?;
    let found = migrations::version(&connection).map_err(not_opened(path))?;
    refuse_newer(path, found)?;
    match found {
        Some(found) if found < CURRENT => {
            Err(StoreError::OlderSchema { path: path.to_owned(), found, needed: CURRENT })
        }
        Some(_) => Ok(connection),
        // Another process is about to create its tables.
        None => Err(not_there()),
    }
}

fn refuse_newer(path: &Path, found: Option<u32>) -> Result<(), StoreError> {
    match found {
        Some(found) if found > CURRENT => Err(StoreError::NewerSchema { path: path.to_owned(), found, known: CURRENT }),
        Some(_) | None => Ok(()),
    }
}

fn not_opened(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError {
    move |source| StoreError::Open { path: path.to_owned(), source: Arc::new(source) }
}

/// Makes an up-to-date database in memory, for tests of single queries.
#[cfg(test)]
pub(super) fn in_memory() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    prepare(&connection).unwrap();
    migrations::migrate(&mut connection, Path::new(":memory:"), 1).unwrap();
    connection
}

use std::collections::BTreeSet;
use std::fs;
use std::sync::Barrier;
use std::thread;

use rusqlite::Connection;
use tempfile::tempdir;

use super::*;
use crate::ids::JobId;
use crate::storage::connection::{in_memory, open_reader, open_writer};
use crate::storage::jobs::{self, JobFilter, JobScope, UpsertJob};
use crate::storage::sample;
use crate::storage::words::JobStatus;
use crate::storage::writer::Write;
use crate::storage::{Reader, job_events};

/// What the existing system's version 12 leaves behind, as far as it touches our tables.
const VERSION_12: &str = r#"
    CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at_ms INTEGER NOT NULL);
    CREATE TABLE specialist_jobs (job_id TEXT PRIMARY KEY, specialist TEXT NOT NULL, worktree_column TEXT,
      bead_id TEXT, node_id TEXT, status TEXT NOT NULL, status_json TEXT NOT NULL, updated_at_ms INTEGER NOT NULL,
      last_output TEXT, startup_payload_json TEXT, chain_id TEXT, epic_id TEXT,
      chain_kind TEXT NOT NULL DEFAULT 'prep', chain_root_job_id TEXT, chain_root_bead_id TEXT);
    CREATE TABLE specialist_events (id INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT NOT NULL, seq INTEGER NOT NULL,
      specialist TEXT NOT NULL, bead_id TEXT, t INTEGER NOT NULL, type TEXT NOT NULL, event_json TEXT NOT NULL);
    CREATE TABLE specialist_results (job_id TEXT PRIMARY KEY, output TEXT NOT NULL, updated_at_ms INTEGER NOT NULL);
    CREATE TABLE epic_runs (epic_id TEXT PRIMARY KEY, status TEXT NOT NULL, status_json TEXT NOT NULL,
      updated_at_ms INTEGER NOT NULL);
    CREATE INDEX idx_specialist_events_type ON specialist_events (type);
    CREATE INDEX idx_specialist_events_job_seq ON specialist_events (job_id, seq);
    CREATE INDEX idx_jobs_bead ON specialist_jobs (bead_id) WHERE bead_id IS NOT NULL;
    CREATE INDEX idx_jobs_chain ON specialist_jobs (chain_id) WHERE chain_id IS NOT NULL;
    CREATE INDEX idx_jobs_status_updated ON specialist_jobs (status, updated_at_ms DESC);
    CREATE UNIQUE INDEX idx_jobs_active_bead_specialist ON specialist_jobs (bead_id, specialist)
      WHERE bead_id IS NOT NULL AND status IN ('starting', 'running');
    INSERT INTO schema_version SELECT value, 7 FROM json_each('[1,2,3,4,5,6,7,8,9,10,11,12]');
    INSERT INTO specialist_jobs (job_id, specialist, bead_id, status, status_json, updated_at_ms) VALUES
      ('a1b2c3', 'executor', 'p-1', 'done',
       '{"id":"a1b2c3","model":"x/m","started_at_ms":500,"branch":"feature/p-1","pid":4711}', 900),
      ('d4e5f6', 'reviewer', 'p-2', 'waiting', '{"started_at_ms":"600"}', 901),
      ('d4e5f7', 'reviewer', 'p-2', 'waiting', 'not json', 902),
      ('0badf0', 'reviewer', NULL, 'stopped', '{}', 903);
    INSERT INTO specialist_events (job_id, seq, specialist, t, type, event_json) VALUES
      ('a1b2c3', 1, 'executor', 501, 'run_start', '{"n":1}'), ('a1b2c3', 2, 'executor', 502, 'text', '{"n":2}'),
      ('a1b2c3', 2, 'executor', 502, 'tool', '{"n":3}'), ('a1b2c3', 3, 'executor', 503, 'run_complete', '{"n":4}'),
      ('d4e5f6', 5, 'reviewer', 601, 'run_start', '{"n":5}');
    INSERT INTO specialist_results VALUES ('a1b2c3', 'all good', 900);
    INSERT INTO epic_runs VALUES ('p-9', 'open', '{}', 7);
"#;

fn shape(connection: &Connection) -> BTreeSet<String> {
    // Names, types and defaults of the columns of every table, and the definition of every index, ours or not.
    let sql = "SELECT m.name || ' ' || c.cid || ' ' || c.name || ' ' || c.type || ' ' || c.\"notnull\" || ' '
                 || coalesce(c.dflt_value, '-') || ' ' || c.pk
               FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'
               UNION SELECT replace(replace(sql, ' IF NOT EXISTS', ''), char(10), '') FROM sqlite_master
               WHERE type = 'index' AND sql IS NOT NULL";
    let mut select = connection.prepare(sql).unwrap();
    let rows = select.query_map([], |row| row.get::<_, String>(0)).unwrap();
    rows.map(|row| row.unwrap().replace(' ', "")).collect()
}

#[test]
fn an_upgraded_database_has_the_shape_of_a_new_one() {
    let mut upgraded = Connection::open_in_memory().unwrap();
    upgraded.execute_batch(VERSION_12).unwrap();
    migrate(&mut upgraded, Path::new("x.db"), 8).unwrap();
    let (new, upgraded) = (shape(&in_memory()), shape(&upgraded));
    assert_eq!(new.difference(&upgraded).collect::<Vec<_>>(), Vec::<&String>::new());
    let only_old: Vec<_> = upgraded.difference(&new).filter(|line| !line.starts_with("epic_runs")).collect();
    assert_eq!(only_old, ["CREATEINDEXidx_specialist_events_typeONspecialist_events(type)"]);
}

#[test]
fn an_upgrade_keeps_the_rows_of_the_existing_system() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("old.db");
    Connection::open(&path).unwrap().execute_batch(VERSION_12).unwrap();
    assert!(matches!(Reader::open(&path), Err(StoreError::OlderSchema { found: 12, needed: 13, .. })));
    drop(open_writer(&path, 8).unwrap());

    let reader = Reader::open(&path).unwrap();
    let by_id = |id: &str| reader.job(&JobId::new(id)).unwrap().unwrap();
    let done = by_id("a1b2c3");
    assert_eq!((done.status, done.epoch, done.started_at_ms), (JobStatus::Done, 0, 500));
    assert_eq!((done.model.as_deref(), done.branch.as_deref()), (Some("x/m"), Some("feature/p-1")));
    assert_eq!((done.pid, done.completed_at_ms), (Some(4711), Some(900)));
    assert_eq!((by_id("d4e5f6").started_at_ms, by_id("d4e5f7").started_at_ms), (600, 902));
    let unknown = by_id("0badf0");
    assert_eq!((unknown.status, unknown.outcome.as_deref()), (JobStatus::Error, Some("status was stopped")));
    let live = JobFilter { scope: JobScope::Live, ..JobFilter::default() };
    assert_eq!(reader.jobs(&live).unwrap().len(), 2, "two waiting jobs of one bead, which version 12 allowed");
    assert_eq!(reader.result(&JobId::new("a1b2c3")).unwrap().as_deref(), Some("all good"));

    let numbered = |id: &str| -> Vec<(u64, String)> {
        let events = reader.job_events(&JobId::new(id), 0).unwrap();
        events.into_iter().map(|event| (event.seq, event.json)).collect()
    };
    let expected: Vec<(u64, String)> = (1..=4).map(|n| (n, format!(r#"{{"n":{n}}}"#))).collect();
    assert_eq!(numbered("a1b2c3"), expected, "a doubled seq is resolved in the order of storing");
    assert_eq!(numbered("d4e5f6"), [(5, r#"{"n":5}"#.to_owned())], "a clean timeline keeps its numbers");
}

#[test]
fn an_upgrade_happens_once() {
    let mut connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(VERSION_12).unwrap();
    migrate(&mut connection, Path::new("x.db"), 8).unwrap();
    let before = connection.total_changes();
    migrate(&mut connection, Path::new("x.db"), 9).unwrap();
    assert_eq!(connection.total_changes(), before);
    let dated: i64 = connection
        .query_row("SELECT applied_at_ms FROM schema_version WHERE version = 13", [], |row| row.get(0))
        .unwrap();
    assert_eq!(dated, 8);
}

#[test]
fn an_upgrade_that_fails_changes_nothing() {
    let mut connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(VERSION_12).unwrap();
    // A foreign table in the place of one of ours, met in the middle of the upgrade.
    connection.execute_batch("CREATE TABLE chain_events (x)").unwrap();
    let before = shape(&connection);
    assert!(matches!(migrate(&mut connection, Path::new("x.db"), 8), Err(StoreError::Query { .. })));
    assert_eq!(shape(&connection), before);
    assert_eq!(version(&connection).unwrap(), Some(12));
}

#[test]
fn a_newer_and_a_too_old_database_are_refused_untouched() {
    let dir = tempdir().unwrap();
    for (name, found) in [("newer.db", 14), ("older.db", 11)] {
        let path = dir.path().join(name);
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at_ms)").unwrap();
        connection.execute("INSERT INTO schema_version VALUES (?1, 1)", [found]).unwrap();
        drop(connection);
        let is_refused = |error: StoreError| match error {
            StoreError::NewerSchema { found, .. } => found == 14,
            StoreError::OlderSchema { found, .. } => found == 11,
            _ => false,
        };
        assert!(is_refused(open_writer(&path, 1).unwrap_err()), "{name}");
        assert!(is_refused(open_reader(&path).unwrap_err()), "{name}");
        let connection = Connection::open(&path).unwrap();
        assert_eq!(shape(&connection).len(), 2, "{name}");
    }
}

#[test]
fn a_file_that_is_no_database_is_named() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("text.db");
    fs::write(&path, "this is text, and long enough to be taken for a header ".repeat(20)).unwrap();
    for error in [open_writer(&path, 1).unwrap_err(), open_reader(&path).unwrap_err()] {
        assert!(matches!(&error, StoreError::Open { path: named, .. } if *named == path), "{error:?}");
        assert!(!error.may_pass());
    }
}

#[test]
fn eight_openers_of_one_new_file_all_succeed() {
    for _ in 0..20 {
        let dir = tempdir().unwrap();
        let path = dir.path().join("db/new.db");
        let start = Barrier::new(8);
        thread::scope(|scope| {
            let openers: Vec<_> = (0..8)
                .map(|n| {
                    let (path, start) = (&path, &start);
                    scope.spawn(move || {
                        start.wait();
                        let mut connection = open_writer(path, 1)?;
                        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
                        UpsertJob(sample::job(&format!("job{n}"))).apply(&tx)?;
                        tx.commit().map_err(not_written)
                    })
                })
                .collect();
            for opener in openers {
                opener.join().unwrap().unwrap();
            }
        });
        let reader = open_reader(&path).unwrap();
        assert_eq!(jobs::list(&reader, &JobFilter::default()).unwrap().len(), 8);
        assert_eq!(job_events::after(&reader, &JobId::new("job0"), 0).unwrap(), []);
    }
}

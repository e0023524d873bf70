use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;

use proptest::prelude::*;
use tempfile::{TempDir, tempdir};

use super::*;
use crate::ids::JobId;
use crate::storage::jobs::{JobFilter, JobRow, UpsertJob};
use crate::storage::read::Reader;
use crate::storage::sample::{ended, job};
use crate::storage::settle::SettleJob;

fn new_database() -> (TempDir, PathBuf) {
    let dir = tempdir().unwrap();
    let path = dir.path().join("db/x.db");
    (dir, path)
}

fn stored(path: &Path) -> Vec<String> {
    let mut ids: Vec<_> = Reader::open(path)
        .unwrap()
        .jobs(&JobFilter::default())
        .unwrap()
        .into_iter()
        .map(|row| row.job.to_string())
        .collect();
    ids.sort();
    ids
}

/// A write that does whatever a test needs within the transaction.
struct Act<F>(F);

impl<F: Fn(&Transaction<'_>) -> Result<(), StoreError> + Send + 'static> Write for Act<F> {
    type Answer = ();

    fn apply(&self, tx: &Transaction<'_>) -> Result<(), StoreError> {
        (self.0)(tx)
    }
}

/// Holds the writer within a commit of its own until the sender is dropped, so that all that comes meanwhile shares
/// the next one.
fn hold(writer: &Writer) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let (entered, is_held) = mpsc::channel();
    let wait = Act(move |_: &Transaction<'_>| {
        entered.send(()).unwrap();
        // Ends with an error, since the sender is dropped.
        held.recv().unwrap_err();
        Ok(())
    });
    writer.submit(Pending::new(wait, drop)).unwrap();
    is_held.recv().unwrap();
    release
}

type Answers = mpsc::Receiver<(usize, Result<(), StoreError>)>;

fn submit_all(writer: &Writer, rows: Vec<JobRow>) -> Answers {
    let (sender, answers) = mpsc::channel();
    for (place, row) in rows.into_iter().enumerate() {
        let sender = sender.clone();
        writer.submit(Pending::new(UpsertJob(row), move |answer| drop(sender.send((place, answer))))).unwrap();
    }
    answers
}

#[test]
fn a_bad_write_fails_alone_among_those_that_share_its_commit() {
    let (_dir, path) = new_database();
    let writer = Writer::start(&path, 1).unwrap();
    let release = hold(&writer);
    let rows = vec![job("a"), JobRow { epoch: 2, ..job("b") }, job("b"), ended("c"), job("d")];
    let answers = submit_all(&writer, rows);
    drop(release);
    let answers: Vec<_> = answers.iter().collect();
    assert!(matches!(
        &answers[..],
        [
            (0, Ok(())),
            (1, Ok(())),
            (2, Err(StoreError::StaleEpoch { .. })),
            (3, Err(StoreError::WrongStatus { .. })),
            (4, Ok(())),
        ]
    ));
    assert_eq!(stored(&path), ["a", "b", "d"]);
}

#[test]
fn each_commit_is_brought_to_disk() {
    let (_dir, path) = new_database();
    let writer = Writer::start(&path, 1).unwrap();
    // A power cut can't be had in a test, so the settings that survive one are read back: FULL is 2.
    let settings = Act(|tx: &Transaction<'_>| {
        for (name, expected) in [("journal_mode", "wal"), ("synchronous", "2"), ("foreign_keys", "1")] {
            let sql = format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}");
            let found: String = tx.query_row(&sql, [], |row| row.get(0)).unwrap();
            assert_eq!(found, expected, "{name}");
        }
        Ok(())
    });
    writer.call(settings).unwrap();
}

#[test]
fn a_write_that_fails_half_way_leaves_nothing_behind() {
    let (_dir, path) = new_database();
    let writer = Writer::start(&path, 1).unwrap();
    let half = Act(|tx: &Transaction<'_>| {
        UpsertJob(job("half")).apply(tx)?;
        UpsertJob(ended("half")).apply(tx)
    });
    assert!(writer.call(half).is_err());
    writer.call(UpsertJob(job("whole"))).unwrap();
    assert_eq!(stored(&path), ["whole"]);
}

#[test]
fn writes_in_line_share_a_commit_and_none_is_acknowledged_before_it() {
    let (_dir, path) = new_database();
    let writer = Writer::start(&path, 1).unwrap();
    let release = hold(&writer);
    let (sender, seen) = mpsc::channel();
    let look = {
        let (path, sender) = (path.clone(), sender.clone());
        // Within the transaction of the write before it, which nobody else sees yet.
        move || drop(sender.send(stored(&path)))
    };
    let ack = {
        let path = path.clone();
        move |answer: Result<(), StoreError>| {
            answer.unwrap();
            drop(sender.send(stored(&path)));
        }
    };
    writer.submit(Pending::new(UpsertJob(job("a")), ack)).unwrap();
    let shared = Act(move |tx: &Transaction<'_>| {
        look();
        UpsertJob(job("b")).apply(tx)
    });
    writer.submit(Pending::new(shared, drop)).unwrap();
    drop(release);
    assert_eq!(seen.recv().unwrap(), Vec::<String>::new());
    assert_eq!(seen.recv().unwrap(), ["a", "b"]);
}

fn set_page_limit(pages: u32) -> Act<impl Fn(&Transaction<'_>) -> Result<(), StoreError> + Send> {
    Act(move |tx: &Transaction<'_>| {
        tx.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
        Ok(())
    })
}

#[test]
fn a_full_disk_is_told_to_everyone_of_the_transaction_and_writes_go_on_when_there_is_space() {
    let (_dir, path) = new_database();
    let writer = Writer::start(&path, 1).unwrap();
    writer.call(UpsertJob(job("before"))).unwrap();
    // The database may not grow any more: what a full disk answers.
    writer.call(set_page_limit(1)).unwrap();
    let release = hold(&writer);
    let small = submit_all(&writer, vec![job("small")]);
    let (sender, large) = mpsc::channel();
    let settle = SettleJob { job: ended("large"), events: vec![], result: Some("x".repeat(1 << 20)) };
    writer.submit(Pending::new(settle, move |answer| drop(sender.send(answer)))).unwrap();
    let after = submit_all(&writer, vec![job("after")]);
    drop(release);
    let answers = [small.recv().unwrap().1, large.recv().unwrap(), after.recv().unwrap().1];
    for answer in answers {
        let error = answer.unwrap_err();
        assert!(matches!(error, StoreError::NotWritten { .. }) && error.may_pass(), "{error:?}");
    }
    assert_eq!(stored(&path), ["before"]);
    writer.call(set_page_limit(1 << 20)).unwrap();
    writer.call(UpsertJob(job("again"))).unwrap();
    assert_eq!(stored(&path), ["again", "before"]);
}

#[test]
fn a_writer_that_panics_answers_everyone_in_line() {
    let (_dir, path) = new_database();
    let writer = Writer::start(&path, 1).unwrap();
    let release = hold(&writer);
    let first = submit_all(&writer, vec![job("a")]);
    let panicking = Act(|_: &Transaction<'_>| panic!("a fault of sp, planted by a test"));
    writer.submit(Pending::new(panicking, drop)).unwrap();
    let last = submit_all(&writer, vec![job("b")]);
    drop(release);
    assert!(matches!(first.recv().unwrap(), (0, Err(StoreError::Closed))));
    assert!(matches!(last.recv().unwrap(), (0, Err(StoreError::Closed))));
    assert!(matches!(writer.call(UpsertJob(job("c"))), Err(StoreError::Closed)));
    let late = submit_all(&writer, vec![job("d")]);
    assert!(matches!(late.recv().unwrap(), (0, Err(StoreError::Closed))));
    drop(writer);
    assert_eq!(stored(&path), Vec::<String>::new());
    Writer::start(&path, 1).unwrap().call(UpsertJob(job("a"))).unwrap();
    assert_eq!(stored(&path), ["a"]);
}

#[test]
fn dropping_the_writer_commits_what_waits_in_line() {
    let (_dir, path) = new_database();
    let writer = Writer::start(&path, 1).unwrap();
    let release = hold(&writer);
    let answers = submit_all(&writer, vec![job("a"), job("b")]);
    drop(release);
    drop(writer);
    assert!(answers.try_iter().all(|(_, answer)| answer.is_ok()));
    assert_eq!(stored(&path), ["a", "b"]);
}

#[test]
fn an_acknowledgement_may_drop_the_last_handle() {
    let (_dir, path) = new_database();
    let writer = Arc::new(Writer::start(&path, 1).unwrap());
    let release = hold(&writer);
    let (sender, done) = mpsc::channel();
    let held = Arc::clone(&writer);
    let ack = move |answer: Result<(), StoreError>| {
        drop(held);
        drop(sender.send(answer));
    };
    writer.submit(Pending::new(UpsertJob(job("a")), ack)).unwrap();
    drop(writer);
    drop(release);
    done.recv().unwrap().unwrap();
    assert_eq!(stored(&path), ["a"]);
}

#[test]
fn a_full_line_hands_the_write_back() {
    let (_dir, path) = new_database();
    let writer = Writer::start(&path, 1).unwrap();
    let release = hold(&writer);
    let upsert = || Pending::new(UpsertJob(job("a")), drop);
    for _ in 0..QUEUE {
        writer.submit(upsert()).unwrap();
    }
    let (sender, answer) = mpsc::channel();
    let one_more = Pending::new(UpsertJob(job("b")), move |result| drop(sender.send(result)));
    let handed_back = writer.submit(one_more).unwrap_err();
    drop(release);
    // A call waits for its place; once it is through, the line has room.
    writer.call(UpsertJob(job("c"))).unwrap();
    writer.submit(handed_back).unwrap();
    answer.recv().unwrap().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// A copy of the files taken at any moment is what a killed process leaves: no clean end, no checkpoint.
    #[test]
    fn what_was_acknowledged_is_there_after_a_crash(total in 1..40usize, crash_after in 0..40usize) {
        let (dir, path) = new_database();
        let writer = Writer::start(&path, 1).unwrap();
        let ids: Vec<String> = (0..total).map(|n| format!("job{n:02}")).collect();
        let answers = submit_all(&writer, ids.iter().map(|id| job(id)).collect());
        let acknowledged: Vec<usize> = answers.iter().take(crash_after.min(total)).map(|(n, answer)| { answer.unwrap(); n }).collect();
        let left_behind = dir.path().join("left.db");
        fs::copy(&path, &left_behind).unwrap();
        fs::copy(path.with_extension("db-wal"), dir.path().join("left.db-wal")).unwrap();

        let found = stored(&left_behind);
        for n in acknowledged {
            prop_assert!(found.contains(&ids[n]), "{} of {found:?}", ids[n]);
        }
        // And the next process can write on.
        let next = Writer::start(&left_behind, 2).unwrap();
        next.call(UpsertJob(JobRow { epoch: 2, ..job(&ids[0]) })).unwrap();
        let row = Reader::open(&left_behind).unwrap().job(&JobId::new(ids[0].as_str())).unwrap().unwrap();
        prop_assert_eq!(row.epoch, 2);
    }
}

use tempfile::tempdir;

use super::*;
use crate::ids::JobId;
use crate::storage::connection::in_memory;
use crate::storage::files::Durability;
use crate::storage::job_events::AppendJobEvents;
use crate::storage::jobs::UpsertJob;
use crate::storage::paths::Layout;
use crate::storage::read::Reader;
use crate::storage::sample::{ended, event, job};
use crate::storage::words::JobStatus;
use crate::storage::writer::Writer;

fn settle(id: &str) -> SettleJob {
    SettleJob { job: ended(id), events: vec![event(2, "run_complete")], result: Some("all good".into()) }
}

#[test]
fn a_job_ends_once_and_the_same_end_again_is_fine() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    UpsertJob(job("j")).apply(&tx).unwrap();
    settle("j").apply(&tx).unwrap();
    settle("j").apply(&tx).unwrap();
    let mut failed = settle("j");
    failed.job.status = JobStatus::Error;
    let mut other_result = settle("j");
    other_result.result = Some("something else".into());
    let mut no_result = settle("j");
    no_result.result = None;
    let mut more_events = settle("j");
    more_events.events.push(event(3, "run_complete"));
    let mut later_epoch = settle("j");
    later_epoch.job.epoch = 9;
    for (case, other) in [
        ("another status", failed),
        ("another result", other_result),
        ("no result", no_result),
        ("a second terminal event", more_events),
        ("a later epoch", later_epoch),
    ] {
        let refused = other.apply(&tx).unwrap_err();
        assert!(matches!(refused, StoreError::AlreadySettled { status: JobStatus::Done, .. }), "{case}: {refused:?}");
    }
    assert_eq!(jobs::get(&tx, &"j".into()).unwrap(), Some(ended("j")));
    assert_eq!(job_events::after(&tx, &"j".into(), 0).unwrap(), [event(2, "run_complete")]);
    assert_eq!(results::get(&tx, &"j".into()).unwrap().as_deref(), Some("all good"));
}

#[test]
fn nothing_is_said_about_a_job_that_has_ended() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    UpsertJob(job("j")).apply(&tx).unwrap();
    let events = |events| AppendJobEvents { job: "j".into(), epoch: 1, events, row: None };
    events(vec![event(1, "text")]).apply(&tx).unwrap();
    settle("j").apply(&tx).unwrap();
    // The words of a stopped job that came in late (the existing system turned `cancelled` into `error`).
    assert!(matches!(UpsertJob(job("j")).apply(&tx), Err(StoreError::AlreadySettled { .. })));
    let refused = events(vec![event(1, "text"), event(3, "text")]).apply(&tx);
    assert!(matches!(refused, Err(StoreError::AlreadySettled { .. })));
    events(vec![event(1, "text")]).apply(&tx).unwrap();
}

#[test]
fn a_settlement_of_an_earlier_epoch_or_without_an_end_is_refused() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    UpsertJob(JobRow { epoch: 2, ..job("j") }).apply(&tx).unwrap();
    assert!(matches!(settle("j").apply(&tx), Err(StoreError::StaleEpoch { .. })));
    let not_ended = SettleJob { job: JobRow { epoch: 2, ..job("j") }, events: vec![], result: None };
    assert!(matches!(not_ended.apply(&tx), Err(StoreError::WrongStatus { .. })));
}

#[test]
fn a_job_that_ran_on_files_alone_is_taken_in_whole() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    settle("stray").apply(&tx).unwrap();
    assert_eq!(jobs::get(&tx, &"stray".into()).unwrap(), Some(ended("stray")));
    assert_eq!(results::get(&tx, &"stray".into()).unwrap().as_deref(), Some("all good"));
}

#[test]
fn files_and_database_agree_after_a_settlement() {
    let repo = tempdir().unwrap();
    let layout = Layout::new(repo.path());
    let writer = Writer::start(&layout.database(), 1).unwrap();
    let dir = layout.job(&JobId::new("j")).unwrap();
    let mut files = JobFiles::open(dir.clone()).unwrap();
    writer.call(UpsertJob(job("j"))).unwrap();
    settle_job(&writer, &mut files, settle("j")).unwrap();
    let reader = Reader::open(&layout.database()).unwrap();
    assert_eq!(dir.read_status().unwrap(), reader.job(&JobId::new("j")).unwrap());
    assert_eq!(dir.read_result().unwrap(), reader.result(&JobId::new("j")).unwrap());
    assert_eq!(dir.read_events().unwrap().events, reader.job_events(&JobId::new("j"), 0).unwrap());
}

#[test]
fn a_refused_settlement_leaves_the_files_as_they_were() {
    let repo = tempdir().unwrap();
    let layout = Layout::new(repo.path());
    let writer = Writer::start(&layout.database(), 1).unwrap();
    let dir = layout.job(&JobId::new("j")).unwrap();
    let mut files = JobFiles::open(dir.clone()).unwrap();
    let current = JobRow { epoch: 2, ..job("j") };
    writer.call(UpsertJob(current.clone())).unwrap();
    files.write_status(&current, Durability::Lazy).unwrap();
    files.stage_result("of epoch 2").unwrap().publish().unwrap();
    assert!(matches!(settle_job(&writer, &mut files, settle("j")), Err(StoreError::StaleEpoch { .. })));
    assert_eq!(dir.read_status().unwrap(), Some(current));
    assert_eq!(dir.read_result().unwrap().as_deref(), Some("of epoch 2"));
}

fn settle_job(writer: &Writer, files: &mut JobFiles, settle: SettleJob) -> Result<(), StoreError> {
    let record = settle.job.clone();
    writer.call(StagedSettlement::stage(files, settle)?)?;
    files.write_status(&record, Durability::Synced)
}

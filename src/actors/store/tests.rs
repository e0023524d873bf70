//! The Store on real time: its writer has a thread of its own.

use tempfile::tempdir;

use super::*;
use crate::ids::JobId;
use crate::ports::SystemClock;
use crate::storage::{AppendJobEvents, JobEventRow, JobRow, Layout, Reader, UpsertJob};

async fn start(layout: &Layout, name: &str) -> (ActorRef<StoreMsg>, StoreHandle) {
    let store = Store { database: layout.database(), clock: Arc::new(SystemClock) };
    let (actor, _) = Actor::spawn(Some(name.to_owned()), store, ()).await.unwrap();
    (actor, StoreHandle::new(Door::new(name.to_owned())))
}

fn event(seq: u64) -> JobEventRow {
    let json = format!(r#"{{"seq":{seq},"t":1,"type":"text"}}"#);
    JobEventRow { seq, at_ms: 1, kind: "text".into(), json }
}

#[tokio::test]
async fn more_writes_than_the_line_takes_are_all_written_in_their_order() {
    let repo = tempdir().unwrap();
    let layout = Layout::new(repo.path());
    let (_, store) = start(&layout, "store-test-line").await;
    let job = JobId::from("0a1b2c3d");
    store.write(UpsertJob(JobRow::starting(job.clone(), "executor", 1))).await.unwrap();
    let append = |seq| AppendJobEvents { job: job.clone(), epoch: 1, events: vec![event(seq)], row: None };
    let writes: Vec<_> = (1..=10_000)
        .map(|seq| {
            let (store, append) = (store.clone(), append(seq));
            tokio::spawn(async move { store.write(append).await })
        })
        .collect();
    for write in writes {
        write.await.unwrap().unwrap();
    }
    let rows = Reader::open(&layout.database()).unwrap().job_events(&job, 0).unwrap();
    assert_eq!(rows.len(), 10_000);
}

#[tokio::test]
async fn a_store_that_is_gone_is_an_answer_and_one_started_under_its_name_is_found() {
    let repo = tempdir().unwrap();
    let layout = Layout::new(repo.path());
    let (actor, store) = start(&layout, "store-test-gone").await;
    let row = UpsertJob(JobRow::starting("0a1b2c3d".into(), "executor", 1));
    store.write(row.clone()).await.unwrap();
    actor.stop_and_wait(None, None).await.unwrap();
    assert!(matches!(store.write(row.clone()).await, Err(StoreError::Closed)));
    start(&layout, "store-test-gone").await;
    store.write(row).await.unwrap();
}

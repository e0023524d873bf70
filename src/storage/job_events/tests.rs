use super::*;
use crate::storage::connection::in_memory;
use crate::storage::jobs::{JobRow, UpsertJob};
use crate::storage::sample::{event, job};

fn append_to(tx: &Transaction<'_>, job: &str, epoch: u32, events: &[JobEventRow]) -> Result<(), StoreError> {
    AppendJobEvents { job: job.into(), epoch, events: events.to_vec(), row: None }.apply(tx)
}

#[test]
fn events_read_back_in_order_and_a_repeat_changes_nothing() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    UpsertJob(job("j")).apply(&tx).unwrap();
    let events = [event(1, "run_start"), event(2, "text"), event(3, "tool")];
    append_to(&tx, "j", 1, &events).unwrap();
    append_to(&tx, "j", 1, &events[1..]).unwrap();
    assert_eq!(after(&tx, &"j".into(), 0).unwrap(), events);
    assert_eq!(after(&tx, &"j".into(), 2).unwrap(), events[2..]);
    assert_eq!(after(&tx, &"none".into(), 0).unwrap(), []);
}

#[test]
fn another_event_at_a_taken_place_is_a_second_writer() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    UpsertJob(job("j")).apply(&tx).unwrap();
    append_to(&tx, "j", 1, &[event(1, "run_start")]).unwrap();
    let refused = append_to(&tx, "j", 1, &[event(1, "text")]).unwrap_err();
    assert!(matches!(refused, StoreError::SecondWriter { seq: 1, .. }), "{refused:?}");
    assert_eq!(after(&tx, &"j".into(), 0).unwrap(), [event(1, "run_start")]);
}

#[test]
fn events_of_an_earlier_epoch_or_of_an_unknown_job_are_refused() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    UpsertJob(JobRow { epoch: 2, ..job("j") }).apply(&tx).unwrap();
    let stale = append_to(&tx, "j", 1, &[event(1, "text")]).unwrap_err();
    assert!(matches!(stale, StoreError::StaleEpoch { epoch: 1, current: 2, .. }), "{stale:?}");
    let unknown = append_to(&tx, "nobody", 1, &[event(1, "text")]).unwrap_err();
    assert!(matches!(unknown, StoreError::NoSuchJob { .. }), "{unknown:?}");
}

#[test]
fn a_row_is_written_with_its_events_or_neither_is() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    UpsertJob(JobRow { epoch: 2, ..job("j") }).apply(&tx).unwrap();
    let append = |epoch, seq| AppendJobEvents {
        job: "j".into(),
        epoch,
        events: vec![event(seq, "tool")],
        row: Some(JobRow { epoch, current_tool: Some(format!("tool-{seq}")), ..job("j") }),
    };
    append(2, 1).apply(&tx).unwrap();
    let tool = || jobs::get(&tx, &"j".into()).unwrap().unwrap().current_tool;
    assert_eq!(tool().as_deref(), Some("tool-1"));
    assert!(matches!(append(1, 2).apply(&tx), Err(StoreError::StaleEpoch { .. })));
    let ended = AppendJobEvents {
        row: Some(JobRow { epoch: 2, status: crate::storage::JobStatus::Done, ..job("j") }),
        ..append(2, 2)
    };
    assert!(matches!(ended.apply(&tx), Err(StoreError::WrongStatus { .. })), "an end goes through SettleJob");
    assert_eq!(tool().as_deref(), Some("tool-1"));
}

#[test]
fn the_feed_of_a_chain_goes_on_where_it_was_left() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    for (id, chain) in [("a", Some("m1")), ("b", Some("m1")), ("c", None)] {
        UpsertJob(JobRow { chain: chain.map(ChainId::from), ..job(id) }).apply(&tx).unwrap();
    }
    for (id, seq) in [("a", 1), ("b", 1), ("c", 1), ("a", 2)] {
        append_to(&tx, id, 1, &[event(seq, "text")]).unwrap();
    }
    let seen = |rows: &[FeedRow]| rows.iter().map(|row| format!("{}{}", row.job, row.event.seq)).collect::<Vec<_>>();
    let first = feed(&tx, &"m1".into(), 0, 2).unwrap();
    assert_eq!(seen(&first), ["a1", "b1"]);
    let rest = feed(&tx, &"m1".into(), first[1].id, 100).unwrap();
    assert_eq!(seen(&rest), ["a2"]);
    assert_eq!(rest[0].specialist, "executor");
}

#[test]
fn a_line_that_is_no_whole_event_is_none() {
    assert_eq!(JobEventRow::from_line(&event(4, "tool").json), Some(event(4, "tool")));
    for line in ["", "{", r#"{"t":1,"type":"x"}"#, r#"{"seq":1,"t":"1","type":"x"}"#, "null", "[]"] {
        assert_eq!(JobEventRow::from_line(line), None, "{line}");
    }
}

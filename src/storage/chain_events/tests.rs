use super::*;
use crate::storage::chains::OpenChain;
use crate::storage::connection::in_memory;
use crate::storage::owners::{ReleaseOwnership, TakeOwnership};
use crate::storage::sample::{chain, process};
use crate::storage::words::ChainStatus;

fn request(epoch: u32, first_seq: u64, bodies: &[&str]) -> AppendChainEvents {
    AppendChainEvents {
        chain: "m1".into(),
        epoch,
        first_seq,
        bodies: bodies.iter().map(|body| (*body).to_owned()).collect(),
        at_ms: 3_000,
        patch: ChainPatch::default(),
    }
}

fn with_status(mut request: AppendChainEvents, status: ChainStatus) -> AppendChainEvents {
    request.patch.status = Some(status);
    request
}

fn opened(connection: &mut Connection) -> Transaction<'_> {
    let tx = connection.transaction().unwrap();
    OpenChain { row: chain("m1", "p-1"), owner: process(1) }.apply(&tx).unwrap();
    tx
}

fn bodies(tx: &Transaction<'_>, after_seq: u64) -> Vec<String> {
    after(tx, &"m1".into(), after_seq).unwrap().into_iter().map(|event| event.body).collect()
}

#[test]
fn events_read_back_gapless_and_a_repeat_changes_nothing() {
    let mut connection = in_memory();
    let tx = opened(&mut connection);
    request(1, 1, &["a", "b"]).apply(&tx).unwrap();
    request(1, 3, &["c"]).apply(&tx).unwrap();
    request(1, 1, &["a", "b"]).apply(&tx).unwrap();
    request(1, 2, &["b", "c", "d"]).apply(&tx).unwrap();
    assert_eq!(bodies(&tx, 0), ["a", "b", "c", "d"]);
    assert_eq!(bodies(&tx, 3), ["d"]);
    let seqs: Vec<u64> = after(&tx, &"m1".into(), 0).unwrap().into_iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
}

#[test]
fn another_event_at_a_taken_place_is_a_second_writer() {
    let mut connection = in_memory();
    let tx = opened(&mut connection);
    request(1, 1, &["a", "b"]).apply(&tx).unwrap();
    let refused = request(1, 2, &["x"]).apply(&tx).unwrap_err();
    assert!(matches!(&refused, StoreError::SecondWriter { log, seq: 2 } if log == "m1"), "{refused:?}");
    assert_eq!(bodies(&tx, 0), ["a", "b"]);
}

#[test]
fn a_hole_in_the_log_is_refused() {
    let mut connection = in_memory();
    let tx = opened(&mut connection);
    for first in [0, 2, 9] {
        let refused = request(1, first, &["a"]).apply(&tx).unwrap_err();
        assert!(matches!(refused, StoreError::Gap { expected: 1, .. }), "{first}: {refused:?}");
    }
    assert_eq!(bodies(&tx, 0), Vec::<String>::new());
}

#[test]
fn only_the_present_owner_appends() {
    let mut connection = in_memory();
    let tx = opened(&mut connection);
    let current = |request: AppendChainEvents| match request.apply(&tx) {
        Ok(()) => panic!("appended"),
        Err(StoreError::StaleOwner { current, .. }) => current,
        Err(other) => panic!("{other:?}"),
    };
    request(1, 1, &["a"]).apply(&tx).unwrap();
    assert_eq!(current(request(2, 2, &["b"])), Some(1), "an epoch that nobody was given");
    let resource = || Resource::Chain("m1".into());
    let dead = TakeOwnership { resource: resource(), me: process(2), at_ms: 5, is_alive: Box::new(|_| false) };
    dead.apply(&tx).unwrap();
    assert_eq!(current(request(1, 2, &["b"])), Some(2), "the owner before");
    request(2, 2, &["c"]).apply(&tx).unwrap();
    assert_eq!(current(request(1, 2, &["c"])), Some(2), "even if it would say the same");
    ReleaseOwnership { resource: resource(), me: process(2), epoch: 2 }.apply(&tx).unwrap();
    assert_eq!(current(request(2, 3, &["d"])), None, "after its own release");
    let mut unknown = request(1, 1, &["a"]);
    unknown.chain = "m9".into();
    assert_eq!(current(unknown), None);
    assert_eq!(bodies(&tx, 0), ["a", "c"]);
}

#[test]
fn the_row_changes_with_the_events_and_a_late_repeat_does_not_set_it_back() {
    let mut connection = in_memory();
    let tx = opened(&mut connection);
    let status = || chains::get(&tx, &"m1".into()).unwrap().unwrap().status;
    with_status(request(1, 1, &["a"]), ChainStatus::Running).apply(&tx).unwrap();
    assert_eq!(status(), ChainStatus::Running);
    with_status(request(1, 2, &["b"]), ChainStatus::Blocked).apply(&tx).unwrap();
    with_status(request(1, 1, &["a"]), ChainStatus::Running).apply(&tx).unwrap();
    assert_eq!(status(), ChainStatus::Blocked);
    // A change of the row alone goes through the same fence.
    with_status(request(1, 3, &[]), ChainStatus::Stopped).apply(&tx).unwrap();
    assert_eq!(status(), ChainStatus::Stopped);
}

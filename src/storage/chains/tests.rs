use super::*;
use crate::storage::connection::in_memory;
use crate::storage::owners::{ReleaseOwnership, TakeOwnership};
use crate::storage::sample::{chain, process};

fn open(tx: &Transaction<'_>, row: ChainRow, pid: u32) -> Result<u32, StoreError> {
    OpenChain { row, owner: process(pid) }.apply(tx)
}

fn set_status(tx: &Transaction<'_>, id: &str, status: ChainStatus) -> Result<(), StoreError> {
    patch(tx, &id.into(), &ChainPatch { status: Some(status), ..ChainPatch::default() }, 2_000)
}

#[test]
fn a_chain_reads_back_as_it_was_written_and_belongs_to_its_opener() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    let row = ChainRow {
        base_sha: Some("0".repeat(40)),
        branch: Some("feature/p-1".into()),
        worktree_path: Some("/a b/é\nx".into()),
        report_json: Some("{}".into()),
        ..chain("m1", "p-1")
    };
    assert_eq!(open(&tx, row.clone(), 1).unwrap(), 1);
    assert_eq!(get(&tx, &"m1".into()).unwrap(), Some(row));
    assert_eq!(get(&tx, &"m2".into()).unwrap(), None);
    let owner = owners::get(&tx, &Resource::Chain("m1".into())).unwrap().unwrap();
    assert_eq!((owner.epoch, owner.holder), (1, Some(process(1))));
}

#[test]
fn the_same_opening_again_answers_the_same() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    assert_eq!(open(&tx, chain("m1", "p-1"), 1).unwrap(), 1);
    assert_eq!(open(&tx, chain("m1", "p-1"), 1).unwrap(), 1);
    let other_bead = open(&tx, chain("m1", "p-2"), 1);
    assert!(matches!(other_bead, Err(StoreError::ChainIdTaken { .. })), "{other_bead:?}");
    let other_process = open(&tx, chain("m1", "p-1"), 2);
    assert!(matches!(other_process, Err(StoreError::ChainIdTaken { .. })), "{other_process:?}");
}

#[test]
fn a_bead_has_one_live_chain() {
    for status in ChainStatus::ALL.iter().copied() {
        let mut connection = in_memory();
        let tx = connection.transaction().unwrap();
        open(&tx, chain("m1", "p-1"), 1).unwrap();
        set_status(&tx, "m1", status).unwrap();
        match open(&tx, chain("m2", "p-1"), 1) {
            Ok(_) => assert!(!status.is_live(), "{status}"),
            Err(StoreError::LiveChainExists { chain, .. }) => {
                assert!(status.is_live(), "{status}");
                assert_eq!(chain.as_str(), "m1");
                assert_eq!(get(&tx, &"m2".into()).unwrap(), None);
                assert_eq!(owners::get(&tx, &Resource::Chain("m2".into())).unwrap(), None);
            }
            Err(other) => panic!("{status}: {other:?}"),
        }
        open(&tx, chain("m3", "p-3"), 1).unwrap();
    }
}

#[test]
fn an_ended_chain_comes_back_only_while_its_bead_is_free() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    open(&tx, chain("m1", "p-1"), 1).unwrap();
    set_status(&tx, "m1", ChainStatus::Cancelled).unwrap();
    set_status(&tx, "m1", ChainStatus::Running).unwrap();
    set_status(&tx, "m1", ChainStatus::Abandoned).unwrap();
    open(&tx, chain("m2", "p-1"), 1).unwrap();
    let refused = set_status(&tx, "m1", ChainStatus::Running).unwrap_err();
    let StoreError::LiveChainExists { chain, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(chain.as_str(), "m2");
}

#[test]
fn a_patch_changes_what_it_names_and_leaves_the_rest() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    open(&tx, chain("m1", "p-1"), 1).unwrap();
    let change = ChainPatch { branch: Some("b".into()), report_json: Some("[]".into()), ..ChainPatch::default() };
    patch(&tx, &"m1".into(), &change, 7_000).unwrap();
    let expected = ChainRow {
        branch: Some("b".into()),
        report_json: Some("[]".into()),
        updated_at_ms: 7_000,
        ..chain("m1", "p-1")
    };
    assert_eq!(get(&tx, &"m1".into()).unwrap(), Some(expected));
    let unknown = patch(&tx, &"m9".into(), &change, 7_000);
    assert!(matches!(unknown, Err(StoreError::NoSuchChain { .. })));
}

#[test]
fn a_bead_leads_to_its_live_chain_else_to_the_newest() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    assert_eq!(by_bead(&tx, &"p-1".into()).unwrap(), None);
    for (id, created_at_ms) in [("m1", 1), ("m2", 2), ("m3", 3)] {
        open(&tx, ChainRow { created_at_ms, ..chain(id, "p-1") }, 1).unwrap();
        set_status(&tx, id, ChainStatus::Abandoned).unwrap();
    }
    let found = || by_bead(&tx, &"p-1".into()).unwrap().unwrap().chain;
    assert_eq!(found().as_str(), "m3");
    set_status(&tx, "m2", ChainStatus::Blocked).unwrap();
    assert_eq!(found().as_str(), "m2");
    let listed: Vec<_> = list(&tx).unwrap().into_iter().map(|head| (head.chain.to_string(), head.status)).collect();
    assert_eq!(
        listed,
        [
            ("m3".to_owned(), ChainStatus::Abandoned),
            ("m2".to_owned(), ChainStatus::Blocked),
            ("m1".to_owned(), ChainStatus::Abandoned)
        ]
    );
}

#[test]
fn an_adopted_chain_is_not_taken_back_by_a_late_opening() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    let resource = || Resource::Chain("m1".into());
    open(&tx, chain("m1", "p-1"), 1).unwrap();
    ReleaseOwnership { resource: resource(), me: process(1), epoch: 1 }.apply(&tx).unwrap();
    let taken = TakeOwnership { resource: resource(), me: process(2), at_ms: 5, is_alive: Box::new(|_| true) };
    assert_eq!(taken.apply(&tx).unwrap(), Ownership::Owned { epoch: 2 });
    assert!(matches!(open(&tx, chain("m1", "p-1"), 1), Err(StoreError::ChainIdTaken { .. })));
}

#[test]
fn only_live_chains_are_listed_with_their_requests() {
    for status in ChainStatus::ALL.iter().copied() {
        let mut connection = in_memory();
        let tx = connection.transaction().unwrap();
        let row = ChainRow { request_json: r#"{"scope":[]}"#.into(), ..chain("m1", "p-1") };
        open(&tx, row, 1).unwrap();
        set_status(&tx, "m1", status).unwrap();
        let listed = live_requests(&tx).unwrap();
        assert_eq!(listed.len(), usize::from(status.is_live()), "{status}");
        assert!(listed.iter().all(|live| live.bead.as_str() == "p-1" && live.request_json == r#"{"scope":[]}"#));
    }
}

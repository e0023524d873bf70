use std::fs;

use tempfile::tempdir;

use super::*;
use crate::storage::chains::OpenChain;
use crate::storage::findings::{Finding, RecordFinding};
use crate::storage::jobs::UpsertJob;
use crate::storage::sample::{chain, job, process};
use crate::storage::writer::Writer;

#[test]
fn a_missing_or_empty_database_is_not_there_and_is_not_made() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("x.db");
    assert!(matches!(Reader::open(&path), Err(StoreError::NotThere { .. })));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    fs::write(&path, "").unwrap();
    assert!(matches!(Reader::open(&path), Err(StoreError::NotThere { .. })));
}

#[test]
fn a_job_is_found_by_a_beginning_that_no_other_has() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("x.db");
    let writer = Writer::start(&path, 1).unwrap();
    for id in ["aa11", "aa12", "aa1", "b%b", "é1"] {
        writer.call(UpsertJob(job(id))).unwrap();
    }
    let reader = Reader::open(&path).unwrap();
    for (text, expected) in [
        ("aa11", "aa11"),
        ("aa12", "aa12"),
        ("aa1", "aa1"),
        ("b", "b%b"),
        ("b%", "b%b"),
        ("é", "é1"),
        ("aa", "ambiguous"),
        ("", "none"),
        ("%", "none"),
        ("_", "none"),
        ("AA11", "none"),
        ("aa111", "none"),
    ] {
        let found = match reader.find_job(text) {
            Ok(job) => job.to_string(),
            Err(StoreError::Ambiguous { matches, .. }) => {
                assert_eq!(matches.len(), 3);
                "ambiguous".to_owned()
            }
            Err(StoreError::NoSuchJob { .. }) => "none".to_owned(),
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn a_chain_is_found_by_its_id_and_by_its_bead() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("x.db");
    let writer = Writer::start(&path, 1).unwrap();
    writer.call(OpenChain { row: chain("p-mol-1", "p-1"), owner: process(1) }).unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.find_chain("p-mol-1").unwrap().bead.as_str(), "p-1");
    assert_eq!(reader.find_chain("p-1").unwrap().chain.as_str(), "p-mol-1");
    assert!(matches!(reader.find_chain("p-mol"), Err(StoreError::NoSuchChain { .. })));
    assert_eq!(reader.chains().unwrap().len(), 1);
    assert_eq!(reader.owners().unwrap().len(), 1);
}

#[test]
fn a_reader_sees_each_commit_and_can_not_write() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("x.db");
    let writer = Writer::start(&path, 1).unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.jobs(&JobFilter::default()).unwrap(), []);
    writer.call(UpsertJob(job("j"))).unwrap();
    assert_eq!(reader.jobs(&JobFilter::default()).unwrap(), [job("j")]);
    let finding = Finding {
        chain: Some("m1".into()),
        job: Some("j".into()),
        step: None,
        code: "c".into(),
        severity: "info".into(),
        message: "m".into(),
        mode: "warn".into(),
        at_ms: 1,
    };
    writer.call(RecordFinding(finding.clone())).unwrap();
    assert_eq!(reader.findings(&"m1".into()).unwrap()[0].finding, finding);
    assert_eq!(reader.findings(&"m2".into()).unwrap(), []);
    assert!(reader.connection.execute("DELETE FROM specialist_jobs", []).is_err());
}

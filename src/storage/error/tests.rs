use super::*;
use crate::failure::Failure;

#[test]
fn a_refusal_names_its_class_and_what_stands_in_the_way() {
    let chain = || ChainId::new("p-mol-1");
    let job = || JobId::new("0a1b2c3d");
    for (error, kind, code, blocked_by) in [
        (
            StoreError::LiveChainExists { bead: BeadId::new("p-1"), chain: chain() },
            "contested",
            "live_chain_exists",
            vec!["p-mol-1"],
        ),
        (
            StoreError::StaleOwner { chain: chain(), epoch: 1, current: Some(2) },
            "contested",
            "stale_owner",
            vec!["p-mol-1"],
        ),
        (
            StoreError::LiveJobExists { bead: BeadId::new("p-1"), specialist: "executor".into(), job: job() },
            "contested",
            "live_job_exists",
            vec!["0a1b2c3d"],
        ),
        (StoreError::NewerSchema { path: "x.db".into(), found: 99, known: 13 }, "unusable", "store_newer", vec![]),
        (StoreError::AlreadySettled { job: job(), status: JobStatus::Done }, "refused", "already_settled", vec![]),
        (StoreError::NoSuchChain { chain: "p-9".into() }, "not_found", "no_such_chain", vec![]),
        (StoreError::Closed, "store", "store_closed", vec![]),
    ] {
        let failure = Failure::from(error);
        assert_eq!((failure.kind, failure.error_code), (kind, code));
        assert_eq!(failure.blocked_by, blocked_by, "{code}");
    }
}

#[test]
fn a_stale_owner_reads_as_a_sentence() {
    let text = |current| StoreError::StaleOwner { chain: ChainId::new("p-mol-1"), epoch: 1, current }.to_string();
    assert_eq!(text(Some(2)), "write to chain p-mol-1 under ownership 1: it is owned under 2");
    assert_eq!(text(None), "write to chain p-mol-1 under ownership 1: nobody owns it");
}

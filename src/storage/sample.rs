//! Sample rows for the tests of this room.

use super::chains::ChainRow;
use super::job_events::JobEventRow;
use super::jobs::JobRow;
use super::owners::ProcessIdentity;
use super::words::{ChainStatus, JobStatus};
use crate::ids::{BeadId, ChainId, JobId};

pub(super) fn job(id: &str) -> JobRow {
    JobRow::starting(JobId::new(id), "executor", 1_000)
}

pub(super) fn job_on(id: &str, bead: &str) -> JobRow {
    JobRow { bead: Some(BeadId::new(bead)), ..job(id) }
}

/// The record of a job that ended well.
pub(super) fn ended(id: &str) -> JobRow {
    JobRow {
        status: JobStatus::Done,
        outcome: Some("passed".into()),
        updated_at_ms: 2_000,
        completed_at_ms: Some(2_000),
        ..job(id)
    }
}

pub(super) fn event(seq: u64, kind: &str) -> JobEventRow {
    let at_ms = 1_000 + seq.cast_signed();
    JobEventRow { seq, at_ms, kind: kind.into(), json: format!(r#"{{"t":{at_ms},"type":"{kind}","seq":{seq}}}"#) }
}

pub(super) fn chain(id: &str, bead: &str) -> ChainRow {
    ChainRow {
        chain: ChainId::new(id),
        bead: BeadId::new(bead),
        formula: "code-standard".into(),
        status: ChainStatus::Composing,
        shape_json: r#"{"steps":[]}"#.into(),
        request_json: r#"{"vars":{}}"#.into(),
        base_ref: Some("main".into()),
        base_sha: None,
        branch: None,
        worktree_path: None,
        created_at_ms: 1_000,
        updated_at_ms: 1_000,
        report_json: None,
    }
}

pub(super) fn process(pid: u32) -> ProcessIdentity {
    ProcessIdentity { boot_id: "boot".into(), pid, start_ticks: 77 }
}

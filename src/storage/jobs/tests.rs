use super::*;
use crate::storage::connection::in_memory;
use crate::storage::sample::{ended, job, job_on};
use crate::storage::settle::SettleJob;

fn full(id: &str) -> JobRow {
    JobRow {
        status: JobStatus::Running,
        chain: Some("p-mol-1".into()),
        root_bead: Some("p-1".into()),
        step: Some("executor".into()),
        round: 2,
        epoch: 3,
        outcome: Some("none yet".into()),
        model: Some("provider/model".into()),
        session: Some(SessionMeta {
            backend: "pi".into(),
            model: None,
            session_id: "01a22ec1-é\"".into(),
            started_at_ms: 7,
        }),
        error: Some("é \"quoted\"\n".into()),
        worktree_path: Some("/a b/ü\nx".into()),
        branch: Some("feature/p-1".into()),
        pid: Some(u32::MAX),
        start_ticks: Some(u64::MAX),
        completed_at_ms: Some(9),
        current_tool: Some("bash".into()),
        context_pct: Some(12.5),
        totals: JobTotals {
            turns: 1,
            tool_calls: 2,
            input_tokens: 3,
            output_tokens: 4,
            cache_read_tokens: 5,
            cache_write_tokens: 6,
            cost_usd: 0.071,
        },
        ..job_on(id, "p-mol-1-executor")
    }
}

#[test]
fn a_job_reads_back_as_it_was_written_from_row_and_from_json() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    for row in [job("bare"), full("full")] {
        UpsertJob(row.clone()).apply(&tx).unwrap();
        assert_eq!(get(&tx, &row.job).unwrap(), Some(row.clone()));
        let json = standing(&tx, &row.job).unwrap().unwrap().json;
        assert_eq!(serde_json::from_str::<JobRow>(&json).unwrap(), row);
    }
    // The second record replaces every column of the first, also by nothing.
    UpsertJob(JobRow { epoch: 4, ..job("full") }).apply(&tx).unwrap();
    assert_eq!(get(&tx, &"full".into()).unwrap(), Some(JobRow { epoch: 4, ..job("full") }));
}

#[test]
fn a_record_whose_json_is_not_ours_is_read_without_its_session() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    UpsertJob(full("j")).apply(&tx).unwrap();
    for json in ["not JSON", "{}", r#"{"session":7}"#, r#"{"session":{"id":"x"}}"#] {
        tx.execute("UPDATE specialist_jobs SET status_json = ?1", [json]).unwrap();
        assert_eq!(get(&tx, &"j".into()).unwrap(), Some(JobRow { session: None, ..full("j") }), "{json}");
    }
}

#[test]
fn an_earlier_epoch_is_refused_and_a_later_one_goes_on() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    let in_epoch = |epoch| UpsertJob(JobRow { epoch, ..job("j") });
    in_epoch(2).apply(&tx).unwrap();
    let refused = in_epoch(1).apply(&tx).unwrap_err();
    assert!(matches!(refused, StoreError::StaleEpoch { epoch: 1, current: 2, .. }), "{refused:?}");
    in_epoch(2).apply(&tx).unwrap();
    in_epoch(3).apply(&tx).unwrap();
}

#[test]
fn a_bead_has_one_live_job_of_a_specialist() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    for status in [JobStatus::Starting, JobStatus::Running, JobStatus::Waiting] {
        UpsertJob(JobRow { status, ..job_on("first", "p-1") }).apply(&tx).unwrap();
        let refused = UpsertJob(job_on("second", "p-1")).apply(&tx).unwrap_err();
        let StoreError::LiveJobExists { job: live, .. } = &refused else { panic!("{status}: {refused:?}") };
        assert_eq!(live.as_str(), "first", "{status}");
    }
    UpsertJob(JobRow { specialist: "reviewer".into(), ..job_on("other-role", "p-1") }).apply(&tx).unwrap();
    UpsertJob(job_on("other-bead", "p-2")).apply(&tx).unwrap();
    UpsertJob(job("no-bead")).apply(&tx).unwrap();
    UpsertJob(job("no-bead-either")).apply(&tx).unwrap();
    let end = JobRow { bead: Some("p-1".into()), ..ended("first") };
    SettleJob { job: end, events: vec![], result: None }.apply(&tx).unwrap();
    UpsertJob(job_on("second", "p-1")).apply(&tx).unwrap();
}

#[test]
fn the_unique_index_stands_behind_the_friendly_refusal() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    put(&tx, &job_on("first", "p-1")).unwrap();
    assert!(matches!(put(&tx, &job_on("second", "p-1")), Err(StoreError::Query { .. })));
}

#[test]
fn an_update_never_ends_a_job() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    for status in [JobStatus::Done, JobStatus::Error, JobStatus::Cancelled] {
        let refused = UpsertJob(JobRow { status, ..job("j") }).apply(&tx).unwrap_err();
        assert!(matches!(refused, StoreError::WrongStatus { .. }), "{refused:?}");
    }
}

#[test]
fn a_listing_holds_what_the_filter_names_and_the_newest_first() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    let at = |id: &str, started_at_ms| JobRow { started_at_ms, ..job(id) };
    UpsertJob(JobRow { chain: Some("m1".into()), root_bead: Some("p-1".into()), ..at("a", 1) }).apply(&tx).unwrap();
    UpsertJob(JobRow { bead: Some("p-1".into()), ..at("b", 3) }).apply(&tx).unwrap();
    let old = JobRow { updated_at_ms: 50, started_at_ms: 2, ..ended("c") };
    let fresh = JobRow { updated_at_ms: 90, started_at_ms: 4, chain: Some("m1".into()), ..ended("d") };
    for job in [old, fresh] {
        SettleJob { job, events: vec![], result: None }.apply(&tx).unwrap();
    }
    let all = JobFilter::default;
    for (case, filter, expected) in [
        ("all", all(), "d b c a"),
        ("the newest two", JobFilter { limit: Some(2), ..all() }, "d b"),
        ("live", JobFilter { scope: JobScope::Live, ..all() }, "b a"),
        ("of a chain", JobFilter { chain: Some("m1".into()), ..all() }, "d a"),
        ("on a bead, or under it", JobFilter { bead: Some("p-1".into()), ..all() }, "b a"),
        ("both", JobFilter { bead: Some("p-1".into()), chain: Some("m1".into()), ..all() }, "a"),
        ("none", JobFilter { chain: Some("m9".into()), ..all() }, ""),
    ] {
        let ids: Vec<String> = list(&tx, &filter).unwrap().into_iter().map(|row| row.job.to_string()).collect();
        assert_eq!(ids.join(" "), expected, "{case}");
    }
}

#[test]
fn a_listing_of_everything_sorts_nothing() {
    let connection = in_memory();
    let plan: String = connection
        .query_row(
            "EXPLAIN QUERY PLAN SELECT status FROM specialist_jobs ORDER BY started_at_ms DESC, job_id LIMIT 100",
            [],
            |row| row.get("detail"),
        )
        .unwrap();
    assert!(plan.contains("idx_jobs_started"), "{plan}");
}

use tempfile::{TempDir, tempdir};

use super::*;
use crate::storage::paths::Layout;
use crate::storage::sample::{ended, event, job};

fn job_dir() -> (TempDir, JobDir) {
    let repo = tempdir().unwrap();
    let dir = Layout::new(&repo.path().join("a b\né")).job(&"0a1b2c3d".into()).unwrap();
    (repo, dir)
}

#[test]
fn what_was_written_reads_back() {
    let (_repo, dir) = job_dir();
    assert_eq!(dir.read_status().unwrap(), None);
    assert_eq!(dir.read_events().unwrap(), JobLog::default());
    assert_eq!(dir.read_result().unwrap(), None);
    let mut files = JobFiles::open(dir.clone()).unwrap();
    files.write_status(&job("0a1b2c3d"), Durability::Lazy).unwrap();
    files.write_status(&ended("0a1b2c3d"), Durability::Synced).unwrap();
    files.append_events(&[event(1, "run_start")]).unwrap();
    files.append_events(&[event(2, "text"), event(3, "tool")]).unwrap();
    files.sync_events().unwrap();
    files.stage_result("line one\nü\n").unwrap().publish().unwrap();
    assert_eq!(dir.read_status().unwrap(), Some(ended("0a1b2c3d")));
    let events = vec![event(1, "run_start"), event(2, "text"), event(3, "tool")];
    assert_eq!(dir.read_events().unwrap(), JobLog { events, broken: 0 });
    assert_eq!(dir.read_result().unwrap().as_deref(), Some("line one\nü\n"));
    let mut names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["events.jsonl", "result.txt", "status.json"], "no temporary file stays");
}

#[test]
fn events_that_the_file_has_are_not_appended_again() {
    let (_repo, dir) = job_dir();
    let mut files = JobFiles::open(dir.clone()).unwrap();
    files.append_events(&[event(1, "run_start"), event(2, "text")]).unwrap();
    files.append_events(&[event(2, "text"), event(3, "tool")]).unwrap();
    drop(files);
    let mut files = JobFiles::open(dir.clone()).unwrap();
    files.append_events(&[event(3, "tool"), event(4, "text")]).unwrap();
    let seqs: Vec<u64> = dir.read_events().unwrap().events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
}

#[test]
fn after_a_crash_file_and_rows_are_brought_together() {
    let [start, text, tool, end] =
        [(1, "run_start"), (2, "text"), (3, "tool"), (4, "run_complete")].map(|(seq, kind)| event(seq, kind));
    for (case, in_file, stored, lacking, then_in_file) in [
        ("nothing was lost", &[&start, &text][..], &[&start, &text][..], &[][..], &[&start, &text][..]),
        ("the file is ahead", &[&start, &text, &tool], &[&start], &[&text, &tool], &[&start, &text, &tool]),
        ("the file is behind", &[&start], &[&start, &text, &tool], &[], &[&start, &text, &tool]),
        ("an end that was not settled", &[&start, &text, &end], &[&start], &[&text], &[&start, &text]),
        ("an end alone", &[&end], &[], &[], &[]),
    ] {
        let (_repo, dir) = job_dir();
        let rows = |events: &[&JobEventRow]| events.iter().map(|event| (*event).clone()).collect::<Vec<_>>();
        JobFiles::open(dir.clone()).unwrap().append_events(&rows(in_file)).unwrap();
        let mut files = JobFiles::open(dir.clone()).unwrap();
        assert_eq!(files.mend(&rows(stored)).unwrap(), rows(lacking), "{case}");
        assert_eq!(dir.read_events().unwrap().events, rows(then_in_file), "{case}");
        assert_eq!(files.last_seq(), then_in_file.last().map_or(0, |event| event.seq), "{case}");
    }
}

#[test]
fn a_line_cut_off_by_a_crash_costs_that_line_alone() {
    let whole = format!("{}\n{}\n", event(1, "run_start").json, event(2, "text").json);
    let first = event(1, "run_start").json.len() + 1;
    for cut in first..whole.len() {
        let (_repo, dir) = job_dir();
        fs::create_dir_all(dir.path()).unwrap();
        fs::write(dir.events(), &whole.as_bytes()[..cut]).unwrap();
        let mut files = JobFiles::open(dir.clone()).unwrap();
        files.append_events(&[event(2, "text"), event(3, "tool")]).unwrap();
        let log = dir.read_events().unwrap();
        assert_eq!(log.events, [event(1, "run_start"), event(2, "text"), event(3, "tool")], "cut at {cut}");
        let is_cut = cut > first && cut < whole.len() - 1;
        assert_eq!(log.broken, usize::from(is_cut), "cut at {cut}");
    }
}

#[test]
fn bytes_that_are_no_text_cost_their_line_alone() {
    let (_repo, dir) = job_dir();
    fs::create_dir_all(dir.path()).unwrap();
    let mut bytes = b"\xff\xfe\n".to_vec();
    bytes.extend(event(1, "text").json.bytes());
    bytes.push(b'\n');
    fs::write(dir.events(), bytes).unwrap();
    assert_eq!(dir.read_events().unwrap(), JobLog { events: vec![event(1, "text")], broken: 1 });
}

#[test]
fn a_pretty_printed_event_still_takes_one_line() {
    let (_repo, dir) = job_dir();
    let mut files = JobFiles::open(dir.clone()).unwrap();
    let mut pretty = event(1, "text");
    pretty.json = "{\r\n  \"t\": 1001,\n  \"type\": \"text\",\n  \"seq\": 1\n}".into();
    files.append_events(&[pretty, event(2, "tool")]).unwrap();
    let text = fs::read_to_string(dir.events()).unwrap();
    assert_eq!(text.lines().count(), 2);
    assert_eq!(dir.read_events().unwrap().events.len(), 2);
}

#[test]
fn a_status_file_that_is_no_record_is_named() {
    let (_repo, dir) = job_dir();
    fs::create_dir_all(dir.path()).unwrap();
    fs::write(dir.status(), "{").unwrap();
    assert!(matches!(dir.read_status(), Err(StoreError::Garbled { path, .. }) if path == dir.status()));
}

#[test]
fn a_staged_file_that_is_dropped_replaces_nothing() {
    let (_repo, dir) = job_dir();
    let files = JobFiles::open(dir.clone()).unwrap();
    files.stage_result("first").unwrap().publish().unwrap();
    drop(files.stage_result("second").unwrap());
    assert_eq!(dir.read_result().unwrap().as_deref(), Some("first"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn a_file_that_can_not_be_written_is_named() {
    let (_repo, dir) = job_dir();
    let files = JobFiles::open(dir.clone()).unwrap();
    fs::create_dir_all(dir.result()).unwrap();
    let error = files.stage_result("x").unwrap().publish().unwrap_err();
    assert!(matches!(&error, StoreError::File { path, .. } if *path == dir.result()), "{error:?}");
}

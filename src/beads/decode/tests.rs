//! Every recorded answer of bd 1.3.0 is decoded here; the table and the folder must agree both ways.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::beads::classify::Class;

#[derive(Deserialize)]
struct Fixture {
    exit_code: i32,
    stdout: String,
    stderr: String,
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bd/1.3.0")
}

fn recorded(case: &str) -> Answer {
    let text = fs::read(folder().join(case).with_extension("json")).unwrap_or_else(|error| panic!("{case}: {error}"));
    let fixture: Fixture = serde_json::from_slice(&text).unwrap();
    Answer { code: Some(fixture.exit_code), stdout: fixture.stdout.into(), stderr: fixture.stderr.into() }
}

fn rows(case: &str) -> Vec<Bead> {
    payload(&recorded(case)).and_then(beads).unwrap_or_else(|trouble| panic!("{case}: {trouble:?}"))
}

/// Cases that carry beads, with the ids in them.
const BEADS: &[(&str, &[&str])] = &[
    ("show", &["proj-x"]),
    ("show-abbreviated", &["proj-mol-0a1b2c3d-executor"]),
    ("list-molecules", &["proj-mol-0a1b2c3d"]),
    ("list-children", &["proj-mol-0a1b2c3d-executor", "proj-mol-0a1b2c3d-reviewer"]),
    ("list-empty", &[]),
    ("gate-list-empty", &[]),
    ("ready", &["proj-mol-0a1b2c3d-executor"]),
    ("ready-claim", &["proj-mol-0a1b2c3d-executor"]),
    ("ready-claim-none", &[]),
    ("unclaim", &["proj-mol-0a1b2c3d-executor"]),
    ("note", &["proj-mol-0a1b2c3d-executor"]),
    ("update-hold", &["proj-x"]),
];

/// Cases that carry something else; each has a test of its own below.
const OTHERS: &[&str] = &[
    "version",
    "context",
    "where",
    "create-graph",
    "create-graph-dry-run",
    "batch",
    "worktree-create",
    "cook",
    "context-fresh-database",
];

/// Cases that failed, how they are read, and a part of what is passed on.
const FAILURES: &[(&str, Class, &str)] = &[
    ("show-missing", Class::NotFound, "no issues found matching"),
    ("note-missing", Class::NotFound, "no issue found matching \"proj-none\""),
    ("unclaim-missing", Class::NotFound, "no issue found matching"),
    ("batch-missing", Class::NotFound, "line 2 (close"),
    ("note-empty", Class::Refused, "note text cannot be empty"),
    ("create-graph-exists", Class::AlreadyExists, "\"proj-mol-0a1b2c3d\""),
    ("create-graph-cycle", Class::Refused, "cycle"),
    ("unclaim-mismatch", Class::NotHeld, "held by"),
    ("guard-mismatch-13", Class::NotHeld, "held by"),
    ("unclaim-blocked", Class::Refused, "no matching row"),
    ("unclaim-closed", Class::Refused, "cannot unclaim closed issue"),
    ("claim-other-actor", Class::Refused, "updating issue: issue already claimed by sp/w1"),
    ("update-held-by-other", Class::Refused, "held by \"sp/proj-mol-0a1b2c3d\""),
    ("worktree-checked-out", Class::Refused, "'feature/x' is already checked out at"),
    ("worktree-path-exists", Class::AlreadyExists, "path already exists"),
    ("cook-missing", Class::Refused, "read none"),
    ("cook-variable-missing", Class::Refused, "variable \"x\" is required"),
    ("read-only", Class::Refused, "not allowed in read-only mode"),
    ("usage", Class::Refused, "unknown flag: --bogus"),
    ("list-max-rows", Class::Refused, "too many rows"),
    ("workspace-missing", Class::NoWorkspace, "no beads database found"),
    ("where-none", Class::NoWorkspace, "No active beads workspace found."),
    ("home-missing", Class::Failed, "failed to open database"),
    ("store-journal-corrupt", Class::Failed, "corrupted journal"),
    ("disk-full", Class::Failed, "no space left on device"),
];

#[test]
fn every_recorded_answer_is_decoded_and_none_is_forgotten() {
    for (case, expected) in BEADS {
        let ids: Vec<String> = rows(case).into_iter().map(|bead| bead.id).collect();
        assert_eq!(ids, *expected, "{case}");
    }
    for (case, class, part) in FAILURES {
        match payload(&recorded(case)) {
            Err(Trouble::Said(said)) => {
                assert_eq!(said.class, *class, "{case}");
                assert!(said.reason.contains(part) && !said.reason.contains('\n'), "{case}: {}", said.reason);
            }
            other => panic!("{case}: {other:?}"),
        }
    }
    for case in OTHERS {
        assert!(payload(&recorded(case)).is_ok(), "{case}");
    }
    let known: BTreeSet<String> = (BEADS.iter().map(|row| row.0))
        .chain(FAILURES.iter().map(|row| row.0))
        .chain(OTHERS.iter().copied())
        .map(str::to_owned)
        .collect();
    let on_disk: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(known, on_disk);
}

#[test]
fn show_brings_open_blockers_and_open_children_and_no_closed_ones() {
    let bead = rows("show").remove(0);
    assert_eq!(bead.open_blockers, ["proj-b"]);
    assert_eq!(bead.open_children, ["proj-x.1"]);
    assert_eq!((bead.status.as_str(), bead.issue_type.as_str(), bead.assignee), ("open", "task", None));
}

#[test]
fn a_claimed_step_carries_holder_labels_metadata_and_parent() {
    let step = rows("ready-claim").remove(0);
    assert_eq!(step.assignee.as_deref(), Some("sp/proj-mol-0a1b2c3d/executor/1"));
    assert_eq!((step.status.as_str(), step.labels), ("in_progress", vec!["kind:step".to_owned()]));
    assert_eq!(step.metadata["sp_step"], json!("executor"));
    assert_eq!(step.parent.as_deref(), Some("proj-mol-0a1b2c3d"));
    // A listed row names edges, not the state of their ends.
    assert!(step.open_blockers.is_empty());
    assert_eq!(rows("list-children")[0].close_reason.as_deref(), Some("executor passed"));
}

#[test]
fn a_held_contract_bead_names_its_chain_and_carries_no_lease() {
    let answer = || payload(&recorded("update-hold")).unwrap();
    let (x, holder) = (BeadId::from("proj-x"), "sp/proj-mol-0a1b2c3d");
    assert!(held(answer(), &x, holder).is_ok());
    assert!(held(answer(), &x, "sp/proj-mol-1").is_err() && held(answer(), &"proj-y".into(), holder).is_err());
    assert_eq!(rows("update-hold")[0].metadata["sp_chain"], json!("proj-mol-0a1b2c3d"));
    assert_eq!(answer()[0].get("lease_expires_at"), None);
}

#[test]
fn the_answers_about_program_and_workspace_are_read() {
    let read = |case: &str| payload(&recorded(case)).unwrap();
    assert_eq!(version(read("version")).unwrap(), "1.3.0");
    let context = context(read("context")).unwrap();
    assert!(context.beads_dir.ends_with("project/.beads") && context.project_id.len() == 36);
    assert_eq!(prefix(read("where")).unwrap(), "proj");
    assert!(applied(read("batch"), 1).is_ok() && applied(read("batch"), 2).is_err());
    assert!(worktree_on(read("worktree-create"), "feature/x").is_ok());
    assert!(worktree_on(read("worktree-create"), "feature/y").is_err());
    assert_eq!(read("cook")["steps"][0]["title"], json!("Do it"));
}

#[test]
fn a_database_that_bd_has_just_made_up_has_no_identity() {
    assert!(matches!(payload(&recorded("context-fresh-database")).and_then(context), Err(Trouble::Garbled(_))));
}

#[test]
fn only_1_3_is_supported() {
    for (text, expected) in [
        ("1.3.0", true),
        ("v1.3.1", true),
        ("1.3.0-rc1", true),
        ("1.30.0", false),
        ("1.2.2", false),
        ("2.3.0", false),
        ("1.3", false),
        ("", false),
    ] {
        assert_eq!(is_supported(text), expected, "{text}");
    }
}

fn answer(code: i32, stdout: &str, stderr: &str) -> Answer {
    Answer { code: Some(code), stdout: stdout.into(), stderr: stderr.into() }
}

#[test]
fn an_answer_has_its_payload_or_its_failure() {
    let ok = |stdout: &str| payload(&answer(0, stdout, "a warning")).unwrap();
    assert_eq!(ok(r#"{"schema_version":1,"data":[1]}"#), json!([1]), "envelope");
    assert_eq!(ok(r#"{"schema_version":1,"data":null}"#), Value::Null, "nothing in the envelope");
    assert_eq!(ok(r#"{"schema_version":1,"id":"x"}"#), json!({"schema_version":1,"id":"x"}), "legacy");
    assert_eq!(ok(r#"{"data":1}"#), json!({"data":1}), "a payload with a field of that name");

    let reason = |code, stdout: &str, stderr: &str| match payload(&answer(code, stdout, stderr)) {
        Err(Trouble::Said(said)) => said.reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(0, r#"{"schema_version":1,"data":{"error":"x"}}"#, ""), "x", "an error with exit 0");
    assert_eq!(reason(1, "[]", "Error: half of it"), "half of it", "a payload with exit 1 is a failure");
    assert_eq!(reason(1, "", "note\n{\"data\":{\"error\":\"a\"},\"schema_version\":1}\nmore"), "a", "JSON among lines");
    assert_eq!(
        reason(1, "", "{\"error\":\"s\",\"failed\":[{\"error\":\"p\"},{\"error\":\"q\"}]}"),
        "p; q",
        "the parts"
    );
    assert_eq!(reason(1, "", "{broken\nplain"), "{broken; plain", "what looks like JSON");
    assert_eq!(reason(1, "said on stdout", ""), "said on stdout");

    for stdout in ["", "No updates specified", "[{]"] {
        assert!(matches!(payload(&answer(0, stdout, "")), Err(Trouble::Garbled(_))), "{stdout}");
    }
}

#[test]
fn a_row_that_is_not_understood_is_an_error_and_never_left_out() {
    for (case, row) in [
        ("no id", json!({"status": "open"})),
        ("an empty id", json!({"id": "", "status": "open"})),
        ("no status", json!({"id": "p-1"})),
        ("a number for a title", json!({"id": "p-1", "status": "open", "title": 1})),
        ("metadata that is no object", json!({"id": "p-1", "status": "open", "metadata": [1]})),
        ("no bead at all", json!("p-1")),
    ] {
        assert!(beads(json!([{"id": "p-0", "status": "open"}, row.clone()])).is_err(), "{case}");
        assert!(beads(row).is_err(), "{case}");
    }
    let odd = json!({"id": "p-1", "status": "new", "title": null, "labels": null, "metadata": null, "assignee": "", "later": 1});
    assert_eq!(beads(odd).unwrap()[0].assignee, None);
}

#[test]
fn a_plan_is_poured_when_every_bead_is_there_and_ours() {
    let bead = |id: &str, chain: &str| Bead {
        id: id.to_owned(),
        metadata: [("sp_chain".to_owned(), json!(chain))].into(),
        ..Bead::default()
    };
    let node = |key: &str| crate::ports::GraphNode {
        key: key.to_owned(),
        id: format!("m-{key}"),
        title: String::new(),
        issue_type: "task".to_owned(),
        description: String::new(),
        notes: String::new(),
        priority: 2,
        labels: Vec::new(),
        metadata: [("sp_chain".to_owned(), json!("m"))].into(),
        parent_key: None,
    };
    let plan = GraphPlan { nodes: vec![node("a"), node("b")], ..GraphPlan::default() };
    assert!(is_poured(&plan, &[bead("m-b", "m"), bead("m-a", "m"), bead("other", "x")]));
    assert!(!is_poured(&plan, &[bead("m-a", "m")]));
    assert!(!is_poured(&plan, &[bead("m-a", "m"), bead("m-b", "foreign")]));

    let reply = |a: &str| json!({"ids": {"a": a, "b": "m-b"}});
    assert!(created(reply("m-a"), &plan).is_ok());
    assert!(created(reply("m-z"), &plan).is_err());
    assert!(created(json!({"ids": {}}), &plan).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic_or_turn_a_failure_into_success(
        code in 0..3i32, stdout in any::<Vec<u8>>(), stderr in "(\\{\"error\":\"x\"\\}|\\{|\n|.)*",
    ) {
        let decoded = payload(&Answer { code: Some(code), stdout, stderr: stderr.into_bytes() });
        prop_assert!(code == 0 || decoded.is_err());
    }
}

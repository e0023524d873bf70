//! What the client makes of unclear answers; the answers of a real bd are in `real.rs`.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::failure::{Explain, FailureKind};
use crate::ports::GraphNode;

/// A workspace in which `tests/fixtures/bd/replay` stands for bd and says these things.
fn stage(fragments: &[(&str, &str)]) -> (TempDir, Bd) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir(root.join(".beads")).unwrap();
    fs::write(root.join(".beads/metadata.json"), "{}").unwrap();
    for (name, text) in fragments {
        fs::write(root.join(name), text).unwrap();
    }
    let bd = Bd::new(BdConfig {
        program: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bd/replay"),
        repository: root.to_owned(),
        beads_dir: root.join(".beads"),
        lock_file: root.join(".specialists/bd.lock"),
    });
    let bd = Bd { pauses: [Duration::ZERO; 2], ..bd }.with_variable("REPLAY", root);
    (folder, bd)
}

fn calls(folder: &TempDir, verb: &str) -> String {
    fs::read_to_string(folder.path().join(verb).with_extension("calls")).unwrap_or_default().trim().to_owned()
}

const LOCKED: &str = "echo 'Error: database is locked' >&2; exit 1";
const GIBBERISH: &str = "echo 'all went well'";

fn says(payload: &Value) -> String {
    format!("cat <<'ANSWER'\n{}\nANSWER\n", json!({"schema_version": 1, "data": payload}))
}

fn step(status: &str, assignee: &str) -> Value {
    json!([{"id": "m-lint", "status": status, "assignee": assignee}])
}

#[tokio::test]
async fn a_read_is_tried_three_times_while_the_failure_may_pass() {
    let (folder, bd) = stage(&[("list.1", LOCKED), ("list.2", LOCKED), ("list.3", &says(&json!([])))]);
    assert_eq!(bd.children(&"p-1".into()).await.unwrap(), []);
    let (folder_2, bd) = stage(&[("list.1", LOCKED), ("list.2", LOCKED), ("list.3", LOCKED)]);
    assert!(matches!(bd.children(&"p-1".into()).await, Err(TrackerError::Failed { .. })));
    assert_eq!((calls(&folder, "list"), calls(&folder_2, "list")), ("3".to_owned(), "3".to_owned()));
}

#[tokio::test]
async fn a_refusal_a_riddle_and_a_write_are_not_repeated() {
    let refusal = "echo 'Error: unknown flag: --x' >&2; exit 1";
    let (folder, bd) = stage(&[("list.1", refusal), ("ready.1", GIBBERISH), ("batch.1", LOCKED)]);
    assert!(matches!(bd.children(&"p-1".into()).await, Err(TrackerError::Refused { .. })));
    assert!(matches!(bd.ready_steps().await, Err(TrackerError::Garbled { .. })));
    let close = [BatchOp::Close { bead: "p-1".into(), reason: String::new() }];
    assert!(matches!(bd.batch(&close, "").await, Err(TrackerError::Failed { .. })));
    assert_eq!(["list", "ready", "batch"].map(|verb| calls(&folder, verb)), ["1", "1", "1"]);
}

#[tokio::test]
async fn a_batch_names_the_bead_that_is_missing_and_an_empty_one_asks_nothing() {
    let line = r#"echo 'Error: line 2 (close "p-2" "x"): not found: issue p-2' >&2; exit 1"#;
    let (folder, bd) = stage(&[("batch.1", line)]);
    bd.batch(&[], "nothing").await.unwrap();
    assert_eq!(calls(&folder, "batch"), "");
    let close = ["p-1", "p-2"].map(|bead| BatchOp::Close { bead: bead.into(), reason: "x".into() });
    let error = bd.batch(&close, "").await.unwrap_err();
    assert!(matches!(error, TrackerError::NotFound { ref bead, .. } if bead.as_str() == "p-2"), "{error}");
}

#[tokio::test]
async fn a_claim_is_what_bd_and_then_the_bead_say() {
    let held = |status| ClaimAnswer::NotReady { status: String::from(status) };
    let other = || ClaimAnswer::HeldBy("w2".to_owned());
    for (case, reply, look, expected) in [
        ("claimed", step("in_progress", "w1"), None, Some(ClaimAnswer::Claimed)),
        ("a repeated call", json!([]), Some(step("in_progress", "w1")), Some(ClaimAnswer::Claimed)),
        ("contested", json!([]), Some(step("in_progress", "w2")), Some(other())),
        ("a stale assignee", json!([]), Some(step("open", "w2")), Some(other())),
        ("blocked by other beads", json!([]), Some(step("open", "")), Some(held("open"))),
        ("failed before, its holder kept", json!([]), Some(step("blocked", "w2")), Some(held("blocked"))),
        ("closed under our own name", json!([]), Some(step("closed", "w1")), Some(held("closed"))),
        ("another bead", json!([{"id": "m-x", "status": "in_progress", "assignee": "w1"}]), None, None),
    ] {
        let mut fragments = vec![("ready.1", says(&reply))];
        fragments.extend(look.map(|look| ("show.1", says(&look))));
        let fragments: Vec<(&str, &str)> = fragments.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let (_folder, bd) = stage(&fragments);
        assert_eq!(bd.claim_step(&"m".into(), &"lint".into(), "w1").await.ok(), expected, "{case}");
    }
}

#[tokio::test]
async fn a_claim_without_a_clear_answer_is_ours_only_if_the_bead_says_so() {
    for (case, reply, look, claimed) in [
        ("it went through", GIBBERISH, says(&step("in_progress", "w1")), true),
        ("it did not", LOCKED, says(&step("open", "")), false),
        ("nobody knows", LOCKED, GIBBERISH.to_owned(), false),
    ] {
        let (_folder, bd) = stage(&[("ready.1", reply), ("show.1", &look)]);
        let answer = bd.claim_step(&"m".into(), &"lint".into(), "w1").await;
        assert_eq!(matches!(answer, Ok(ClaimAnswer::Claimed)), claimed, "{case}");
        assert_eq!(answer.is_err(), !claimed, "{case}");
    }
}

#[tokio::test]
async fn a_release_is_what_bd_and_then_the_bead_say() {
    let mismatch = "echo 'Error: assignee mismatch: m-lint is held by \"\"' >&2; exit 1";
    let no_row = "echo 'Error: failed to unclaim: no matching row' >&2; exit 1";
    for (case, reply, look, expected) in [
        ("free now", says(&step("open", "")), None, Some(Release::Released)),
        ("another holder", mismatch.to_owned(), None, Some(Release::NotHeld)),
        ("blocked in our name", no_row.to_owned(), Some(step("blocked", "w1")), None),
        ("blocked in another's", no_row.to_owned(), Some(step("blocked", "w2")), Some(Release::NotHeld)),
        ("closed", no_row.to_owned(), Some(step("closed", "w1")), Some(Release::NotHeld)),
        ("unclear, but free", LOCKED.to_owned(), Some(step("open", "")), Some(Release::Released)),
        ("unclear and held", LOCKED.to_owned(), Some(step("in_progress", "w1")), None),
    ] {
        let look = look.map(|look| says(&look)).unwrap_or_default();
        let (_folder, bd) = stage(&[("unclaim.1", &reply), ("show.1", &look)]);
        assert_eq!(bd.release(&"m-lint".into(), "w1", "died").await.ok(), expected, "{case}");
    }
}

fn plan() -> GraphPlan {
    let node = GraphNode {
        key: "mol".to_owned(),
        id: "m".to_owned(),
        title: "t".to_owned(),
        issue_type: "molecule".to_owned(),
        description: String::new(),
        notes: String::new(),
        priority: 2,
        labels: Vec::new(),
        metadata: [("sp_chain".to_owned(), json!("m"))].into(),
        parent_key: None,
    };
    GraphPlan { nodes: vec![node], ..GraphPlan::default() }
}

#[tokio::test]
async fn a_plan_is_only_looked_at_and_a_refusal_has_bds_words() {
    let checked = |dry_run: bool, nodes| says(&json!({"dry_run": dry_run, "node_count": nodes, "edge_count": 0}));
    let cycle = says(&json!({"error": "invalid graph plan: graph contains a blocking dependency cycle"})) + "exit 1";
    for (case, answers, expected) in [
        ("sound", vec![checked(true, 1)], Ok(())),
        ("locked for a moment", vec![LOCKED.to_owned(), checked(true, 1)], Ok(())),
        (
            "refused",
            vec![cycle],
            Err("run `bd create`: invalid graph plan: graph contains a blocking dependency cycle"),
        ),
        ("not a dry run", vec![checked(false, 1)], Err("read the answer of `bd create`")),
        ("not the whole plan", vec![checked(true, 0)], Err("read the answer of `bd create`")),
    ] {
        let names: Vec<String> = (1..=answers.len()).map(|number| format!("create.{number}")).collect();
        let fragments: Vec<(&str, String)> = names
            .iter()
            .zip(&answers)
            .map(|(name, answer)| {
                let is_dry = "case \"$*\" in *--dry-run*) ;; *) echo 'it was created' >&2; exit 1;; esac\n";
                (name.as_str(), format!("{is_dry}{answer}"))
            })
            .collect();
        let fragments: Vec<(&str, &str)> = fragments.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let (folder, bd) = stage(&fragments);
        let said = bd.check_pour(&plan()).await.map_err(|error| error.to_string());
        assert_eq!(said, expected.map_err(str::to_owned), "{case}");
        assert_eq!(calls(&folder, "create"), answers.len().to_string(), "{case}");
    }
}

#[tokio::test]
async fn a_pour_without_a_clear_answer_is_looked_for() {
    let exists = "echo 'Error: explicit id \"m\" already exists' >&2; exit 1";
    let ours = says(&json!([{"id": "m", "status": "open", "metadata": {"sp_chain": "m"}}]));
    let foreign = says(&json!([{"id": "m", "status": "open"}]));
    let none = says(&json!([]));
    for (case, reply, look, expected) in [
        ("poured", says(&json!({"ids": {"mol": "m"}})).as_str(), "", Some(Pour::Created)),
        ("poured before", exists, &ours, Some(Pour::AlreadyThere)),
        ("a foreign bead of that id", exists, &foreign, None),
        ("poured, but the answer was lost", GIBBERISH, &ours, Some(Pour::AlreadyThere)),
        ("not poured", LOCKED, &none, None),
    ] {
        let (_folder, bd) = stage(&[("create.1", reply), ("list.1", look)]);
        assert_eq!(bd.pour(&plan()).await.ok(), expected, "{case}");
    }
}

#[tokio::test]
async fn a_workspace_that_is_not_whole_is_never_asked() {
    let (folder, bd) = stage(&[("version.1", &says(&json!({"version": "1.3.0"})))]);
    fs::remove_file(folder.path().join(".beads/metadata.json")).unwrap();
    assert!(matches!(bd.probe().await, Err(TrackerError::Damaged { .. })));
    fs::remove_dir(folder.path().join(".beads")).unwrap();
    let error = bd.ready_steps().await.unwrap_err();
    assert!(matches!(error, TrackerError::NoWorkspace { .. }));
    assert_eq!(error.explain().0, FailureKind::Unusable);
    assert_eq!(calls(&folder, "ready"), "");
}

#[tokio::test]
async fn a_worktree_is_refused_at_once_unless_the_reason_is_known_to_pass() {
    let git_lock =
        "failed to create worktree: exit status 128\nfatal: Unable to create '/r/.git/index.lock': File exists.";
    for (text, may_pass) in [
        ("Error: words that no version has said yet", false),
        ("", false),
        ("Error: failed to create worktree: exit status 128", false),
        ("Error: path already exists: /w", false),
        ("Error: database is locked", true),
        ("Error: failed to open database: disk I/O error", true),
        (git_lock, true),
    ] {
        let (folder, bd) = stage(&[("worktree.1", &format!("printf %s \"{text}\" >&2; exit 1"))]);
        let error = bd.create_worktree(Path::new("/w"), "feature/x").await.unwrap_err();
        assert_eq!(matches!(error, TrackerError::Failed { .. }), may_pass, "{text}: {error:?}");
        assert_eq!(calls(&folder, "worktree"), "1", "{text}");
    }
    // A bd that was killed may have done it, and another may be.
    let (_folder, bd) = stage(&[("worktree.1", "kill -9 $$")]);
    let error = bd.create_worktree(Path::new("/w"), "feature/x").await.unwrap_err();
    assert!(matches!(error, TrackerError::Failed { .. }), "{error:?}");
}

#[tokio::test]
async fn another_version_is_named_and_nothing_else_is_asked() {
    let (folder, bd) = stage(&[("version.1", &says(&json!({"version": "1.2.2"})))]);
    let error = bd.probe().await.unwrap_err();
    assert!(matches!(error, TrackerError::Unsupported { ref found, .. } if found == "1.2.2"), "{error}");
    assert_eq!(calls(&folder, "context"), "");
}

#[tokio::test]
async fn an_abbreviated_id_is_no_bead() {
    let (_folder, bd) = stage(&[("show.1", &says(&step("open", "")))]);
    assert_eq!(bd.show(&"m-li".into()).await.unwrap(), None);
}

proptest! {
    #[test]
    fn a_bead_is_claimed_only_in_the_askers_name(
        status in "open|in_progress|hooked|blocked|closed|deferred|odd", assignee in proptest::option::of("w1|w2"),
    ) {
        let bead = Bead { status, assignee: assignee.clone(), ..Bead::default() };
        match claim_answer(bead, "w1") {
            ClaimAnswer::Claimed => prop_assert_eq!(assignee.as_deref(), Some("w1")),
            ClaimAnswer::HeldBy(holder) => prop_assert_eq!(Some(holder), assignee.filter(|name| name != "w1")),
            ClaimAnswer::NotReady { .. } => {}
        }
    }
}

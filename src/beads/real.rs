//! The adapter against the real bd.

use serde_json::{Value, json};

use super::Bd;
use super::rig::Project;
use crate::ids::{BeadId, ChainId};
use crate::ports::{BatchOp, ClaimAnswer, GraphEdge, GraphNode, GraphPlan, Pour, Release, Tracker, TrackerError};

const CHAIN: &str = "proj-mol-0a1b2c3d";

fn node(key: &str, issue_type: &str) -> GraphNode {
    let is_step = issue_type == "task";
    GraphNode {
        key: key.to_owned(),
        id: if is_step { format!("{CHAIN}-{key}") } else { CHAIN.to_owned() },
        title: format!("{key} for proj-x"),
        issue_type: issue_type.to_owned(),
        description: String::new(),
        notes: String::new(),
        priority: 2,
        labels: if is_step { vec!["kind:step".to_owned()] } else { Vec::new() },
        metadata: [("sp_chain", CHAIN), ("sp_bead", "proj-x"), ("sp_step", key)]
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .into(),
        parent_key: is_step.then(|| "mol".to_owned()),
    }
}

/// executor, then reviewer; X waits for the molecule.
fn plan() -> GraphPlan {
    let blocks = || GraphEdge { edge_type: "blocks".to_owned(), ..GraphEdge::default() };
    let key = |name: &str| Some(name.to_owned());
    GraphPlan {
        commit_message: "sp: pour".to_owned(),
        nodes: vec![node("mol", "molecule"), node("executor", "task"), node("reviewer", "task")],
        edges: vec![
            GraphEdge { from_key: key("reviewer"), to_key: key("executor"), ..blocks() },
            GraphEdge { from_id: key("proj-x"), to_key: key("mol"), ..blocks() },
        ],
    }
}

/// 200 kB of what breaks quoting, argument limits and line readers, with breaks at both ends.
fn odd_text() -> String {
    let odd =
        "\n  'single' \"double\" `back` $HOME \\n \\\\ é 漢字 🎉 \u{2028}\ttab\r\ncrlf\n--flag\n{\"error\":\"x\"}\n";
    odd.repeat(200_000 / odd.len()) + "end \n\n"
}

fn close(bead: &BeadId, reason: &str) -> BatchOp {
    BatchOp::Close { bead: bead.clone(), reason: reason.to_owned() }
}

fn reopen(bead: &BeadId) -> BatchOp {
    BatchOp::Update { bead: bead.clone(), status: "open", assignee: Some(String::new()) }
}

#[tokio::test]
async fn a_real_bd_walks_a_chain_as_the_contract_says() {
    let project = Project::new().await;
    let bd = &project.bd;

    let info = bd.probe().await.unwrap();
    assert!(info.version.starts_with("1.3.") && info.project_id.len() == 36, "{info:?}");
    assert_eq!((info.prefix.as_str(), info.beads_dir), ("proj", project.root.join(".beads")));

    for (id, title) in [("proj-x", "X: fix the pager"), ("proj-b", "outside blocker"), ("proj-free", "unblocked")] {
        project.plain(&["create", title, "--id", id, "--metadata", r#"{"of":"people"}"#]);
    }
    let x = BeadId::from("proj-x");
    assert_eq!(bd.show(&"proj-none".into()).await.unwrap(), None);

    refuses_bad_plans(bd, &x).await;
    pours_once_and_adopts(bd, &x).await;
    holds_the_contract_bead(&project, &x).await;
    claims_and_releases(&project).await;
    keeps_notes_exactly(bd).await;
    closes_and_reopens(&project, &x).await;
    makes_worktrees(&project).await;
    assert_eq!(project.git(&["status", "--porcelain"]), "");
}

/// What a look finds, and that a pour which fails on what a look can't find leaves nothing either.
async fn refuses_bad_plans(bd: &Bd, x: &BeadId) {
    let changed = |change: fn(&mut GraphPlan)| {
        let mut plan = plan();
        change(&mut plan);
        plan
    };
    for (bad, words) in [
        (changed(|plan| plan.edges[0].to_key = Some("reviewer".to_owned())), "cycle involving node"),
        (changed(|plan| plan.edges[0].to_key = Some("nobody".to_owned())), "to key \"nobody\" not found in plan"),
        (changed(|plan| plan.nodes[2].issue_type = "wibble".to_owned()), "invalid issue type: wibble"),
        (changed(|plan| plan.nodes[1].priority = 9), "priority must be between 0 and 4"),
        (changed(|plan| plan.nodes[1].id = "other-1".to_owned()), "prefix mismatch"),
        (changed(|plan| plan.nodes[1].id = "proj-b".to_owned()), "already exists"),
    ] {
        let refused = bd.check_pour(&bad).await.unwrap_err();
        assert!(matches!(refused, TrackerError::Refused { ref reason, .. } if reason.contains(words)), "{refused}");
    }
    let late = changed(|plan| plan.edges[1].from_id = Some("proj-none".to_owned()));
    bd.check_pour(&late).await.unwrap();
    let refused = bd.pour(&late).await.unwrap_err();
    assert!(matches!(refused, TrackerError::Refused { ref reason, .. } if reason.contains("proj-none not found")));
    assert_eq!(bd.molecules_of(x).await.unwrap(), []);
}

async fn pours_once_and_adopts(bd: &Bd, x: &BeadId) {
    bd.check_pour(&plan()).await.unwrap();
    assert_eq!(bd.molecules_of(x).await.unwrap(), [], "a look creates nothing");
    assert_eq!(bd.pour(&plan()).await.unwrap(), Pour::Created);
    assert_eq!(bd.pour(&plan()).await.unwrap(), Pour::AlreadyThere);
    let mut other = plan();
    other.nodes[0].metadata.insert("sp_bead".to_owned(), json!("proj-b"));
    let refusal = bd.pour(&other).await.unwrap_err();
    assert!(
        matches!(refusal, TrackerError::Refused { ref reason, .. } if reason.contains("already exists")),
        "{refusal}"
    );
    let molecules = bd.molecules_of(x).await.unwrap();
    assert_eq!(molecules.iter().map(|bead| bead.id.as_str()).collect::<Vec<_>>(), [CHAIN]);
    let contract = bd.show(x).await.unwrap().unwrap();
    assert_eq!((contract.open_blockers, contract.open_children), (vec![CHAIN.to_owned()], vec![]));
    let molecule = bd.show(&CHAIN.into()).await.unwrap().unwrap();
    assert_eq!(molecule.open_children.len(), 2);
}

/// X names its chain as the chain names X. Held without a lease, so that nobody reclaims it; the same again is fine.
async fn holds_the_contract_bead(project: &Project, x: &BeadId) {
    let (bd, chain) = (&project.bd, ChainId::from(CHAIN));
    let ready = || project.plain(&["ready", "-n", "0", "--json"]);
    for _ in 0..2 {
        bd.hold(x, &chain).await.unwrap();
        let held = bd.show(x).await.unwrap().unwrap();
        assert_eq!((held.status.as_str(), held.assignee), ("in_progress", Some(format!("sp/{CHAIN}"))));
        assert_eq!(held.metadata["sp_chain"], json!(CHAIN));
        assert_eq!(held.metadata["of"], json!("people"), "what others keep there stays");
    }
    assert!(!project.plain(&["show", x.as_str(), "--json"]).contains("lease_expires_at"));
    let reclaimed: Value = serde_json::from_str(&project.plain(&["reclaim", "--older-than", "1s", "--json"])).unwrap();
    assert_eq!(reclaimed["count"], json!(0), "{reclaimed}");
    let refused = bd.hold(x, &"proj-mol-2".into()).await.unwrap_err();
    assert!(matches!(refused, TrackerError::Refused { ref reason, .. } if reason.contains("held by")), "{refused}");
    let missing = bd.hold(&"proj-none".into(), &chain).await;
    assert!(matches!(missing, Err(TrackerError::NotFound { .. })));
    assert_eq!(bd.show(x).await.unwrap().unwrap().metadata["sp_chain"], json!(CHAIN));
    // Where nothing blocks X, it is held back by its holder alone.
    let free = BeadId::from("proj-free");
    assert!(ready().contains("proj-free"));
    bd.hold(&free, &"proj-mol-2".into()).await.unwrap();
    assert!(!ready().contains("proj-free"));
    bd.batch(&[close(&free, "done with")], "sp: a bead less").await.unwrap();
}

async fn claims_and_releases(project: &Project) {
    let (bd, chain) = (&project.bd, ChainId::from(CHAIN));
    let executor = chain.step_bead(&"executor".into());
    assert_eq!(bd.ready_steps().await.unwrap(), std::slice::from_ref(&executor));
    let claim = |step: &'static str, actor: &'static str| {
        let chain = chain.clone();
        async move { bd.claim_step(&chain, &step.into(), actor).await.unwrap() }
    };
    assert_eq!(claim("executor", "sp/e/1").await, ClaimAnswer::Claimed);
    assert_eq!(claim("executor", "sp/e/1").await, ClaimAnswer::Claimed);
    assert_eq!(claim("executor", "sp/e/2").await, ClaimAnswer::HeldBy("sp/e/1".to_owned()));
    assert_eq!(claim("reviewer", "sp/r/1").await, ClaimAnswer::NotReady { status: "open".to_owned() });
    assert_eq!(bd.ready_steps().await.unwrap(), []);
    let missing = bd.claim_step(&chain, &"nobody".into(), "sp/n/1").await;
    assert!(matches!(missing, Err(TrackerError::NotFound { .. })));

    let release = |holder: &'static str| bd.release(&executor, holder, "epoch 1 died\n-x \"y\"");
    assert_eq!(release("sp/e/2").await.unwrap(), Release::NotHeld);
    assert_eq!(release("sp/e/1").await.unwrap(), Release::Released);
    assert_eq!(release("sp/e/1").await.unwrap(), Release::NotHeld);
    let stale = BatchOp::Update { bead: executor.clone(), status: "open", assignee: Some("sp/e/3".to_owned()) };
    bd.batch(&[stale], "a stale holder").await.unwrap();
    assert_eq!(release("sp/e/3").await.unwrap(), Release::Released);
    assert_eq!(project.state(&executor).await, ("open".to_owned(), None));
    let missing = bd.release(&"proj-none".into(), "sp/e/1", "x").await;
    assert!(matches!(missing, Err(TrackerError::NotFound { .. })));
}

async fn keeps_notes_exactly(bd: &Bd) {
    let bead = BeadId::from("proj-b");
    let text = odd_text();
    bd.append_note(&bead, &text, "sp/b/1").await.unwrap();
    bd.append_note(&bead, "second", "sp/b/1").await.unwrap();
    assert!(bd.show(&bead).await.unwrap().unwrap().notes == format!("{text}\nsecond"), "the note was changed");
    let missing = bd.append_note(&"proj-none".into(), "x", "sp/b/1").await;
    assert!(matches!(missing, Err(TrackerError::NotFound { .. })));
}

async fn closes_and_reopens(project: &Project, x: &BeadId) {
    let (bd, chain) = (&project.bd, ChainId::from(CHAIN));
    let [executor, reviewer] = ["executor", "reviewer"].map(|step| chain.step_bead(&step.into()));
    bd.batch(&[close(&executor, "passed: \"lint\" \\ é\nin two lines")], "sp: step closed").await.unwrap();
    let children = bd.children(&chain.molecule()).await.unwrap();
    let [first, second] = children.as_slice() else { panic!("{children:?}") };
    assert_eq!((first.id.as_str(), first.status.as_str()), (executor.as_str(), "closed"));
    assert_eq!(first.close_reason.as_deref(), Some("passed: \"lint\" \\ é in two lines"));
    assert_eq!((second.id.as_str(), second.status.as_str()), (reviewer.as_str(), "open"));
    assert_eq!(bd.ready_steps().await.unwrap(), std::slice::from_ref(&reviewer));
    assert_eq!(bd.release(&executor, "sp/e/1", "x").await.unwrap(), Release::Released);

    assert_eq!(bd.claim_step(&chain, &"reviewer".into(), "sp/r/1").await.unwrap(), ClaimAnswer::Claimed);
    // All or nothing: the missing bead of the second line keeps the first from being reopened.
    let refused = bd.batch(&[reopen(&executor), close(&"proj-none".into(), "x")], "half").await.unwrap_err();
    assert!(matches!(refused, TrackerError::NotFound { ref bead, .. } if bead.as_str() == "proj-none"), "{refused}");
    assert_eq!(project.state(&executor).await.0, "closed");
    bd.batch(&[reopen(&executor), reopen(&reviewer)], "sp: round 2").await.unwrap();
    assert_eq!(project.state(&reviewer).await, ("open".to_owned(), None));
    assert_eq!(bd.ready_steps().await.unwrap(), [executor]);
    assert_eq!(project.state(x).await, ("in_progress".to_owned(), Some(format!("sp/{CHAIN}"))));
}

async fn makes_worktrees(project: &Project) {
    let path = project.root.join(".worktrees/proj-x");
    project.git(&["branch", "feature/proj-x"]);
    project.bd.create_worktree(&path, "feature/proj-x").await.unwrap();
    assert!(path.join(".git").is_file());
    let again = project.bd.create_worktree(&path.with_file_name("second"), "feature/proj-x").await.unwrap_err();
    assert!(matches!(again, TrackerError::Refused { ref reason, .. } if reason.contains("already")), "{again}");
}

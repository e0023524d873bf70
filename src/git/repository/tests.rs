use std::fs;
use std::path::Path;

use super::*;
use crate::failure::{Failure, FailureKind};
use crate::git::rig::{BRANCH, Rig, env, git_in};

#[tokio::test]
async fn the_root_is_the_same_from_everywhere() {
    let rig = Rig::new().await;
    fs::create_dir_all(rig.tree.join("deep/er")).unwrap();
    for dir in [rig.root.clone(), rig.root.join("src"), rig.tree.clone(), rig.tree.join("deep/er")] {
        let git = Git::open_with(&dir, env(&rig.home)).await.unwrap();
        assert_eq!(git.root().canonicalize().unwrap(), rig.root.canonicalize().unwrap(), "{}", dir.display());
    }
}

#[tokio::test]
async fn what_is_no_usable_repository_is_told_apart() {
    let home = tempfile::tempdir().unwrap();
    let open = async |name: &str| Git::open_with(&home.path().join(name), env(&home)).await;
    fs::create_dir(home.path().join("plain")).unwrap();
    assert!(matches!(open("plain").await, Err(WorkspaceError::NotARepository { .. })));
    assert!(matches!(open("absent").await, Err(WorkspaceError::NotARepository { .. })));
    git_in(&home, home.path(), &["init", "-q", "--bare", "bare.git"]);
    assert!(matches!(open("bare.git").await, Err(WorkspaceError::Bare { .. })));
    git_in(&home, home.path(), &["init", "-q", "young"]);
    let young = open("young").await.unwrap();
    assert!(matches!(young.facts().await, Err(WorkspaceError::NoCommit { .. })));
    assert!(matches!(young.resolve("HEAD").await, Err(WorkspaceError::NoRevision { .. })));
}

#[tokio::test]
async fn a_worktree_of_a_bare_repository_is_refused() {
    let rig = Rig::new().await;
    git_in(&rig.home, rig.home.path(), &["clone", "-q", "--bare", rig.root.to_str().unwrap(), "proj/.git"]);
    let bare = rig.home.path().join("proj/.git");
    let tree = rig.home.path().join("proj/main");
    git_in(&rig.home, &bare, &["worktree", "add", "-q", tree.to_str().unwrap(), "main"]);
    assert!(matches!(Git::open_with(&tree, env(&rig.home)).await, Err(WorkspaceError::Bare { .. })));
}

#[tokio::test]
async fn facts_count_what_is_dirty_without_the_files_of_tools() {
    let rig = Rig::new().await;
    let facts = rig.git.facts().await.unwrap();
    assert_eq!((facts.branch.as_deref(), &facts.head, facts.dirty), (Some("main"), &rig.base, 0));
    fs::create_dir_all(rig.root.join(".beads")).unwrap();
    for path in [".beads/x", "new\nfile", "src/a.txt"] {
        fs::write(rig.root.join(path), "x").unwrap();
    }
    git_in(&rig.home, &rig.root, &["add", "src/a.txt"]);
    git_in(&rig.home, &rig.root, &["checkout", "-q", "--detach"]);
    let facts = rig.git.facts().await.unwrap();
    assert_eq!((facts.branch, facts.dirty), (None, 2));
}

#[tokio::test]
async fn a_revision_is_a_commit_or_a_typed_error() {
    let rig = Rig::new().await;
    assert_eq!(rig.git.resolve("main").await.unwrap(), rig.base);
    assert_eq!(rig.git.resolve(&rig.base[..8]).await.unwrap(), rig.base);
    for odd in ["", "nope", "--help", "a b", "HEAD:", "main^{tree}", "x\0y", "HEAD:src/a.txt", &"1".repeat(40)] {
        assert!(matches!(rig.git.resolve(odd).await, Err(WorkspaceError::NoRevision { .. })), "{odd:?}");
    }
}

#[tokio::test]
async fn a_branch_is_made_once_and_a_foreign_one_is_refused() {
    let rig = Rig::new().await;
    rig.git.make_branch(BRANCH, &rig.base).await.unwrap();
    rig.agent(&["commit", "-q", "--allow-empty", "-m", "work"]);
    rig.git.make_branch(BRANCH, &rig.base).await.unwrap();
    let tip = rig.git.branch_tip(BRANCH).await.unwrap().unwrap();
    assert_ne!(tip, rig.base, "work on it stays");
    let refused = rig.git.make_branch("main", &tip).await;
    assert!(matches!(refused, Err(WorkspaceError::ForeignBranch { found, .. }) if found == rig.base));
    assert!(matches!(rig.git.make_branch("new", "nope").await, Err(WorkspaceError::NoRevision { .. })));
    assert!(matches!(rig.git.make_branch("a..b", &tip).await, Err(WorkspaceError::Failed { .. })));
    assert_eq!(rig.git.branch_tip("new").await.unwrap(), None);
}

#[tokio::test]
async fn a_worktree_is_found_by_its_branch() {
    let rig = Rig::new().await;
    let found = rig.git.worktree_of(BRANCH).await.unwrap().unwrap();
    assert_eq!(found.canonicalize().unwrap(), rig.tree.canonicalize().unwrap());
    assert_eq!(rig.git.worktree_of("nobody").await.unwrap(), None);
    assert!(rig.git.worktree_of("main").await.unwrap().is_some());
}

#[tokio::test]
async fn a_vanished_worktree_of_ours_can_be_made_again() {
    let rig = Rig::new().await;
    fs::remove_dir_all(&rig.tree).unwrap();
    assert!(matches!(rig.git.state(&rig.tree).await, Err(WorkspaceError::NoWorktree { .. })));
    assert_eq!(rig.git.worktree_of(BRANCH).await.unwrap(), None);
    git_in(&rig.home, &rig.root, &["worktree", "add", "-q", rig.tree.to_str().unwrap(), BRANCH]);
}

#[tokio::test]
async fn a_vanished_worktree_of_another_is_an_error() {
    let rig = Rig::new().await;
    let place = rig.home.path().join("elsewhere");
    git_in(&rig.home, &rig.root, &["worktree", "add", "-q", "-b", "theirs", place.to_str().unwrap()]);
    fs::remove_dir_all(&place).unwrap();
    assert!(matches!(rig.git.worktree_of("theirs").await, Err(WorkspaceError::NoWorktree { .. })));
    assert!(git_in(&rig.home, &rig.root, &["worktree", "list"]).contains("elsewhere"));
}

#[tokio::test]
async fn a_worktree_without_its_git_file_does_not_pass_for_the_main_checkout() {
    let rig = Rig::new().await;
    fs::remove_file(rig.tree.join(".git")).unwrap();
    assert!(matches!(rig.git.state(&rig.tree).await, Err(WorkspaceError::NoWorktree { .. })));
    assert!(matches!(rig.git.commit(&rig.request(&[])).await, Err(WorkspaceError::NoWorktree { .. })));
    git_in(&rig.home, &rig.tree, &["init", "-q"]);
    assert!(matches!(rig.git.state(&rig.tree).await, Err(WorkspaceError::NoWorktree { .. })));
}

#[tokio::test]
async fn own_paths_are_excluded_once_and_nothing_else_is_changed() {
    let rig = Rig::new().await;
    let file = rig.root.join(".git/info/exclude");
    fs::write(&file, "mine\n.worktrees/\nlast").unwrap();
    for _ in 0..2 {
        rig.git.exclude_own_paths().await.unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, "mine\n.worktrees/\nlast\n.specialists/\n*.gate.lock*\n");
    }
    fs::remove_dir_all(file.parent().unwrap()).unwrap();
    rig.git.exclude_own_paths().await.unwrap();
    assert_eq!(git_in(&rig.home, &rig.root, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_diff_is_plain_whatever_the_user_has_configured() {
    let rig = Rig::new().await;
    for (key, value) in [("diff.noprefix", "true"), ("color.ui", "always"), ("diff.external", "false")] {
        rig.agent(&["config", key, value]);
    }
    fs::rename(rig.tree.join("src/a.txt"), rig.tree.join("src/é\n.txt")).unwrap();
    rig.write("src/b.txt", "two\nthree\n");
    fs::write(rig.tree.join("pic.bin"), [0, 1, 0]).unwrap();
    let crate::ports::Commit::Made { head, .. } = rig.commit(&[]).await else { panic!("nothing was committed") };
    let diff = String::from_utf8(rig.git.diff(&rig.base, &head).await.unwrap()).unwrap();
    assert!(diff.contains("diff --git a/src/b.txt b/src/b.txt") && diff.contains("\n+three\n"), "{diff}");
    assert!(diff.contains("rename from src/a.txt") && diff.contains("Binary files"), "{diff}");
    let stat = rig.git.diff_stat(&rig.base, &head).await.unwrap();
    assert_eq!(stat, DiffStat { files: 3, added: 1, removed: 0 });
    assert_eq!(rig.git.diff_stat("main", "main").await.unwrap(), DiffStat::default());
    assert!(matches!(rig.git.diff("main", "nope").await, Err(WorkspaceError::NoRevision { .. })));
    assert!(rig.git.contains(&head, &rig.base).await.unwrap());
    assert!(!rig.git.contains(&rig.base, &head).await.unwrap());
}

#[test]
fn an_old_git_is_refused_by_its_version() {
    for (answer, fine) in [
        ("git version 2.36.0\n", true),
        ("git version 2.39.5 (Apple Git-154)", true),
        ("git version 3.0", true),
        ("git version 2.35.9", false),
        ("git version 1.99.0", false),
        ("what", false),
    ] {
        assert_eq!(check_version(answer).is_ok(), fine, "{answer}");
    }
}

#[test]
fn each_error_has_its_class_and_a_next_step() {
    let path = || Path::new("/x").to_owned();
    let failed = || WorkspaceError::Failed { verb: "commit", reason: "disk full".into() };
    for (error, kind) in [
        (WorkspaceError::Missing { verb: "version" }, FailureKind::Unusable),
        (WorkspaceError::NotARepository { path: path() }, FailureKind::Unusable),
        (WorkspaceError::NoCommit { path: path() }, FailureKind::Unusable),
        (WorkspaceError::Bare { path: path() }, FailureKind::Unusable),
        (WorkspaceError::NoRevision { revision: "x".into() }, FailureKind::NotFound),
        (
            WorkspaceError::ForeignBranch { branch: "b".into(), found: "f".into(), expected: "e".into() },
            FailureKind::Refused,
        ),
        (WorkspaceError::NoWorktree { path: path() }, FailureKind::Git),
        (failed(), FailureKind::Git),
    ] {
        let failure = Failure::from(error);
        assert_eq!(failure.kind, kind.row().1, "{}", failure.message);
        assert!(!failure.next_safe_action.is_empty());
    }
}

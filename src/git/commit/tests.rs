use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::Turn;
use crate::git::rig::{BRANCH, RESCUE, Rig};
use crate::ports::{Commit, Workspace};

#[track_caller]
fn made(commit: Commit) -> (String, Vec<String>, Vec<String>) {
    match commit {
        Commit::Made { head, paths, refused } => (head, paths, refused),
        other => panic!("expected a commit, got {other:?}"),
    }
}

#[track_caller]
fn hook_refused(commit: Commit) -> String {
    match commit {
        Commit::HookRefused { output } => output,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn a_turn_is_committed_with_odd_names_modes_links_and_binaries() {
    let rig = Rig::new().await;
    let odd = ["a b.txt", "quote\"'.txt", "é.txt", "line\nfeed.txt", " lead", "trail ", "-n", ":(top)x", "[x]*"];
    odd.iter().for_each(|name| rig.write(name, name));
    rig.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(rig.tree.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/nowhere", rig.tree.join("link")).unwrap();
    fs::write(rig.tree.join("pic.bin"), [0, 159, 146, 150, 0]).unwrap();
    fs::remove_file(rig.tree.join("src/b.txt")).unwrap();
    fs::rename(rig.tree.join("src/a.txt"), rig.tree.join("src/moved.txt")).unwrap();
    rig.write("debug.log", "ignored");
    let (head, paths, refused) = made(rig.commit(&[]).await);
    let mut expected: Vec<String> = odd.iter().map(|&name| name.to_owned()).collect();
    expected.extend(["run.sh", "link", "pic.bin", "src/b.txt", "src/a.txt", "src/moved.txt"].map(str::to_owned));
    expected.sort();
    assert_eq!((paths, refused), (expected, vec![]));
    assert_eq!(head, rig.agent(&["rev-parse", BRANCH]).trim());
    assert_eq!(rig.agent(&["status", "--porcelain"]), "");
    assert!(rig.agent(&["ls-tree", "HEAD", "run.sh"]).starts_with("100755"));
    assert!(rig.agent(&["ls-tree", "HEAD", "link"]).starts_with("120000"));
    assert_eq!(
        rig.agent(&["log", "-1", "--format=%an <%ae>%n%B"]).trim(),
        "Ann <ann@example.org>\ncheckpoint(executor): x turn 1\n\n# not a comment"
    );
}

#[tokio::test]
async fn nothing_changed_is_nothing() {
    let rig = Rig::new().await;
    rig.write("debug.log", "ignored");
    assert_eq!(rig.commit(&[]).await, Commit::Nothing { refused: vec![] });
    assert_eq!(rig.agent(&["rev-parse", "HEAD"]).trim(), rig.base);
}

#[tokio::test]
async fn without_a_configured_identity_sp_lends_its_own() {
    let rig = Rig::new().await;
    rig.agent(&["config", "--unset", "user.name"]);
    rig.agent(&["config", "--unset", "user.email"]);
    rig.write("new", "x");
    made(rig.commit(&[]).await);
    assert_eq!(rig.agent(&["log", "-1", "--format=%an <%ae> %cn"]).trim(), "sp <sp@localhost> sp");
}

#[tokio::test]
async fn the_files_of_tools_are_never_committed_nor_touched() {
    let rig = Rig::new().await;
    for path in [".beads/issues.jsonl", ".specialists/x", ".xtrm/x", ".wolf/x", "src/y.gate.lock", "real.txt"] {
        rig.write(path, "x");
    }
    // The agent's own commit brings some along, as bd's hook would.
    rig.agent(&["add", "-f", ".beads/issues.jsonl", "real.txt"]);
    rig.agent(&["commit", "-q", "-m", "mine"]);
    let (_, paths, refused) = made(rig.commit(&[]).await);
    assert_eq!((paths, refused), (vec!["real.txt".to_owned()], vec![]));
    assert!(!rig.names("HEAD").iter().any(|name| name.starts_with('.') && name != ".gitignore"));
    assert_eq!(rig.read(".beads/issues.jsonl").as_deref(), Some("x"));
    assert_eq!(rig.read("src/y.gate.lock").as_deref(), Some("x"));
}

#[tokio::test]
async fn what_a_hook_stages_of_tools_is_taken_out_again() {
    let rig = Rig::new().await;
    rig.hook("pre-commit", "mkdir -p .beads; date +%N > .beads/issues.jsonl; git add -f .beads/issues.jsonl");
    rig.write("real.txt", "x");
    let (head, paths, _) = made(rig.commit(&[]).await);
    assert_eq!(paths, ["real.txt"]);
    assert!(!rig.names(&head).contains(&".beads/issues.jsonl".to_owned()));
    assert_eq!(rig.agent(&["rev-list", "--count", &format!("{}..HEAD", rig.base)]).trim(), "1");
}

#[tokio::test]
async fn an_agents_own_commit_is_accepted() {
    let rig = Rig::new().await;
    rig.write("src/a.txt", "changed\n");
    rig.agent(&["commit", "-q", "-am", "mine"]);
    let own = rig.agent(&["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(made(rig.commit(&[]).await), (own.clone(), vec!["src/a.txt".to_owned()], vec![]));
    rig.write("src/b.txt", "more\n");
    let (head, paths, _) = made(rig.commit(&[]).await);
    assert_ne!(head, own);
    assert_eq!(paths, ["src/a.txt", "src/b.txt"]);
}

#[tokio::test]
async fn what_an_agent_staged_or_hid_in_the_index_counts_like_all_else() {
    let rig = Rig::new().await;
    rig.write("staged.txt", "x");
    rig.agent(&["add", "staged.txt"]);
    rig.agent(&["rm", "-q", "--cached", "src/b.txt"]);
    rig.agent(&["update-index", "--assume-unchanged", "src/a.txt"]);
    rig.agent(&["update-index", "--skip-worktree", "tests/t.txt"]);
    rig.write("src/a.txt", "hidden\n");
    rig.write("tests/t.txt", "hidden\n");
    let (_, paths, _) = made(rig.commit(&[]).await);
    assert_eq!(paths, ["src/a.txt", "staged.txt", "tests/t.txt"]);
}

#[tokio::test]
async fn paths_outside_the_allowed_ones_are_saved_and_undone() {
    let rig = Rig::new().await;
    rig.write("tests/new.txt", "good");
    rig.write("src/a.txt", "bad\n");
    rig.write("src/new file", "bad");
    fs::remove_file(rig.tree.join("src/b.txt")).unwrap();
    let first = rig.commit(&["tests/**"]).await;
    let (head, paths, refused) = made(first.clone());
    assert_eq!(paths, ["tests/new.txt"]);
    assert_eq!(refused, ["src/a.txt", "src/b.txt", "src/new file"]);
    assert_eq!(rig.read("src/a.txt").as_deref(), Some("one\n"));
    assert_eq!((rig.read("src/b.txt").as_deref(), rig.read("src/new file")), (Some("two\n"), None));
    assert_eq!(rig.show(RESCUE, "src/a.txt"), "bad\n");
    assert_eq!(rig.show(RESCUE, "src/new file"), "bad");
    assert_eq!(rig.agent(&["status", "--porcelain"]), "");
    assert_eq!(rig.commit(&["tests/**"]).await, first, "the same request again");
    assert_eq!(rig.agent(&["rev-parse", "HEAD"]).trim(), head);
}

#[tokio::test]
async fn production_paths_in_an_agents_own_commit_are_reverted() {
    let rig = Rig::new().await;
    rig.write("tests/new.txt", "good");
    rig.write("src/a.txt", "bad\n");
    rig.agent(&["add", "-A"]);
    rig.agent(&["commit", "-q", "-m", "mine"]);
    let own = rig.agent(&["rev-parse", "HEAD"]).trim().to_owned();
    let first = rig.commit(&["tests/**"]).await;
    let (head, paths, refused) = made(first.clone());
    assert_eq!((paths, refused), (vec!["tests/new.txt".to_owned()], vec!["src/a.txt".to_owned()]));
    assert_eq!(rig.show(&head, "src/a.txt"), "one\n");
    assert!(rig.git.contains(&head, &own).await.unwrap());
    assert!(rig.git.contains(RESCUE, &own).await.unwrap());
    assert_eq!(rig.commit(&["tests/**"]).await, first);
}

#[tokio::test]
async fn only_forbidden_changes_leave_nothing_to_commit() {
    let rig = Rig::new().await;
    rig.write("src/a.txt", "bad\n");
    let nothing = Commit::Nothing { refused: vec!["src/a.txt".into()] };
    assert_eq!(rig.commit(&["tests/**"]).await, nothing);
    assert_eq!(rig.commit(&["tests/**"]).await, nothing, "the same request again");
    let mut next = rig.request(&["tests/**"]);
    next.message = "checkpoint(executor): x turn 2".into();
    assert_eq!(rig.git.commit(&next).await.unwrap(), Commit::Nothing { refused: vec![] }, "another turn");
}

#[tokio::test]
async fn a_forbidden_file_that_became_ignored_or_a_link_is_saved_too() {
    let rig = Rig::new().await;
    rig.agent(&["rm", "-q", "--cached", "src/a.txt"]);
    rig.write(".gitignore", "*.log\nsrc/a.txt\n");
    rig.agent(&["commit", "-q", "-am", "hide"]);
    rig.write("src/a.txt", "hidden\n");
    fs::remove_dir_all(rig.tree.join("tests")).unwrap();
    symlink("src", rig.tree.join("tests")).unwrap();
    let Commit::Nothing { refused } = rig.commit(&["docs/**"]).await else { panic!("something was committed") };
    assert_eq!(refused, [".gitignore", "src/a.txt", "tests", "tests/t.txt"]);
    assert_eq!(rig.show(RESCUE, "src/a.txt"), "hidden\n");
    assert_eq!(rig.read("src/a.txt").as_deref(), Some("one\n"));
    assert_eq!(rig.read("tests/t.txt").as_deref(), Some("test\n"));
}

#[tokio::test]
async fn a_refusing_hook_leaves_the_changes_unstaged() {
    let rig = Rig::new().await;
    rig.hook("pre-commit", "echo 'no é today'; echo why >&2; exit 1");
    rig.write("src/a.txt", "changed\n");
    rig.write("new", "x");
    let output = hook_refused(rig.commit(&[]).await);
    assert!(output.contains("no é today") && output.contains("why"), "{output}");
    assert_eq!(rig.agent(&["status", "--porcelain"]), " M src/a.txt\n?? new\n");
    rig.hook("pre-commit", "exit 0");
    assert_eq!(made(rig.commit(&[]).await).1, ["new", "src/a.txt"]);
}

#[tokio::test]
async fn a_formatting_hook_gets_a_second_try() {
    for (case, end) in [("it exits 1 after formatting", "exit 1"), ("it exits 0 without staging", "exit 0")] {
        let rig = Rig::new().await;
        let script =
            format!("grep -q formatted src/a.txt && exit 0; echo formatted >> src/a.txt; echo x >> runs; {end}");
        rig.hook("pre-commit", &script);
        rig.write("src/a.txt", "changed\n");
        let (head, _, _) = made(rig.commit(&[]).await);
        assert_eq!(rig.show(&head, "src/a.txt"), "changed\nformatted\n", "{case}");
        assert_eq!(rig.agent(&["status", "--porcelain"]), "", "{case}");
    }
}

#[tokio::test]
async fn a_hook_that_changes_files_and_never_agrees_is_asked_twice_only() {
    let rig = Rig::new().await;
    rig.hook("pre-commit", "echo x >> runs.log; echo x >> src/b.txt; exit 1");
    rig.write("src/a.txt", "changed\n");
    hook_refused(rig.commit(&[]).await);
    assert_eq!(rig.read("runs.log").as_deref(), Some("x\nx\n"));
}

#[tokio::test]
async fn a_head_off_the_branch_is_reported_and_left_alone() {
    let rig = Rig::new().await;
    rig.write("src/a.txt", "changed\n");
    rig.agent(&["checkout", "-q", "--detach"]);
    assert_eq!(rig.commit(&[]).await, Commit::OffBranch { found: rig.base.clone() });
    rig.agent(&["checkout", "-q", "-b", "other"]);
    assert_eq!(rig.commit(&[]).await, Commit::OffBranch { found: "other".into() });
    rig.agent(&["checkout", "-q", "--orphan", "empty"]);
    assert_eq!(rig.commit(&[]).await, Commit::OffBranch { found: "empty".into() });
    assert_eq!(rig.read("src/a.txt").as_deref(), Some("changed\n"));
}

#[tokio::test]
async fn a_rewritten_branch_is_off_the_branch() {
    let rig = Rig::new().await;
    rig.agent(&["commit", "-q", "--amend", "-m", "rewritten"]);
    let found = rig.agent(&["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(rig.commit(&[]).await, Commit::OffBranch { found });
}

#[tokio::test]
async fn an_unfinished_merge_is_reported_with_its_conflicts() {
    let rig = Rig::new().await;
    rig.agent(&["checkout", "-q", "-b", "other"]);
    rig.write("src/a.txt", "theirs\n");
    rig.agent(&["commit", "-q", "-am", "theirs"]);
    rig.agent(&["checkout", "-q", BRANCH]);
    rig.write("src/a.txt", "ours\n");
    rig.agent(&["commit", "-q", "-am", "ours"]);
    rig.agent(&["config", "alias.try", "!git merge -q other || true"]);
    rig.agent(&["try"]);
    let output = hook_refused(rig.commit(&[]).await);
    assert!(output.contains("unfinished merge: src/a.txt"), "{output}");
    assert!(rig.read("src/a.txt").unwrap().contains("<<<<<<<"));
}

#[tokio::test]
async fn a_repository_inside_the_tree_is_refused_and_left_alone() {
    let rig = Rig::new().await;
    rig.write("vendor/x/file", "inner");
    rig.agent(&["init", "-q", "vendor/x"]);
    rig.write("real.txt", "x");
    let (_, paths, refused) = made(rig.commit(&[]).await);
    assert_eq!((paths, refused), (vec!["real.txt".to_owned()], vec!["vendor/x/".to_owned()]));
    // Committed by the agent as a link to a commit that nobody else has.
    rig.agent(&[
        "-C",
        "vendor/x",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "in",
    ]);
    rig.agent(&["-c", "advice.addEmbeddedRepo=false", "add", "vendor/x"]);
    rig.agent(&["commit", "-q", "-m", "gitlink"]);
    let (head, paths, refused) = made(rig.commit(&[]).await);
    assert_eq!((paths, refused), (vec!["real.txt".to_owned()], vec!["vendor/x".to_owned(), "vendor/x/".to_owned()]));
    assert!(!rig.names(&head).contains(&"vendor/x".to_owned()));
    assert_eq!(rig.read("vendor/x/file").as_deref(), Some("inner"));
}

#[tokio::test]
async fn locks_and_an_index_that_a_killed_git_left_do_not_stop_the_turn() {
    let rig = Rig::new().await;
    let git_dir = rig.root.join(".git/worktrees/x-executor");
    fs::write(git_dir.join("index.lock"), "half").unwrap();
    fs::write(git_dir.join("index"), "broken").unwrap();
    rig.write("src/a.txt", "changed\n");
    assert_eq!(made(rig.commit(&[]).await).1, ["src/a.txt"]);
    assert!(git_dir.join("index.lock.left").exists());
}

#[tokio::test]
async fn a_bad_glob_is_an_error_before_anything_is_done() {
    let rig = Rig::new().await;
    rig.write("src/a.txt", "changed\n");
    assert!(rig.git.commit(&rig.request(&["src/{a"])).await.is_err());
    assert_eq!(rig.agent(&["status", "--porcelain"]), " M src/a.txt\n");
}

#[tokio::test]
async fn a_crash_between_undoing_and_committing_changes_nothing_of_the_answer() {
    let rig = Rig::new().await;
    rig.write("tests/new.txt", "good");
    rig.write("src/a.txt", "bad\n");
    let request = rig.request(&["tests/**"]);
    let turn = Turn::new(rig.git.checkout(&rig.tree).await.unwrap(), &request).unwrap();
    turn.prepare().await.unwrap();
    assert_eq!(rig.read("src/a.txt").as_deref(), Some("one\n"));
    let (_, paths, refused) = made(rig.commit(&["tests/**"]).await);
    assert_eq!((paths, refused), (vec!["tests/new.txt".to_owned()], vec!["src/a.txt".to_owned()]));
}

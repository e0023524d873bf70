use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::git::rig::{BRANCH, RESCUE, Rig};
use crate::ports::{Restored, TreeState, Workspace};

impl Rig {
    async fn state(&self) -> TreeState {
        self.git.state(&self.tree).await.unwrap()
    }

    async fn restore(&self, before: &TreeState) -> Option<Restored> {
        self.git.restore(&self.tree, before, RESCUE).await.unwrap()
    }

    /// Makes the tree dirty in the ways that a writer's unfinished turn is.
    fn make_dirty(&self) {
        self.write("src/a.txt", "half done\n");
        self.write("new file", "mine\n");
        fs::remove_file(self.tree.join("src/b.txt")).unwrap();
    }
}

#[tokio::test]
async fn a_tree_that_did_not_change_is_left_alone() {
    let rig = Rig::new().await;
    for dirty in [false, true] {
        if dirty {
            rig.make_dirty();
        }
        let before = rig.state().await;
        rig.write("debug.log", "ignored");
        rig.write(".beads/issues.jsonl", "export");
        rig.agent(&["add", "-A"]); // staging alone changes no content
        rig.agent(&["reset", "-q"]);
        assert_eq!(rig.restore(&before).await, None);
        assert_eq!(rig.git.branch_tip("nothing").await.unwrap(), None);
    }
    assert!(rig.git.resolve(RESCUE).await.is_err(), "nothing was saved");
}

#[tokio::test]
async fn a_state_tells_a_second_change_of_a_changed_file() {
    let rig = Rig::new().await;
    rig.make_dirty();
    let one = rig.state().await;
    let names: Vec<_> = one.changes.iter().map(|change| (change.path.as_str(), change.untracked)).collect();
    assert_eq!(names, [("new file", true), ("src/a.txt", false), ("src/b.txt", false)]);
    rig.write("src/a.txt", "half DONE\n");
    let two = rig.state().await;
    assert_eq!(one.changes, two.changes);
    assert_ne!(one, two);
    rig.write("src/a.txt", "half done\n");
    assert_eq!(rig.state().await, one);
}

#[tokio::test]
async fn changes_of_every_kind_are_saved_and_undone() {
    for dirty in [false, true] {
        let rig = Rig::new().await;
        if dirty {
            rig.make_dirty();
        }
        let before = rig.state().await;
        rig.write("src/a.txt", "theirs\n");
        rig.write("made up\n.txt", "x");
        fs::remove_dir_all(rig.tree.join("tests")).unwrap();
        symlink("src", rig.tree.join("tests")).unwrap();
        if dirty {
            fs::remove_file(rig.tree.join("new file")).unwrap();
        }
        let restored = rig.restore(&before).await.unwrap();
        let mut expected = vec!["made up\n.txt", "src/a.txt", "tests", "tests/t.txt"];
        if dirty {
            expected.insert(1, "new file");
        }
        assert_eq!(restored.paths, expected);
        assert_eq!(rig.state().await, before);
        assert_eq!(rig.read("tests/t.txt").as_deref(), Some("test\n"));
        assert_eq!(rig.read("new file").as_deref(), dirty.then_some("mine\n"));
        assert_eq!(rig.show(RESCUE, "src/a.txt"), "theirs\n");
        assert_eq!(rig.show(RESCUE, "made up\n.txt"), "x");
    }
}

#[tokio::test]
async fn an_agents_commit_is_taken_off_the_branch_and_kept() {
    let rig = Rig::new().await;
    rig.make_dirty();
    let before = rig.state().await;
    rig.agent(&["add", "-A"]);
    rig.agent(&["commit", "-q", "-m", "mine"]);
    let own = rig.agent(&["rev-parse", "HEAD"]).trim().to_owned();
    let restored = rig.restore(&before).await.unwrap();
    assert_eq!(restored.paths, Vec::<String>::new(), "the files are as they were");
    assert_eq!(rig.state().await, before);
    assert_eq!(rig.git.branch_tip(BRANCH).await.unwrap().as_ref(), Some(&rig.base));
    assert!(rig.git.contains(RESCUE, &own).await.unwrap());
    assert_eq!(rig.agent(&["status", "--porcelain"]), " M src/a.txt\n D src/b.txt\n?? \"new file\"\n");
}

#[tokio::test]
async fn a_switched_detached_or_orphaned_head_comes_back() {
    for how in
        [&["checkout", "-q", "-b", "other"][..], &["checkout", "-q", "--detach"], &["checkout", "-q", "--orphan", "o"]]
    {
        let rig = Rig::new().await;
        rig.make_dirty();
        let before = rig.state().await;
        // First a commit on the branch itself, which nothing but the branch holds.
        rig.agent(&["commit", "-q", "--allow-empty", "-m", "on the branch"]);
        let on_branch = rig.agent(&["rev-parse", "HEAD"]).trim().to_owned();
        rig.agent(how);
        rig.agent(&["commit", "-q", "-am", "elsewhere"]);
        let elsewhere = rig.agent(&["rev-parse", "HEAD"]).trim().to_owned();
        rig.restore(&before).await.unwrap();
        assert_eq!(rig.state().await, before, "{how:?}");
        for commit in [&on_branch, &elsewhere] {
            assert!(rig.git.contains(RESCUE, commit).await.unwrap(), "{how:?}");
        }
    }
}

#[tokio::test]
async fn an_unborn_or_deleted_branch_comes_back() {
    let rig = Rig::new().await;
    let before = rig.state().await;
    rig.agent(&["checkout", "-q", "--orphan", "o"]);
    rig.agent(&["branch", "-q", "-D", BRANCH]);
    rig.restore(&before).await.unwrap();
    assert_eq!(rig.state().await, before);
}

#[tokio::test]
async fn a_detached_head_is_put_back_detached() {
    let rig = Rig::new().await;
    rig.agent(&["checkout", "-q", "--detach"]);
    let before = rig.state().await;
    rig.agent(&["checkout", "-q", BRANCH]);
    rig.agent(&["commit", "-q", "--allow-empty", "-m", "x"]);
    let tip = rig.git.branch_tip(BRANCH).await.unwrap();
    rig.restore(&before).await.unwrap();
    assert_eq!(rig.state().await, before);
    assert_eq!(rig.git.branch_tip(BRANCH).await.unwrap(), tip, "another branch is not ours to move");
}

#[tokio::test]
async fn a_conflicted_merge_is_ended_and_its_tree_kept() {
    let rig = Rig::new().await;
    rig.agent(&["checkout", "-q", "-b", "other"]);
    rig.write("src/a.txt", "theirs\n");
    rig.agent(&["commit", "-q", "-am", "theirs"]);
    rig.agent(&["checkout", "-q", BRANCH]);
    rig.write("src/a.txt", "ours\n");
    rig.agent(&["commit", "-q", "-am", "ours"]);
    let before = rig.state().await;
    rig.agent(&["config", "alias.try", "!git merge -q other || true"]);
    rig.agent(&["try"]);
    assert_eq!(rig.restore(&before).await.unwrap().paths, ["src/a.txt"]);
    assert_eq!(rig.state().await, before);
    assert!(rig.show(RESCUE, "src/a.txt").contains("<<<<<<<"));
    assert!(!rig.root.join(".git/worktrees/x-executor/MERGE_HEAD").exists());
}

#[tokio::test]
async fn a_file_that_was_untracked_and_is_ignored_now_is_saved_first() {
    let rig = Rig::new().await;
    rig.make_dirty();
    let before = rig.state().await;
    rig.write(".gitignore", "*.log\nnew file\n");
    rig.write("new file", "changed while hidden\n");
    assert_eq!(rig.restore(&before).await.unwrap().paths, [".gitignore", "new file"]);
    assert_eq!(rig.read("new file").as_deref(), Some("mine\n"));
    assert_eq!(rig.show(RESCUE, "new file"), "changed while hidden\n");
}

#[tokio::test]
async fn a_rescue_ref_that_is_used_twice_forgets_nothing() {
    let rig = Rig::new().await;
    let before = rig.state().await;
    for text in ["first\n", "second\n"] {
        rig.write("src/a.txt", text);
        rig.restore(&before).await.unwrap();
    }
    assert_eq!(rig.show(RESCUE, "src/a.txt"), "second\n");
    assert_eq!(rig.show(&format!("{RESCUE}^2"), "src/a.txt"), "first\n");
}

#[tokio::test]
async fn a_repository_made_inside_the_tree_is_moved_aside() {
    let rig = Rig::new().await;
    let before = rig.state().await;
    rig.write("vendor/x/file", "inner");
    rig.agent(&["init", "-q", "vendor/x"]);
    assert_eq!(rig.restore(&before).await.unwrap().paths, ["vendor/x/"]);
    assert_eq!(rig.state().await, before);
    let kept = rig.root.join(".git/sp-rescue/0a1b2c3d/0/vendor/x/file");
    assert_eq!(fs::read_to_string(kept).unwrap(), "inner");
}

#[tokio::test]
async fn a_restore_that_was_cut_short_goes_on_when_asked_again() {
    let rig = Rig::new().await;
    rig.make_dirty();
    let before = rig.state().await;
    rig.write("src/a.txt", "theirs\n");
    rig.agent(&["commit", "-q", "-am", "mine"]);
    let own = rig.agent(&["rev-parse", "HEAD"]).trim().to_owned();
    rig.write("src/late.txt", "late\n");
    rig.restore(&before).await.unwrap();
    // As if the crash had come after the files and before HEAD.
    rig.agent(&["update-ref", &format!("refs/heads/{BRANCH}"), &own]);
    rig.restore(&before).await.unwrap();
    assert_eq!(rig.state().await, before);
    assert_eq!(rig.show(&format!("{RESCUE}^3"), "src/late.txt"), "late\n");
}

#[tokio::test]
async fn a_state_whose_content_is_gone_undoes_nothing() {
    let rig = Rig::new().await;
    let mut before = rig.state().await;
    before.fingerprint = "1".repeat(40);
    rig.write("src/a.txt", "theirs\n");
    assert!(rig.git.restore(&rig.tree, &before, RESCUE).await.is_err());
    assert_eq!(rig.read("src/a.txt").as_deref(), Some("theirs\n"));
}

#[tokio::test]
async fn a_change_of_the_same_size_and_time_is_seen() {
    let rig = Rig::new().await;
    for setting in ["core.trustctime=false", "core.checkStat=minimal"] {
        let (key, value) = setting.split_once('=').unwrap();
        rig.agent(&["config", key, value]);
    }
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let date = |path: &Path| File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    let file = rig.tree.join("src/a.txt");
    date(&file);
    rig.agent(&["update-index", "-q", "--refresh"]);
    let before = rig.state().await;
    rig.write("src/a.txt", "ONE\n");
    date(&file);
    // As it stands when file and index are written in the same tick of the clock.
    date(&rig.root.join(".git/worktrees/x-executor/index"));
    assert_eq!(rig.restore(&before).await.unwrap().paths, ["src/a.txt"]);
}

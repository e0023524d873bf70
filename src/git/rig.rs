//! A throw-away repository on real git, for the tests of this room. Hermetic: no settings of the host reach it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::repository::Git;
use crate::ports::{Commit, CommitRequest, Workspace};

/// Name of the branch of the worktree.
pub(super) const BRANCH: &str = "feature/x-executor";

/// Ref that the tests save to.
pub(super) const RESCUE: &str = "refs/sp/rescue/0a1b2c3d";

/// A repository with one commit on `main` and a worktree on [`BRANCH`].
pub(super) struct Rig {
    pub(super) home: TempDir,
    pub(super) root: PathBuf,
    pub(super) tree: PathBuf,
    pub(super) base: String,
    pub(super) git: Git,
}

impl Rig {
    /// Makes the repository; its directories have blanks, quotes, accents and a line feed in their names.
    pub(super) async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("my \"ré po\"\nx");
        fs::create_dir(&root).unwrap();
        git_in(&home, &root, &["init", "-q", "-b", "main"]);
        git_in(&home, &root, &["config", "user.name", "Ann"]);
        git_in(&home, &root, &["config", "user.email", "ann@example.org"]);
        for (path, content) in [("src/a.txt", "one\n"), ("src/b.txt", "two\n"), ("tests/t.txt", "test\n")] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), content).unwrap();
        }
        fs::write(root.join(".gitignore"), "*.log\n").unwrap();
        git_in(&home, &root, &["add", "-A"]);
        git_in(&home, &root, &["commit", "-q", "-m", "base"]);
        let base = git_in(&home, &root, &["rev-parse", "HEAD"]).trim().to_owned();
        let git = Git::open_with(&root, env(&home)).await.unwrap();
        let tree = root.join(".worktrees/x/x-executor");
        git.exclude_own_paths().await.unwrap();
        git.make_branch(BRANCH, &base).await.unwrap();
        git_in(&home, &root, &["worktree", "add", "-q", tree.to_str().unwrap(), BRANCH]);
        Self { home, root, tree, base, git }
    }

    /// Runs git in the worktree, as an agent would.
    pub(super) fn agent(&self, args: &[&str]) -> String {
        git_in(&self.home, &self.tree, args)
    }

    pub(super) fn write(&self, path: &str, content: &str) {
        let path = self.tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.tree.join(path)).ok()
    }

    /// Installs a hook for all worktrees.
    pub(super) fn hook(&self, name: &str, script: &str) {
        let path = self.root.join(".git/hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(super) fn request(&self, allowed: &[&str]) -> CommitRequest {
        CommitRequest {
            tree: self.tree.clone(),
            branch: BRANCH.into(),
            message: "checkpoint(executor): x turn 1\n\n# not a comment\n".into(),
            before: self.base.clone(),
            allowed: allowed.iter().map(|&glob| glob.to_owned()).collect(),
            rescue_ref: RESCUE.into(),
        }
    }

    pub(super) async fn commit(&self, allowed: &[&str]) -> Commit {
        self.git.commit(&self.request(allowed)).await.unwrap()
    }

    /// Returns the names that a revision holds below the root, as git quotes them.
    pub(super) fn names(&self, revision: &str) -> Vec<String> {
        self.agent(&["ls-tree", "-r", "--name-only", revision]).lines().map(str::to_owned).collect()
    }

    /// Returns the content of a file in a revision.
    pub(super) fn show(&self, revision: &str, path: &str) -> String {
        self.agent(&["show", &format!("{revision}:{path}")])
    }
}

/// Returns the environment that keeps the host's settings out.
pub(super) fn env(home: &TempDir) -> Vec<(OsString, OsString)> {
    let home = home.path().as_os_str().to_owned();
    vec![
        ("HOME".into(), home.clone()),
        ("XDG_CONFIG_HOME".into(), home),
        ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()),
    ]
}

/// Runs git to its successful end and returns what it printed.
pub(super) fn git_in(home: &TempDir, dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(dir).args(args).envs(env(home)).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

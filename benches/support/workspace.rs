//! A repository without git: branches are numbers that count up.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use specialists::ports::{
    Commit, CommitRequest, DiffStat, PathChange, RepoFacts, Restored, TreeState, Workspace, WorkspaceError,
};

/// A repository that exists in memory only, at a root where `sp` may keep its files.
#[derive(Debug)]
pub(crate) struct StubWorkspace {
    root: PathBuf,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    commits: u64,
    /// HEAD of each worktree that differs from the base.
    heads: HashMap<PathBuf, String>,
}

impl StubWorkspace {
    /// Makes a repository of one commit.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, held: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn commit(number: u64) -> String {
    format!("{number:040x}")
}

#[async_trait]
impl Workspace for StubWorkspace {
    async fn facts(&self) -> Result<RepoFacts, WorkspaceError> {
        Ok(RepoFacts { root: self.root.clone(), branch: Some("main".to_owned()), head: commit(0), dirty: 0 })
    }

    async fn resolve(&self, _: &str) -> Result<String, WorkspaceError> {
        Ok(commit(0))
    }

    async fn exclude_own_paths(&self) -> Result<(), WorkspaceError> {
        Ok(())
    }

    async fn worktree_of(&self, _: &str) -> Result<Option<PathBuf>, WorkspaceError> {
        Ok(None)
    }

    async fn branch_tip(&self, _: &str) -> Result<Option<String>, WorkspaceError> {
        Ok(Some(commit(0)))
    }

    async fn make_branch(&self, _: &str, _: &str) -> Result<(), WorkspaceError> {
        Ok(())
    }

    async fn add_worktree(&self, path: &Path, _: &str) -> Result<(), WorkspaceError> {
        std::fs::create_dir_all(path).map_err(|source| WorkspaceError::Io { verb: "worktree add", source })
    }

    async fn state(&self, tree: &Path) -> Result<TreeState, WorkspaceError> {
        let head = self.held().heads.get(tree).cloned().unwrap_or_else(|| commit(0));
        let changes: Vec<PathChange> = Vec::new();
        Ok(TreeState { head, branch: Some("feature/stub".to_owned()), changes, fingerprint: "stub".to_owned() })
    }

    async fn commit(&self, request: &CommitRequest) -> Result<Commit, WorkspaceError> {
        let mut held = self.held();
        held.commits += 1;
        let head = commit(held.commits);
        held.heads.insert(request.tree.clone(), head.clone());
        let path = if request.allowed.is_empty() { "src/pager.sh" } else { "test/pager_test.sh" };
        Ok(Commit::Made { head, paths: vec![path.to_owned()], refused: Vec::new() })
    }

    async fn restore(&self, _: &Path, _: &TreeState, _: &str) -> Result<Option<Restored>, WorkspaceError> {
        Ok(None)
    }

    async fn diff(&self, _: &str, _: &str) -> Result<Vec<u8>, WorkspaceError> {
        Ok(b"--- a/src/pager.sh\n+++ b/src/pager.sh\n@@ -6 +6 @@\n-    echo $((total / $2))\n".repeat(12))
    }

    async fn diff_stat(&self, _: &str, _: &str) -> Result<DiffStat, WorkspaceError> {
        Ok(DiffStat { files: 1, added: 1, removed: 1 })
    }

    async fn contains(&self, _: &str, _: &str) -> Result<bool, WorkspaceError> {
        Ok(true)
    }
}

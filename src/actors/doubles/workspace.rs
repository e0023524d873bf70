//! A repository in memory: every commit of a writer makes a new head, unless the same was asked before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use crate::ports::{Commit, CommitRequest, DiffStat, RepoFacts, Restored, TreeState, Workspace, WorkspaceError};

/// The workspace port.
#[derive(Default)]
pub(in crate::actors) struct StubWorkspace {
    /// Commits made.
    pub(in crate::actors) commits: AtomicUsize,
    heads: Mutex<BTreeMap<PathBuf, String>>,
    made: Mutex<BTreeMap<(PathBuf, String), String>>,
    /// How often a state is still to panic.
    pub(in crate::actors) panics: AtomicUsize,
}

impl StubWorkspace {
    fn head(&self, tree: &Path) -> String {
        self.heads.lock().unwrap().get(tree).cloned().unwrap_or_else(|| "c0".to_owned())
    }
}

#[async_trait]
impl Workspace for StubWorkspace {
    async fn facts(&self) -> Result<RepoFacts, WorkspaceError> {
        Ok(RepoFacts { root: "/stub".into(), branch: Some("main".into()), head: "c0".into(), dirty: 0 })
    }

    async fn resolve(&self, _: &str) -> Result<String, WorkspaceError> {
        Ok("c0".to_owned())
    }

    async fn exclude_own_paths(&self) -> Result<(), WorkspaceError> {
        Ok(())
    }

    async fn worktree_of(&self, _: &str) -> Result<Option<PathBuf>, WorkspaceError> {
        Ok(None)
    }

    async fn branch_tip(&self, _: &str) -> Result<Option<String>, WorkspaceError> {
        Ok(None)
    }

    async fn make_branch(&self, _: &str, _: &str) -> Result<(), WorkspaceError> {
        Ok(())
    }

    async fn add_worktree(&self, _: &Path, _: &str) -> Result<(), WorkspaceError> {
        Ok(())
    }

    async fn state(&self, tree: &Path) -> Result<TreeState, WorkspaceError> {
        let left = self.panics.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        assert!(left.is_err(), "a port that panics");
        Ok(TreeState { head: self.head(tree), branch: None, changes: Vec::new(), fingerprint: String::new() })
    }

    async fn commit(&self, request: &CommitRequest) -> Result<Commit, WorkspaceError> {
        let key = (request.tree.clone(), request.message.clone());
        let known = self.made.lock().unwrap().get(&key).cloned();
        let head = known.unwrap_or_else(|| {
            let number = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
            format!("c{number}")
        });
        self.made.lock().unwrap().insert(key, head.clone());
        self.heads.lock().unwrap().insert(request.tree.clone(), head.clone());
        Ok(Commit::Made { head, paths: vec!["src/pager.rs".into()], refused: Vec::new() })
    }

    async fn restore(&self, _: &Path, _: &TreeState, _: &str) -> Result<Option<Restored>, WorkspaceError> {
        Ok(None)
    }

    async fn diff(&self, _: &str, _: &str) -> Result<Vec<u8>, WorkspaceError> {
        Ok(b"--- a/src/pager.rs\n+++ b/src/pager.rs\n".to_vec())
    }

    async fn diff_stat(&self, _: &str, _: &str) -> Result<DiffStat, WorkspaceError> {
        Ok(DiffStat { files: 1, added: 1, removed: 1 })
    }

    async fn contains(&self, _: &str, _: &str) -> Result<bool, WorkspaceError> {
        Ok(true)
    }
}

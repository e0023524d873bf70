//! The repository: branches, worktrees, commits and diffs. The real one is git.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// What is known of a repository before anything is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoFacts {
    /// Directory of the main checkout: parent of the common git directory. Worktrees share it.
    pub root: PathBuf,
    /// Branch checked out at `root`; `None` when HEAD is detached.
    pub branch: Option<String>,
    /// Commit of HEAD at `root`, 40 hex digits.
    pub head: String,
    /// Number of changed or untracked paths at `root`.
    pub dirty: usize,
}

/// State of a worktree at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeState {
    /// Commit of HEAD.
    pub head: String,
    /// Branch; `None` when detached.
    pub branch: Option<String>,
    /// Changed paths, sorted; ignored files are not listed.
    pub changes: Vec<PathChange>,
}

/// One changed path of a worktree, relative to it. Raw bytes of odd names are shown lossily in text only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PathChange {
    /// Path relative to the worktree.
    pub path: String,
    /// Whether git doesn't track it yet.
    pub untracked: bool,
}

/// Who commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `user.name`.
    pub name: String,
    /// `user.email`.
    pub email: String,
}

/// A commit to make of one writer's turn.
#[derive(Debug, Clone)]
pub struct CommitRequest {
    /// Worktree.
    pub tree: PathBuf,
    /// Branch that HEAD must be on.
    pub branch: String,
    /// Message.
    pub message: String,
    /// HEAD before the turn; the commit must descend from it.
    pub before: String,
    /// Paths that this writer may change, as globs; empty means any.
    pub allowed: Vec<String>,
    /// Ref under which anything outside `allowed` is saved before it is undone.
    pub rescue_ref: String,
}

/// What came of a commit request. The same request again after a crash gives the same answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Commit {
    /// There is something new on the branch since `before`, committed now or by the agent itself.
    Made {
        /// New HEAD.
        head: String,
        /// Paths changed since `before`.
        paths: Vec<String>,
        /// Changed paths outside the allowed ones, saved under the rescue ref and undone.
        refused: Vec<String>,
    },
    /// Nothing changed since `before`.
    Nothing {
        /// Changed paths outside the allowed ones, saved under the rescue ref and undone.
        refused: Vec<String>,
    },
    /// A hook refused the commit; the changes are still in the tree, unstaged.
    HookRefused {
        /// What git and the hook printed.
        output: String,
    },
    /// HEAD is not on the branch, or not a descendant of `before`.
    OffBranch {
        /// Branch or commit found.
        found: String,
    },
}

/// What was undone in a tree that should not have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Paths whose change was saved and undone.
    pub paths: Vec<String>,
    /// Ref that holds the change.
    pub rescue_ref: String,
}

/// Size of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiffStat {
    /// Files changed.
    pub files: u32,
    /// Lines added.
    pub added: u32,
    /// Lines removed.
    pub removed: u32,
}

/// The repository. All paths handed in are absolute; names with spaces, quotes, accents and newlines work.
#[async_trait]
pub trait Workspace: Send + Sync + 'static {
    /// Reads the facts of the repository; fails typed outside one and before its first commit.
    async fn facts(&self) -> Result<RepoFacts, WorkspaceError>;

    /// Resolves a revision to a commit, 40 hex digits.
    async fn resolve(&self, revision: &str) -> Result<String, WorkspaceError>;

    /// Adds sp's own paths to the repository's exclude file, once.
    async fn exclude_own_paths(&self) -> Result<(), WorkspaceError>;

    /// Returns the worktree that has a branch checked out.
    async fn worktree_of(&self, branch: &str) -> Result<Option<PathBuf>, WorkspaceError>;

    /// Returns the commit of a branch, if it exists.
    async fn branch_tip(&self, branch: &str) -> Result<Option<String>, WorkspaceError>;

    /// Makes a branch at a commit; does nothing if it is there already at that commit or beyond.
    async fn make_branch(&self, branch: &str, at: &str) -> Result<(), WorkspaceError>;

    /// Reads the state of a worktree.
    async fn state(&self, tree: &Path) -> Result<TreeState, WorkspaceError>;

    /// Commits a writer's turn.
    async fn commit(&self, request: &CommitRequest) -> Result<Commit, WorkspaceError>;

    /// Puts a worktree back to `before`, saving what changed under `rescue_ref`; `None` when nothing had changed.
    async fn restore(
        &self,
        tree: &Path,
        before: &TreeState,
        rescue_ref: &str,
    ) -> Result<Option<Restored>, WorkspaceError>;

    /// Returns the unified diff between two commits.
    async fn diff(&self, from: &str, to: &str) -> Result<Vec<u8>, WorkspaceError>;

    /// Returns the size of the diff between two commits.
    async fn diff_stat(&self, from: &str, to: &str) -> Result<DiffStat, WorkspaceError>;

    /// Returns whether a commit is contained in another.
    async fn contains(&self, whole: &str, part: &str) -> Result<bool, WorkspaceError>;
}

/// Why git gave nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// git is not installed.
    #[error("run `git {verb}`: no `git` on PATH")]
    Missing {
        /// The command.
        verb: &'static str,
    },
    /// The directory is in no repository.
    #[error("open the repository at {path}: not a git repository")]
    NotARepository {
        /// The directory.
        path: PathBuf,
    },
    /// The repository has no commit yet.
    #[error("read HEAD of {path}: the repository has no commit yet")]
    NoCommit {
        /// The repository.
        path: PathBuf,
    },
    /// No such revision.
    #[error("resolve revision `{revision}`: no such commit")]
    NoRevision {
        /// What was asked.
        revision: String,
    },
    /// The branch exists and is not ours.
    #[error("use branch {branch}: it stands at {found}, which does not descend from {expected}")]
    ForeignBranch {
        /// The branch.
        branch: String,
        /// Its commit.
        found: String,
        /// The base of the chain.
        expected: String,
    },
    /// The worktree is gone.
    #[error("open worktree {path}: the directory is missing")]
    NoWorktree {
        /// The worktree.
        path: PathBuf,
    },
    /// git failed.
    #[error("run `git {verb}`: {reason}")]
    Failed {
        /// The command.
        verb: &'static str,
        /// git's own text, shortened.
        reason: String,
    },
    /// The system would not read or write.
    #[error("run `git {verb}`")]
    Io {
        /// The command.
        verb: &'static str,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
}

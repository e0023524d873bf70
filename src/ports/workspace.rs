//! The repository: branches, worktrees, commits and diffs. The real one is git.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::failure::{Explain, FailureKind};

/// What is known of a repository before anything is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoFacts {
    /// Directory of the main checkout: parent of the common git directory. Worktrees share it.
    pub root: PathBuf,
    /// Branch checked out at `root`; `None` when HEAD is detached.
    pub branch: Option<String>,
    /// Commit of HEAD at `root`, 40 hex digits.
    pub head: String,
    /// Number of changed or untracked paths at `root`, without sp's and bd's own files.
    pub dirty: usize,
}

/// State of a worktree at one moment. Two states are equal when nothing that git could commit differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeState {
    /// Commit of HEAD.
    pub head: String,
    /// Branch; `None` when detached.
    pub branch: Option<String>,
    /// Changed paths, sorted; ignored files and the files of sp and bd are not listed.
    pub changes: Vec<PathChange>,
    /// Opaque proof of the content of all tracked and untracked files; [`Workspace::restore`] can bring it back.
    pub fingerprint: String,
}

/// One changed path of a worktree, relative to it. Raw bytes of odd names are shown lossily in text only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PathChange {
    /// Path relative to the worktree.
    pub path: String,
    /// Whether HEAD doesn't hold it yet.
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
    /// Paths that this writer may change, as globs relative to the worktree; empty means any. `*` stops at a slash,
    /// `**` does not.
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
    /// A hook refused the commit, or an unfinished merge forbids one; the changes are still in the tree, unstaged.
    HookRefused {
        /// What git and the hook printed, shortened to its end.
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
    /// Paths whose change was saved and undone; empty when only HEAD or the branch had moved.
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

    /// Resolves a revision to a commit, 40 hex digits. `HEAD` is that of the main checkout.
    async fn resolve(&self, revision: &str) -> Result<String, WorkspaceError>;

    /// Adds sp's own paths to the repository's exclude file, once.
    async fn exclude_own_paths(&self) -> Result<(), WorkspaceError>;

    /// Returns the worktree that has a branch checked out; `None` also when it was one of sp's and its directory is
    /// gone, so that it can be made again. Fails with [`WorkspaceError::NoWorktree`] when another's directory is gone.
    async fn worktree_of(&self, branch: &str) -> Result<Option<PathBuf>, WorkspaceError>;

    /// Returns the commit of a branch, if it exists.
    async fn branch_tip(&self, branch: &str) -> Result<Option<String>, WorkspaceError>;

    /// Makes a branch at a commit; does nothing if it is there already at that commit or beyond.
    async fn make_branch(&self, branch: &str, at: &str) -> Result<(), WorkspaceError>;

    /// Makes a worktree on an existing branch. Only where the tracker can't: it makes all others.
    async fn add_worktree(&self, path: &Path, branch: &str) -> Result<(), WorkspaceError>;

    /// Reads the state of a worktree.
    async fn state(&self, tree: &Path) -> Result<TreeState, WorkspaceError>;

    /// Commits a writer's turn: the changes in the tree and, by what it answers, the agent's own commits.
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
    /// The repository has no checkout to work beside.
    #[error("open the repository at {path}: it is bare")]
    Bare {
        /// The common git directory.
        path: PathBuf,
    },
    /// git is too old.
    #[error("use git {found}: {needed} or newer is needed")]
    TooOld {
        /// What `git --version` says.
        found: String,
        /// Oldest version that does.
        needed: &'static str,
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
    /// The worktree is gone, or what stands there is not one of this repository.
    #[error("open worktree {path}: it is missing, or no worktree of this repository")]
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

impl Explain for WorkspaceError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        match self {
            Self::Missing { .. } => {
                (FailureKind::Unusable, "git_missing", "install git 2.36 or newer, then `sp doctor`".into())
            }
            Self::TooOld { needed, .. } => {
                (FailureKind::Unusable, "git_too_old", format!("install git {needed} or newer, then `sp doctor`"))
            }
            Self::NotARepository { .. } => (
                FailureKind::Unusable,
                "not_a_repository",
                "change into a git repository, or make one with `git init` and a first commit".into(),
            ),
            Self::Bare { .. } => {
                (FailureKind::Unusable, "bare_repository", "run it in a clone that has a checkout".into())
            }
            Self::NoCommit { .. } => {
                (FailureKind::Unusable, "no_commit", "make a first commit, then run the same command again".into())
            }
            Self::NoRevision { .. } => {
                (FailureKind::NotFound, "no_revision", "see what there is: `git branch --all`, `git log`".into())
            }
            Self::ForeignBranch { branch, .. } => (
                FailureKind::Refused,
                "foreign_branch",
                format!(
                    "see whose it is: `git log {branch}`; then choose another bead, or give that branch another name"
                ),
            ),
            Self::NoWorktree { .. } => (
                FailureKind::Git,
                "no_worktree",
                "move away what stands there, if anything does, then go on with the chain: it makes the worktree again from \
                 its branch"
                    .into(),
            ),
            Self::Failed { .. } => {
                (FailureKind::Git, "git_failed", "mend what git says, then run the same command again".into())
            }
            Self::Io { .. } => {
                (FailureKind::Git, "git_io", "see that the disk is writable and not full, then run it again".into())
            }
        }
    }

    fn diagnose_command(&self) -> Option<String> {
        match self {
            Self::ForeignBranch { found, expected, .. } => Some(format!("git log --oneline {expected}..{found}")),
            Self::NoWorktree { .. } => Some("git worktree list".into()),
            Self::NoRevision { .. } => Some("git branch --all".into()),
            Self::Missing { .. } | Self::TooOld { .. } => Some("git --version".into()),
            Self::Failed { .. } | Self::NoCommit { .. } => Some("git status".into()),
            Self::NotARepository { .. } | Self::Bare { .. } | Self::Io { .. } => None,
        }
    }
}

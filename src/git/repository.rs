//! The repository as the port sees it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::checkout::{self, Checkout, text};
use super::commit::Turn;
use super::paths::{EXCLUDED, is_noise};
use super::run::{Call, Ended, Mode, Runner, without_line_feed};
use super::{decode, restore};
use crate::ports::{Commit, CommitRequest, DiffStat, RepoFacts, Restored, TreeState, Workspace, WorkspaceError};

/// Oldest git that knows all we ask of it (`worktree list -z`, `rev-parse --path-format`).
const OLDEST: (u32, u32) = (2, 36);

/// A repository with at least one checkout, driven by the git command line.
#[derive(Debug, Clone)]
pub struct Git {
    run: Runner,
    root: PathBuf,
    common: PathBuf,
}

impl Git {
    /// Opens the repository that a directory lies in: a main checkout, a linked worktree, or anywhere below one.
    ///
    /// The root is the parent of the common git directory; where that is not called `.git` (a submodule, a separate
    /// git directory) it is the top of the checkout. Fails typed without git, with one that is too old, outside a
    /// repository, and in a bare one, also from its worktrees: they have no main checkout to agree on.
    pub async fn open(dir: &Path) -> Result<Self, WorkspaceError> {
        Self::open_with(dir, Vec::new()).await
    }

    /// Opens a repository with more variables in git's environment.
    pub(super) async fn open_with(dir: &Path, env: Vec<(OsString, OsString)>) -> Result<Self, WorkspaceError> {
        let run = Runner { env };
        let outside = || WorkspaceError::NotARepository { path: dir.to_owned() };
        if !dir.is_dir() {
            return Err(outside());
        }
        check_version(&text(run.ok(Call::new(Mode::Read, dir, "version")).await?))?;
        let ask = |what| Call::new(Mode::Read, dir, "rev-parse").upward().args(["--path-format=absolute", what]);
        let answer = run.output(ask("--git-common-dir")).await?;
        if answer.ended != Ended::Code(0) {
            let stderr = String::from_utf8_lossy(&answer.stderr);
            return Err(if stderr.contains("not a git repository") { outside() } else { answer.failed() });
        }
        let common = PathBuf::from(OsString::from_vec(without_line_feed(answer.stdout)));
        let bare = Call::new(Mode::Read, &common, "rev-parse").env("GIT_DIR", &common).args(["--is-bare-repository"]);
        if run.line(bare).await? == b"true" {
            return Err(WorkspaceError::Bare { path: common });
        }
        let root = match common.parent() {
            Some(parent) if common.file_name() == Some(OsStr::new(".git")) => parent.to_owned(),
            _ => PathBuf::from(OsString::from_vec(run.line(ask("--show-toplevel")).await?)),
        };
        Ok(Self { run, root, common })
    }

    /// Returns the directory that all worktrees share: the main checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn call(&self, mode: Mode, verb: &'static str) -> Call<'_> {
        Call::new(mode, &self.root, verb)
    }

    async fn commit_of(&self, revision: &str) -> Result<Option<String>, WorkspaceError> {
        // An argument can't hold a NUL, and no revision does.
        if revision.contains('\0') { Ok(None) } else { checkout::commit_of(&self.run, &self.root, revision).await }
    }

    pub(super) async fn checkout<'a>(&'a self, tree: &'a Path) -> Result<Checkout<'a>, WorkspaceError> {
        Checkout::open(&self.run, tree, &self.common).await
    }

    /// Takes the entry of a worktree of ours whose directory is gone off git's list, so that it can be made again.
    async fn forget(&self, path: PathBuf) -> Result<(), WorkspaceError> {
        if !path.starts_with(self.root.join(".worktrees")) {
            return Err(WorkspaceError::NoWorktree { path });
        }
        // Without --force: git refuses when the directory has come back with changes, or is locked.
        self.run.ok(self.call(Mode::Write, "worktree").args(["remove", "--"]).arg(path)).await.map(drop)
    }
}

#[async_trait]
impl Workspace for Git {
    async fn facts(&self) -> Result<RepoFacts, WorkspaceError> {
        let head = self.commit_of("HEAD").await?;
        let head = head.ok_or_else(|| WorkspaceError::NoCommit { path: self.root.clone() })?;
        let branch = checkout::branch(&self.run, &self.root).await?;
        let status = self.call(Mode::Read, "status");
        let status = status.args(["--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"]);
        let mut changed = decode::status(&self.run.ok(status).await?)?;
        changed.retain(|(path, _)| !is_noise(path));
        changed.sort_by(|one, other| one.0.cmp(&other.0));
        changed.dedup_by(|one, other| one.0 == other.0);
        Ok(RepoFacts { root: self.root.clone(), branch, head, dirty: changed.len() })
    }

    async fn resolve(&self, revision: &str) -> Result<String, WorkspaceError> {
        let commit = self.commit_of(revision).await?;
        commit.ok_or_else(|| WorkspaceError::NoRevision { revision: revision.to_owned() })
    }

    async fn exclude_own_paths(&self) -> Result<(), WorkspaceError> {
        let ask = self.call(Mode::Read, "rev-parse").args(["--path-format=absolute", "--git-path", "info/exclude"]);
        let file = PathBuf::from(OsString::from_vec(self.run.line(ask).await?));
        add_lines(&file, &EXCLUDED).map_err(|source| WorkspaceError::Io { verb: "rev-parse", source })
    }

    async fn worktree_of(&self, branch: &str) -> Result<Option<PathBuf>, WorkspaceError> {
        let list = self.run.ok(self.call(Mode::Read, "worktree").args(["list", "--porcelain", "-z"])).await?;
        let found = decode::worktrees(&list)?.into_iter().find(|entry| entry.branch.as_deref() == Some(branch));
        match found {
            None => Ok(None),
            Some(entry) if entry.path.is_dir() => Ok(Some(entry.path)),
            Some(entry) if entry.locked => Err(WorkspaceError::NoWorktree { path: entry.path }),
            Some(entry) => self.forget(entry.path).await.map(|()| None),
        }
    }

    async fn branch_tip(&self, branch: &str) -> Result<Option<String>, WorkspaceError> {
        self.commit_of(&format!("refs/heads/{branch}")).await
    }

    async fn make_branch(&self, branch: &str, at: &str) -> Result<(), WorkspaceError> {
        let made = self.run.output(self.call(Mode::Write, "branch").args(["--no-track", "--", branch, at])).await?;
        if made.ended == Ended::Code(0) {
            return Ok(());
        }
        let Some(found) = self.branch_tip(branch).await? else {
            self.resolve(at).await?;
            return Err(made.failed());
        };
        if self.contains(&found, at).await? {
            Ok(())
        } else {
            Err(WorkspaceError::ForeignBranch { branch: branch.to_owned(), found, expected: at.to_owned() })
        }
    }

    async fn add_worktree(&self, path: &Path, branch: &str) -> Result<(), WorkspaceError> {
        let add = self.call(Mode::Write, "worktree").args(["add", "--quiet", "--"]).arg(path).arg(branch);
        self.run.ok(add).await.map(drop)
    }

    async fn state(&self, tree: &Path) -> Result<TreeState, WorkspaceError> {
        self.checkout(tree).await?.snapshot().await?.state(tree)
    }

    async fn commit(&self, request: &CommitRequest) -> Result<Commit, WorkspaceError> {
        Turn::new(self.checkout(&request.tree).await?, request)?.commit().await
    }

    async fn restore(
        &self,
        tree: &Path,
        before: &TreeState,
        rescue_ref: &str,
    ) -> Result<Option<Restored>, WorkspaceError> {
        restore::restore(&self.checkout(tree).await?, &self.common, before, rescue_ref).await
    }

    async fn diff(&self, from: &str, to: &str) -> Result<Vec<u8>, WorkspaceError> {
        let (from, to) = (self.resolve(from).await?, self.resolve(to).await?);
        // diff-tree is plumbing: the user's diff settings don't change its form.
        let call = self.call(Mode::Read, "diff-tree");
        self.run.ok(call.args(["-r", "-p", "-M", "--no-ext-diff", "--no-textconv", "--no-color", &from, &to])).await
    }

    async fn diff_stat(&self, from: &str, to: &str) -> Result<DiffStat, WorkspaceError> {
        let (from, to) = (self.resolve(from).await?, self.resolve(to).await?);
        let call = self.call(Mode::Read, "diff-tree").args(["-r", "--numstat", "-z", "-M", &from, &to]);
        decode::numstat(&self.run.ok(call).await?)
    }

    async fn contains(&self, whole: &str, part: &str) -> Result<bool, WorkspaceError> {
        let (whole, part) = (self.resolve(whole).await?, self.resolve(part).await?);
        let call = self.call(Mode::Read, "merge-base").args(["--is-ancestor", &part, &whole]);
        let output = self.run.output(call).await?;
        match output.ended {
            Ended::Code(0) => Ok(true),
            Ended::Code(1) => Ok(false),
            _ => Err(output.failed()),
        }
    }
}

fn check_version(answer: &str) -> Result<(), WorkspaceError> {
    let found = answer.trim().trim_start_matches("git version ");
    let mut numbers = found.split('.').map(|part| part.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= OLDEST { Ok(()) } else { Err(WorkspaceError::TooOld { found: found.to_owned(), needed: "2.36" }) }
}

/// Appends the lines that a file lacks, by a rename, so that a reader never sees half of it.
fn add_lines(file: &Path, lines: &[&str]) -> io::Result<()> {
    // Through a symbolic link, so that the link stays one.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let old = match fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let has = |line: &str| old.split(|&byte| byte == b'\n').any(|present| present.trim_ascii_end() == line.as_bytes());
    let missing: Vec<_> = lines.iter().filter(|line| !has(line)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut new = old.clone();
    if !new.is_empty() && !new.ends_with(b"\n") {
        new.push(b'\n');
    }
    missing.into_iter().for_each(|line| new.extend_from_slice(format!("{line}\n").as_bytes()));
    let dir = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir)?;
    let mut copy = tempfile::NamedTempFile::new_in(dir)?;
    copy.write_all(&new)?;
    if let Ok(old) = fs::metadata(&file) {
        fs::set_permissions(copy.path(), old.permissions())?;
    }
    copy.as_file().sync_all()?;
    copy.persist(&file).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests;

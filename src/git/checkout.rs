//! One worktree: what is in it, written as a git tree, and how paths of it are put back.
//!
//! A snapshot stages everything that is not ignored into an index of its own, so neither the agent's index nor its
//! files are touched. That index begins as a copy of the real one, whose stat data let git skip unchanged files: the
//! cost is that of `git status` plus hashing what changed. The objects stay in the repository; without a ref git may
//! prune them after two weeks, which is longer than any job.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::decode::{self, Change, Difference};
use super::paths::is_noise;
use super::rescue::Rescue;
use super::run::{Call, Ended, Mode, Runner};
use crate::ports::{PathChange, TreeState, WorkspaceError};

/// A worktree that exists and belongs to the repository.
pub(super) struct Checkout<'a> {
    pub(super) run: &'a Runner,
    pub(super) dir: &'a Path,
    pub(super) git_dir: PathBuf,
}

/// An index file of our own.
pub(super) struct ScratchIndex(TempDir);

/// What a worktree holds at one moment.
pub(super) struct Snapshot {
    /// `None` on a branch without commit.
    pub(super) head: Option<String>,
    /// `None` when HEAD is detached.
    pub(super) branch: Option<String>,
    /// Changes against HEAD, without noise.
    pub(super) changes: BTreeMap<Vec<u8>, Change>,
    /// Tree of HEAD with all these changes in it; repositories inside the tree are left out.
    pub(super) tree: String,
    /// The index that `tree` was written from.
    index: ScratchIndex,
}

impl ScratchIndex {
    /// Makes one in the temporary directory; in git's own where there is none that can be written.
    fn new(verb: &'static str, git_dir: &Path) -> Result<Self, WorkspaceError> {
        let made = TempDir::new().or_else(|_| TempDir::with_prefix_in("sp-index-", git_dir));
        made.map(Self).map_err(|source| WorkspaceError::Io { verb, source })
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("index")
    }
}

impl Snapshot {
    /// Returns the snapshot in the words of the port.
    pub(super) fn state(&self, dir: &Path) -> Result<TreeState, WorkspaceError> {
        let changes = self.changes.iter().map(|(path, change)| PathChange {
            path: String::from_utf8_lossy(path).into_owned(),
            untracked: matches!(change, Change::Untracked | Change::Nested),
        });
        let head = self.head.clone().ok_or_else(|| WorkspaceError::NoCommit { path: dir.to_owned() })?;
        let changes = changes.collect();
        Ok(TreeState { head, branch: self.branch.clone(), changes, fingerprint: self.tree.clone() })
    }

    /// Returns the repositories that lie in the tree without being part of it; each path ends with a slash.
    pub(super) fn nested(&self) -> impl Iterator<Item = &[u8]> {
        self.changes.iter().filter(|(_, change)| **change == Change::Nested).map(|(path, _)| path.as_slice())
    }
}

impl<'a> Checkout<'a> {
    /// Finds the git directory of a worktree and checks that it is one of the repository with this common directory.
    pub(super) async fn open(run: &'a Runner, dir: &'a Path, common: &Path) -> Result<Self, WorkspaceError> {
        let gone = || WorkspaceError::NoWorktree { path: dir.to_owned() };
        if !dir.is_dir() {
            return Err(gone());
        }
        let ask = async |what: &str| -> Result<Option<PathBuf>, WorkspaceError> {
            let call = Call::new(Mode::Read, dir, "rev-parse").args(["--path-format=absolute", what]);
            let output = run.output(call).await?;
            let line = PathBuf::from(OsString::from_vec(super::run::without_line_feed(output.stdout)));
            Ok((output.ended == Ended::Code(0)).then_some(line))
        };
        let git_dir = ask("--git-dir").await?.ok_or_else(gone)?;
        let (top, shared) = (ask("--show-toplevel").await?, ask("--git-common-dir").await?);
        if same(top.as_deref(), dir) && same(shared.as_deref(), common) {
            Ok(Self { run, dir, git_dir })
        } else {
            Err(gone())
        }
    }

    pub(super) fn call<'c>(&'c self, mode: Mode, verb: &'static str) -> Call<'c> {
        Call::new(mode, self.dir, verb)
    }

    /// Returns the commit that a revision names; `None` when there is none.
    pub(super) async fn commit_of(&self, revision: &str) -> Result<Option<String>, WorkspaceError> {
        commit_of(self.run, self.dir, revision).await
    }

    /// Returns the short name of the branch; `None` when HEAD is detached.
    async fn branch(&self) -> Result<Option<String>, WorkspaceError> {
        branch(self.run, self.dir).await
    }

    /// Looks at everything in the worktree.
    pub(super) async fn snapshot(&self) -> Result<Snapshot, WorkspaceError> {
        let head = self.commit_of("HEAD").await?;
        let branch = self.branch().await?;
        let index = self.index_of_head(head.as_deref()).await?;
        self.look_at_everything(&index).await?;
        let status = self.call(Mode::Write, "status").index(&index.file()).args([
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=dirty",
        ]);
        let listed = decode::status(&self.run.ok(status).await?)?;
        let changes: BTreeMap<_, _> = listed.into_iter().filter(|(path, _)| !is_noise(path)).collect();
        let gone = changes.iter().filter(|(_, change)| **change == Change::Deleted).map(|(path, _)| path.as_slice());
        self.update_index(&index, &["--force-remove"], gone).await?;
        let kept = changes.iter().filter(|(_, change)| matches!(change, Change::Modified | Change::Untracked));
        self.update_index(&index, &["--add", "--remove", "--replace"], kept.map(|(path, _)| path.as_slice())).await?;
        let tree = self.write_tree(&index).await?;
        Ok(Snapshot { head, branch, changes, tree, index })
    }

    /// Makes an index that equals HEAD and knows what the real one knows of the files on disk.
    async fn index_of_head(&self, head: Option<&str>) -> Result<ScratchIndex, WorkspaceError> {
        let index = ScratchIndex::new("read-tree", &self.git_dir)?;
        let fill = |how: &[&str]| {
            let call = self.call(Mode::Write, "read-tree").config("core.splitIndex=false").index(&index.file());
            how.iter().fold(call, |call, arg| call.arg(arg))
        };
        let Some(head) = head else {
            self.run.ok(fill(&["--empty"])).await?;
            return Ok(index);
        };
        let copied = copy_with_time(&self.git_dir.join("index"), &index.file()).is_ok();
        // `-i` here and below: files that an agent marked as unchanged are not compared, which would fail.
        if !copied || self.run.ok(fill(&["--reset", "-i", head])).await.is_err() {
            // No index, or one that a killed git left broken: slower, since every file is hashed.
            let _ = fs::remove_file(index.file());
            self.run.ok(fill(&[head])).await?;
        }
        Ok(index)
    }

    /// Takes away the marks by which an index tells git not to look at a file.
    async fn look_at_everything(&self, index: &ScratchIndex) -> Result<(), WorkspaceError> {
        let list = self.call(Mode::Read, "ls-files").index(&index.file()).args(["-v", "-z"]);
        let (assumed, skipped) = decode::hidden(&self.run.ok(list).await?);
        // A file that a sparse checkout left out is not deleted.
        let present = skipped.iter().filter(|path| self.stands(path)).map(Vec::as_slice);
        self.update_index(index, &["--no-skip-worktree"], present).await?;
        self.update_index(index, &["--no-assume-unchanged"], assumed.iter().map(Vec::as_slice)).await
    }

    async fn update_index<'p>(
        &self,
        index: &ScratchIndex,
        how: &[&str],
        paths: impl Iterator<Item = &'p [u8]>,
    ) -> Result<(), WorkspaceError> {
        let named: Vec<u8> = paths.flat_map(|path| [path, b"\0"]).flatten().copied().collect();
        if named.is_empty() {
            return Ok(());
        }
        let call = how.iter().fold(self.call(Mode::Write, "update-index"), |call, how| call.arg(how));
        self.run.ok(call.args(["-z", "--stdin"]).index(&index.file()).stdin(&named)).await.map(drop)
    }

    async fn write_tree(&self, index: &ScratchIndex) -> Result<String, WorkspaceError> {
        self.run.line(self.call(Mode::Write, "write-tree").index(&index.file())).await.map(text)
    }

    /// Returns whether a path is there, not through a symbolic link, and not as a directory.
    fn stands(&self, path: &[u8]) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        let real_directory = |part: &Path| self.dir.join(part).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        path.ancestors().skip(1).all(real_directory)
            && self.dir.join(path).symlink_metadata().is_ok_and(|meta| !meta.is_dir())
    }

    /// Returns the paths that differ between two trees or commits; a rename is two paths.
    pub(super) async fn differences(&self, from: &str, to: &str) -> Result<Vec<Difference>, WorkspaceError> {
        let call = self.call(Mode::Read, "diff-tree");
        let call =
            call.args(["-r", "--raw", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules=none", from, to]);
        decode::differences(&self.run.ok(call).await?)
    }

    /// Writes a tree with some paths as the differences have them on their `to` side.
    pub(super) async fn tree_with(&self, tree: &str, changes: &[Difference]) -> Result<String, WorkspaceError> {
        if changes.is_empty() {
            return Ok(tree.to_owned());
        }
        let index = ScratchIndex::new("update-index", &self.git_dir)?;
        self.run.ok(self.call(Mode::Write, "read-tree").index(&index.file()).arg(tree)).await?;
        let mut lines = Vec::new();
        // Removals first: a file may take the place of a directory.
        let (gone, set): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.to.is_absent());
        for change in gone.into_iter().chain(set) {
            lines.extend_from_slice(format!("{} {}\t", change.to.mode, change.to.object).as_bytes());
            lines.extend_from_slice(&change.path);
            lines.push(0);
        }
        let call = self.call(Mode::Write, "update-index").index(&index.file()).args(["-z", "--index-info"]);
        self.run.ok(call.stdin(&lines)).await?;
        self.write_tree(&index).await
    }

    /// Saves the whole worktree under the rescue ref, then puts the paths that `which` selects back to what they are
    /// in `to`. Returns those paths. git refuses, and nothing is lost, when a file changes in the meantime.
    pub(super) async fn put_back(
        &self,
        snap: &mut Snapshot,
        to: &str,
        which: impl Fn(&Difference) -> bool,
        rescue: &Rescue<'_>,
        parents: &[&str],
    ) -> Result<Vec<Vec<u8>>, WorkspaceError> {
        let mut undo = self.differences(&snap.tree, to).await?;
        undo.retain(&which);
        // Files that are ignored now and were not then stand in the way; they are saved like all others.
        let in_the_way: Vec<_> =
            undo.iter().filter(|change| change.from.is_absent() && self.stands(&change.path)).collect();
        if !in_the_way.is_empty() {
            self.update_index(&snap.index, &["--add"], in_the_way.iter().map(|change| change.path.as_slice())).await?;
            snap.tree = self.write_tree(&snap.index).await?;
            undo = self.differences(&snap.tree, to).await?;
            undo.retain(&which);
        }
        rescue.save(self, &snap.tree, parents).await?;
        let target = self.tree_with(&snap.tree, &undo).await?;
        let refresh = self.call(Mode::Write, "update-index").index(&snap.index.file()).args(["-q", "--refresh"]);
        self.run.output(refresh).await?; // its exit status only says that some file differs
        let step = self.call(Mode::Write, "read-tree").index(&snap.index.file());
        self.run.ok(step.args(["-m", "-u", &snap.tree, &target])).await?;
        snap.tree = target;
        Ok(undo.into_iter().map(|change| change.path).collect())
    }

    /// Makes the worktree's real index hold a tree, without touching files. Whatever was staged is not any more.
    pub(super) async fn set_index(&self, tree: &str) -> Result<(), WorkspaceError> {
        self.run.ok(self.call(Mode::Write, "read-tree").args(["--reset", "-i", tree])).await?;
        self.run.output(self.call(Mode::Write, "update-index").args(["-q", "--refresh"])).await.map(drop)
    }
}

/// Returns the commit that a revision names in a repository; `None` when there is none.
pub(super) async fn commit_of(run: &Runner, dir: &Path, revision: &str) -> Result<Option<String>, WorkspaceError> {
    let call = Call::new(Mode::Read, dir, "rev-parse").args(["--verify", "--quiet", "--end-of-options"]);
    let output = run.output(call.arg(format!("{revision}^{{commit}}"))).await?;
    match output.ended {
        Ended::Code(0) => Ok(Some(text(super::run::without_line_feed(output.stdout)))),
        Ended::Code(1) => Ok(None),
        _ => Err(output.failed()),
    }
}

/// Returns the short name of the branch that a checkout is on; `None` when its HEAD is detached.
pub(super) async fn branch(run: &Runner, dir: &Path) -> Result<Option<String>, WorkspaceError> {
    let output = run.output(Call::new(Mode::Read, dir, "symbolic-ref").args(["--quiet", "HEAD"])).await?;
    match output.ended {
        Ended::Code(0) => {
            let name = text(super::run::without_line_feed(output.stdout));
            Ok(Some(name.strip_prefix("refs/heads/").map_or(name.clone(), str::to_owned)))
        }
        Ended::Code(1) => Ok(None),
        _ => Err(output.failed()),
    }
}

/// Copies an index with its time: git compares that with the times of files to know which it must read again.
fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(fs::metadata(from)?.modified()?)
}

pub(super) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

fn same(found: Option<&Path>, expected: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    found.is_some_and(|found| real(found).is_some() && real(found) == real(expected))
}

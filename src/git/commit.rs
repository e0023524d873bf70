//! The commit of a writer's turn.
//!
//! Everything is decided on trees: the tree of the worktree, less what the writer may not change, less the files of
//! sp and bd, each put back to what it was before the turn. So the agent's own commits and what it left uncommitted
//! are judged alike, and the same request after a crash comes to the same answer.

use sha2::{Digest, Sha256};

use super::checkout::{Checkout, Snapshot};
use super::decode::Difference;
use super::lock;
use super::paths::{Allowed, as_text, is_noise};
use super::rescue::Rescue;
use super::run::{Call, Ended, HOOK_DEADLINE, Mode, Output, tail, without_line_feed};
use crate::ports::{Commit, CommitRequest, WorkspaceError};

/// Commits that one request may need: one, and one more for what a formatting hook changed.
const PASSES: usize = 2;

/// Bytes of a hook's output that are kept.
const HOOK_OUTPUT: usize = 16_000;

/// Files in the git directory that stand for an operation begun and not ended.
const UNFINISHED: [(&str, &str); 5] = [
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
];

/// One request at work.
pub(super) struct Turn<'a> {
    checkout: Checkout<'a>,
    request: &'a CommitRequest,
    allowed: Allowed,
    rescue: Rescue<'a>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(checkout: Checkout<'a>, request: &'a CommitRequest) -> Result<Self, WorkspaceError> {
        let allowed = Allowed::of(request)?;
        Ok(Self { checkout, request, allowed, rescue: Rescue { name: &request.rescue_ref, key: key(request) } })
    }

    pub(super) async fn commit(&self) -> Result<Commit, WorkspaceError> {
        let before = self.request.before.as_str();
        lock::clear(&self.checkout, HOOK_DEADLINE).await?;
        if let Some(found) = self.off_branch().await? {
            return Ok(Commit::OffBranch { found });
        }
        if let Some(output) = self.unfinished().await? {
            return Ok(Commit::HookRefused { output });
        }
        for pass in 1..=PASSES {
            let (snap, wanted) = self.prepare().await?;
            if Some(wanted.as_str()) == self.tree_of_head().await?.as_deref() {
                break;
            }
            let output = self.run_commit().await?;
            if output.ended == Ended::Code(0) {
                self.drop_what_hooks_added().await?;
                continue;
            }
            let formatted = self.checkout.snapshot().await?.tree != snap.tree;
            if !formatted || pass == PASSES {
                return self.refused_by_hook(&output).await;
            }
        }
        let head = self.checkout.commit_of("HEAD").await?.unwrap_or_default();
        let changed = self.checkout.differences(before, &head).await?;
        let paths = as_text(changed.iter().map(|change| change.path.as_slice()).filter(|path| !is_noise(path)));
        let refused = self.refused().await?;
        if paths.is_empty() { Ok(Commit::Nothing { refused }) } else { Ok(Commit::Made { head, paths, refused }) }
    }

    /// Returns where HEAD is when it is not on the branch, or has left what was there before the turn.
    async fn off_branch(&self) -> Result<Option<String>, WorkspaceError> {
        let branch = super::checkout::branch(self.checkout.run, self.checkout.dir).await?;
        let Some(head) = self.checkout.commit_of("HEAD").await? else {
            return Ok(Some(branch.unwrap_or_default()));
        };
        match branch {
            None => Ok(Some(head)),
            Some(branch) if branch != self.request.branch => Ok(Some(branch)),
            Some(_) => {
                let call = self.checkout.call(Mode::Read, "merge-base");
                let output =
                    self.checkout.run.output(call.args(["--is-ancestor", &self.request.before, &head])).await?;
                match output.ended {
                    Ended::Code(0) => Ok(None),
                    Ended::Code(1) => Ok(Some(head)),
                    _ => Err(output.failed()),
                }
            }
        }
    }

    /// Returns what the agent began and did not end: git would make another commit of it than the one we mean.
    async fn unfinished(&self) -> Result<Option<String>, WorkspaceError> {
        let begun = UNFINISHED.iter().find(|(file, _)| self.checkout.git_dir.join(file).exists());
        let unmerged = self.checkout.run.output(self.checkout.call(Mode::Read, "ls-files").args(["-u", "-z"])).await?;
        let conflicts = as_text(
            super::decode::records(&unmerged.stdout)
                .filter_map(|record| record.iter().position(|&byte| byte == b'\t').map(|tab| &record[tab + 1..])),
        );
        let what = match (begun, conflicts.is_empty()) {
            (None, true) => return Ok(None),
            (Some((_, what)), _) => format!("an unfinished {what}"),
            (None, false) => "conflicts that are not marked as resolved".to_owned(),
        };
        let paths = if conflicts.is_empty() { String::new() } else { format!(": {}", conflicts.join(", ")) };
        Ok(Some(format!("the worktree holds {what}{paths}; finish or abort it, then the turn can be committed")))
    }

    /// Undoes what the writer may not change and stages the rest. Returns what is in the tree then, and the tree to
    /// commit.
    async fn prepare(&self) -> Result<(Snapshot, String), WorkspaceError> {
        let before = self.request.before.as_str();
        let mut snap = self.checkout.snapshot().await?;
        let foreign = |change: &Difference| self.is_foreign(change);
        if self.checkout.differences(&snap.tree, before).await?.iter().any(foreign) {
            let head = snap.head.clone().unwrap_or_default();
            self.checkout.put_back(&mut snap, before, foreign, &self.rescue, &[&head]).await?;
        }
        let mut noise = self.checkout.differences(&snap.tree, before).await?;
        noise.retain(|change| is_noise(&change.path));
        let wanted = self.checkout.tree_with(&snap.tree, &noise).await?;
        self.checkout.set_index(&wanted).await?;
        Ok((snap, wanted))
    }

    /// Judges a change between the worktree (`from`) and what was there before the turn (`to`).
    fn is_foreign(&self, change: &Difference) -> bool {
        let adds_repository = change.from.is_gitlink() && !change.to.is_gitlink();
        !is_noise(&change.path) && (adds_repository || !self.allowed.permits(&change.path))
    }

    async fn tree_of_head(&self) -> Result<Option<String>, WorkspaceError> {
        let call = self.checkout.call(Mode::Read, "rev-parse").args(["--verify", "--quiet", "HEAD^{tree}"]);
        let output = self.checkout.run.output(call).await?;
        let found = output.ended == Ended::Code(0);
        Ok(found.then(|| super::checkout::text(without_line_feed(output.stdout))))
    }

    async fn run_commit(&self) -> Result<Output, WorkspaceError> {
        let call = self.signed(self.checkout.call(Mode::Hooks, "commit")).await?;
        let call = call.args(["--quiet", "--cleanup=whitespace", "-F", "-"]);
        self.checkout.run.output(call.stdin(self.request.message.as_bytes())).await
    }

    /// Lends sp's identity where the user has configured none.
    async fn signed<'c>(&self, mut call: Call<'c>) -> Result<Call<'c>, WorkspaceError> {
        for (key, fallback) in [("user.name", "sp"), ("user.email", "sp@localhost")] {
            let ask = self.checkout.call(Mode::Read, "config").args(["--get", key]);
            if self.checkout.run.output(ask).await?.stdout.trim_ascii().is_empty() {
                call = call.config(&format!("{key}={fallback}"));
            }
        }
        Ok(call)
    }

    /// Takes out of the commit just made what the writer did not: a hook may stage bd's export, or format files that
    /// the writer may not touch. The files stay as the hook left them, for the next pass to judge.
    async fn drop_what_hooks_added(&self) -> Result<(), WorkspaceError> {
        let before = self.request.before.as_str();
        let Some(head) = self.tree_of_head().await? else { return Ok(()) };
        let mut added = self.checkout.differences(&head, before).await?;
        added.retain(|change| is_noise(&change.path) || self.is_foreign(change));
        if added.is_empty() {
            return Ok(());
        }
        self.checkout.set_index(&self.checkout.tree_with(&head, &added).await?).await?;
        let call = self.signed(self.checkout.call(Mode::Write, "commit")).await?;
        self.checkout.run.ok(call.args(["--amend", "--no-edit", "--allow-empty", "--quiet"])).await.map(drop)
    }

    async fn refused_by_hook(&self, output: &Output) -> Result<Commit, WorkspaceError> {
        self.checkout.set_index("HEAD").await?;
        if !matches!(output.ended, Ended::Code(1) | Ended::Deadline) {
            return Err(output.failed()); // git itself: a full disk, a broken object, a key that can't sign
        }
        let printed = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        let mut text = String::from_utf8_lossy(tail(&printed, HOOK_OUTPUT)).into_owned();
        if output.ended == Ended::Deadline {
            text.push_str(&format!("\nsp stopped the hook after {} s", HOOK_DEADLINE.as_secs()));
        }
        let refused = self.refused().await?;
        if !refused.is_empty() {
            text.push_str(&format!(
                "\nsp undid changes outside the allowed paths and keeps them under {}: {}",
                self.request.rescue_ref,
                refused.join(", ")
            ));
        }
        Ok(Commit::HookRefused { output: text })
    }

    /// Returns the paths that this request has undone, also before a crash, and the repositories it left alone.
    async fn refused(&self) -> Result<Vec<String>, WorkspaceError> {
        let mut refused = Vec::new();
        for tree in self.rescue.trees(&self.checkout).await? {
            let changes = self.checkout.differences(&tree, &self.request.before).await?;
            refused.extend(changes.into_iter().filter(|change| self.is_foreign(change)).map(|change| change.path));
        }
        let snap = self.checkout.snapshot().await?;
        refused.extend(snap.nested().map(<[u8]>::to_vec));
        Ok(as_text(refused.iter().map(Vec::as_slice)))
    }
}

/// Returns what tells one request from all others; the message holds the turn.
fn key(request: &CommitRequest) -> String {
    let mut hash = Sha256::new();
    for part in [&request.branch, &request.before, &request.message].into_iter().chain(&request.allowed) {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;

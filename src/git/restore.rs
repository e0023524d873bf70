//! Puts a worktree back after a job that should not have changed it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::checkout::{Checkout, Snapshot};
use super::lock;
use super::paths::{as_text, is_noise};
use super::rescue::Rescue;
use super::run::{Ended, Mode};
use crate::ports::{Restored, TreeState, WorkspaceError};

/// How long a git of the agent's that still runs is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// Operations whose state files are forgotten; git leaves tree and index alone then.
const QUIT: [(&str, &str); 6] = [
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("rebase-merge", "rebase"),
    ("rebase-apply/rebasing", "rebase"),
    ("rebase-apply/applying", "am"),
];

/// Puts HEAD, branch and files back to `before`; what was there is saved under the rescue ref and read back first.
/// A crash at any point leaves a tree from which the same call goes on.
pub(super) async fn restore(
    checkout: &Checkout<'_>,
    common: &Path,
    before: &TreeState,
    rescue_ref: &str,
) -> Result<Option<Restored>, WorkspaceError> {
    lock::clear(checkout, PATIENCE).await?;
    let mut snap = checkout.snapshot().await?;
    if snap.head.is_some() && snap.state(checkout.dir)? == *before {
        if quit(checkout).await? {
            checkout.set_index(&before.head).await?;
        }
        return Ok(None);
    }
    for object in [format!("{}^{{commit}}", before.head), format!("{}^{{tree}}", before.fingerprint)] {
        checkout.run.ok(checkout.call(Mode::Read, "cat-file").args(["-e", &object])).await?;
    }
    let tip = match &before.branch {
        Some(branch) => checkout.commit_of(&format!("refs/heads/{branch}")).await?,
        None => None,
    };
    let mut parents: Vec<String> = Vec::new();
    for commit in snap.head.iter().chain(&tip).chain([&before.head]) {
        if !parents.contains(commit) {
            parents.push(commit.clone());
        }
    }
    let parents: Vec<_> = parents.iter().map(String::as_str).collect();
    let rescue = Rescue { name: rescue_ref, key: format!("restore {}", before.head) };
    let moved = new_repositories(&snap, before);
    put_aside(checkout, common, rescue_ref, &moved)?;
    let what = |change: &super::decode::Difference| !is_noise(&change.path);
    let mut undone = checkout.put_back(&mut snap, &before.fingerprint, what, &rescue, &parents).await?;
    undone.extend(moved);
    put_head_back(checkout, before, tip.as_deref()).await?;
    checkout.set_index(&before.head).await?;
    let now = checkout.snapshot().await?;
    if (now.head.as_ref(), &now.branch, &now.tree) == (Some(&before.head), &before.branch, &before.fingerprint) {
        Ok(Some(Restored { paths: as_text(undone.iter().map(Vec::as_slice)), rescue_ref: rescue_ref.to_owned() }))
    } else {
        let reason = format!("the worktree did not come back to what it was; all of it is under {rescue_ref}");
        Err(WorkspaceError::Failed { verb: "read-tree", reason })
    }
}

/// Forgets operations that were begun and not ended; returns whether there were any.
async fn quit(checkout: &Checkout<'_>) -> Result<bool, WorkspaceError> {
    let mut any = false;
    for (file, verb) in QUIT {
        if checkout.git_dir.join(file).exists() {
            checkout.run.ok(checkout.call(Mode::Write, verb).arg("--quit")).await?;
            any = true;
        }
    }
    Ok(any)
}

async fn put_head_back(checkout: &Checkout<'_>, before: &TreeState, tip: Option<&str>) -> Result<(), WorkspaceError> {
    quit(checkout).await?;
    let update = || checkout.call(Mode::Write, "update-ref").args(["-m", "sp: put back"]);
    let Some(branch) = &before.branch else {
        return checkout.run.ok(update().args(["--no-deref", "HEAD", &before.head])).await.map(drop);
    };
    let name = format!("refs/heads/{branch}");
    if tip != Some(before.head.as_str()) {
        // The old value makes it a compare-and-swap: an agent's process that still commits is not overrun.
        checkout.run.ok(update().args([&name, &before.head, tip.unwrap_or_default()])).await?;
    }
    let on_it = checkout.run.output(checkout.call(Mode::Read, "symbolic-ref").args(["--quiet", "HEAD"])).await?;
    if on_it.ended != Ended::Code(0) || on_it.stdout.trim_ascii_end() != name.as_bytes() {
        checkout.run.ok(checkout.call(Mode::Write, "symbolic-ref").args(["HEAD", &name])).await?;
    }
    Ok(())
}

fn new_repositories(snap: &Snapshot, before: &TreeState) -> Vec<Vec<u8>> {
    let known = |path: &[u8]| before.changes.iter().any(|change| change.path == String::from_utf8_lossy(path));
    snap.nested().filter(|path| !known(path)).map(<[u8]>::to_vec).collect()
}

/// Moves repositories that an agent made inside the tree to `<common git dir>/sp-rescue/<job>/<path>`: a git tree
/// can't hold them.
fn put_aside(
    checkout: &Checkout<'_>,
    common: &Path,
    rescue_ref: &str,
    paths: &[Vec<u8>],
) -> Result<(), WorkspaceError> {
    let shelf = common.join("sp-rescue").join(rescue_ref.trim_start_matches("refs/sp/rescue/"));
    for path in paths {
        let path = Path::new(OsStr::from_bytes(path.strip_suffix(b"/").unwrap_or(path)));
        let free = |number: usize| -> PathBuf { shelf.join(number.to_string()).join(path) };
        let place = (0..).map(free).find(|place| place.symlink_metadata().is_err()).unwrap_or_else(|| free(0));
        fs::create_dir_all(place.parent().unwrap_or(&shelf))
            .and_then(|()| fs::rename(checkout.dir.join(path), &place))
            .map_err(|source| WorkspaceError::Io { verb: "read-tree", source })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

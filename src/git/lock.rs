//! What a killed git left behind in a worktree: lock files, and an index cut short.
//!
//! sp holds the lease of a worktree before it writes there and the agent's session is over, so a lock has no rightful
//! owner but a git that still runs: one of the agent's, or the commit of an sp that was killed, which may be in its
//! hooks. Such a git has its working directory in the worktree. It is waited for; a lock without one is put aside, and
//! so is an index that git can't read: it holds nothing that a snapshot of the files doesn't.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::checkout::Checkout;
use super::run::{Ended, Mode};
use crate::ports::WorkspaceError;

const LOCKS: [&str; 2] = ["index.lock", "HEAD.lock"];
const POLL: Duration = Duration::from_millis(100);

/// Waits until no git works in the worktree while it is locked, then puts what is left over aside as `<name>.left`.
pub(super) async fn clear(checkout: &Checkout<'_>, patience: Duration) -> Result<(), WorkspaceError> {
    let until = Instant::now() + patience;
    for name in LOCKS {
        let lock = checkout.git_dir.join(name);
        while lock.symlink_metadata().is_ok() {
            match working_in(checkout.dir) {
                Some(pid) if Instant::now() >= until => {
                    let reason = format!("{name} is held by a git that still runs in the worktree (pid {pid})");
                    return Err(WorkspaceError::Failed { verb: "commit", reason });
                }
                Some(_) => sleep(POLL).await,
                None => put_aside(&lock)?,
            }
        }
    }
    let probe =
        checkout.run.output(checkout.call(Mode::Read, "ls-files").args(["--cached", "-z", "--", ":/no such path"]));
    let probe = probe.await?;
    if probe.ended == Ended::Code(0) {
        return Ok(());
    }
    // git says "index file", "bad index" or "index uses", all of them about this file.
    if !String::from_utf8_lossy(&probe.stderr).contains("index") {
        return Err(probe.failed());
    }
    put_aside(&checkout.git_dir.join("index"))
}

fn put_aside(file: &Path) -> Result<(), WorkspaceError> {
    let mut place = file.as_os_str().to_owned();
    place.push(".left");
    match fs::rename(file, place) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(WorkspaceError::Io { verb: "commit", source }),
        _ => Ok(()),
    }
}

/// Returns the pid of a git whose working directory is in the worktree.
fn working_in(dir: &Path) -> Option<i32> {
    let dir = dir.canonicalize().ok()?;
    procfs::process::all_processes().ok()?.flatten().find_map(|process| {
        let is_git = process.stat().is_ok_and(|stat| stat.comm == "git");
        (is_git && process.cwd().is_ok_and(|cwd| cwd.starts_with(&dir))).then_some(process.pid)
    })
}

//! The lock around each bd process of a workspace, across processes.
//!
//! bd's own queue is unfair (tails of 10–20 s), an outer lock cuts the tail to one call a waiter (beads.md §13.1). It
//! serves latency, and one thing more: a bd outlives an sp that is killed, and the next sp must not look whether a note
//! is there while the bd that appends it is still at work. So the bd holds the lock itself, as its standard input.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// The workspace is ours until this is dropped, and so is every copy that [`Held::share`] gave away.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
}

impl Held {
    /// Returns the lock for a child, which holds it until it ends. The file is empty, so it reads as nothing.
    pub(super) fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

/// Takes the lock at `path`; `None` when it was not free within `patience`.
///
/// A turnstile file beside it keeps two processes fair: who waits holds the turnstile, so a process that has just
/// released the lock queues behind, although the kernel would let it take the lock again at once.
pub(super) async fn acquire(path: &Path, patience: Duration) -> io::Result<Option<Held>> {
    let waited = timeout(patience, async {
        let turnstile = lock(open(&turnstile_of(path))?).await?;
        let file = lock(open(path)?).await?;
        drop(turnstile);
        Ok(Held { file })
    });
    waited.await.ok().transpose()
}

fn turnstile_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".next");
    name.into()
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Locks a file. Who stops waiting leaves nothing behind: the lock is let go as soon as it comes.
async fn lock(file: File) -> io::Result<File> {
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(source)) => return Err(source),
    }
    let (give, take) = oneshot::channel();
    // A thread of its own: one of the runtime's pool would keep the runtime from ending for as long as it waits.
    thread::Builder::new().name("bd-lock".to_owned()).spawn(move || {
        let locked = file.lock().map(|()| file);
        // The asker may be gone; the file is closed then, which unlocks it.
        let _ = give.send(locked);
    })?;
    take.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn a_held_lock_is_not_given_twice_and_is_free_after_the_drop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bd.lock");
        let held = acquire(&path, LONG).await.unwrap().expect("nobody holds it");
        // A second opening is a second owner, as another process would be.
        assert!(matches!(open(&path).unwrap().try_lock(), Err(TryLockError::WouldBlock)));
        assert!(acquire(&path, Duration::ZERO).await.unwrap().is_none());
        drop(held);
        assert!(acquire(&path, LONG).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_child_that_shares_the_lock_holds_it_when_its_parent_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bd.lock");
        let held = acquire(&path, LONG).await.unwrap().expect("nobody holds it");
        let mut child = std::process::Command::new("sleep").arg("1000").stdin(held.share().unwrap()).spawn().unwrap();
        drop(held);
        assert!(acquire(&path, Duration::ZERO).await.unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(acquire(&path, LONG).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_waiter_holds_the_turnstile_so_that_the_last_holder_queues_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bd.lock");
        let held = acquire(&path, LONG).await.unwrap().expect("nobody holds it");
        let mut waiter = std::pin::pin!(acquire(&path, LONG));
        // One poll brings the waiter to the lock itself.
        tokio::select! { biased; _ = &mut waiter => panic!("given twice"), () = std::future::ready(()) => {} }
        assert!(matches!(open(&turnstile_of(&path)).unwrap().try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        assert!(waiter.await.unwrap().is_some());
        assert!(acquire(&turnstile_of(&path), LONG).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_folder_that_is_missing_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(acquire(&folder.path().join("none/bd.lock"), LONG).await.is_err());
    }
}

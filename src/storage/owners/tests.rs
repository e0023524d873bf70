use std::sync::Barrier;
use std::thread;

use tempfile::tempdir;

use super::*;
use crate::storage::connection::in_memory;
use crate::storage::read::Reader;
use crate::storage::sample::process;
use crate::storage::writer::Writer;

fn lease() -> Resource {
    Resource::Worktree("/repo/.worktrees/p 1".into())
}

fn take_as(pid: u32, is_alive: impl Fn(&ProcessIdentity) -> bool + Send + 'static) -> TakeOwnership {
    TakeOwnership { resource: lease(), me: process(pid), at_ms: 5, is_alive: Box::new(is_alive) }
}

#[test]
fn a_live_holder_is_respected_and_a_dead_one_is_followed_under_a_higher_epoch() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    assert_eq!(take_as(1, |_| true).apply(&tx).unwrap(), Ownership::Owned { epoch: 1 });
    assert_eq!(take_as(1, |_| false).apply(&tx).unwrap(), Ownership::Owned { epoch: 1 }, "the holder itself");
    let held = OwnerRow { resource: lease().to_string(), epoch: 1, holder: Some(process(1)), taken_at_ms: 5 };
    assert_eq!(take_as(2, |_| true).apply(&tx).unwrap(), Ownership::HeldBy(held));
    assert_eq!(take_as(2, |holder| holder.pid != 1).apply(&tx).unwrap(), Ownership::Owned { epoch: 2 });
    let reused = ProcessIdentity { start_ticks: 78, ..process(2) };
    let reborn = TakeOwnership { me: reused, ..take_as(2, |_| false) };
    assert_eq!(reborn.apply(&tx).unwrap(), Ownership::Owned { epoch: 3 }, "the same pid is not the same process");
}

#[test]
fn only_the_holder_releases_and_the_epoch_never_goes_back() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    let release = |pid, epoch| ReleaseOwnership { resource: lease(), me: process(pid), epoch }.apply(&tx).unwrap();
    assert_eq!(release(1, 1), Released::NotHeld);
    take_as(1, |_| true).apply(&tx).unwrap();
    assert_eq!((release(2, 1), release(1, 2)), (Released::NotHeld, Released::NotHeld));
    assert_eq!(held(&tx).unwrap().len(), 1);
    assert_eq!((release(1, 1), release(1, 1)), (Released::Released, Released::NotHeld));
    assert_eq!((held(&tx).unwrap(), held_epoch(&tx, &lease()).unwrap()), (vec![], None));
    assert_eq!(take_as(1, |_| true).apply(&tx).unwrap(), Ownership::Owned { epoch: 2 });
    assert_eq!(held_epoch(&tx, &lease()).unwrap(), Some(2));
}

#[test]
fn kinds_of_resources_do_not_meet() {
    let mut connection = in_memory();
    let tx = connection.transaction().unwrap();
    for resource in [Resource::Chain("x".into()), Resource::Worktree("x".into())] {
        let taken = TakeOwnership { resource, ..take_as(1, |_| true) }.apply(&tx).unwrap();
        assert_eq!(taken, Ownership::Owned { epoch: 1 });
    }
}

/// Lets eight writers on one file, as eight processes have them, ask at once; returns the epochs that were given.
fn race(path: &std::path::Path, first_pid: u32, is_alive: fn(&ProcessIdentity) -> bool) -> Vec<u32> {
    let start = Barrier::new(8);
    thread::scope(|scope| {
        let takers: Vec<_> = (first_pid..first_pid + 8)
            .map(|pid| {
                let start = &start;
                scope.spawn(move || {
                    let writer = Writer::start(path, 1).unwrap();
                    start.wait();
                    writer.call(take_as(pid, is_alive)).unwrap()
                })
            })
            .collect();
        let answers = takers.into_iter().map(|taker| taker.join().unwrap());
        answers
            .filter_map(|answer| match answer {
                Ownership::Owned { epoch } => Some(epoch),
                Ownership::HeldBy(_) => None,
            })
            .collect()
    })
}

#[test]
fn of_many_at_once_one_gets_it() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("x.db");
    assert_eq!(race(&path, 100, |_| true), [1]);
    // All hundreds have died; those of the second round respect each other.
    assert_eq!(race(&path, 200, |holder| holder.pid >= 200), [2]);
    let owner = Reader::open(&path).unwrap().owner(&lease()).unwrap().unwrap();
    assert_eq!(owner.epoch, 2);
    assert!(owner.holder.is_some_and(|holder| holder.pid >= 200));
}

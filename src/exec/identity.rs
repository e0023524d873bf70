//! Which process is meant: a pid alone is reused, a pid with its start time is not.

use std::fs;

use procfs::process::Process;
use procfs::{ProcError, ProcResult};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::ports::ExecError;

/// Names one process of this machine, for rows that say who owns something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// Random id of the machine's current boot; a process of another boot is gone.
    pub boot_id: String,
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub started: u64,
}

/// Returns the identity of the running process.
pub fn this_process() -> Result<ProcessId, ExecError> {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(ExecError::Look)?;
    let stat = Process::myself().and_then(|me| me.stat()).map_err(looked)?;
    Ok(ProcessId { boot_id: boot_id.trim().to_owned(), pid: std::process::id(), started: stat.starttime })
}

/// Returns whether the process that got `pid` at `started` (clock ticks since boot) still runs.
///
/// A zombie is dead. A process that can't be looked at counts as alive: taking work over from one that lives does more
/// harm than waiting. Only valid for identities of the current boot.
pub fn is_alive(pid: u32, started: u64) -> bool {
    let Some(pid) = raw(pid) else { return false };
    match Process::new(pid).and_then(|process| process.stat()) {
        Ok(stat) => stat.starttime == started && !is_dead_state(stat.state),
        // Where /proc is mounted with hidepid, another user's process looks absent; the signal tells them apart.
        Err(ProcError::NotFound(_)) => Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid) == Err(Errno::PERM)),
        Err(_) => true,
    }
}

/// Returns the start time of a process, in clock ticks since boot.
pub(super) fn started(pid: u32) -> ProcResult<u64> {
    let pid = raw(pid).ok_or(ProcError::NotFound(None))?;
    Ok(Process::new(pid)?.stat()?.starttime)
}

/// Returns whether a state letter of `/proc/PID/stat` means that the process will never run again.
pub(super) fn is_dead_state(state: char) -> bool {
    matches!(state, 'Z' | 'X' | 'x')
}

/// Returns a pid in the kernel's own type; `None` for what can't be one.
pub(super) fn raw(pid: u32) -> Option<i32> {
    i32::try_from(pid).ok().filter(|pid| *pid > 0)
}

pub(super) fn looked(error: ProcError) -> ExecError {
    ExecError::Look(match error {
        ProcError::Io(source, _) => source,
        other => std::io::Error::other(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_its_pid_with_another_start_time_is_not() {
        let me = this_process().unwrap();
        assert!(is_alive(me.pid, me.started));
        assert!(!is_alive(me.pid, me.started + 1));
        assert_eq!(me.boot_id.len(), 36);
    }

    #[test]
    fn a_zombie_is_dead() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let started = started(child.id()).unwrap();
        assert!(is_alive(child.id(), started));
        let pid = Pid::from_child(&child);
        child.kill().unwrap();
        // Returns once the child is dead, and leaves it a zombie.
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
        assert!(!is_alive(child.id(), started));
        child.wait().unwrap();
        assert!(!is_alive(child.id(), started));
    }

    #[test]
    fn numbers_that_are_no_pid_are_not_alive() {
        for pid in [0, u32::MAX, i32::MAX as u32] {
            assert!(!is_alive(pid, 0), "{pid}");
        }
    }
}

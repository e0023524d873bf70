//! Finds processes by the marks that sp puts into their environment, never by name.
//!
//! A tool that left its process group (`setsid`) still carries the environment it was started with. The marks are
//! matched in full, so neither the user's own agents nor those of another repository are ever meant.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use procfs::process::{Process, all_processes};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::identity::{is_dead_state, looked, raw};
use crate::ids::JobId;
use crate::ports::ExecError;

/// Variable that holds the id of the job a process was started for.
pub const JOB_VARIABLE: &str = "SP_JOB_ID";
/// Variable that holds the root of the repository a process was started for.
pub const ROOT_VARIABLE: &str = "SP_ROOT";

/// How often processes are looked for that were started while others were ended. A killed one may be seen once more.
const SWEEPS: u32 = 10;

/// A living process that carries sp's marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub started: u64,
    /// The job it was started for.
    pub job: JobId,
}

/// Returns the living processes marked with `job` (any job if `None`) and `root` (any repository if `None`).
///
/// This process is never among them, though it is marked when an agent runs `sp`. Processes whose environment may not
/// be read belong to another user and are left out. Reads all of /proc: some milliseconds, blocking.
pub fn find_marked(job: Option<&JobId>, root: Option<&Path>) -> Result<Vec<Marked>, ExecError> {
    let me = std::process::id();
    let processes = all_processes().map_err(looked)?;
    Ok(processes
        .filter_map(|process| marked(&process.ok()?))
        .filter(|(found, at)| {
            found.pid != me
                && job.is_none_or(|job| *job == found.job)
                && root.is_none_or(|root| at.as_deref() == Some(root.as_os_str()))
        })
        .map(|(found, _)| found)
        .collect())
}

/// Ends (KILL) the process that got `pid` at `started`; returns whether a signal was sent.
///
/// The process is held by a descriptor before its start time is compared, so its number can't pass on in between.
pub fn end_process(pid: u32, started: u64) -> Result<bool, ExecError> {
    let Some(pid) = raw(pid).and_then(Pid::from_raw) else { return Ok(false) };
    let held = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(held) => held,
        Err(Errno::SRCH) => return Ok(false),
        Err(errno) => return Err(ExecError::Look(errno.into())),
    };
    let same = Process::new(pid.as_raw_nonzero().get())
        .and_then(|process| process.stat())
        .is_ok_and(|stat| stat.starttime == started && !is_dead_state(stat.state));
    if !same {
        return Ok(false);
    }
    match pidfd_send_signal(held, Signal::KILL) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(errno) => Err(ExecError::Look(errno.into())),
    }
}

/// Ends every living process of one repository whose job is meant, and those that they start meanwhile.
///
/// Reads all of /proc at least once: some milliseconds, blocking.
pub fn end_marked(root: &Path, is_meant: impl Fn(&JobId) -> bool) -> Result<(), ExecError> {
    for _ in 0..SWEEPS {
        let found = find_marked(None, Some(root))?;
        let mut meant = found.into_iter().filter(|found| is_meant(&found.job)).peekable();
        if meant.peek().is_none() {
            break;
        }
        for found in meant {
            tracing::info!(job = %found.job, pid = found.pid, "a process that outlived its session is ended");
            end_process(found.pid, found.started)?;
        }
    }
    Ok(())
}

/// Returns what the marks of one process say; `None` when it has none, ended meanwhile or may not be read.
fn marked(process: &Process) -> Option<(Marked, Option<OsString>)> {
    let mut environment: HashMap<OsString, OsString> = process.environ().ok()?;
    let job = environment.remove(OsStr::new(JOB_VARIABLE))?.into_string().ok()?;
    let stat = process.stat().ok()?;
    if is_dead_state(stat.state) {
        return None;
    }
    let pid = u32::try_from(process.pid()).ok()?;
    let root = environment.remove(OsStr::new(ROOT_VARIABLE));
    Some((Marked { pid, started: stat.starttime, job: JobId::new(job) }, root))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::exec::is_alive;

    /// Starts a process with these marks and returns once it runs with them.
    fn start(job: &str, root: &str) -> Child {
        let mut child = Command::new("sh")
            .args(["-c", "echo ready; exec sleep 1000"])
            .env(JOB_VARIABLE, job)
            .env(ROOT_VARIABLE, root)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        child
    }

    fn pids(job: Option<&str>, root: Option<&str>) -> Vec<u32> {
        let job = job.map(JobId::new);
        find_marked(job.as_ref(), root.map(Path::new)).unwrap().into_iter().map(|found| found.pid).collect()
    }

    #[test]
    fn gastown_923_only_processes_of_this_job_and_this_repository_are_meant() {
        let unique = format!("orph{}", std::process::id());
        let mut here = start(&unique, "/repositories/here");
        let mut there = start(&unique, "/repositories/there");
        assert_eq!(pids(Some(&unique), Some("/repositories/here")), [here.id()]);
        let mut both = pids(Some(&unique), None);
        both.sort_unstable();
        let mut expected = [here.id(), there.id()];
        expected.sort_unstable();
        assert_eq!(both, expected);
        assert!(pids(Some(&format!("{unique}x")), None).is_empty());
        assert!(pids(None, Some("/repositories/here")).contains(&here.id()));

        let found = &find_marked(Some(&JobId::new(&unique)), Some(Path::new("/repositories/here"))).unwrap()[0];
        assert!(!end_process(found.pid, found.started + 1).unwrap(), "a process with another start time was ended");
        assert!(is_alive(found.pid, found.started));
        assert!(end_process(found.pid, found.started).unwrap());
        assert!(!here.wait().unwrap().success());
        assert!(!end_process(found.pid, found.started).unwrap());
        assert!(pids(Some(&unique), Some("/repositories/here")).is_empty());
        there.kill().unwrap();
        there.wait().unwrap();
    }

    #[test]
    fn what_is_meant_is_ended_and_nothing_else() {
        let (one, two) = (format!("swept{}", std::process::id()), format!("spared{}", std::process::id()));
        let (mut swept, mut spared) = (start(&one, "/repositories/swept"), start(&two, "/repositories/swept"));
        end_marked(Path::new("/repositories/swept"), |job| job.as_str() == one).unwrap();
        assert!(!swept.wait().unwrap().success());
        assert_eq!(pids(None, Some("/repositories/swept")), [spared.id()]);
        spared.kill().unwrap();
        spared.wait().unwrap();
    }
}

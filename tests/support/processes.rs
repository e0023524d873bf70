//! Processes, found by the marks in their environment.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// A living process that was started for a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: i32,
    /// Process id of its parent.
    pub parent: i32,
    /// The job it was started for.
    pub job: Option<String>,
    /// Its command line.
    pub command: String,
}

/// Returns the living processes that carry the mark of a repository (`SP_ROOT`).
pub fn marked(root: &Path) -> Vec<Process> {
    let mark = [b"SP_ROOT=", root.as_os_str().as_bytes()].concat();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| u32::try_from(*pid) != Ok(std::process::id())).filter_map(|pid| look(pid, &mark)).collect()
}

fn look(pid: i32, mark: &[u8]) -> Option<Process> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let variable = |name: &[u8]| environment.split(|byte| *byte == 0).find(|entry| entry.starts_with(name));
    variable(mark).filter(|found| *found == mark)?;
    if !is_alive(pid) {
        return None;
    }
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
    let job = variable(b"SP_JOB_ID=").map(|entry| String::from_utf8_lossy(&entry[10..]).into_owned());
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ").trim().to_owned();
    Some(Process { pid, parent, job, command })
}

/// Returns whether a process runs; a zombie does not.
pub fn is_alive(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X' | 'x'))
}

/// Sends a signal to one process; one that is gone is fine.
pub fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

//! What this process has used so far, from /proc.

use std::time::Duration;

use procfs::process::Process;

/// Returns the CPU time of this process, user and system; its grain is one clock tick (10 ms).
pub(crate) fn cpu() -> Duration {
    let stat = Process::myself().and_then(|process| process.stat()).expect("/proc tells of this process");
    let ticks = u32::try_from(procfs::ticks_per_second()).expect("clock ticks are few");
    Duration::from_secs(stat.utime + stat.stime) / ticks
}

/// Returns the most memory that this process has had resident, in KiB.
pub(crate) fn peak_kib() -> u64 {
    let status = Process::myself().and_then(|process| process.status()).expect("/proc tells of this process");
    status.vmhwm.expect("a process with memory has a peak")
}

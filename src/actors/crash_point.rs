//! Where the crash tests have this process die: around every event of a chain's log. Absent in a release build.

/// Dies once the log is as long as `SP_TEST_KILL_AFTER` says: the event is on disk, nothing that follows from it is done.
pub(super) fn after(seq: u64) {
    die("SP_TEST_KILL_AFTER", seq);
}

/// Dies before the event that `SP_TEST_KILL_BEFORE` counts is stored: what it tells of has happened, and no one knows.
pub(super) fn before(seq: u64) {
    die("SP_TEST_KILL_BEFORE", seq);
}

#[cfg(debug_assertions)]
fn die(variable: &str, seq: u64) {
    let limit = std::env::var(variable).ok().and_then(|text| text.parse::<u64>().ok());
    if limit.is_some_and(|limit| seq >= limit) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

#[cfg(not(debug_assertions))]
fn die(_: &str, _: u64) {}

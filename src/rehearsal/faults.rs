//! Which faults of a script were given already. On disk, so that a killed sp doesn't give them again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::error::LedgerError;
use crate::ids::JobId;

const FILE: &str = "rehearsal-faults.json";

/// Counts the faults that each job has met.
pub trait FaultLedger: Send + Sync + 'static {
    /// Returns whether the job has met the fault of this turn (from 0) less than `times` times, and counts one more
    /// if so.
    ///
    /// Counted before the fault is given: a crash in between loses one, and never gives one too many.
    fn take(&self, job: &JobId, turn: usize, times: u32) -> Result<bool, LedgerError>;
}

/// Keeps the count of a job in `rehearsal-faults.json` in the job's directory, which must exist.
///
/// Survives a killed process; not synced, since after a power cut a fault given once more does no harm.
#[derive(Debug)]
pub struct FileLedger {
    jobs_dir: PathBuf,
    /// Held over read and write.
    lock: Mutex<()>,
}

impl FileLedger {
    /// Keeps counts under `jobs_dir/<job>/`.
    pub fn new(jobs_dir: impl Into<PathBuf>) -> Self {
        Self { jobs_dir: jobs_dir.into(), lock: Mutex::new(()) }
    }
}

impl FaultLedger for FileLedger {
    fn take(&self, job: &JobId, turn: usize, times: u32) -> Result<bool, LedgerError> {
        // The id comes from a URL that anyone on this machine may call.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if job.as_str().is_empty() || job.as_str().len() > 64 || !job.as_str().bytes().all(is_plain) {
            return Err(LedgerError::BadJob { job: job.to_string() });
        }
        let path = self.jobs_dir.join(job.as_str()).join(FILE);
        let _held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counts = read(&path).map_err(|source| LedgerError::Read { path: path.clone(), source })?;
        let count = counts.entry(turn).or_default();
        if *count >= times {
            return Ok(false);
        }
        *count += 1;
        write(&path, &counts).map_err(|source| LedgerError::Write { path, source })?;
        Ok(true)
    }
}

type Counts = BTreeMap<usize, u32>;

fn read(path: &Path) -> io::Result<Counts> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::from),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Counts::new()),
        Err(error) => Err(error),
    }
}

fn write(path: &Path, counts: &Counts) -> io::Result<()> {
    let fresh = path.with_extension("json.tmp");
    fs::write(&fresh, serde_json::to_vec(counts)?)?;
    fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_given_so_often_and_not_once_more_even_by_a_new_ledger() {
        let dir = tempfile::tempdir().unwrap();
        let job = JobId::from("abcd1234");
        fs::create_dir(dir.path().join("abcd1234")).unwrap();
        let given: Vec<bool> = (0..4).map(|_| FileLedger::new(dir.path()).take(&job, 3, 2).unwrap()).collect();
        assert_eq!(given, [true, true, false, false]);
        assert!(FileLedger::new(dir.path()).take(&job, 4, 1).unwrap(), "another turn has its own count");
    }

    #[test]
    fn a_job_without_a_directory_gets_no_directory() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = FileLedger::new(dir.path());
        assert!(matches!(ledger.take(&JobId::from("abcd1234"), 0, 1), Err(LedgerError::Write { .. })));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_id_that_leads_elsewhere_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = FileLedger::new(dir.path());
        for id in ["", "..", "a/b", "/etc", "a\0b", "ä"] {
            let taken = ledger.take(&JobId::from(id), 0, 1);
            assert!(matches!(taken, Err(LedgerError::BadJob { .. })), "{id:?}: {taken:?}");
        }
    }

    #[test]
    fn a_ledger_that_is_not_understood_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("j")).unwrap();
        fs::write(dir.path().join("j").join(FILE), "{oops").unwrap();
        let taken = FileLedger::new(dir.path()).take(&JobId::from("j"), 0, 1);
        assert!(matches!(taken, Err(LedgerError::Read { .. })), "{taken:?}");
    }
}

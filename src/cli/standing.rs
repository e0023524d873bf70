//! How jobs and chains really stand: a row says `running` until somebody changes it, also when its process is gone.

use std::collections::BTreeMap;

use crate::exec::{is_alive, this_process};
use crate::failure::Failure;
use crate::ids::ChainId;
use crate::storage::{ChainStatus, JobRow, JobStatus, OwnerRow, ProcessIdentity, Reader, Resource};

/// The word for what claims to run and has no process; never stored.
pub const DEAD: &str = "dead";

/// Tells whether a process of a row still runs.
pub trait Alive {
    /// Returns whether this very process runs.
    fn process(&self, process: &ProcessIdentity) -> bool;
    /// Returns whether the process of this boot that got `pid` at `start_ticks` runs.
    fn session(&self, pid: u32, start_ticks: u64) -> bool;
}

/// The processes of this machine.
pub struct Machine {
    boot_id: String,
}

impl Machine {
    /// Looks which boot this is.
    ///
    /// # Errors
    /// When /proc can't be read.
    pub fn look() -> Result<Self, Failure> {
        Ok(Self { boot_id: this_process()?.boot_id })
    }
}

impl Alive for Machine {
    fn process(&self, process: &ProcessIdentity) -> bool {
        process.boot_id == self.boot_id && is_alive(process.pid, process.start_ticks)
    }

    fn session(&self, pid: u32, start_ticks: u64) -> bool {
        is_alive(pid, start_ticks)
    }
}

/// Who owns what at present; asked about each job and chain of a listing.
pub struct Owners<'a> {
    held: BTreeMap<String, OwnerRow>,
    alive: &'a dyn Alive,
}

impl<'a> Owners<'a> {
    /// Reads what is held.
    ///
    /// # Errors
    /// What the database says.
    pub fn read(reader: &Reader, alive: &'a dyn Alive) -> Result<Self, Failure> {
        Ok(Self::of(reader.owners()?, alive))
    }

    fn of(rows: Vec<OwnerRow>, alive: &'a dyn Alive) -> Self {
        Self { held: rows.into_iter().map(|row| (row.resource.clone(), row)).collect(), alive }
    }

    /// Returns whether a living process runs this chain.
    pub fn runs(&self, chain: &ChainId) -> bool {
        let row = self.held.get(&Resource::Chain(chain.clone()).to_string());
        row.and_then(|row| row.holder.as_ref()).is_some_and(|holder| self.alive.process(holder))
    }

    /// Returns what is held by processes that are gone.
    pub fn stale(&self) -> impl Iterator<Item = &OwnerRow> {
        self.held.values().filter(|row| row.holder.as_ref().is_some_and(|holder| !self.alive.process(holder)))
    }

    /// Returns whether a job claims to run and can't: its session or its chain's process is gone.
    ///
    /// A waiting job has no session by right; a row of the existing system names no process that could be told apart.
    pub fn is_dead(&self, job: &JobRow) -> bool {
        match job.status {
            JobStatus::Starting | JobStatus::Running => {
                let session_gone = job
                    .pid
                    .zip(job.start_ticks)
                    .is_some_and(|(pid, start_ticks)| !self.alive.session(pid, start_ticks));
                let chain_gone = job.epoch > 0 && job.chain.as_ref().is_some_and(|chain| !self.runs(chain));
                session_gone || chain_gone
            }
            JobStatus::Waiting | JobStatus::Done | JobStatus::Error | JobStatus::Cancelled => false,
        }
    }

    /// Returns whether a chain claims to be worked on and nobody does.
    pub fn is_abandoned(&self, chain: &ChainId, status: ChainStatus) -> bool {
        is_worked_on(status) && !self.runs(chain)
    }

    /// Returns whether more may come of a job without anybody's word.
    pub fn goes_on(&self, job: &JobRow) -> bool {
        job.status.is_live()
            && !self.is_dead(job)
            && (job.status != JobStatus::Waiting || job.chain.as_ref().is_none_or(|chain| self.runs(chain)))
    }

    /// Returns the word for how a job stands.
    pub fn job_word(&self, job: &JobRow) -> &'static str {
        if self.is_dead(job) { DEAD } else { job.status.as_str() }
    }

    /// Returns the word for how a chain stands.
    pub fn chain_word(&self, chain: &ChainId, status: ChainStatus) -> &'static str {
        if self.is_abandoned(chain, status) { DEAD } else { status.as_str() }
    }
}

/// Returns whether a chain of this status has a process that works on it.
pub fn is_worked_on(status: ChainStatus) -> bool {
    match status {
        ChainStatus::Composing | ChainStatus::Running | ChainStatus::Waiting => true,
        ChainStatus::Blocked
        | ChainStatus::ReadyToMerge
        | ChainStatus::Published
        | ChainStatus::Stopped
        | ChainStatus::Cancelled
        | ChainStatus::Abandoned => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fixture::{OnlyPids, process};
    use crate::ids::JobId;

    fn owned(by: u32) -> Vec<OwnerRow> {
        vec![OwnerRow { resource: "chain:p-mol-1".into(), epoch: 1, holder: Some(process(by)), taken_at_ms: 1 }]
    }

    fn job(status: JobStatus, session: Option<u32>) -> JobRow {
        let mut job = JobRow::starting(JobId::new("0a1b2c3d"), "executor", 1_000);
        (job.status, job.chain) = (status, Some(ChainId::new("p-mol-1")));
        (job.pid, job.start_ticks) = (session, session.map(|_| 7));
        job
    }

    #[test]
    fn what_claims_to_run_without_a_process_is_dead() {
        // Of all processes only 10 (an sp) and 20 (a session) run.
        let alive = OnlyPids(&[10, 20]);
        for (case, owner, status, session, word, goes_on) in [
            ("all is well", owned(10), JobStatus::Running, Some(20), "running", true),
            ("between start and session", owned(10), JobStatus::Starting, None, "starting", true),
            ("its session is gone", owned(10), JobStatus::Running, Some(21), "dead", false),
            ("its sp is gone, the session lives on", owned(11), JobStatus::Running, Some(20), "dead", false),
            ("nobody owns its chain", vec![], JobStatus::Starting, None, "dead", false),
            ("it waits for its next try", owned(10), JobStatus::Waiting, None, "waiting", true),
            ("it waits for a resume", vec![], JobStatus::Waiting, None, "waiting", false),
            ("it has ended", vec![], JobStatus::Done, None, "done", false),
            ("it was cancelled", owned(11), JobStatus::Cancelled, Some(21), "cancelled", false),
        ] {
            let owners = Owners::of(owner, &alive);
            let job = job(status, session);
            assert_eq!((owners.job_word(&job), owners.goes_on(&job)), (word, goes_on), "{case}");
        }
    }

    #[test]
    fn a_row_of_the_existing_system_is_believed() {
        let old = JobRow { epoch: 0, start_ticks: None, pid: Some(99), ..job(JobStatus::Running, None) };
        assert_eq!(Owners::of(vec![], &OnlyPids(&[])).job_word(&old), "running");
    }

    #[test]
    fn a_chain_is_dead_when_it_needs_a_process_and_has_none() {
        let chain = ChainId::new("p-mol-1");
        for (owner, status, word) in [
            (owned(10), ChainStatus::Running, "running"),
            (owned(11), ChainStatus::Running, "dead"),
            (vec![], ChainStatus::Composing, "dead"),
            (vec![], ChainStatus::Stopped, "stopped"),
            (owned(11), ChainStatus::Blocked, "blocked"),
            (vec![], ChainStatus::ReadyToMerge, "ready_to_merge"),
        ] {
            assert_eq!(Owners::of(owner, &OnlyPids(&[10])).chain_word(&chain, status), word);
        }
        assert_eq!(Owners::of(owned(11), &OnlyPids(&[10])).stale().count(), 1);
    }
}

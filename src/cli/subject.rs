//! What a name on the command line means: a job or a chain.

use super::error::CliError;
use crate::failure::Failure;
use crate::ids::JobId;
use crate::storage::{ChainRow, Reader, StoreError};

/// A job or a chain.
#[derive(Debug)]
pub enum Subject {
    /// A job.
    Job(JobId),
    /// A chain.
    Chain(Box<ChainRow>),
}

/// Finds what a name means: a whole job id, then a chain by its id or contract bead, then the beginning of a job's id.
///
/// `None` as the reader means that nothing was recorded yet.
///
/// # Errors
/// `NoSubject`; `Ambiguous` with the jobs; what the database says.
pub fn find(reader: Option<&Reader>, name: &str) -> Result<Subject, Failure> {
    let unknown = || CliError::NoSubject { name: name.to_owned() };
    let reader = reader.ok_or_else(unknown)?;
    let whole = JobId::new(name);
    if reader.job(&whole)?.is_some() {
        return Ok(Subject::Job(whole));
    }
    match reader.find_chain(name) {
        Ok(chain) => return Ok(Subject::Chain(Box::new(chain))),
        Err(StoreError::NoSuchChain { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    match reader.find_job(name) {
        Ok(job) => Ok(Subject::Job(job)),
        Err(StoreError::NoSuchJob { .. }) => Err(unknown().into()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fixture::{Recorded, job};
    use crate::storage::UpsertJob;

    #[test]
    fn a_name_is_a_whole_job_then_a_chain_or_bead_then_the_beginning_of_a_job() {
        let recorded = Recorded::chain_in_its_second_step();
        recorded.open_chain("0b", "other-1", 5);
        recorded.write(UpsertJob(job("0aaaaaab", "reviewer", 0)));
        let reader = recorded.reader();
        let found = |name: &str| match find(Some(&reader), name) {
            Ok(Subject::Job(job)) => format!("job {job}"),
            Ok(Subject::Chain(chain)) => format!("chain {}", chain.chain),
            Err(failure) => format!("{} {}", failure.exit, failure.error_code),
        };
        for (name, expected) in [
            ("0aaaaaaa", "job 0aaaaaaa"),
            ("proj-mol-1", "chain proj-mol-1"),
            ("proj-a3f2", "chain proj-mol-1"),
            ("0b", "chain 0b"),
            ("0bb", "job 0bbbbbbb"),
            ("0a", "2 ambiguous_job"),
            ("zzz", "4 no_such_subject"),
            ("", "4 no_such_subject"),
            ("%", "4 no_such_subject"),
        ] {
            assert_eq!(found(name), expected, "{name}");
        }
        assert_eq!(find(None, "0aaaaaaa").unwrap_err().error_code, "no_such_subject");
    }
}

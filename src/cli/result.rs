//! `sp result`: what a job answered.

use std::io::{self, Write};

use serde::Serialize;

use super::context::Context;
use super::error::CliError;
use super::output::{Exit, Human};
use super::ps_view::JobView;
use super::standing::{Alive, Machine, Owners};
use crate::failure::Failure;
use crate::storage::{JobRow, Reader, StoreError};

/// Print what a job answered
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sp result 4e5f6a7b
  sp result 4e5f --json | jq -r .output")]
pub struct ResultArgs {
    /// Job; a unique beginning of its id will do
    job: String,
}

#[derive(Debug, Serialize)]
struct Answer {
    job: JobView,
    /// The answer as the agent gave it.
    output: String,
}

impl Human for Answer {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.output.as_bytes())
    }
}

/// Runs the command.
pub fn run(args: &ResultArgs, cx: &Context) -> Result<Exit, Failure> {
    let answer = answered(&args.job, cx.reader()?.as_ref(), &Machine::look()?, cx.now_ms())?;
    // As text it goes out byte for byte, whatever it holds.
    if cx.printer.is_json() { cx.printer.print(&answer) } else { cx.printer.print_raw(&answer.output) }
}

fn answered(name: &str, reader: Option<&Reader>, alive: &dyn Alive, now_ms: i64) -> Result<Answer, Failure> {
    let unknown = || StoreError::NoSuchJob { job: name.to_owned() };
    let reader = reader.ok_or_else(unknown)?;
    let id = reader.find_job(name)?;
    let job = reader.job(&id)?.ok_or_else(unknown)?;
    let owners = Owners::read(reader, alive)?;
    if !job.status.is_terminal() {
        return Err(not_finished(&job, &owners).into());
    }
    match reader.result(&id)? {
        Some(output) => Ok(Answer { job: JobView::of(job, &owners, now_ms), output }),
        None => {
            Err(CliError::NoResult { job: id.to_string(), status: job.status.to_string(), error: job.error }.into())
        }
    }
}

fn not_finished(job: &JobRow, owners: &Owners<'_>) -> CliError {
    let next = match &job.chain {
        _ if owners.goes_on(job) => format!("follow it until it ends: `sp feed {} -f`", job.job),
        Some(chain) => format!("go on with its chain: `sp chain resume {chain}`"),
        None => format!("see how far it came: `sp feed {}`", job.job),
    };
    CliError::NotFinished { job: job.job.to_string(), status: owners.job_word(job).to_owned(), next }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fixture::{OnlyPids, Recorded, START_MS, job};
    use crate::storage::{JobStatus, SettleJob, UpsertJob};

    #[test]
    fn an_answer_is_given_only_when_there_is_one() {
        let recorded = Recorded::chain_in_its_second_step();
        let failed = job("0ccccccc", "reviewer", 300_000);
        recorded.write(UpsertJob(failed.clone()));
        let failed = JobRow {
            status: JobStatus::Error,
            error: Some("pi_ended: exit status 1".into()),
            completed_at_ms: Some(START_MS + 400_000),
            ..failed
        };
        recorded.write(SettleJob { job: failed, events: vec![], result: None });
        let reader = recorded.reader();
        let told = |name: &str, alive: &'static [u32]| match answered(name, Some(&reader), &OnlyPids(alive), START_MS) {
            Ok(answer) => answer.output,
            Err(failure) => {
                format!("{} {}: {}; {}", failure.exit, failure.error_code, failure.message, failure.next_safe_action)
            }
        };
        for (name, alive, expected) in [
            ("0aaaaaaa", &[10, 20][..], r#"{"status":"success"}"#),
            ("0a", &[], r#"{"status":"success"}"#),
            (
                "0bbbbbbb",
                &[10, 20],
                "3 not_finished: read the result of job 0bbbbbbb: it is running; follow it until it ends: `sp feed 0bbbbbbb -f`",
            ),
            (
                "0bbbbbbb",
                &[],
                "3 not_finished: read the result of job 0bbbbbbb: it is dead; go on with its chain: `sp chain resume proj-mol-1`",
            ),
            (
                "0ccccccc",
                &[],
                "12 no_result: read the result of job 0ccccccc: it ended as error and gave none: pi_ended: exit status 1; see what it did: `sp feed 0ccccccc`",
            ),
            ("zzz", &[], "4 no_such_job: find job zzz: there is none; list the jobs: `sp ps --all`"),
        ] {
            assert_eq!(told(name, alive), expected, "{name}");
        }
        assert_eq!(answered("x", None, &OnlyPids(&[]), 0).unwrap_err().error_code, "no_such_job");
    }
}

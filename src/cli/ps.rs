//! `sp ps`: the jobs of this repository.

use super::context::Context;
use super::output::Exit;
use super::ps_view::{JobCard, JobList, JobView};
use super::standing::{Alive, Machine, Owners};
use super::subject::{Subject, find};
use super::table::terminal_width;
use crate::failure::Failure;
use crate::ids::{BeadId, ChainId};
use crate::storage::{JobFilter, JobScope, Reader};

/// List jobs, or show one
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  sp ps                   jobs that run or wait
  sp ps --all             those that ended too
  sp ps 4e5f              one job, by the beginning of its id
  sp ps proj-a3f2         the jobs of the chain on a bead
  sp ps --json | jq '.jobs[] | select(.is_dead)'

Status `dead` is a job that claims to run and whose process is gone;
`sp chain resume` goes on with its chain.")]
pub struct PsArgs {
    /// Job to show, by a unique beginning of its id; or chain or contract bead whose jobs to list
    id: Option<String>,
    /// List all jobs of this chain; its contract bead will do
    #[arg(long, value_name = "CHAIN")]
    chain: Option<String>,
    /// List the jobs on this bead: a step's or a contract's
    #[arg(long, value_name = "BEAD")]
    bead: Option<String>,
    /// Include jobs that have ended
    #[arg(long)]
    all: bool,
}

/// What there is to show.
enum Shown {
    One(Box<JobCard>),
    Many(JobList),
}

/// Runs the command.
pub fn run(args: &PsArgs, cx: &Context) -> Result<Exit, Failure> {
    let reader = cx.reader()?;
    match shown(args, reader.as_ref(), &Machine::look()?, cx.now_ms())? {
        Shown::One(card) => cx.printer.print(&*card),
        Shown::Many(list) => {
            if list.jobs.is_empty() {
                let hint =
                    if args.all { "no jobs" } else { "no jobs run or wait; `sp ps --all` shows those that ended" };
                cx.printer.remark(hint);
            }
            cx.printer.print(&JobList { width: terminal_width(), ..list })
        }
    }
}

fn shown(args: &PsArgs, reader: Option<&Reader>, alive: &dyn Alive, now_ms: i64) -> Result<Shown, Failure> {
    let mut filter = JobFilter::default();
    if let Some(chain) = &args.chain {
        filter.chain = Some(chain_of(reader, chain)?);
    }
    if let Some(id) = &args.id {
        match find(reader, id)? {
            Subject::Chain(chain) => filter.chain = Some(chain.chain),
            Subject::Job(job) => {
                if let Some(reader) = reader
                    && let Some(job) = reader.job(&job)?
                {
                    let owners = Owners::read(reader, alive)?;
                    return Ok(Shown::One(Box::new(JobCard { job: JobView::of(job, &owners, now_ms) })));
                }
            }
        }
    }
    filter.bead = args.bead.as_deref().map(BeadId::from);
    let is_narrowed = filter.chain.is_some() || filter.bead.is_some();
    filter.scope = if args.all || is_narrowed { JobScope::All } else { JobScope::Live };
    let Some(reader) = reader else { return Ok(Shown::Many(JobList { jobs: vec![], width: None })) };
    let owners = Owners::read(reader, alive)?;
    let jobs = reader.jobs(&filter)?.into_iter().map(|job| JobView::of(job, &owners, now_ms)).collect();
    Ok(Shown::Many(JobList { jobs, width: None }))
}

fn chain_of(reader: Option<&Reader>, name: &str) -> Result<ChainId, Failure> {
    let unknown = || crate::storage::StoreError::NoSuchChain { chain: name.to_owned() };
    Ok(reader.ok_or_else(unknown)?.find_chain(name)?.chain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fixture::{OnlyPids, Recorded, START_MS, text};

    fn show(args: PsArgs, alive: &'static [u32], width: Option<usize>) -> String {
        let recorded = Recorded::chain_in_its_second_step();
        match shown(&args, Some(&recorded.reader()), &OnlyPids(alive), START_MS + 260_000).unwrap() {
            Shown::One(card) => text(&*card),
            Shown::Many(list) => text(&JobList { width, ..list }),
        }
    }

    #[test]
    fn jobs_are_listed_with_what_they_did_and_cost() {
        insta::assert_snapshot!(show(PsArgs { all: true, ..PsArgs::default() }, &[10, 20], Some(100)), @"
        JOB       SPECIALIST  STATUS   WORK       ROUND  ELAPSED  TOKENS  COST   MODEL
        0bbbbbbb  seconder    running  proj-a3f2  1      1m00s    -       -      -
        0aaaaaaa  executor    done     proj-a3f2  1      3m12s    12k     $0.21  acme/big
        ");
    }

    #[test]
    fn without_all_only_live_jobs_are_listed_and_one_without_its_process_is_dead() {
        insta::assert_snapshot!(show(PsArgs::default(), &[10], Some(60)), @"
        JOB       SPECI…  STATUS  WORK    ROUND  ELAPSED  TOKENS  C…
        0bbbbbbb  secon…  dead    proj-…  1      0.0s     -       -…
        ");
    }

    #[test]
    fn a_chain_or_bead_lists_all_its_jobs_and_a_beginning_shows_one() {
        let by_bead = show(PsArgs { id: Some("proj-a3f2".into()), ..PsArgs::default() }, &[10, 20], None);
        let by_chain = show(PsArgs { chain: Some("proj-mol-1".into()), ..PsArgs::default() }, &[10, 20], None);
        assert_eq!(by_bead, by_chain);
        assert_eq!(by_bead.lines().count(), 3);
        let step = PsArgs { bead: Some("proj-mol-1-executor".into()), ..PsArgs::default() };
        assert_eq!(show(step, &[10, 20], None).lines().count(), 2);
        insta::assert_snapshot!(show(PsArgs { id: Some("0a".into()), ..PsArgs::default() }, &[10, 20], None), @"
        job         0aaaaaaa
        specialist  executor
        status      done
        chain       proj-mol-1
        contract    proj-a3f2
        step        executor, round 1, epoch 1
        bead        proj-mol-1-executor
        model       acme/big
        started     2026-12-01 09:00:00Z
        ended       2026-12-01 09:03:12Z
        elapsed     3m12s
        used        tokens: 12000 in, 900 out, 0 from cache; 3 turns, 4 tool calls; $0.21
        ");
    }

    #[test]
    fn the_json_of_a_job_has_its_documented_fields() {
        let recorded = Recorded::chain_in_its_second_step();
        let Shown::Many(list) =
            shown(&PsArgs::default(), Some(&recorded.reader()), &OnlyPids(&[10]), START_MS + 260_000).unwrap()
        else {
            panic!("a list was asked for");
        };
        insta::assert_json_snapshot!(list, @r#"
        {
          "jobs": [
            {
              "id": "0bbbbbbb",
              "specialist": "seconder",
              "status": "dead",
              "is_dead": true,
              "chain_id": "proj-mol-1",
              "step": "seconder",
              "bead_id": "proj-mol-1-seconder",
              "root_bead_id": "proj-a3f2",
              "round": 1,
              "epoch": 1,
              "model": null,
              "started_at_ms": 1796115800000,
              "updated_at_ms": 1796115800000,
              "completed_at_ms": null,
              "elapsed_ms": 0,
              "totals": {
                "turns": 0,
                "tool_calls": 0,
                "input_tokens": 0,
                "output_tokens": 0,
                "cache_read_tokens": 0,
                "cache_write_tokens": 0,
                "cost_usd": 0.0
              },
              "context_pct": null,
              "current_tool": "read",
              "outcome": null,
              "error": null,
              "branch": null,
              "worktree_path": null,
              "pid": 20
            }
          ]
        }
        "#);
    }

    #[test]
    fn nothing_recorded_lists_nothing_and_an_unknown_name_is_an_error() {
        assert!(
            matches!(shown(&PsArgs::default(), None, &OnlyPids(&[]), 0), Ok(Shown::Many(list)) if list.jobs.is_empty())
        );
        let unknown = PsArgs { chain: Some("x".into()), ..PsArgs::default() };
        assert_eq!(shown(&unknown, None, &OnlyPids(&[]), 0).err().unwrap().error_code, "no_such_chain");
    }
}

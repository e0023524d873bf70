//! `sp feed`: what happened, and with `-f` what happens, in a job or in a chain and all its jobs.

use std::thread;
use std::time::Duration;

use super::context::Context;
use super::error::CliError;
use super::feed_line::Item;
use super::output::{Exit, Lines};
use super::standing::{Alive, Machine, Owners};
use super::subject::{Subject, find};
use crate::failure::Failure;
use crate::ids::{ChainId, JobId};
use crate::storage::Reader;

/// Events of jobs that are read at a time.
const PAGE: u32 = 1_000;

/// How long a follower rests before it looks again.
const REST: Duration = Duration::from_millis(250);

/// Show what happens in a job or chain
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sp feed 4e5f                       what a job did
  sp feed proj-a3f2 -f               follow the chain on a bead until it rests
  sp feed proj-a3f2 --json | jq -r 'select(.type == \"tool\") | .tool'

Times are UTC. With --json each event is an object on a line of its own; a failure is the last line.
Ctrl-C ends the view, never the work.")]
pub struct FeedArgs {
    /// Job (a unique beginning of its id will do), chain, or contract bead of a chain
    subject: String,
    /// Follow until the job has ended or the chain rests
    #[arg(short, long)]
    follow: bool,
}

/// Runs the command.
pub fn run(args: &FeedArgs, cx: &Context) -> Result<Exit, Failure> {
    let reader = cx.reader()?;
    let subject = find(reader.as_ref(), &args.subject)?;
    let Some(reader) = reader else { return Err(CliError::NoSubject { name: args.subject.clone() }.into()) };
    let mut feed = Feed::of(&reader, subject)?;
    let alive = Machine::look()?;
    let mut lines = Lines::open(cx.printer);
    loop {
        // Looked at before the events are read: what was stored with the end is then among them.
        let standing = feed.standing(&reader, &alive)?;
        feed.read(&reader, &mut |item| {
            let line = if cx.printer.is_json() { Some(item.json()) } else { item.text() };
            line.map_or(Ok(()), |line| lines.line(&line))
        })?;
        lines.flush()?;
        match standing {
            _ if !args.follow || lines.is_closed() => return Ok(Exit::SUCCESS),
            Standing::GoesOn => thread::sleep(REST),
            Standing::Rests => return Ok(Exit::SUCCESS),
            Standing::Dead { next } => {
                cx.printer.remark(&format!("its process is gone; {next}"));
                return Ok(Exit::SUCCESS);
            }
        }
    }
}

/// Whether there is something to wait for.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    GoesOn,
    Rests,
    Dead { next: String },
}

/// Where a reader of events is.
#[derive(Debug)]
enum Feed {
    Job { job: JobId, specialist: String, after: u64 },
    Chain { chain: ChainId, after_event: u64, after_row: i64 },
}

impl Feed {
    fn of(reader: &Reader, subject: Subject) -> Result<Self, Failure> {
        Ok(match subject {
            Subject::Chain(chain) => Self::Chain { chain: chain.chain, after_event: 0, after_row: 0 },
            Subject::Job(job) => {
                let specialist = reader.job(&job)?.map(|row| row.specialist).unwrap_or_default();
                Self::Job { job, specialist, after: 0 }
            }
        })
    }

    /// Hands out what is new: a job's events in their order, a chain's and its jobs' by their time.
    fn read(&mut self, reader: &Reader, take: &mut dyn FnMut(Item) -> Result<(), Failure>) -> Result<(), Failure> {
        match self {
            Self::Job { job, specialist, after } => {
                for event in reader.job_events(job, *after)? {
                    *after = event.seq;
                    take(Item::Job { job: job.clone(), specialist: specialist.clone(), event })?;
                }
                Ok(())
            }
            Self::Chain { chain, after_event, after_row } => {
                let mut own = reader.chain_events(chain, *after_event)?.into_iter().peekable();
                loop {
                    let page = reader.chain_feed(chain, *after_row, PAGE)?;
                    let is_last = page.len() < PAGE as usize;
                    for row in page {
                        while let Some(event) = own.next_if(|event| event.at_ms <= row.event.at_ms) {
                            *after_event = event.seq;
                            take(Item::Chain { chain: chain.clone(), event })?;
                        }
                        *after_row = row.id;
                        take(Item::Job { job: row.job, specialist: row.specialist, event: row.event })?;
                    }
                    if is_last {
                        break;
                    }
                }
                for event in own {
                    *after_event = event.seq;
                    take(Item::Chain { chain: chain.clone(), event })?;
                }
                Ok(())
            }
        }
    }

    fn standing(&self, reader: &Reader, alive: &dyn Alive) -> Result<Standing, Failure> {
        let owners = Owners::read(reader, alive)?;
        let resume = |chain: &ChainId| format!("go on with `sp chain resume {chain}`");
        Ok(match self {
            Self::Job { job, .. } => match reader.job(job)? {
                Some(row) if owners.goes_on(&row) => Standing::GoesOn,
                Some(row) if owners.is_dead(&row) => {
                    Standing::Dead { next: row.chain.as_ref().map_or("nobody goes on with it".to_owned(), resume) }
                }
                Some(_) | None => Standing::Rests,
            },
            Self::Chain { chain, .. } => match reader.chain(chain)? {
                Some(row) if owners.is_abandoned(chain, row.status) => Standing::Dead { next: resume(chain) },
                // A process that still owns it may be about to do more: an order just came, or it writes its report.
                Some(row) if super::standing::is_worked_on(row.status) || owners.runs(chain) => Standing::GoesOn,
                Some(_) | None => Standing::Rests,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chain::machine::ChainEvent;
    use crate::cli::fixture::{OnlyPids, Recorded, START_MS, process};
    use crate::storage::{ChainPatch, ChainStatus, JobRow, JobStatus, ReleaseOwnership, Resource};

    fn drain(feed: &mut Feed, reader: &Reader) -> Vec<String> {
        let mut lines = Vec::new();
        feed.read(reader, &mut |item| {
            lines.extend(item.text());
            Ok(())
        })
        .unwrap();
        lines
    }

    fn feed(reader: &Reader, name: &str) -> Feed {
        Feed::of(reader, find(Some(reader), name).unwrap()).unwrap()
    }

    #[test]
    fn a_chains_feed_holds_its_own_events_and_its_jobs_in_the_order_of_time_and_each_once() {
        let recorded = Recorded::chain_in_its_second_step();
        let reader = recorded.reader();
        let mut feed = feed(&reader, "proj-a3f2");
        insta::assert_snapshot!(drain(&mut feed, &reader).join("\n"), @r#"
        09:00:00  chain                opened     code-standard on proj-a3f2, scrutiny high
        09:00:00  chain                worktree   b at 1111111111 in /w
        09:00:00  chain                claim      executor
        09:00:00  chain                dispatch   executor as job 0aaaaaaa
        09:03:21  seconder             start
        09:03:22  seconder             tool       read {"path":"src/a .rs"}
        "#);
        assert_eq!(drain(&mut feed, &reader), Vec::<String>::new());

        recorded.events("0bbbbbbb", START_MS + 203_000, &[json!({"type": "text", "char_count": 3})]);
        recorded.chain_events("proj-mol-1", 5, START_MS + 202_500, &[ChainEvent::Reread], ChainPatch::default());
        insta::assert_snapshot!(drain(&mut feed, &reader).join("\n"), @"
        09:03:22  chain                reread     the beads were read again
        09:03:23  seconder             text       wrote 3 characters
        ");
    }

    #[test]
    fn more_events_than_a_page_come_whole_and_in_order() {
        let recorded = Recorded::chain_in_its_second_step();
        let events: Vec<_> = (0..2 * PAGE).map(|n| json!({"type": "text", "char_count": n})).collect();
        recorded.events("0bbbbbbb", START_MS + 203_000, &events);
        let reader = recorded.reader();
        let lines = drain(&mut feed(&reader, "proj-mol-1"), &reader);
        let wrote = lines.iter().filter_map(|line| line.split_once("wrote ")).map(|(_, rest)| rest.to_owned());
        assert!(wrote.eq((0..2 * PAGE).map(|n| format!("{n} characters"))));
    }

    #[test]
    fn a_follower_waits_for_what_goes_on_and_for_nothing_else() {
        let recorded = Recorded::chain_in_its_second_step();
        let reader = recorded.reader();
        let standing =
            |name: &str, pids: &'static [u32]| feed(&reader, name).standing(&reader, &OnlyPids(pids)).unwrap();
        let dead = Standing::Dead { next: "go on with `sp chain resume proj-mol-1`".into() };
        assert_eq!(standing("0aaaaaaa", &[10, 20]), Standing::Rests);
        assert_eq!(standing("0bbbbbbb", &[10, 20]), Standing::GoesOn);
        assert_eq!(standing("0bbbbbbb", &[10]), dead);
        assert_eq!(standing("proj-mol-1", &[10]), Standing::GoesOn);
        assert_eq!(standing("proj-mol-1", &[]), dead);

        let patch = ChainPatch { status: Some(ChainStatus::Blocked), ..ChainPatch::default() };
        recorded.chain_events("proj-mol-1", 5, START_MS, &[ChainEvent::ChainBlocked], patch);
        assert_eq!(standing("proj-mol-1", &[10]), Standing::GoesOn, "its process has not let go of it");
        let resource = Resource::Chain(ChainId::new("proj-mol-1"));
        recorded.write(ReleaseOwnership { resource, me: process(10), epoch: 1 });
        assert_eq!(standing("proj-mol-1", &[10]), Standing::Rests);
        let waiting = JobRow {
            status: JobStatus::Waiting,
            pid: None,
            start_ticks: None,
            ..reader.job(&JobId::new("0bbbbbbb")).unwrap().unwrap()
        };
        recorded.write(crate::storage::UpsertJob(waiting));
        assert_eq!(standing("0bbbbbbb", &[10]), Standing::Rests);
    }
}

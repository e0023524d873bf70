//! What can go wrong on the command line itself.

use std::io;
use std::path::PathBuf;

use crate::failure::{Explain, FailureKind};

/// What can go wrong on the command line itself.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Arguments that were not understood.
    #[error("read the command line: {problem}")]
    Usage {
        /// What clap says, on one line.
        problem: String,
    },
    /// `-C` names no directory.
    #[error("work in {path}: no such directory")]
    NoDirectory {
        /// As given.
        path: PathBuf,
    },
    /// stdout would not take the report.
    #[error("write to stdout")]
    Output(#[source] io::Error),
    /// No job, chain or bead goes by this name.
    #[error("find `{name}`: no job, chain or contract bead of this repository")]
    NoSubject {
        /// As given.
        name: String,
    },
    /// Neither a chain nor a formula goes by this name.
    #[error("find `{name}`: no chain, contract bead or formula{}", crate::nearest::hint(.nearest))]
    NoGraph {
        /// As given.
        name: String,
        /// Formulas that resemble it.
        nearest: Vec<String>,
    },
    /// The job has not ended.
    #[error("read the result of job {job}: it is {status}")]
    NotFinished {
        /// The job.
        job: String,
        /// How it stands, `dead` included.
        status: String,
        /// What makes it go on.
        next: String,
    },
    /// The job has ended without an answer.
    #[error("read the result of job {job}: it ended as {status} and gave none{}", because(.error))]
    NoResult {
        /// The job.
        job: String,
        /// How it ended.
        status: String,
        /// Why, if known.
        error: Option<String>,
    },
    /// A file that is no formula by its name.
    #[error("validate {path}: a formula's file is called NAME.formula.json or NAME.formula.toml")]
    NotAFormulaFile {
        /// As given.
        path: String,
    },
    /// Something that this machine or repository needs is missing.
    #[error("check what sp needs: {}", .faults.join("; "))]
    NotUsable {
        /// What, one sentence each.
        faults: Vec<String>,
        /// The first thing to do.
        next: String,
    },
    /// Signals could not be listened to.
    #[error("listen to signals")]
    Signals(#[source] io::Error),
    /// A process could not be told to stop.
    #[error("stop process {pid}")]
    Signal {
        /// The process.
        pid: i32,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// A chain did not come to rest in time.
    #[error("stop chain {chain}: process {pid} was asked and still runs it")]
    StillRunning {
        /// The chain.
        chain: String,
        /// The process.
        pid: u32,
    },
    /// The view of a chain that runs elsewhere was ended.
    #[error("watch chain {chain}: the view was ended; process {pid} runs on")]
    ViewEnded {
        /// The chain.
        chain: String,
        /// The process.
        pid: u32,
    },
    /// The command could not be put into the background.
    #[error("run in the background")]
    Background {
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The process in the background ended before it had begun a chain.
    #[error("run on {bead} in the background: it ended with status {status}: {}", .said.trim())]
    NotBegun {
        /// The bead.
        bead: String,
        /// Its exit status.
        status: i32,
        /// What it said.
        said: String,
    },
    /// The process in the background takes long to begin.
    #[error("run on {bead} in the background: process {pid} has begun no chain yet")]
    SlowToBegin {
        /// The bead.
        bead: String,
        /// The process.
        pid: u32,
        /// What it says.
        log: String,
    },
    /// The runtime for the calls of other programs could not be started.
    #[error("start the runtime")]
    Runtime(#[source] io::Error),
}

fn because(error: &Option<String>) -> String {
    error.as_ref().map(|error| format!(": {error}")).unwrap_or_default()
}

impl Explain for CliError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        match self {
            Self::Usage { .. } => {
                (FailureKind::Usage, "usage", "see `sp --help`, or `--help` after the command".into())
            }
            Self::NoDirectory { .. } => {
                (FailureKind::Usage, "no_directory", "give a directory that exists to -C".into())
            }
            Self::Output(_) => {
                (FailureKind::Store, "output_not_written", "make space where stdout leads, then run it again".into())
            }
            Self::NoSubject { .. } => (
                FailureKind::NotFound,
                "no_such_subject",
                "see what there is: `sp ps --all`, `sp chain list --all`".into(),
            ),
            Self::NoGraph { .. } => (
                FailureKind::NotFound,
                "no_such_graph",
                "see what there is: `sp formula list`, `sp chain list --all`".into(),
            ),
            Self::NotFinished { next, .. } => (FailureKind::Refused, "not_finished", next.clone()),
            Self::NoResult { job, .. } => {
                (FailureKind::Agent, "no_result", format!("see what it did: `sp feed {job}`"))
            }
            Self::NotAFormulaFile { .. } => {
                (FailureKind::Usage, "not_a_formula_file", "rename the file, or give the name of a formula".into())
            }
            Self::NotUsable { next, .. } => (FailureKind::Unusable, "not_usable", next.clone()),
            Self::Signals(_) | Self::Signal { .. } => {
                (FailureKind::Unusable, "signals", "see that you may signal your own processes".into())
            }
            Self::StillRunning { chain, .. } => {
                (FailureKind::Contested, "still_running", format!("watch it come to rest: `sp feed {chain} -f`"))
            }
            Self::ViewEnded { chain, .. } => (
                FailureKind::Interrupted,
                "view_ended",
                format!("see it again: `sp feed {chain} -f`; stop it: `sp chain stop {chain}`"),
            ),
            Self::Background { .. } => {
                (FailureKind::Unusable, "background", "run it in the foreground, without --background".into())
            }
            Self::NotBegun { .. } => (
                background_kind(self),
                "background_not_begun",
                "mend what it says, then run the same command again".into(),
            ),
            Self::SlowToBegin { log, .. } => {
                (FailureKind::Tracker, "background_slow", format!("read what it says in {log}"))
            }
            Self::Runtime(_) => (
                FailureKind::Unusable,
                "no_runtime",
                "see that limits of processes and open files are not reached".into(),
            ),
        }
    }

    fn blocked_by(&self) -> Vec<String> {
        if let Self::NotFinished { job, .. } = self { vec![job.clone()] } else { Vec::new() }
    }

    fn diagnose_command(&self) -> Option<String> {
        match self {
            Self::NotFinished { job, .. } | Self::NoResult { job, .. } => Some(format!("sp ps {job}")),
            Self::Runtime(_) => Some("sp doctor".to_owned()),
            Self::Usage { .. }
            | Self::NoDirectory { .. }
            | Self::Output(_)
            | Self::NoSubject { .. }
            | Self::NoGraph { .. }
            | Self::NotAFormulaFile { .. }
            | Self::NotUsable { .. }
            | Self::Signals(_)
            | Self::Signal { .. }
            | Self::Background { .. }
            | Self::NotBegun { .. }
            | Self::SlowToBegin { .. } => None,
            Self::StillRunning { chain, .. } | Self::ViewEnded { chain, .. } => Some(format!("sp chain show {chain}")),
        }
    }
}

/// A process in the background fails with the status of its own failure; this one has the same.
fn background_kind(error: &CliError) -> FailureKind {
    let CliError::NotBegun { status, .. } = error else { return FailureKind::Internal };
    let kinds = [
        FailureKind::Internal,
        FailureKind::Usage,
        FailureKind::Refused,
        FailureKind::NotFound,
        FailureKind::Contested,
        FailureKind::Unusable,
        FailureKind::Blocked,
        FailureKind::Tracker,
        FailureKind::Store,
        FailureKind::Agent,
        FailureKind::Git,
        FailureKind::Interrupted,
    ];
    kinds.into_iter().find(|kind| i32::from(kind.row().0) == *status).unwrap_or(FailureKind::Internal)
}

//! Why the orchestrator could not do what was asked.

use std::path::PathBuf;

use crate::chain::formula::FormulaError;
use crate::chain::graph::ShapeError;
use crate::failure::{Explain, FailureKind};
use crate::git::NameError;
use crate::ids::{BeadId, ChainId, StepId};
use crate::policy::RefusedError;
use crate::ports::{AgentError, ExecError, TrackerError, WorkspaceError};
use crate::rehearsal::{ScriptError, ServeError};
use crate::storage::StoreError;

/// Why the orchestrator could not do what was asked. Nothing was created unless the text says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrchestratorError {
    /// bd.
    #[error(transparent)]
    Tracker(#[from] TrackerError),
    /// git.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// pi.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The formula.
    #[error(transparent)]
    Formula(#[from] FormulaError),
    /// Its graph.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Policy.
    #[error(transparent)]
    Refused(#[from] RefusedError),
    /// The rehearsal's script.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The rehearsal's server.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The bead's id can't name a branch.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A branch of the chain's name is there, with work that no chain of the bead has made.
    #[error("use branch {branch}: it stands at {found}, and no chain of this bead made it")]
    BranchTaken {
        /// The branch.
        branch: String,
        /// Its commit.
        found: String,
    },
    /// git can't hold a branch below the name of another.
    #[error("make branch {branch}: there is a branch {taken}, and git can't have one below it")]
    BranchInTheWay {
        /// The branch.
        branch: String,
        /// The one that is there.
        taken: String,
    },
    /// Something else stands where the worktree would be made.
    #[error("make the worktree of {bead} at {path}: something else is there")]
    Occupied {
        /// The bead.
        bead: BeadId,
        /// The directory of the worktree.
        path: PathBuf,
    },
    /// The branch is checked out in another worktree.
    #[error("make the worktree of branch {branch} at {wanted}: the branch is checked out at {found}")]
    CheckedOut {
        /// The branch.
        branch: String,
        /// Where it is checked out.
        found: PathBuf,
        /// Where the chain would work.
        wanted: PathBuf,
    },
    /// This process could not be named.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The script has nothing for some roles.
    #[error("rehearse {formula}: the script {file} says nothing for {}", .roles.join(", "))]
    Uncovered {
        /// Formula.
        formula: String,
        /// Script.
        file: PathBuf,
        /// Roles without an entry.
        roles: Vec<String>,
    },
    /// The chain was begun on another model.
    #[error("go on with chain {chain}: it was begun {begun}, and is asked to go on {asked}")]
    OtherModel {
        /// The chain.
        chain: ChainId,
        /// How it was begun.
        begun: &'static str,
        /// How it is asked to go on.
        asked: &'static str,
    },
    /// The beads workspace is not the one that the chain was begun in.
    #[error("go on with chain {chain}: it was begun in beads workspace {begun}, this one is {found}")]
    OtherWorkspace {
        /// The chain.
        chain: ChainId,
        /// `project_id` then.
        begun: String,
        /// `project_id` now.
        found: String,
    },
    /// Another process runs the chain.
    #[error("{verb} chain {chain}: process {pid} runs it")]
    RunsElsewhere {
        /// What was asked.
        verb: &'static str,
        /// The chain.
        chain: ChainId,
        /// The process.
        pid: u32,
    },
    /// The chain is over.
    #[error("{verb} chain {chain}: it is {status}")]
    Over {
        /// What was asked.
        verb: &'static str,
        /// The chain.
        chain: ChainId,
        /// How it ended.
        status: &'static str,
    },
    /// A blocked chain needs a word from people.
    #[error("resume chain {chain}: it waits at {}", .steps.join(", "))]
    NeedsNote {
        /// The chain.
        chain: ChainId,
        /// The steps that wait.
        steps: Vec<String>,
    },
    /// The work is not in the base yet.
    #[error("publish chain {chain}: {branch} is not contained in {base} yet")]
    NotMerged {
        /// The chain.
        chain: ChainId,
        /// Its branch.
        branch: String,
        /// Where it should be contained.
        base: String,
    },
    /// No such step.
    #[error("{verb} chain {chain}: it has no step {step}")]
    NoSuchStep {
        /// What was asked.
        verb: &'static str,
        /// The chain.
        chain: ChainId,
        /// The step.
        step: StepId,
        /// The steps it has.
        steps: Vec<String>,
    },
    /// A step that is not blocked can't be accepted.
    #[error("accept {step} of chain {chain}: it is not blocked")]
    NotBlocked {
        /// The chain.
        chain: ChainId,
        /// The step.
        step: StepId,
    },
    /// A molecule of the bead is open, the database knows nothing of it, and it can't be gone on with.
    #[error("recover the chain of {bead}: bd has {} open and the database knows nothing of it; {why}", .molecules.join(", "))]
    Unrecorded {
        /// The bead.
        bead: BeadId,
        /// Open molecules.
        molecules: Vec<String>,
        /// Why it can't be gone on with.
        why: String,
    },
    /// A file of the chain could not be read or written.
    #[error("{what} {path}")]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// The log of the chain is not understood.
    #[error("read the log of chain {chain}: {reason}")]
    Log {
        /// The chain.
        chain: ChainId,
        /// Why not.
        reason: String,
    },
    /// The actor system did not come up or went away.
    #[error("run the actor system: {reason}")]
    System {
        /// Why not.
        reason: String,
    },
}

impl Explain for OrchestratorError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        match self {
            Self::Tracker(error) => error.explain(),
            Self::Workspace(error) => error.explain(),
            Self::Agent(error) => error.explain(),
            Self::Store(error) => error.explain(),
            Self::Formula(error) => error.explain(),
            Self::Shape(error) => error.explain(),
            Self::Refused(error) => error.explain(),
            Self::Script(error) => error.explain(),
            Self::Serve(error) => error.explain(),
            Self::Exec(error) => error.explain(),
            Self::Name(error) => error.explain(),
            Self::BranchTaken { branch, .. } => (
                FailureKind::Refused,
                "foreign_branch",
                format!(
                    "see whose it is: `git log {branch}`; then choose another bead, or give that branch another name"
                ),
            ),
            Self::BranchInTheWay { taken, .. } => (
                FailureKind::Refused,
                "branch_in_the_way",
                format!(
                    "give it another name, such as `git branch -m {taken} {taken}-old`, then run the same command again"
                ),
            ),
            Self::Occupied { path, .. } => (
                FailureKind::Refused,
                "worktree_occupied",
                format!("see what {} is, move it elsewhere, then run the same command again", path.display()),
            ),
            Self::CheckedOut { branch, .. } => (
                FailureKind::Refused,
                "branch_elsewhere",
                format!("choose another bead, or give {branch} another name where it is checked out"),
            ),
            Self::Uncovered { .. } => (
                FailureKind::Usage,
                "rehearsal_uncovered",
                "add an entry for each of these roles or steps to the script (docs/rehearsal.md)".into(),
            ),
            Self::OtherModel { chain, .. } => (
                FailureKind::Refused,
                "other_model",
                format!("go on as it was begun: `sp chain resume {chain}` without --rehearse, or with the same file"),
            ),
            Self::OtherWorkspace { .. } => (
                FailureKind::Tracker,
                "other_beads_workspace",
                "restore the .beads directory that the chain was begun in; see `bd context --json`".into(),
            ),
            Self::RunsElsewhere { chain, .. } => (
                FailureKind::Contested,
                "chain_runs_elsewhere",
                format!("watch it: `sp feed {chain} -f`; to stop it: `sp chain stop {chain}`"),
            ),
            Self::Over { chain, .. } => {
                (FailureKind::Refused, "chain_over", format!("see how it ended: `sp chain show {chain}`"))
            }
            Self::NeedsNote { chain, .. } => (
                FailureKind::Blocked,
                "needs_note",
                format!(
                    "read what stands in the way: `sp chain show {chain}`; then `sp chain resume {chain} --note TEXT \
                     [--from STEP]`"
                ),
            ),
            Self::NotMerged { branch, .. } => {
                (FailureKind::Refused, "not_merged", format!("merge first: `git merge --no-ff {branch}`"))
            }
            Self::NoSuchStep { steps, .. } => {
                (FailureKind::NotFound, "no_such_step", format!("its steps are {}", steps.join(", ")))
            }
            Self::NotBlocked { chain, .. } => {
                (FailureKind::Refused, "step_not_blocked", format!("see its steps: `sp chain show {chain}`"))
            }
            Self::Unrecorded { bead, .. } => (
                FailureKind::Refused,
                "chain_unrecorded",
                format!(
                    "restore .specialists/db; or, to begin anew, close what is open there with `bd close`, free the bead \
                     with `bd update {bead} --status open --assignee \"\"`, then run again"
                ),
            ),
            Self::File { path, .. } => {
                (FailureKind::Store, "chain_file", format!("look at {} and the free space there", path.display()))
            }
            Self::Log { chain, .. } => (
                FailureKind::Store,
                "chain_log",
                format!(
                    "the database was written by another sp, or is damaged: `sp feed {chain} --json` shows the log"
                ),
            ),
            Self::System { .. } => {
                (FailureKind::Internal, "actor_system", "run the same command again; nothing is lost".into())
            }
        }
    }

    fn blocked_by(&self) -> Vec<String> {
        match self {
            Self::Tracker(error) => error.blocked_by(),
            Self::Workspace(error) => error.blocked_by(),
            Self::Store(error) => error.blocked_by(),
            Self::Formula(error) => error.blocked_by(),
            Self::Shape(error) => error.blocked_by(),
            Self::Refused(error) => error.blocked_by(),
            Self::NeedsNote { steps, .. } => steps.clone(),
            Self::Unrecorded { molecules, .. } => molecules.clone(),
            _ => Vec::new(),
        }
    }

    fn diagnose_command(&self) -> Option<String> {
        match self {
            Self::Tracker(error) => error.diagnose_command(),
            Self::Workspace(error) => error.diagnose_command(),
            Self::Agent(error) => error.diagnose_command(),
            Self::Store(error) => error.diagnose_command(),
            Self::Refused(error) => error.diagnose_command(),
            Self::RunsElsewhere { chain, .. } | Self::NeedsNote { chain, .. } | Self::Over { chain, .. } => {
                Some(format!("sp chain show {chain}"))
            }
            Self::Unrecorded { bead, .. } => Some(format!("bd list --all --metadata-field sp_bead={bead}")),
            Self::BranchInTheWay { taken, .. } => Some(format!("git log --oneline {taken}")),
            Self::BranchTaken { branch, .. } => Some(format!("git log --oneline {branch}")),
            Self::Occupied { .. } | Self::CheckedOut { .. } => Some("git worktree list".to_owned()),
            _ => None,
        }
    }
}

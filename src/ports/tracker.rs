//! The tracker: beads, their dependencies and claims. The real one is bd; it alone decides what is ready.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::{Explain, FailureKind};
use crate::ids::{BeadId, ChainId, StepId};

/// What the tracker says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerInfo {
    /// Version of the program, such as `1.3.0`.
    pub version: String,
    /// Identity of the workspace; another one means another database.
    pub project_id: String,
    /// Prefix of its ids, such as `proj`.
    pub prefix: String,
    /// The `.beads` directory.
    pub beads_dir: PathBuf,
}

/// A tracker item: the fields sp acts on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Bead {
    /// Full id.
    pub id: String,
    /// Title.
    #[serde(default)]
    pub title: String,
    /// Status by bd's names: open, in_progress, blocked, deferred, closed, pinned, hooked.
    #[serde(default)]
    pub status: String,
    /// Type by bd's names: task, bug, feature, epic, molecule …
    #[serde(default)]
    pub issue_type: String,
    /// Long text; holds the contract of a root bead.
    #[serde(default)]
    pub description: String,
    /// Appended notes.
    #[serde(default)]
    pub notes: String,
    /// Who holds it.
    #[serde(default)]
    pub assignee: Option<String>,
    /// Labels, sorted.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Free metadata; sp's own keys begin with `sp_`.
    #[serde(default)]
    pub metadata: BTreeMap<String, Value>,
    /// Ids of open beads that block this one (direct `blocks` edges); filled by [`Tracker::show`] only.
    #[serde(default)]
    pub open_blockers: Vec<String>,
    /// Open children, filled by [`Tracker::show`] only.
    #[serde(default)]
    pub open_children: Vec<String>,
    /// Parent id.
    #[serde(default)]
    pub parent: Option<String>,
    /// Why it was closed.
    #[serde(default)]
    pub close_reason: Option<String>,
}

/// A bead to create in a graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphNode {
    /// Name within the plan.
    pub key: String,
    /// Explicit id.
    pub id: String,
    /// Title, at most 500 bytes.
    pub title: String,
    /// bd type.
    #[serde(rename = "type")]
    pub issue_type: String,
    /// Long text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Notes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// Priority 0–4.
    pub priority: u8,
    /// Labels.
    pub labels: Vec<String>,
    /// Metadata.
    pub metadata: BTreeMap<String, Value>,
    /// Key of the parent node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_key: Option<String>,
}

/// An edge of a graph: FROM depends on TO. Exactly one of key and id is set on each side.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct GraphEdge {
    /// Node of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_key: Option<String>,
    /// Existing bead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_id: Option<String>,
    /// Node of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_key: Option<String>,
    /// Existing bead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_id: Option<String>,
    /// Edge type by bd's names, such as `blocks` or `validates`.
    #[serde(rename = "type")]
    pub edge_type: String,
}

/// Beads and edges to create in one transaction.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct GraphPlan {
    /// Text of the tracker's commit.
    pub commit_message: String,
    /// Beads.
    pub nodes: Vec<GraphNode>,
    /// Edges.
    pub edges: Vec<GraphEdge>,
}

/// What came of a pour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pour {
    /// The beads were created now.
    Created,
    /// They were there already: an earlier pour of the same plan went through.
    AlreadyThere,
}

/// What came of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimAnswer {
    /// The asking actor holds the bead.
    Claimed,
    /// Somebody else holds it.
    HeldBy(String),
    /// It is not ready: blocked, closed or in another status.
    NotReady {
        /// bd's status word.
        status: String,
    },
}

/// What came of giving a bead back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// It is free now.
    Released,
    /// The named holder did not hold it; nothing changed.
    NotHeld,
}

/// One line of an atomic batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchOp {
    /// Closes a bead. Checks neither holder nor blockers.
    Close {
        /// The bead.
        bead: BeadId,
        /// Why.
        reason: String,
    },
    /// Sets status and holder. An empty assignee clears it.
    Update {
        /// The bead.
        bead: BeadId,
        /// bd's status word.
        status: &'static str,
        /// Holder; empty clears, `None` leaves it.
        assignee: Option<String>,
    },
}

/// The tracker. Each call is one bd command (plus a look where the answer was not clear) and may take a second.
///
/// Implementations don't queue or lock between processes on their own account beyond one command; the Tracker actor
/// sends one call at a time.
#[async_trait]
pub trait Tracker: Send + Sync + 'static {
    /// Asks version and identity of the workspace; fails typed when bd is missing, unsupported or has no workspace.
    async fn probe(&self) -> Result<TrackerInfo, TrackerError>;

    /// Reads one bead with its direct open blockers and open children; `None` when there is no such bead.
    async fn show(&self, bead: &BeadId) -> Result<Option<Bead>, TrackerError>;

    /// Reads the direct children of a bead in every status.
    async fn children(&self, parent: &BeadId) -> Result<Vec<Bead>, TrackerError>;

    /// Finds molecules poured for a contract bead (metadata `sp_bead`), open or closed.
    async fn molecules_of(&self, bead: &BeadId) -> Result<Vec<Bead>, TrackerError>;

    /// Lists every unassigned step bead that bd calls ready, of all chains, in bd's order.
    async fn ready_steps(&self) -> Result<Vec<BeadId>, TrackerError>;

    /// Claims one step, if it is ready, in one transaction of bd.
    async fn claim_step(&self, chain: &ChainId, step: &StepId, actor: &str) -> Result<ClaimAnswer, TrackerError>;

    /// Marks a contract bead as a chain's: in progress, held by `sp/<chain>`, with the chain's id in its metadata
    /// (`sp_chain`). The same again changes nothing; what another holds is refused.
    async fn hold(&self, bead: &BeadId, chain: &ChainId) -> Result<(), TrackerError>;

    /// Gives a bead back if `holder` still holds it.
    async fn release(&self, bead: &BeadId, holder: &str, reason: &str) -> Result<Release, TrackerError>;

    /// Appends text to a bead's notes.
    async fn append_note(&self, bead: &BeadId, text: &str, actor: &str) -> Result<(), TrackerError>;

    /// Applies all operations in one transaction, or none.
    async fn batch(&self, operations: &[BatchOp], message: &str) -> Result<(), TrackerError>;

    /// Asks whether a graph may be created, and creates nothing. Looks at the plan alone: its structure, types, ids and
    /// cycles, but not whether the existing beads of its edges are there.
    async fn check_pour(&self, plan: &GraphPlan) -> Result<(), TrackerError>;

    /// Creates a graph in one transaction, or finds that it is there.
    async fn pour(&self, plan: &GraphPlan) -> Result<Pour, TrackerError>;

    /// Makes a worktree on an existing branch.
    async fn create_worktree(&self, path: &Path, branch: &str) -> Result<(), TrackerError>;
}

/// Why a call to the tracker gave nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrackerError {
    /// bd is not installed.
    #[error("run `bd {verb}`: there is no executable `{program}`")]
    Missing {
        /// The command.
        verb: &'static str,
        /// What was looked for.
        program: String,
    },
    /// bd is installed in a version that sp doesn't know.
    #[error("use {program}: it is version {found}, needed is {needed}")]
    Unsupported {
        /// The program.
        program: String,
        /// Its version.
        found: String,
        /// The supported range.
        needed: &'static str,
    },
    /// The repository has no beads workspace.
    #[error("open the beads workspace of {repository}: there is none")]
    NoWorkspace {
        /// The repository.
        repository: PathBuf,
    },
    /// The workspace lacks a part without which bd would open another database.
    #[error("open the beads workspace {beads_dir}: its {missing} is missing")]
    Damaged {
        /// The `.beads` directory.
        beads_dir: PathBuf,
        /// What is missing in it.
        missing: &'static str,
    },
    /// The bead does not exist.
    #[error("{verb} bead {bead}: no such bead")]
    NotFound {
        /// The command.
        verb: &'static str,
        /// The bead.
        bead: BeadId,
    },
    /// bd refused the request, with its reason.
    #[error("run `bd {verb}`: {reason}")]
    Refused {
        /// The command.
        verb: &'static str,
        /// bd's own text.
        reason: String,
    },
    /// bd failed in a way that may pass: lock, disk, crash.
    #[error("run `bd {verb}`: {reason}")]
    Failed {
        /// The command.
        verb: &'static str,
        /// bd's own text, shortened.
        reason: String,
    },
    /// bd did not answer in time; whether it acted is unknown.
    #[error("run `bd {verb}`: no answer within {seconds} s")]
    TimedOut {
        /// The command.
        verb: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// The answer was not understood.
    #[error("read the answer of `bd {verb}`")]
    Garbled {
        /// The command.
        verb: &'static str,
        /// What the decoder says.
        #[source]
        source: serde_json::Error,
    },
    /// The system would not start bd or lock the workspace.
    #[error("run `bd {verb}`")]
    Io {
        /// The command.
        verb: &'static str,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
}

impl Explain for TrackerError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        match self {
            Self::Missing { .. } => (
                FailureKind::Unusable,
                "bd_missing",
                "install bd 1.3 (README, section Install), then `sp doctor`".into(),
            ),
            Self::Unsupported { needed, .. } => {
                let next =
                    format!("install bd {needed} (README, section Install) or name one with SP_BD, then `sp doctor`");
                (FailureKind::Unusable, "bd_unsupported", next)
            }
            Self::NoWorkspace { .. } => {
                let next = "make one in the root of the main checkout: `bd init --prefix proj --stealth --skip-hooks \
                            --skip-agents --quiet --non-interactive --init-if-missing`, with a prefix of your choice for \
                            proj (README, section Install)";
                (FailureKind::Unusable, "no_beads_workspace", next.into())
            }
            Self::Damaged { missing, .. } => {
                let next = format!(
                    "put {missing} back from a backup; don't let bd run there before, it would open an empty database"
                );
                (FailureKind::Unusable, "beads_workspace_damaged", next)
            }
            Self::NotFound { .. } => (
                FailureKind::NotFound,
                "bead_not_found",
                "give the full id of a bead: `bd list` shows the open ones".into(),
            ),
            Self::Refused { .. } => (
                FailureKind::Refused,
                "bd_refused",
                "change what bd objects to, then run the same command again".into(),
            ),
            Self::Failed { .. } => {
                let next = "see that disk and `.beads` are sound (`sp doctor`), then run the same command again";
                (FailureKind::Tracker, "bd_failed", next.into())
            }
            Self::TimedOut { .. } => {
                let next = "run the same command again: it looks first what came of this one";
                (FailureKind::Tracker, "bd_timed_out", next.into())
            }
            Self::Garbled { .. } => {
                let next = "see which bd is used (`sp doctor`), then run the same command again";
                (FailureKind::Tracker, "bd_garbled", next.into())
            }
            Self::Io { .. } => {
                let next = "mend what the system objects to, then run the same command again";
                (FailureKind::Tracker, "bd_io", next.into())
            }
        }
    }

    fn diagnose_command(&self) -> Option<String> {
        match self {
            Self::NotFound { .. } => Some("bd list".into()),
            Self::Refused { .. } => None,
            Self::Missing { .. }
            | Self::Unsupported { .. }
            | Self::NoWorkspace { .. }
            | Self::Damaged { .. }
            | Self::Failed { .. }
            | Self::TimedOut { .. }
            | Self::Garbled { .. }
            | Self::Io { .. } => Some("sp doctor".into()),
        }
    }
}

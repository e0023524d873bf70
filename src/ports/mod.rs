//! The seams of the system: what the core asks of the world, as traits.
//!
//! The real adapters (`beads`, `pi`, `git`, `exec`) implement them and are the defaults; an embedding program or a test
//! may hand in others.

mod agent;
mod clock;
mod exec;
mod tracker;
mod workspace;

pub use agent::{Agent, AgentError, Launch, ModelSource, Tool};
pub use clock::{Clock, SystemClock};
pub use exec::{Child, ExecBackend, ExecError, ExitReport, Program, Spawned};
pub use tracker::{
    BatchOp, Bead, ClaimAnswer, GraphEdge, GraphNode, GraphPlan, Pour, Release, Tracker, TrackerError, TrackerInfo,
};
pub use workspace::{
    Commit, CommitRequest, DiffStat, Identity, PathChange, RepoFacts, Restored, TreeState, Workspace, WorkspaceError,
};

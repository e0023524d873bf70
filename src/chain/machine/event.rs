//! The facts of a chain, stored for ever. A chain is the fold of its events and of nothing else.

use serde::{Deserialize, Serialize};

use super::state::{Blocked, Limits, Scrutinies};
use crate::chain::shape::Shape;
use crate::chain::verdict::Verdict;
use crate::ids::{BeadId, ChainId, JobId, StepId};

/// How a chain begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// Id of the chain and of its molecule.
    pub chain: ChainId,
    /// Contract bead.
    pub bead: BeadId,
    /// Steps and their order.
    pub shape: Shape,
    /// Bounds.
    pub limits: Limits,
    /// Scrutiny.
    pub scrutiny: Scrutinies,
    /// Commit that the branch starts from.
    pub base: String,
    /// Epoch of the ownership row.
    pub incarnation: u64,
    /// Whether its models are a script.
    #[serde(default)]
    pub rehearsal: bool,
}

/// Who closed a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosedBy {
    /// The chain, after its job passed.
    Job,
    /// A person, in bd or by `--accept`.
    Operator,
}

/// Who opened a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A gate that failed.
    Gate(StepId),
    /// The operator, by a note.
    Operator,
    /// The branch was moved by hand after a gate had judged it.
    Moved,
}

/// Where a step stands by what bd knows of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Standing {
    /// Open, or in a state that is read again before anything is done.
    Pending,
    /// Held by an incarnation of ours whose job did not settle, as far as is known.
    Held,
    /// Passed and noted; its bead is to be closed.
    Closing,
    /// Passed and closed.
    Closed {
        /// Who closed it.
        by: ClosedBy,
    },
    /// Waits for people, and bd knows.
    Blocked {
        /// Why.
        why: Blocked,
    },
}

/// A step by what bd knows of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveredStep {
    /// Step.
    pub step: StepId,
    /// Where it stands.
    pub stands: Standing,
    /// Its round.
    pub round: u32,
    /// Its newest incarnation, 0 before the first.
    pub epoch: u32,
    /// The job that passed.
    pub job: Option<JobId>,
    /// Commit that the job made or judged.
    pub commit: Option<String>,
    /// One line about its answer.
    pub summary: Option<String>,
    /// What its round asks of it.
    pub findings: Option<String>,
    /// Gate whose findings these are.
    pub sent_back_by: Option<StepId>,
}

/// A fact. Past tense; new kinds may be added, none is ever changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChainEvent {
    /// The chain began. Always the first.
    Opened(Box<Opening>),
    /// Another process incarnation took the chain over.
    Adopted {
        /// Epoch of the ownership row.
        incarnation: u64,
    },
    /// bd was read again after a take-over.
    Reread,
    /// The log was lost: this is what bd knows of the chain.
    Recovered {
        /// Newest round, from 1.
        round: u32,
        /// Rounds that gates opened.
        loops_used: u32,
        /// Every step, in order.
        steps: Vec<RecoveredStep>,
    },
    /// The molecule is in bd.
    Poured,
    /// The contract bead is held by the chain.
    RootHeld,
    /// The worktree is there.
    TreeReady {
        /// Directory, absolute.
        path: String,
        /// Branch.
        branch: String,
        /// Commit of HEAD.
        head: String,
        /// Whether it was found; else it was made. Older logs don't say.
        #[serde(default)]
        reused: bool,
    },
    /// An incarnation of a step is going to claim its bead.
    StepClaiming {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
    },
    /// The claim was not had; the step waits again.
    ClaimLost {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// Who holds it, or bd's status.
        why: String,
    },
    /// The bead is claimed; its job is to run.
    StepDispatched {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// Job.
        job: JobId,
    },
    /// The job was stopped before it settled.
    StepInterrupted {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
    },
    /// The activation failed; nothing of it counts.
    JobFailed {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// Stable code.
        code: String,
        /// What happened.
        detail: String,
    },
    /// The job answered.
    JobAnswered {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// What its answer means.
        verdict: Verdict,
        /// One line about it.
        summary: String,
    },
    /// The worktree is settled after the job: committed or compared.
    WorkSettled {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// Commit of HEAD afterwards.
        head: String,
    },
    /// A commit touches what calls for more scrutiny than the scope did.
    ScrutinyRaised {
        /// The level that counts from here on.
        to: String,
        /// Which path touches what.
        why: String,
    },
    /// The step passed, on this commit.
    StepPassed {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
        /// Commit that it made or judged.
        commit: String,
    },
    /// The operator passed a blocked step by hand.
    StepAccepted {
        /// Step.
        step: StepId,
        /// Newest commit of the writers above it.
        commit: String,
    },
    /// The evidence of a passed step is in bd.
    EvidenceNoted {
        /// Step.
        step: StepId,
        /// Its incarnation.
        epoch: u32,
    },
    /// The step's bead is closed.
    StepClosed {
        /// Step.
        step: StepId,
        /// Who closed it.
        by: ClosedBy,
    },
    /// A round is to begin: these steps are to be reopened.
    RoundOpened {
        /// Its number.
        round: u32,
        /// Who asked.
        cause: Cause,
        /// Step that works first.
        to: StepId,
        /// Steps to reopen, in order.
        steps: Vec<StepId>,
        /// What the round asks.
        findings: String,
    },
    /// The evidence of the failed gate is in bd.
    RoundNoted {
        /// Number of the round.
        round: u32,
    },
    /// The steps of the round are open in bd.
    RoundReopened {
        /// Number of the round.
        round: u32,
    },
    /// A step waits for people.
    StepBlocked {
        /// Step.
        step: StepId,
        /// Why.
        why: Blocked,
    },
    /// bd knows that the step waits for people.
    BlockNoted {
        /// Step.
        step: StepId,
    },
    /// Nothing runs any more and a step waits for people.
    ChainBlocked,
    /// A stop was asked for.
    StopRequested {
        /// By whom or what.
        why: String,
    },
    /// Nothing runs any more, as was asked for.
    ChainStopped {
        /// By whom or what.
        why: String,
    },
    /// The operator wants a step worked again, with a note.
    ResumeAsked {
        /// What the operator says.
        note: String,
        /// Step that works first; the blocked one by default.
        from: Option<StepId>,
    },
    /// There was nothing to work again.
    ResumeDropped,
    /// Every step is closed.
    ChainReady {
        /// Newest commit of the branch.
        tip: String,
    },
    /// The work is contained in the base; the beads are to be closed.
    PublishRequested,
    /// The work is contained in the base and the beads are closed.
    Published {
        /// Newest commit of the branch.
        tip: String,
    },
    /// The operator gives the chain up.
    AbandonRequested {
        /// Why.
        reason: String,
    },
    /// The molecule is closed and the contract bead free.
    Abandoned {
        /// Why.
        reason: String,
    },
    /// Somebody else ended the chain.
    Cancelled {
        /// What was seen.
        why: String,
    },
    /// A durable remark that decides nothing.
    Remarked {
        /// Stable code, such as `readiness_divergence`.
        code: String,
        /// Step it is about.
        step: Option<StepId>,
        /// What was seen.
        detail: String,
    },
}

//! What a chain's events fold into.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::chain::shape::{Class, Shape, Step, Writer};
use crate::chain::verdict::Verdict;
use crate::ids::{BeadId, ChainId, JobId, StepId};

/// How often a chain may try before people are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Fix rounds that gates may open, in the whole chain.
    pub fix_loops: u32,
    /// Failed activations of one step in one round that are tried again.
    pub retries: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { fix_loops: 2, retries: 1 }
    }
}

/// How hard the chain looks: as stated, and after the floors of the surfaces it touches. By name, see `chain::scrutiny`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrutinies {
    /// As the contract or the operator stated it.
    pub stated: String,
    /// Never below `stated`.
    pub effective: String,
}

/// The worktree of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// Directory, absolute.
    pub path: String,
    /// Branch checked out there.
    pub branch: String,
    /// Newest commit that sp knows of; moves only with a writer's settled work.
    pub head: String,
}

/// Where the whole chain stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// Its row is durable; the molecule may or may not be poured.
    Opened,
    /// The molecule is poured; the contract bead is not yet held.
    Poured,
    /// The contract bead is held; the worktree is not yet there.
    Held,
    /// Steps run.
    Running,
    /// Waits for people.
    Blocked,
    /// Stopped on request or by a fault outside the steps; resumable.
    Stopped {
        /// Why.
        why: String,
    },
    /// Every step is closed; the molecule is still open.
    Ready,
    /// Its work is contained in the base and the beads are closed.
    Published,
    /// Given up by the operator.
    Abandoned,
    /// Ended by somebody else: the contract bead or the molecule was closed.
    Cancelled {
        /// Why.
        why: String,
    },
}

impl Status {
    /// Returns whether nothing can happen to the chain any more.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Published | Self::Abandoned | Self::Cancelled { .. })
    }
}

/// Why a step waits for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// Stable code, snake case, such as `no_verdict`.
    pub code: String,
    /// What happened, for people.
    pub detail: String,
}

/// What an activated step is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// The intention to claim is stored; bd may or may not have heard of it.
    Claiming,
    /// Claimed; the job is to be started, or runs.
    Running,
    /// The job was stopped before it settled; claimed still.
    Interrupted,
    /// The job settled; the worktree is to be settled: committed or compared.
    Settling {
        /// What the job came to.
        verdict: Verdict,
    },
    /// Passed; the evidence is to be noted in bd.
    Noting,
    /// The evidence is noted; the bead is to be closed.
    Closing,
}

/// Where one step stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Open in bd; waits until bd calls it ready.
    Pending,
    /// Ours at present.
    Active(Activity),
    /// Passed and closed in bd.
    Closed,
    /// Waits for people; bd may not know yet.
    Blocked {
        /// Why.
        why: Blocked,
        /// Whether bd knows.
        noted: bool,
    },
}

/// What is known of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepState {
    /// Where it stands.
    pub phase: Phase,
    /// Round in which it runs, from 1.
    pub round: u32,
    /// Newest incarnation, from 1; 0 before the first. Never falls, also not with a new round.
    pub epoch: u32,
    /// Failed activations in this round.
    pub failures: u32,
    /// Newest job of this step, in whatever round.
    pub job: Option<JobId>,
    /// Commit that the chain stood at when the step was first dispatched in this round.
    pub before: Option<String>,
    /// Writers: newest commit of their own. Others: the commit they judged.
    pub commit: Option<String>,
    /// What this round asks of the step: findings of a gate or a note of the operator.
    pub findings: Option<String>,
    /// Gate whose findings these are; `None` for the operator's note.
    pub sent_back_by: Option<StepId>,
    /// One line about the answer, for people.
    pub summary: Option<String>,
    /// Whether another writer worked in the tree while this step ran.
    pub shared: bool,
    /// Passed by a person's hand.
    pub by_operator: bool,
}

impl StepState {
    fn new() -> Self {
        Self {
            phase: Phase::Pending,
            round: 1,
            epoch: 0,
            failures: 0,
            job: None,
            before: None,
            commit: None,
            findings: None,
            sent_back_by: None,
            summary: None,
            shared: false,
            by_operator: false,
        }
    }

    /// Returns what the step is at, if it is active.
    pub fn activity(&self) -> Option<&Activity> {
        match &self.phase {
            Phase::Active(activity) => Some(activity),
            Phase::Pending | Phase::Closed | Phase::Blocked { .. } => None,
        }
    }
}

/// A fix round whose beads are not reopened yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reopening {
    /// Number of the round.
    pub round: u32,
    /// Step that works first.
    pub to: StepId,
    /// Gate that failed, whose evidence is to be noted; `None` when the operator asked.
    pub gate: Option<StepId>,
    /// Whether the evidence is noted.
    pub noted: bool,
    /// Steps to reopen, in order; `to` is the first.
    pub steps: Vec<StepId>,
    /// What the round asks.
    pub findings: String,
}

/// What a chain's events fold into.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainState {
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
    /// Whether its models are a script.
    pub rehearsal: bool,
    /// Where the chain stands.
    pub status: Status,
    /// Its worktree, once made.
    pub tree: Option<Tree>,
    /// Its steps.
    pub steps: BTreeMap<StepId, StepState>,
    /// Newest round, from 1.
    pub round: u32,
    /// Rounds that gates opened.
    pub loops_used: u32,
    /// A round on its way.
    pub reopening: Option<Reopening>,
    /// Whether a stop was asked for.
    pub stopping: Option<String>,
    /// Process incarnation that owns the chain: the epoch of its ownership row.
    pub incarnation: u64,
    /// Whether the worktree must be looked for again before anything runs in it: it may have been removed meanwhile.
    pub must_find_tree: bool,
    /// Whether bd must be read again before anything is claimed.
    pub must_reread: bool,
    /// Whether the operator gave the chain up and bd does not know yet.
    pub abandoning: Option<String>,
    /// Whether the work is in the base and bd does not know yet.
    pub publishing: bool,
    /// What the operator asked for and no round answers yet: note, and step that works first.
    pub asked: Option<(String, Option<StepId>)>,
    /// Remarks that are recorded already: (code, step).
    pub remarks: BTreeSet<(String, Option<StepId>)>,
}

impl ChainState {
    /// Returns the state right after a chain was opened.
    pub(super) fn opened(opening: &super::Opening) -> Self {
        let steps = opening.shape.steps.iter().map(|step| (step.id.clone(), StepState::new())).collect();
        Self {
            chain: opening.chain.clone(),
            bead: opening.bead.clone(),
            shape: opening.shape.clone(),
            limits: opening.limits,
            scrutiny: opening.scrutiny.clone(),
            base: opening.base.clone(),
            rehearsal: opening.rehearsal,
            status: Status::Opened,
            tree: None,
            steps,
            round: 1,
            loops_used: 0,
            reopening: None,
            stopping: None,
            incarnation: opening.incarnation,
            must_find_tree: false,
            must_reread: false,
            abandoning: None,
            publishing: false,
            asked: None,
            remarks: BTreeSet::new(),
        }
    }

    /// Returns the job of a step in its present round.
    pub fn job_of(&self, step: &StepId, round: u32) -> JobId {
        job_id(&self.chain, step, round)
    }

    /// Returns the active steps in order.
    pub fn active(&self) -> impl Iterator<Item = (&Step, &StepState, &Activity)> {
        self.in_order().filter_map(|(step, state)| state.activity().map(|activity| (step, state, activity)))
    }

    /// Returns every step with its state, in order.
    pub fn in_order(&self) -> impl Iterator<Item = (&Step, &StepState)> {
        self.shape.steps.iter().filter_map(|step| self.steps.get(&step.id).map(|state| (step, state)))
    }

    /// Returns whether a writer is active.
    pub fn writer_active(&self) -> bool {
        self.active().any(|(step, _, _)| step.writer.is_some())
    }

    /// Returns whether a step waits for people.
    pub fn has_blocked_step(&self) -> bool {
        self.steps.values().any(|state| matches!(state.phase, Phase::Blocked { .. }))
    }

    /// Returns whether nothing of the chain runs: no claim, job, commit, note or close is under way.
    pub fn at_rest(&self) -> bool {
        self.active().all(|(_, _, activity)| *activity == Activity::Interrupted)
    }

    /// Returns whether something that was asked for is stored and not carried out: a process died over it.
    pub fn is_in_debt(&self) -> bool {
        let unnoted = |state: &StepState| matches!(state.phase, Phase::Blocked { noted: false, .. });
        self.asked.is_some()
            || self.abandoning.is_some()
            || self.publishing
            || self.reopening.is_some()
            || !self.at_rest()
            || self.steps.values().any(unnoted)
    }

    /// Returns whether a running job of this step is unwanted: a stop, an abandonment or a round is on its way.
    pub fn is_halting(&self, step: &StepId) -> bool {
        self.stopping.is_some()
            || self.abandoning.is_some()
            || self.reopening.as_ref().is_some_and(|reopening| reopening.steps.contains(step))
    }

    /// Returns whether every step is closed.
    pub fn all_closed(&self) -> bool {
        self.steps.values().all(|state| state.phase == Phase::Closed)
    }

    /// Returns the steps that the graph alone would call ready. Never used to dispatch: only compared with bd's answer.
    pub fn expected_ready(&self) -> BTreeSet<StepId> {
        let closed = |id: &StepId| self.steps.get(id).is_some_and(|state| state.phase == Phase::Closed);
        self.in_order()
            .filter(|(step, state)| state.phase == Phase::Pending && step.needs.iter().all(closed))
            .map(|(step, _)| step.id.clone())
            .collect()
    }

    /// Returns whether asking bd for ready steps can lead to anything now.
    pub fn wants_ready(&self) -> bool {
        self.status == Status::Running
            && !self.must_reread
            && !self.must_find_tree
            && self.stopping.is_none()
            && self.abandoning.is_none()
            && self.reopening.is_none()
            && !self.has_blocked_step()
            && self.steps.values().any(|state| state.phase == Phase::Pending)
    }

    /// Returns the newest commit of the writers upstream of a step; the base if there is none.
    pub fn upstream_commit(&self, step: &StepId) -> &str {
        self.shape
            .ancestors(step)
            .into_iter()
            .rev()
            .filter(|above| above.writer.is_some())
            .find_map(|above| self.steps.get(&above.id)?.commit.as_deref())
            .unwrap_or(&self.base)
    }

    /// Returns the writer that stands for what people did on the branch by hand: the last one that worked or was passed
    /// by hand. `None` while something of the chain runs that may have moved the branch itself.
    pub(super) fn writer_of_moves(&self) -> Option<StepId> {
        if self.active().any(|(_, state, _)| !state.by_operator) {
            return None;
        }
        let worked = |(step, state): &(&Step, &StepState)| {
            step.writer.is_some() && (state.commit.is_some() || state.by_operator)
        };
        self.in_order().filter(worked).last().map(|(step, _)| step.id.clone())
    }

    /// Returns the first gate, in order, that passed on another commit than the newest of the writers above it.
    pub(super) fn stale_gate(&self) -> Option<StepId> {
        let is_stale = |(step, state): &(&Step, &StepState)| {
            step.class == Class::Gate
                && state.phase == Phase::Closed
                && state.commit.as_deref().is_some_and(|judged| judged != self.upstream_commit(&step.id))
        };
        self.in_order().find(is_stale).map(|(step, _)| step.id.clone())
    }

    /// Returns the writer nearest above a step, of the given rank.
    pub fn writer_above(&self, step: &StepId, rank: Writer) -> Option<&StepId> {
        self.shape.ancestors(step).into_iter().rev().find(|above| above.writer == Some(rank)).map(|above| &above.id)
    }
}

/// Returns the id of the job that runs a step in a round: eight base-36 characters of a hash, so that the same
/// activation has the same id in every incarnation.
pub fn job_id(chain: &ChainId, step: &StepId, round: u32) -> JobId {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let hash = Sha256::digest(format!("{chain}/{step}/{round}"));
    let mut number = hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let mut text = String::with_capacity(8);
    for _ in 0..8 {
        text.push(char::from(DIGITS[(number % 36) as usize]));
        number /= 36;
    }
    JobId::new(text)
}

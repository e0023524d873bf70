//! The facts of an envelope, from the shape of the chain and how far each step is.

use std::collections::{BTreeMap, BTreeSet};

use crate::chain::scrutiny::Scrutiny;
use crate::chain::shape::{Class, Shape, Step};
use crate::failure::{Explain, FailureKind};
use crate::ids::{BeadId, ChainId, JobId, StepId};

use super::envelope::{EnvelopeClass, EnvelopeFacts, LISTED, PendingStep, Position, StepStatus, UpstreamStep};

/// How far one step is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepProgress {
    /// Status.
    pub status: StepStatus,
    /// Newest job.
    pub job: Option<JobId>,
}

/// Why there are no facts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FactsError {
    /// The shape has no such step.
    #[error("describe step {step} of chain {chain}: its shape has no such step")]
    NoStep {
        /// The chain.
        chain: ChainId,
        /// The step.
        step: StepId,
    },
}

impl Explain for FactsError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        let Self::NoStep { chain, .. } = self;
        (FailureKind::NotFound, "step_not_found", format!("see the steps of the chain: `sp chain show {chain}`"))
    }
}

/// Describes where a step stands. A step without an entry in `progress` is pending.
///
/// `scrutiny` is (stated, effective). Completeness speaks of the lists alone; [`super::compose()`] adds what the prompt
/// leaves out.
pub fn facts_from(
    shape: &Shape,
    chain: &ChainId,
    root_bead: &BeadId,
    step: &StepId,
    scrutiny: (Scrutiny, Scrutiny),
    progress: &BTreeMap<StepId, StepProgress>,
    worktree: &str,
) -> Result<EnvelopeFacts, FactsError> {
    let current = shape.step(step).ok_or_else(|| FactsError::NoStep { chain: chain.clone(), step: step.clone() })?;
    let ancestors = shape.ancestors(step);
    let before: BTreeSet<&StepId> = ancestors.iter().map(|step| &step.id).collect();
    let distances = distances(shape, current);
    let status = |id: &StepId| progress.get(id).map_or(StepStatus::Pending, |progress| progress.status);
    let mut upstream: Vec<UpstreamStep> = ancestors
        .iter()
        .map(|step| UpstreamStep {
            role: step.role.clone(),
            bead: chain.step_bead(&step.id),
            job: progress.get(&step.id).and_then(|progress| progress.job.clone()),
            status: status(&step.id),
            distance: distances.get(&step.id).copied().unwrap_or(u32::MAX),
        })
        .collect();
    let mut pending: Vec<PendingStep> = shape
        .steps
        .iter()
        .filter(|other| other.id != *step && !before.contains(&other.id) && status(&other.id) != StepStatus::Completed)
        .map(|other| PendingStep {
            role: other.role.clone(),
            bead: chain.step_bead(&other.id),
            status: status(&other.id),
            class: class(other),
            consumes: other.needs.contains(step),
        })
        .collect();
    let upstream_complete = upstream.len() <= LISTED;
    let pending_complete = pending.len() <= LISTED;
    keep_nearest(&mut upstream);
    pending.truncate(LISTED);
    Ok(EnvelopeFacts {
        chain: chain.clone(),
        template: shape.formula.clone(),
        root_bead: root_bead.clone(),
        step_bead: chain.step_bead(step),
        role: current.role.clone(),
        class: class(current),
        position: position(shape, current),
        stated: scrutiny.0,
        effective: scrutiny.1,
        preload_depth: upstream.iter().map(|step| step.distance).max().unwrap_or(0),
        upstream,
        upstream_complete,
        pending,
        preload_complete: upstream_complete && pending_complete,
        worktree: worktree.to_owned(),
    })
}

fn class(step: &Step) -> EnvelopeClass {
    match step.class {
        _ if step.advisor => EnvelopeClass::Advisor,
        Class::Step => EnvelopeClass::Step,
        Class::Gate => EnvelopeClass::Gate,
    }
}

fn position(shape: &Shape, step: &Step) -> Position {
    if shape.descendants(&step.id).is_empty() {
        Position::Final
    } else if step.needs.is_empty() {
        Position::First
    } else {
        Position::Middle
    }
}

/// The number of `needs` from a step to each of its ancestors, along the shortest way.
fn distances<'a>(shape: &'a Shape, step: &'a Step) -> BTreeMap<&'a StepId, u32> {
    let mut distances = BTreeMap::new();
    let mut level: BTreeSet<&StepId> = step.needs.iter().collect();
    let mut distance = 1;
    while !level.is_empty() {
        for id in &level {
            distances.entry(*id).or_insert(distance);
        }
        let needs = level.iter().filter_map(|id| shape.step(id)).flat_map(|step| &step.needs);
        level = needs.filter(|id| !distances.contains_key(id)).collect();
        distance += 1;
    }
    distances
}

/// Keeps the [`LISTED`] nearest steps in their order.
fn keep_nearest(upstream: &mut Vec<UpstreamStep>) {
    while upstream.len() > LISTED {
        let farthest = (0..upstream.len()).rev().max_by_key(|&at| upstream[at].distance).unwrap_or(0);
        upstream.remove(farthest);
    }
}

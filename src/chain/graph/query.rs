//! Questions about a shape. Readiness is not one of them: bd answers that.

use std::collections::{BTreeMap, BTreeSet};

use super::dag::Dag;
use crate::chain::shape::{Shape, Step, Writer};
use crate::ids::StepId;

/// Returns the steps by waves: all of one could run at once if bd were to call them ready together.
pub fn waves(shape: &Shape) -> Vec<Vec<StepId>> {
    let ids = |level: Vec<&str>| level.into_iter().map(StepId::from).collect();
    Dag::of(shape).levels().into_iter().map(ids).collect()
}

/// Returns the heaviest path from start to end, and its weight.
///
/// `weight` gives what a step costs, in any unit. Of equals the path whose steps come first in the shape wins.
pub fn critical_path(shape: &Shape, weight: impl Fn(&Step) -> u64) -> (Vec<StepId>, u64) {
    // Weight of the heaviest path that ends with a step, and the step before it. The shape is in order.
    let mut heaviest: BTreeMap<&StepId, (u64, Option<&StepId>)> = BTreeMap::new();
    let mut end: Option<(&StepId, u64)> = None;
    for step in &shape.steps {
        let mut before: Option<(u64, &StepId)> = None;
        for earlier in shape.steps.iter().filter(|earlier| step.needs.contains(&earlier.id)) {
            let (total, _) = heaviest.get(&earlier.id).copied().unwrap_or_default();
            if before.is_none_or(|(most, _)| total > most) {
                before = Some((total, &earlier.id));
            }
        }
        let total = before.map_or(0, |(total, _)| total).saturating_add(weight(step));
        heaviest.insert(&step.id, (total, before.map(|(_, id)| id)));
        if end.is_none_or(|(_, most)| total > most) {
            end = Some((&step.id, total));
        }
    }
    let Some((last, total)) = end else { return (Vec::new(), 0) };
    let mut path = vec![last.clone()];
    let mut at = last;
    while let Some((_, Some(before))) = heaviest.get(at) {
        path.push((*before).clone());
        at = before;
    }
    path.reverse();
    (path, total)
}

/// Returns what runs again when `writer` gets another round: the writer and all that depends on it, in order.
pub fn sent_back(shape: &Shape, writer: &StepId) -> Vec<StepId> {
    let again: BTreeSet<&StepId> = shape.descendants(writer).into_iter().map(|step| &step.id).chain([writer]).collect();
    shape.steps.iter().map(|step| &step.id).filter(|id| again.contains(id)).cloned().collect()
}

/// Returns the writers upstream of a step, in order: the newest commit of these is what a gate must have judged.
pub fn upstream_writers<'a>(shape: &'a Shape, step: &StepId) -> Vec<&'a Step> {
    shape.ancestors(step).into_iter().filter(|step| step.writer.is_some()).collect()
}

/// Returns the last writer of this kind upstream of a step: the one that answers for what the step judges.
pub fn answering_writer<'a>(shape: &'a Shape, step: &StepId, kind: Writer) -> Option<&'a Step> {
    upstream_writers(shape, step).into_iter().rfind(|step| step.writer == Some(kind))
}

#[cfg(test)]
mod tests;

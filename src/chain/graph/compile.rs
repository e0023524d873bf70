//! A resolved formula and the roster to a [`Shape`], or the reason why there is none. Design: docs/design/formulas.md.

use std::collections::{BTreeMap, BTreeSet};

use super::dag::Dag;
use super::error::ShapeError;
use super::gates;
use super::labels::{self, Gate, Marks};
use crate::chain::formula::{Resolved, ResolvedStep};
use crate::chain::shape::{Class, Relation, Shape, Step, Target, Writer};
use crate::ids::StepId;
use crate::nearest::nearest;
use crate::specialist::Tier;

/// bd refuses longer titles; in bytes.
const LONGEST_TITLE: usize = 500;
/// bd's own default.
const MIDDLE_PRIORITY: u8 = 2;

/// Compiles steps into a shape: roles, classes, writers, relations, and an order in which each step follows its needs.
///
/// `roster` holds the tier of each specialist. The step that stands for the contract (`kind:root`, `chain-root` or id
/// `root`) is left out, and so are needs on it.
///
/// # Errors
/// [`ShapeError`], with the steps named. Nothing is created before a shape exists.
pub fn compile(resolved: &Resolved, roster: &BTreeMap<String, Tier>) -> Result<Shape, ShapeError> {
    let marked = resolved
        .steps
        .iter()
        .map(|step| {
            labels::read(&step.labels).map(|marks| (step, marks)).map_err(|problem| bad(step, "labels", problem))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let root = root(resolved, &marked)?;
    let ids: BTreeSet<&str> =
        resolved.steps.iter().map(|step| step.id.as_str()).filter(|id| Some(*id) != root).collect();
    let compiler = Compiler { resolved, roster, root, ids };
    let steps = marked
        .iter()
        .filter(|(step, _)| Some(step.id.as_str()) != root)
        .map(|(step, marks)| compiler.step(step, marks))
        .collect::<Result<Vec<_>, _>>()?;
    let formula = || resolved.formula.clone();
    if steps.is_empty() {
        return Err(ShapeError::Empty { formula: formula() });
    }
    let pairs: Vec<_> = steps
        .iter()
        .map(|step| (step.id.as_str(), step.needs.iter().map(StepId::as_str).collect::<Vec<_>>()))
        .collect();
    let dag = Dag::new(&pairs);
    if let Some(steps) = dag.cycle() {
        return Err(ShapeError::Cycle { formula: formula(), steps });
    }
    one_writer_at_a_time(&resolved.formula, &steps, &dag)?;
    gates::check(&resolved.formula, &resolved.lineage, &steps, &dag)?;
    Ok(Shape { formula: formula(), vars: resolved.vars.clone(), steps: in_order(&steps) })
}

/// Returns the id of the step that stands for the contract.
fn root<'a>(resolved: &Resolved, marked: &[(&'a ResolvedStep, Marks)]) -> Result<Option<&'a str>, ShapeError> {
    let mut roots = marked.iter().filter(|(step, marks)| marks.root || step.id == "root").map(|(step, _)| *step);
    let Some(root) = roots.next() else { return Ok(None) };
    if let Some(second) = roots.next() {
        return Err(ShapeError::TwoRoots {
            formula: resolved.formula.clone(),
            first: root.id.clone(),
            second: second.id.clone(),
        });
    }
    match root.needs.first() {
        Some(need) => Err(bad(root, "needs", format!("the root contract waits for the whole chain, not for {need}"))),
        None => Ok(Some(root.id.as_str())),
    }
}

struct Compiler<'a> {
    resolved: &'a Resolved,
    roster: &'a BTreeMap<String, Tier>,
    root: Option<&'a str>,
    /// Ids of all steps but the root.
    ids: BTreeSet<&'a str>,
}

impl Compiler<'_> {
    fn step(&self, step: &ResolvedStep, marks: &Marks) -> Result<Step, ShapeError> {
        can_be_poured(step)?;
        let (role, tier) = self.role(step, marks)?;
        let class = if marks.gate.is_some() { Class::Gate } else { Class::Step };
        let writer = marks.writer.or(tier.writes().then_some(Writer::Primary));
        if class == Class::Gate && writer.is_some() {
            return Err(ShapeError::GateWrites { formula: self.resolved.formula.clone(), gate: step.id.clone(), role });
        }
        Ok(Step {
            id: StepId::new(&step.id),
            title: step.title.clone(),
            description: step.description.clone(),
            notes: step.notes.clone(),
            role,
            tier,
            class,
            writer,
            mandatory: matches!(marks.gate, Some(Gate::Mandatory | Gate::Final)),
            advisor: marks.advisor,
            needs: self.needs(step)?,
            relations: self.relations(step, marks)?,
            labels: once(&step.labels),
            metadata: step.metadata.clone(),
            priority: step.priority.unwrap_or(MIDDLE_PRIORITY),
        })
    }

    fn role(&self, step: &ResolvedStep, marks: &Marks) -> Result<(String, Tier), ShapeError> {
        let role = marks.role.as_ref().unwrap_or(&step.id);
        if let Some(tier) = self.roster.get(role) {
            return Ok((role.clone(), *tier));
        }
        let (origin, step) = (step.origin.clone(), step.id.clone());
        let nearest = nearest(role, self.roster.keys().map(String::as_str));
        Err(match &marks.role {
            Some(role) => ShapeError::UnknownSpecialist { origin, step, role: role.clone(), nearest },
            None => ShapeError::NoRole { origin, step, nearest },
        })
    }

    fn needs(&self, step: &ResolvedStep) -> Result<BTreeSet<StepId>, ShapeError> {
        let mut needs = BTreeSet::new();
        for need in step.needs.iter().filter(|need| Some(need.as_str()) != self.root) {
            if *need == step.id {
                return Err(ShapeError::SelfNeed { origin: step.origin.clone(), step: step.id.clone() });
            }
            if !self.ids.contains(need.as_str()) {
                return Err(ShapeError::DanglingNeed {
                    origin: step.origin.clone(),
                    step: step.id.clone(),
                    need: need.clone(),
                    nearest: nearest(need, self.ids.iter().copied()),
                });
            }
            needs.insert(StepId::new(need));
        }
        Ok(needs)
    }

    /// Relations to steps that a condition dropped go with them.
    fn relations(&self, step: &ResolvedStep, marks: &Marks) -> Result<Vec<Relation>, ShapeError> {
        let mut relations = Vec::new();
        for (kind, target) in &marks.relations {
            let end = if target == "root" || Some(target.as_str()) == self.root {
                Target::Root
            } else if self.ids.contains(target.as_str()) && *target != step.id {
                Target::Step(StepId::new(target))
            } else if self.resolved.dropped.contains(target) {
                continue;
            } else {
                return Err(ShapeError::DanglingRelation {
                    origin: step.origin.clone(),
                    step: step.id.clone(),
                    kind: kind.clone(),
                    target: target.clone(),
                    nearest: nearest(target, self.ids.iter().copied().filter(|id| *id != step.id)),
                });
            };
            let relation = Relation { kind: kind.clone(), target: end };
            if !relations.contains(&relation) {
                relations.push(relation);
            }
        }
        Ok(relations)
    }
}

/// Refuses what the pour would refuse, change or lose.
fn can_be_poured(step: &ResolvedStep) -> Result<(), ShapeError> {
    let plain = |each: char| each.is_ascii_lowercase() || each.is_ascii_digit();
    if !step.id.starts_with(plain) || !step.id.chars().all(|each| plain(each) || each == '-') {
        return Err(bad(
            step,
            "id",
            "lower-case letters, digits and `-` only, the first no `-`: it becomes part of a bead's id",
        ));
    }
    if step.title.trim().is_empty() {
        return Err(bad(step, "title", "empty once its variables are filled in"));
    }
    if step.title.len() > LONGEST_TITLE {
        return Err(bad(
            step,
            "title",
            format!("{} bytes once its variables are filled in; bd takes {LONGEST_TITLE}", step.title.len()),
        ));
    }
    if let Some(kind) = step.issue_type.as_deref().filter(|kind| *kind != "task") {
        return Err(bad(step, "type", format!("sp pours steps as tasks, not as {kind}")));
    }
    if step.assignee.is_some() {
        return Err(bad(step, "assignee", "sp claims each step itself, and bd calls an assigned bead nobody else's"));
    }
    if let Some(key) = step.metadata.keys().find(|key| key.starts_with("sp_")) {
        return Err(bad(step, "metadata", format!("key {key}: those that begin with sp_ are sp's own")));
    }
    match step.labels.iter().find(|label| label.trim().is_empty() || label.contains([',', '\n'])) {
        Some(label) => Err(bad(step, "labels", format!("{label:?} is empty or holds a comma or line break"))),
        None => Ok(()),
    }
}

fn one_writer_at_a_time(formula: &str, steps: &[Step], dag: &Dag<'_>) -> Result<(), ShapeError> {
    let writers: Vec<&str> = steps.iter().filter(|step| step.writer.is_some()).map(|step| step.id.as_str()).collect();
    for (index, first) in writers.iter().enumerate() {
        let apart = |second: &&&str| !dag.is_before(first, second) && !dag.is_before(second, first);
        if let Some(second) = writers[index + 1..].iter().find(apart) {
            return Err(ShapeError::WritersAtOnce {
                formula: formula.to_owned(),
                first: (*first).to_owned(),
                second: (*second).to_owned(),
            });
        }
    }
    Ok(())
}

/// Returns the steps so that each follows its needs, otherwise as the formula has them. There is no cycle.
fn in_order(steps: &[Step]) -> Vec<Step> {
    let mut placed: BTreeSet<&StepId> = BTreeSet::new();
    let mut order = Vec::with_capacity(steps.len());
    while let Some(next) =
        steps.iter().find(|step| !placed.contains(&step.id) && step.needs.iter().all(|need| placed.contains(need)))
    {
        placed.insert(&next.id);
        order.push(next.clone());
    }
    order
}

fn once(labels: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    labels.iter().filter(|label| seen.insert(*label)).cloned().collect()
}

fn bad(step: &ResolvedStep, field: &'static str, problem: impl Into<String>) -> ShapeError {
    ShapeError::BadStep { origin: step.origin.clone(), step: step.id.clone(), field, problem: problem.into() }
}

#[cfg(test)]
mod tests;

//! The order of gates. Design: docs/design/formulas.md, "Gates".

use std::collections::BTreeSet;

use super::dag::Dag;
use super::error::ShapeError;
use crate::chain::shape::{Class, Step, Writer};

/// Roles of the production pipeline after the writer, in their order (spec 003 §2.2).
pub(super) const PIPELINE: [&str; 6] =
    ["seconder", "test-engineer", "test-runner", "security-auditor", "obligations-scanner", "reviewer"];

/// Formulas that must hold the whole pipeline, and so must all that extend them.
pub(super) const PRODUCTION: [&str; 1] = ["code-standard"];

/// What the whole pipeline needs: role, gate label. `security-auditor` is there only where the surface asks for it.
const WHOLE: [(&str, Option<&str>); 5] = [
    ("seconder", Some("gate:mandatory")),
    ("test-engineer", None),
    ("test-runner", Some("gate:mandatory")),
    ("obligations-scanner", Some("gate:mandatory")),
    ("reviewer", Some("gate:final")),
];

/// Checks the gates of a formula whose steps form no cycle.
///
/// 1. A production formula has, after each primary writer, the whole pipeline one after the other.
/// 2. At most one gate is final; nothing comes after it, and every writer and every other gate comes before it.
/// 3. In a formula with writers and gates, every gate comes after a writer, and every writer before a gate.
/// 4. Two steps of the pipeline never stand in reverse order, unless a primary writer stands between them: then the
///    later one begins another pass. Gates of other roles may stand anywhere.
///
/// # Errors
/// The first rule broken, with the steps that break it.
pub(super) fn check(
    formula: &str,
    lineage: &BTreeSet<String>,
    steps: &[Step],
    dag: &Dag<'_>,
) -> Result<(), ShapeError> {
    if let Some(production) = PRODUCTION.into_iter().find(|name| lineage.contains(*name)) {
        whole_pipeline(formula, production, steps, dag)?;
    }
    final_gate(formula, steps, dag)?;
    gates_and_writers(formula, steps, dag)?;
    order(formula, steps, dag)
}

fn final_gate(formula: &str, steps: &[Step], dag: &Dag<'_>) -> Result<(), ShapeError> {
    let formula = formula.to_owned();
    let mut finals = steps.iter().filter(|step| has(step, "gate:final")).map(|step| step.id.to_string());
    let Some(gate) = finals.next() else { return Ok(()) };
    if let Some(second) = finals.next() {
        return Err(ShapeError::TwoFinalGates { formula, first: gate, second });
    }
    let decides = |step: &&Step| step.id.as_str() != gate && (step.writer.is_some() || step.class == Class::Gate);
    let beside = steps.iter().filter(decides).map(|step| step.id.as_str()).find(|id| !dag.is_before(id, &gate));
    match beside.or_else(|| dag.needed_by(&gate).first().copied()) {
        Some(step) => Err(ShapeError::FinalGateNotLast { formula, step: step.to_owned(), gate }),
        None => Ok(()),
    }
}

fn gates_and_writers(formula: &str, steps: &[Step], dag: &Dag<'_>) -> Result<(), ShapeError> {
    let gates: Vec<&str> = steps.iter().filter(|step| step.class == Class::Gate).map(|step| step.id.as_str()).collect();
    let writers: Vec<&str> = steps.iter().filter(|step| step.writer.is_some()).map(|step| step.id.as_str()).collect();
    if gates.is_empty() || writers.is_empty() {
        return Ok(());
    }
    let formula = formula.to_owned();
    if let Some(gate) = gates.iter().find(|gate| writers.iter().all(|writer| !dag.is_before(writer, gate))) {
        return Err(ShapeError::GateBeforeWriters { formula, gate: (*gate).to_owned() });
    }
    match writers.iter().find(|writer| gates.iter().all(|gate| !dag.is_before(writer, gate))) {
        Some(writer) => Err(ShapeError::UngatedWriter { formula, writer: (*writer).to_owned() }),
        None => Ok(()),
    }
}

fn order(formula: &str, steps: &[Step], dag: &Dag<'_>) -> Result<(), ShapeError> {
    let rank = |step: &Step| {
        let counts = step.class == Class::Gate || step.writer == Some(Writer::Secondary);
        PIPELINE.iter().position(|role| counts && step.role == *role)
    };
    let ranked: Vec<(usize, &str)> = steps.iter().filter_map(|step| Some((rank(step)?, step.id.as_str()))).collect();
    let primary = || steps.iter().filter(|step| step.writer == Some(Writer::Primary)).map(|step| step.id.as_str());
    for (low, earlier) in &ranked {
        for (high, later) in &ranked {
            let reversed = low < high && dag.is_before(later, earlier);
            if reversed && !primary().any(|writer| dag.is_before(later, writer) && dag.is_before(writer, earlier)) {
                return Err(reordered(formula, earlier, later));
            }
        }
    }
    Ok(())
}

fn whole_pipeline(formula: &str, production: &str, steps: &[Step], dag: &Dag<'_>) -> Result<(), ShapeError> {
    let missing = |role: &'static str, label: Option<&'static str>| ShapeError::GateMissing {
        formula: formula.to_owned(),
        production: production.to_owned(),
        role,
        label: match label {
            Some("gate:final") => " and gate:final",
            Some(_) => " and gate:mandatory",
            None => "",
        },
    };
    let writers: Vec<&Step> = steps.iter().filter(|step| step.writer == Some(Writer::Primary)).collect();
    if writers.is_empty() {
        return Err(missing("executor", None));
    }
    for writer in writers {
        let mut reached: Vec<&Step> = vec![writer];
        for (role, label) in WHOLE {
            let fits = |step: &&Step| step.role == role && label.is_none_or(|label| has(step, label));
            let all: Vec<&Step> = steps.iter().filter(fits).collect();
            let after = |step: &&Step| reached.iter().any(|before| dag.is_before(before.id.as_str(), step.id.as_str()));
            let next: Vec<&Step> = all.iter().copied().filter(after).collect();
            match (all.first(), next.is_empty()) {
                (None, _) => return Err(missing(role, label)),
                (Some(step), true) => return Err(reordered(formula, reached[0].id.as_str(), step.id.as_str())),
                (Some(_), false) => reached = next,
            }
        }
    }
    Ok(())
}

fn reordered(formula: &str, earlier: &str, later: &str) -> ShapeError {
    ShapeError::GatesReordered {
        formula: formula.to_owned(),
        earlier: earlier.to_owned(),
        later: later.to_owned(),
        order: PIPELINE.to_vec(),
    }
}

fn has(step: &Step, label: &str) -> bool {
    step.labels.iter().any(|each| each == label)
}

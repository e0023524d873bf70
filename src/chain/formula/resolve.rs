//! A merged formula and values for its variables to concrete steps. Design: docs/design/formulas.md.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::error::{FormulaError, Place};
use super::inherit::load;
use super::library::FormulaSource;
use super::schema::{Formula, FormulaStep};
use super::substitute::Substitution;
use super::vars::values;

/// A formula with its variables filled in and its conditions decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Name of the formula.
    pub formula: String,
    /// Every name it goes by, and those of all it extends.
    pub lineage: BTreeSet<String>,
    /// What it is for, substituted.
    pub description: String,
    /// Variables after defaults.
    pub vars: BTreeMap<String, String>,
    /// Steps that are kept, in the order of the formula.
    pub steps: Vec<ResolvedStep>,
    /// Ids of the steps whose condition is false.
    pub dropped: BTreeSet<String>,
}

/// A step with nothing left to fill in.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedStep {
    /// Id within the formula.
    pub id: String,
    /// Title.
    pub title: String,
    /// Text of the step.
    pub description: String,
    /// Notes.
    pub notes: String,
    /// bd's issue type.
    pub issue_type: Option<String>,
    /// bd's priority, 0–4.
    pub priority: Option<u8>,
    /// Labels.
    pub labels: Vec<String>,
    /// Metadata.
    pub metadata: BTreeMap<String, Value>,
    /// Ids that must be closed first, bridged over dropped steps; may name steps that do not exist.
    pub needs: Vec<String>,
    /// Assignee.
    pub assignee: Option<String>,
    /// File that the step stands in.
    pub origin: String,
}

/// Finds a formula, merges what it extends and fills in its variables.
///
/// # Errors
/// As [`load`] and [`resolve`].
pub fn resolve_named(
    name: &str,
    given: &BTreeMap<String, String>,
    source: &dyn FormulaSource,
) -> Result<Resolved, FormulaError> {
    resolve(&load(name, source)?, given)
}

/// Fills in a merged formula: variables, `{{name}}`, conditions; needs are bridged over the steps that go.
///
/// # Errors
/// `UnknownVar`, `MissingVars`, `BadValue`, `Undeclared`, `Malformed`.
pub fn resolve(formula: &Formula, given: &BTreeMap<String, String>) -> Result<Resolved, FormulaError> {
    let vars = values(formula, given)?;
    let mut fill = Substitution { declared: &formula.vars, values: &vars, missing: BTreeSet::new() };
    let whole = Place { origin: formula.origin.clone(), step: None, field: "description".to_owned() };
    let description = fill.text(&formula.description, &whole)?;
    let mut steps = Vec::new();
    let mut gone: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for step in &formula.steps {
        // A step that goes is filled in too: its mistakes would else wait for another value.
        let filled = filled_in(step, &mut fill)?;
        if is_kept(step, &mut fill)? {
            steps.push(filled);
        } else {
            gone.insert(filled.id, filled.needs);
        }
    }
    if !fill.missing.is_empty() {
        let names = fill.missing.into_iter().collect();
        return Err(FormulaError::MissingVars { formula: formula.name.clone(), names });
    }
    for step in &mut steps {
        step.needs = bridged(&step.needs, &gone);
    }
    Ok(Resolved {
        formula: formula.name.clone(),
        lineage: formula.lineage.clone(),
        description,
        vars,
        steps,
        dropped: gone.into_keys().collect(),
    })
}

fn filled_in(step: &FormulaStep, fill: &mut Substitution<'_>) -> Result<ResolvedStep, FormulaError> {
    let at = |field: &str| at(step, field);
    let metadata = step
        .metadata
        .iter()
        .map(|(key, value)| Ok((key.clone(), fill.value_inside(value, &at(&format!("metadata.{key}")))?)))
        .collect::<Result<_, FormulaError>>()?;
    Ok(ResolvedStep {
        id: step.id.clone(),
        title: fill.text(&step.title, &at("title"))?,
        description: fill.text(&step.description, &at("description"))?,
        notes: fill.text(&step.notes, &at("notes"))?,
        issue_type: step.issue_type.clone(),
        priority: step.priority,
        labels: step.labels.iter().map(|label| fill.text(label, &at("labels"))).collect::<Result<_, _>>()?,
        metadata,
        needs: step.needs.clone(),
        assignee: step.assignee.as_ref().map(|assignee| fill.text(assignee, &at("assignee"))).transpose()?,
        origin: step.origin.clone(),
    })
}

fn is_kept(step: &FormulaStep, fill: &mut Substitution<'_>) -> Result<bool, FormulaError> {
    let Some(condition) = &step.condition else { return Ok(true) };
    let value = fill.value(&condition.var, &at(step, "condition"))?;
    Ok(condition.holds(value.unwrap_or_default()))
}

fn at(step: &FormulaStep, field: &str) -> Place {
    Place { origin: step.origin.clone(), step: Some(step.id.clone()), field: field.to_owned() }
}

/// Returns `needs` with each step that is gone replaced by what it needed itself; each id once, in order.
fn bridged(needs: &[String], gone: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut crossed: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&String> = needs.iter().rev().collect();
    while let Some(need) = open.pop() {
        match gone.get(need) {
            Some(behind) if crossed.insert(need) => open.extend(behind.iter().rev()),
            Some(_) => {}
            None if kept.contains(need) => {}
            None => kept.push(need.clone()),
        }
    }
    kept
}

#[cfg(test)]
mod tests;

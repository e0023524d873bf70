//! Formula text to [`Formula`]: every key is read, refused by name or an error. Design: docs/design/formulas.md.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::Value;

use super::condition::{Condition, is_name};
use super::error::{FormulaError, Place};
use super::fields::{Fields, Keys};
use super::library::{Format, SourceText};
use super::schema::{Formula, FormulaStep, Var, VarKind};
use super::text;

const FORMULA: Keys = Keys {
    known: &[
        "formula",
        "description",
        "version",
        "type",
        "extends",
        "vars",
        "steps",
        "phase",
        "pour",
        "source",
        "intent",
    ],
    unsupported: &["template", "compose", "advice", "pointcuts"],
};
const VAR: Keys = Keys { known: &["description", "default", "required", "enum", "pattern", "type"], unsupported: &[] };
const STEP: Keys = Keys {
    known: &[
        "id",
        "title",
        "description",
        "notes",
        "type",
        "priority",
        "labels",
        "metadata",
        "needs",
        "depends_on",
        "assignee",
        "condition",
    ],
    unsupported: &["waits_for", "children", "gate", "loop", "expand", "expand_vars", "on_complete"],
};

/// Parses one formula; parents are named in `extends`, not looked up.
///
/// # Errors
/// `Syntax` with line and column; `UnknownKey`, `Unsupported`, `Malformed` and `DuplicateStep` with file, step and field.
pub fn parse(source: &SourceText) -> Result<Formula, FormulaError> {
    let place = Place { origin: source.origin.clone(), step: None, field: String::new() };
    let mut fields = Fields::open(text::values(source)?, place, &FORMULA)?;
    refuse_other_kinds(&mut fields)?;
    let name = fields.required_text("formula")?;
    let vars = fields
        .table("vars")?
        .into_iter()
        .map(|(name, value)| var(&fields, &name, value, source.format).map(|var| (name, var)))
        .collect::<Result<_, _>>()?;
    let steps = fields
        .list("steps")?
        .into_iter()
        .enumerate()
        .map(|(index, value)| step(&source.origin, index, value))
        .collect::<Result<Vec<_>, _>>()?;
    refuse_duplicates(&steps)?;
    Ok(Formula {
        lineage: BTreeSet::from([name.clone()]),
        name,
        origin: source.origin.clone(),
        description: fields.text("description")?.unwrap_or_default(),
        version: fields.whole("version", 1, u32::MAX)?.unwrap_or(1),
        extends: fields.texts("extends")?,
        vars,
        steps,
        intent: fields.text("intent")?.unwrap_or_default(),
    })
}

/// Refuses what would make bd pour something else than one bead a step, as sp does.
fn refuse_other_kinds(fields: &mut Fields) -> Result<(), FormulaError> {
    match fields.text("type")?.as_deref() {
        None | Some("" | "workflow") => {}
        Some("expansion" | "aspect" | "convoy") => return Err(FormulaError::Unsupported { at: fields.at("type") }),
        Some(other) => return Err(fields.malformed("type", format!("expected workflow, found {other:?}"))),
    }
    match fields.text("phase")?.as_deref() {
        None | Some("" | "liquid") => {}
        Some(_) => return Err(FormulaError::Unsupported { at: fields.at("phase") }),
    }
    match fields.flag("pour")? {
        None | Some(true) => Ok(()),
        Some(false) => Err(FormulaError::Unsupported { at: fields.at("pour") }),
    }
}

fn var(formula: &Fields, name: &str, value: Value, format: Format) -> Result<Var, FormulaError> {
    let key = format!("vars.{name}");
    if !is_name(name) {
        return Err(formula
            .malformed(&key, "no `{{…}}` can name it: a name is letters, digits and `_`, and starts with no digit"));
    }
    // bd's short form, in TOML only.
    if let (Format::Toml, Value::String(default)) = (format, &value) {
        return Ok(Var { default: Some(default.clone()), ..Var::default() });
    }
    let mut fields = Fields::open(value, formula.at(&key), &VAR)?;
    let kind = match fields.text("type")?.as_deref() {
        None | Some("" | "string") => VarKind::Text,
        Some("int") => VarKind::Int,
        Some("bool") => VarKind::Bool,
        Some(other) => return Err(fields.malformed("type", format!("expected string, int or bool, found {other:?}"))),
    };
    let pattern = fields.text("pattern")?.filter(|pattern| !pattern.is_empty());
    if let Some(Err(error)) = pattern.as_deref().map(Regex::new) {
        return Err(fields.malformed("pattern", format!("not a regular expression: {error}")));
    }
    let var = Var {
        description: fields.text("description")?.unwrap_or_default(),
        default: fields.text("default")?,
        required: fields.flag("required")?.unwrap_or(false),
        allowed: fields.texts("enum")?,
        pattern,
        kind,
    };
    if var.required && var.default.is_some() {
        return Err(fields.malformed("default", "a required variable has no default"));
    }
    Ok(var)
}

fn step(origin: &str, index: usize, value: Value) -> Result<FormulaStep, FormulaError> {
    let id = value.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
    let called = id.map_or_else(|| format!("#{}", index + 1), str::to_owned);
    let place = Place { origin: origin.to_owned(), step: Some(called), field: String::new() };
    let mut fields = Fields::open(value, place, &STEP)?;
    let condition = fields.text("condition")?.unwrap_or_default();
    let mut needs: Vec<String> = Vec::new();
    for need in fields.texts("needs")?.into_iter().chain(fields.texts("depends_on")?) {
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    Ok(FormulaStep {
        id: fields.required_text("id")?,
        title: fields.required_text("title")?,
        description: fields.text("description")?.unwrap_or_default(),
        notes: fields.text("notes")?.unwrap_or_default(),
        issue_type: fields.text("type")?.filter(|kind| !kind.is_empty()),
        priority: fields.whole("priority", 0, 4)?.and_then(|priority| u8::try_from(priority).ok()),
        labels: fields.texts("labels")?,
        metadata: fields.table("metadata")?.into_iter().collect::<BTreeMap<_, _>>(),
        needs,
        assignee: fields.text("assignee")?.filter(|assignee| !assignee.is_empty()),
        condition: Condition::parse(&condition).map_err(|problem| fields.malformed("condition", problem))?,
        origin: origin.to_owned(),
    })
}

/// Refuses steps that share an id.
pub(super) fn refuse_duplicates(steps: &[FormulaStep]) -> Result<(), FormulaError> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for step in steps {
        if let Some(first) = seen.insert(&step.id, &step.origin) {
            return Err(FormulaError::DuplicateStep {
                step: step.id.clone(),
                first: first.to_owned(),
                second: step.origin.clone(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

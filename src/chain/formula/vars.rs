//! Values of a formula's variables: given, default, checked.

use std::collections::BTreeMap;

use regex::Regex;

use super::error::FormulaError;
use super::schema::{Formula, Var, VarKind};
use crate::nearest::nearest;

/// Returns the values of a formula's variables after defaults; a variable with neither is absent.
///
/// # Errors
/// `UnknownVar`, `MissingVars` (required ones, all of them), `BadValue`.
pub(super) fn values(
    formula: &Formula,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, FormulaError> {
    if let Some(name) = given.keys().find(|name| !formula.vars.contains_key(*name)) {
        return Err(FormulaError::UnknownVar {
            formula: formula.name.clone(),
            name: name.clone(),
            nearest: nearest(name, formula.vars.keys().map(String::as_str)),
        });
    }
    let lacks = |(name, var): &(&String, &Var)| var.required && !given.contains_key(*name);
    let names: Vec<String> = formula.vars.iter().filter(lacks).map(|(name, _)| name.clone()).collect();
    if !names.is_empty() {
        return Err(FormulaError::MissingVars { formula: formula.name.clone(), names });
    }
    let mut values = BTreeMap::new();
    for (name, var) in &formula.vars {
        let Some(value) = given.get(name).or(var.default.as_ref()) else { continue };
        check(var, value, given.contains_key(name)).map_err(|problem| FormulaError::BadValue {
            formula: formula.name.clone(),
            name: name.clone(),
            value: value.clone(),
            problem,
        })?;
        values.insert(name.clone(), value.clone());
    }
    Ok(values)
}

fn check(var: &Var, value: &str, is_given: bool) -> Result<(), String> {
    if value.is_empty() {
        // An empty value is most often an unset shell variable (bd refuses it for the same reason).
        if is_given && var.default.is_none() {
            return Err("it has no default and can't be empty".to_owned());
        }
        // An empty default means "not set" and is held to no rule.
        if !is_given {
            return Ok(());
        }
    }
    if !var.allowed.is_empty() && !var.allowed.iter().any(|allowed| allowed == value) {
        return Err(format!("not one of {}", var.allowed.join(", ")));
    }
    match var.kind {
        VarKind::Text => {}
        VarKind::Int if value.parse::<i64>().is_ok() => {}
        VarKind::Int => return Err("not an integer".to_owned()),
        VarKind::Bool if ["true", "false"].contains(&value) => {}
        VarKind::Bool => return Err("neither true nor false".to_owned()),
    }
    let Some(pattern) = &var.pattern else { return Ok(()) };
    match Regex::new(pattern) {
        Ok(regex) if regex.is_match(value) => Ok(()),
        Ok(_) => Err(format!("does not match {pattern}")),
        Err(error) => Err(format!("pattern {pattern}: {error}")),
    }
}

//! `{{name}}` to values, once: a value that holds `{{…}}` stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::condition::is_name;
use super::error::{FormulaError, Place};
use super::schema::Var;
use crate::nearest::nearest;

/// The variables of one formula and their values.
pub(super) struct Substitution<'a> {
    /// Declared variables.
    pub(super) declared: &'a BTreeMap<String, Var>,
    /// Values, defaults included.
    pub(super) values: &'a BTreeMap<String, String>,
    /// Variables that were used and have no value.
    pub(super) missing: BTreeSet<String>,
}

impl Substitution<'_> {
    /// Returns the text with every placeholder replaced.
    ///
    /// A variable without a value is remembered in `missing`; its placeholder stays.
    ///
    /// # Errors
    /// `Undeclared`; `Malformed` for a declared name with blanks beside it, which bd would leave in the text.
    pub(super) fn text(&mut self, text: &str, at: &Place) -> Result<String, FormulaError> {
        let mut done = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            let Some((inner, after)) = rest[start + 2..].split_once("}}") else { break };
            if is_name(inner) {
                done.push_str(&rest[..start]);
                match self.value(inner, at)? {
                    Some(value) => done.push_str(value),
                    None => done.push_str(&rest[start..rest.len() - after.len()]),
                }
                rest = after;
                continue;
            }
            if self.declared.contains_key(inner.trim()) {
                let problem = format!("write {{{{{}}}}} without blanks, or bd and sp leave it as text", inner.trim());
                return Err(FormulaError::Malformed { at: at.clone(), problem });
            }
            // One brace on, not two: in `{{{name}}}` the placeholder starts at the second.
            done.push_str(&rest[..=start]);
            rest = &rest[start + 1..];
        }
        done.push_str(rest);
        Ok(done)
    }

    /// Returns the value with every text inside replaced; keys stay.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub(super) fn value_inside(&mut self, value: &Value, at: &Place) -> Result<Value, FormulaError> {
        Ok(match value {
            Value::String(text) => Value::String(self.text(text, at)?),
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.value_inside(item, at)).collect::<Result<_, _>>()?)
            }
            Value::Object(map) => Value::Object(
                map.iter()
                    .map(|(key, item)| {
                        let at = Place { field: format!("{}.{key}", at.field), ..at.clone() };
                        self.value_inside(item, &at).map(|item| (key.clone(), item))
                    })
                    .collect::<Result<_, _>>()?,
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    /// Returns the value of a variable; `None`, remembered in `missing`, when it has none.
    ///
    /// # Errors
    /// `Undeclared`.
    pub(super) fn value(&mut self, name: &str, at: &Place) -> Result<Option<&str>, FormulaError> {
        if !self.declared.contains_key(name) {
            return Err(FormulaError::Undeclared {
                at: at.clone(),
                name: name.to_owned(),
                nearest: nearest(name, self.declared.keys().map(String::as_str)),
            });
        }
        let value = self.values.get(name);
        if value.is_none() {
            self.missing.insert(name.to_owned());
        }
        Ok(value.map(String::as_str))
    }
}

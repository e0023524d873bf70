//! A table of a formula, read key by key, with every complaint naming file, step and field.

use serde_json::{Map, Value};

use super::error::{FormulaError, Place};
use crate::nearest::nearest;

/// What a table may hold.
pub(super) struct Keys {
    /// Keys that sp reads.
    pub(super) known: &'static [&'static str],
    /// Keys of bd's schema that sp can't run yet.
    pub(super) unsupported: &'static [&'static str],
}

/// One table: the formula, a variable or a step.
pub(super) struct Fields {
    /// The file and, inside a step, the step.
    place: Place,
    map: Map<String, Value>,
}

impl Fields {
    /// Opens a table after looking at its keys; `place.field` is what stands before each key, such as `vars.scope`.
    ///
    /// # Errors
    /// `Malformed` for anything but a table, `UnknownKey`, `Unsupported`.
    pub(super) fn open(value: Value, place: Place, keys: &Keys) -> Result<Self, FormulaError> {
        let Value::Object(map) = value else {
            return Err(FormulaError::Malformed {
                problem: format!("expected a table, found {}", named(&value)),
                at: place,
            });
        };
        let fields = Self { place, map };
        for (key, value) in &fields.map {
            let at = fields.at(key);
            // bd writes nothing for an empty value, so `null` asks for nothing.
            match (keys.known.contains(&key.as_str()), keys.unsupported.contains(&key.as_str())) {
                (true, _) => {}
                (false, true) if value.is_null() => {}
                (false, true) => return Err(FormulaError::Unsupported { at }),
                (false, false) => {
                    let all = keys.known.iter().chain(keys.unsupported).copied();
                    return Err(FormulaError::UnknownKey { at, nearest: nearest(key, all) });
                }
            }
        }
        Ok(fields)
    }

    /// Returns the place of one key.
    pub(super) fn at(&self, key: &str) -> Place {
        let field = if self.place.field.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place.field) };
        Place { field, ..self.place.clone() }
    }

    /// Returns a complaint about one key.
    pub(super) fn malformed(&self, key: &str, problem: impl Into<String>) -> FormulaError {
        FormulaError::Malformed { at: self.at(key), problem: problem.into() }
    }

    /// Takes a value out; absent and `null` are both `None`.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.map.shift_remove(key).filter(|value| !value.is_null())
    }

    /// Takes a text.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>, FormulaError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.malformed(key, format!("expected text, found {}", named(&other)))),
        }
    }

    /// Takes a text that must be there and not be empty.
    pub(super) fn required_text(&mut self, key: &str) -> Result<String, FormulaError> {
        self.text(key)?.filter(|text| !text.is_empty()).ok_or_else(|| self.malformed(key, "missing or empty"))
    }

    /// Takes a list of texts; an absent one is empty.
    pub(super) fn texts(&mut self, key: &str) -> Result<Vec<String>, FormulaError> {
        let items = match self.take(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(other) => {
                return Err(self.malformed(key, format!("expected a list of texts, found {}", named(&other))));
            }
        };
        items
            .into_iter()
            .map(|item| match item {
                Value::String(text) => Ok(text),
                other => Err(self.malformed(key, format!("expected a list of texts, found {} in it", named(&other)))),
            })
            .collect()
    }

    /// Takes `true` or `false`; an absent one is `None`.
    pub(super) fn flag(&mut self, key: &str) -> Result<Option<bool>, FormulaError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(self.malformed(key, format!("expected true or false, found {}", named(&other)))),
        }
    }

    /// Takes a whole number from `least` to `most`; an absent one is `None`.
    pub(super) fn whole(&mut self, key: &str, least: u32, most: u32) -> Result<Option<u32>, FormulaError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.as_u64().and_then(|number| u32::try_from(number).ok()) {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(self.malformed(
                key,
                format!("expected a whole number of at least {least} and at most {most}, found {value}"),
            )),
        }
    }

    /// Takes a table as it is; an absent one is empty.
    pub(super) fn table(&mut self, key: &str) -> Result<Map<String, Value>, FormulaError> {
        match self.take(key) {
            None => Ok(Map::new()),
            Some(Value::Object(map)) => Ok(map),
            Some(other) => Err(self.malformed(key, format!("expected a table, found {}", named(&other)))),
        }
    }

    /// Takes a list as it is; an absent one is empty.
    pub(super) fn list(&mut self, key: &str) -> Result<Vec<Value>, FormulaError> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(self.malformed(key, format!("expected a list, found {}", named(&other)))),
        }
    }
}

fn named(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

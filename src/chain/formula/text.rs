//! JSON and TOML text to plain values, with line and column of what can't be read and no key lost.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::error::FormulaError;
use super::library::{Format, SourceText};

/// Parses the whole text.
///
/// # Errors
/// `Syntax`, also for a key that stands twice: the first would be lost silently.
pub(super) fn values(source: &SourceText) -> Result<Value, FormulaError> {
    let syntax = |line, column, problem: &str| FormulaError::Syntax {
        origin: source.origin.clone(),
        line,
        column,
        problem: problem.trim().to_owned(),
    };
    match source.format {
        Format::Json => serde_json::from_str::<Strict>(&source.text).map_err(|error| {
            let text = error.to_string();
            let problem = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem);
            syntax(error.line(), error.column(), problem)
        }),
        Format::Toml => toml::from_str::<Strict>(&source.text).map_err(|error| {
            let (line, column) = line_and_column(&source.text, error.span().map_or(0, |span| span.start));
            syntax(line, column, error.message())
        }),
    }
    .map(|Strict(value)| value)
}

/// Returns line and column of a byte offset, both from 1, columns in characters.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// A value in which no key stands twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Collect).map(Self)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that JSON does not have"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            // The toml crate hands a date over as a table of this one key.
            if key == "$__toml_private_datetime" {
                return entries.next_value::<String>().map(Value::String);
            }
            let Strict(value) = entries.next_value()?;
            if map.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format!("key {key:?} stands twice")));
            }
        }
        Ok(Value::Object(map))
    }
}

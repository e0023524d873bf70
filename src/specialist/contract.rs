//! Output contracts: what a role must answer, as a compiled JSON Schema and the key that decides.

use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use serde_json::Value;

use crate::nearest::nearest;

/// Keys that may decide, the more specific first.
const VERDICT_KEYS: [&str; 3] = ["overall_verdict", "verdict", "status"];

/// One schema that ships with the program. Compiled at first use and kept: compiling is the dear part.
struct Shipped {
    name: &'static str,
    text: &'static str,
    compiled: OnceLock<Arc<Contract>>,
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(Shipped {
            name: $name,
            text: include_str!(concat!("../../config/schemas/", $name, ".schema.json")),
            compiled: OnceLock::new(),
        }),+]
    };
}

/// Six roles, then the two for roles without a contract of their own.
static SHIPPED: [Shipped; 8] = shipped![
    "executor",
    "seconder",
    "test-engineer",
    "test-runner",
    "obligations-scanner",
    "reviewer",
    "gate",
    "step",
];

/// What a role must answer: one JSON object that satisfies a schema, with one key whose text decides.
#[derive(Debug)]
pub struct Contract {
    key: &'static str,
    schema: Value,
    validator: Validator,
}

impl Contract {
    /// Compiles a JSON Schema (2020-12 unless it says otherwise) as a contract.
    ///
    /// The key that decides is the first of `overall_verdict`, `verdict`, `status` that the schema requires.
    ///
    /// # Errors
    ///
    /// When the schema is not valid, refers to another document, or requires none of the three keys.
    pub fn compile(schema: Value) -> Result<Self, ContractError> {
        let required = schema.get("required").and_then(Value::as_array);
        let requires = |key: &&str| required.is_some_and(|names| names.iter().any(|name| name == *key));
        let key = VERDICT_KEYS.into_iter().find(requires).ok_or(ContractError::NoKey)?;
        let validator = jsonschema::validator_for(&schema).map_err(|error| ContractError::Schema {
            path: error.instance_path().to_string(),
            reason: error.masked().to_string(),
        })?;
        Ok(Self { key, schema, validator })
    }

    /// Returns the shipped contract of this name: one of the six roles, `gate` or `step`.
    pub fn shipped(name: &str) -> Option<Arc<Self>> {
        let shipped = SHIPPED.iter().find(|shipped| shipped.name == name)?;
        let compile = || {
            let schema = serde_json::from_str(shipped.text).expect("a test parses every shipped schema");
            Arc::new(Self::compile(schema).expect("a test compiles every shipped schema"))
        };
        Some(Arc::clone(shipped.compiled.get_or_init(compile)))
    }

    /// Takes a specialist's `prompt.output_schema`: a reference to a shipped schema
    /// (`{"$ref": "../schemas/executor.schema.json"}`) or a schema in place.
    pub(super) fn of_output_schema(schema: &Value) -> Result<Arc<Self>, ContractError> {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str).filter(|target| !target.starts_with('#'))
        else {
            return Self::compile(schema.clone()).map(Arc::new);
        };
        let file = reference.rsplit('/').next().unwrap_or(reference);
        let name = file.strip_suffix(".schema.json").unwrap_or(file);
        Self::shipped(name).ok_or_else(|| ContractError::UnknownReference {
            reference: reference.to_owned(),
            nearest: nearest(name, SHIPPED.iter().map(|shipped| shipped.name)).join(" or "),
        })
    }

    /// Returns the key whose text decides, such as `verdict`.
    pub fn key(&self) -> &str {
        self.key
    }

    /// Returns the schema as it was written.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Returns what is wrong with an answer, each with a JSON pointer; empty when it satisfies the schema.
    ///
    /// The text never repeats what the answer holds: it goes into a prompt and may be of any size.
    pub(super) fn problems(&self, answer: &Value) -> Vec<(String, String)> {
        let problems = self.validator.iter_errors(answer);
        problems.map(|problem| (problem.instance_path().to_string(), problem.masked().to_string())).collect()
    }
}

/// Why a schema can't be a contract.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContractError {
    /// Not a valid JSON Schema.
    #[error("compile the JSON Schema: at `{path}`: {reason}")]
    Schema {
        /// JSON pointer into the schema.
        path: String,
        /// What is wrong there.
        reason: String,
    },
    /// Nothing in the answer would decide.
    #[error("compile the JSON Schema: it requires none of `overall_verdict`, `verdict`, `status`")]
    NoKey,
    /// A reference to a schema that does not ship with the program.
    #[error("follow `$ref` {reference}: no such shipped schema (nearest: {nearest})")]
    UnknownReference {
        /// The reference as it was written.
        reference: String,
        /// Names that resemble it.
        nearest: String,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_shipped_schema_compiles_and_names_its_key() {
        for (name, key) in [
            ("executor", "status"),
            ("seconder", "overall_verdict"),
            ("test-engineer", "status"),
            ("test-runner", "status"),
            ("obligations-scanner", "verdict"),
            ("reviewer", "verdict"),
            ("gate", "verdict"),
            ("step", "status"),
        ] {
            let contract = Contract::shipped(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(contract.key(), key, "{name}");
            assert_eq!(contract.schema()["title"], name, "{name}");
            assert_eq!(contract.schema()["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        }
        assert_eq!(SHIPPED.len(), 8);
        assert!(Contract::shipped("nobody").is_none());
    }

    #[test]
    fn every_shipped_schema_takes_the_same_handoff_fields() {
        let handoff = ["inputs_consumed", "decisions", "assumptions", "unresolved_questions", "downstream_attention"];
        let first = Contract::shipped("executor").expect("shipped");
        for shipped in &SHIPPED {
            let contract = Contract::shipped(shipped.name).expect("shipped");
            for field in handoff {
                assert!(first.schema()["properties"].get(field).is_some(), "{field}");
                let (one, other) = (&contract.schema()["properties"][field], &first.schema()["properties"][field]);
                assert_eq!(one, other, "{} {field}", shipped.name);
            }
        }
    }

    #[test]
    fn a_schema_that_cannot_decide_is_refused() {
        for (case, schema, words) in [
            ("no key required", json!({"properties": {"verdict": {}}}), "requires none of"),
            ("not a schema", json!({"type": "text", "required": ["verdict"]}), "`/type`"),
            ("an unknown reference", json!({"$ref": "../schemas/reviwer.schema.json"}), "nearest: reviewer"),
        ] {
            let error = Contract::of_output_schema(&schema).expect_err(case).to_string();
            assert!(error.contains(words), "{case}: {error}");
        }
    }

    #[test]
    fn the_more_specific_key_decides() {
        let schema = json!({"required": ["status", "verdict"]});
        assert_eq!(Contract::compile(schema).expect("compiles").key(), "verdict");
    }
}

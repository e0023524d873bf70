//! The file of one specialist: `<name>.specialist.json`, root `{"specialist": {…}}`.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::contract::Contract;
use super::error::SpecialistError;
use super::fields::refuse_unknown;
use super::tier::Tier;

const FILE_SUFFIX: &str = ".specialist.json";

/// How much a model thinks before it answers, by pi's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Thinking {
    /// Not at all.
    Off,
    /// As little as the model can.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// As much as the model can.
    Xhigh,
}

impl Thinking {
    /// Returns pi's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
        }
    }
}

/// A role: who works a step, with which permissions, on which prompt, under which output contract.
#[derive(Debug, Clone)]
pub struct Specialist {
    metadata: Metadata,
    execution: Execution,
    system: String,
    task_template: String,
    contract: Arc<Contract>,
}

#[derive(Deserialize)]
struct File {
    specialist: Body,
}

#[derive(Deserialize)]
struct Body {
    metadata: Metadata,
    execution: Execution,
    prompt: Prompt,
}

#[derive(Debug, Clone, Deserialize)]
struct Metadata {
    name: String,
    version: String,
    #[expect(dead_code, reason = "a file without it is refused; nothing shows it yet")]
    description: String,
    #[expect(dead_code, reason = "a file without it is refused; nothing shows it yet")]
    category: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Execution {
    #[serde(default)]
    model: Option<String>,
    #[serde(default = "two_minutes")]
    timeout_ms: u64,
    #[serde(default = "five_minutes")]
    stall_timeout_ms: u64,
    #[serde(default = "read_only")]
    permission_required: Tier,
    #[serde(default)]
    output_type: OutputType,
    #[serde(default)]
    thinking_level: Option<Thinking>,
}

/// What a role makes. Only `review` matters here: it decides which general contract a role without its own gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OutputType {
    Codegen,
    Analysis,
    Review,
    Synthesis,
    Orchestration,
    Workflow,
    Research,
    #[default]
    Custom,
}

#[derive(Deserialize)]
struct Prompt {
    #[serde(default)]
    system: String,
    task_template: String,
    #[serde(default)]
    output_schema: Option<Value>,
}

fn two_minutes() -> u64 {
    120_000
}

fn five_minutes() -> u64 {
    300_000
}

fn read_only() -> Tier {
    Tier::ReadOnly
}

impl Specialist {
    /// Reads a specialist from the text of its file; `file` is named in errors.
    ///
    /// # Errors
    ///
    /// Names file and field: not JSON, a field that the schema does not have, a wrong type or value, a file name that
    /// differs from the specialist's, an output schema that can't be a contract.
    pub fn parse(file: &str, text: &str) -> Result<Self, SpecialistError> {
        let malformed = |path: &str, reason: String| SpecialistError::Malformed {
            file: file.to_owned(),
            path: path.to_owned(),
            reason,
        };
        let document: Value = serde_json::from_str(text).map_err(|error| malformed(".", error.to_string()))?;
        refuse_unknown(file, &document)?;
        // From the text and not from `document`: so a field given twice is an error, and errors have line and column.
        let mut reader = serde_json::Deserializer::from_str(text);
        let File { specialist: Body { metadata, execution, prompt } } =
            serde_path_to_error::deserialize(&mut reader)
                .map_err(|error| malformed(&error.path().to_string(), error.inner().to_string()))?;
        if !is_name(&metadata.name) {
            let reason = format!("{:?} is not lower-case letters, digits and dashes", metadata.name);
            return Err(malformed("specialist.metadata.name", reason));
        }
        // Two names for one thing is how a broken override hid a good specialist in the existing system.
        if named_by_file(file).is_some_and(|stem| stem != metadata.name) {
            let reason = format!("{:?} differs from the file's name", metadata.name);
            return Err(malformed("specialist.metadata.name", reason));
        }
        if !is_version(&metadata.version) {
            let reason = format!("{:?} is not three numbers such as 1.0.0", metadata.version);
            return Err(malformed("specialist.metadata.version", reason));
        }
        let contract = contract(&metadata.name, execution.output_type, prompt.output_schema.as_ref())
            .map_err(|source| SpecialistError::OutputSchema { file: file.to_owned(), source })?;
        Ok(Self { metadata, execution, system: prompt.system, task_template: prompt.task_template, contract })
    }

    /// Returns the name, such as `test-runner`.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Returns the permission tier.
    pub fn tier(&self) -> Tier {
        self.execution.permission_required
    }

    /// Returns the model as `provider/model`; `None` leaves it to the configuration and then to pi.
    pub fn model(&self) -> Option<&str> {
        self.execution.model.as_deref()
    }

    /// Returns the thinking level; `None` leaves it to pi.
    pub fn thinking(&self) -> Option<Thinking> {
        self.execution.thinking_level
    }

    /// Returns the silence after which a session counts as stalled; `None` (0 in the file) never.
    pub fn stall(&self) -> Option<Duration> {
        span(self.execution.stall_timeout_ms)
    }

    /// Returns the longest that one activation may take; `None` (0 in the file) for ever.
    pub fn timeout(&self) -> Option<Duration> {
        span(self.execution.timeout_ms)
    }

    /// Returns the role's identity as it stands in the file.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Returns the template of the user turn.
    pub fn task_template(&self) -> &str {
        &self.task_template
    }

    /// Returns what the role must answer.
    pub fn contract(&self) -> &Arc<Contract> {
        &self.contract
    }
}

/// A specialist's own schema; else the shipped one of its name; else the general one of a gate or a step.
fn contract(
    name: &str,
    makes: OutputType,
    schema: Option<&Value>,
) -> Result<Arc<Contract>, super::contract::ContractError> {
    if let Some(schema) = schema {
        return Contract::of_output_schema(schema);
    }
    let general = if makes == OutputType::Review { "gate" } else { "step" };
    Ok(Contract::shipped(name).or_else(|| Contract::shipped(general)).expect("`gate` and `step` are shipped"))
}

fn span(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}

fn named_by_file(file: &str) -> Option<&str> {
    file.rsplit('/').next()?.strip_suffix(FILE_SUFFIX)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|each| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '-')
}

fn is_version(version: &str) -> bool {
    let numbers: Vec<&str> = version.split('.').collect();
    numbers.len() == 3 && numbers.iter().all(|number| !number.is_empty() && number.chars().all(|d| d.is_ascii_digit()))
}

#[cfg(test)]
mod tests;

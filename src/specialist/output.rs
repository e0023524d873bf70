//! The answer in an agent's last message: found, checked, and asked for once more.

use serde_json::Value;

use super::contract::Contract;
use super::scan::last_object_with;

/// Problems of one answer that are told to the agent; the rest is counted.
const PROBLEMS_TOLD: usize = 20;

/// Longest text of one problem, in bytes.
const PROBLEM_LENGTH: usize = 300;

/// An answer that satisfies its role's contract.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The object as the agent wrote it.
    pub value: Value,
    /// The key that decides, such as `verdict`.
    pub key: String,
    /// What it says, such as `PASS`; computed where the parts of the answer fix it.
    pub key_value: String,
    /// What the agent wrote under the key, where that contradicts the parts of its own answer.
    pub stated: Option<String>,
}

/// Why a message is no answer. Its `Display` is for the record; [`re_ask`] words it for the agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutputProblem {
    /// No JSON object with the key that decides.
    #[error("find the answer: no JSON object with the key `{key}`{}", .broken.as_deref().map(|why| format!(" ({why})")).unwrap_or_default())]
    Missing {
        /// The key that decides.
        key: String,
        /// Why the last object that had the key could not be read.
        broken: Option<String>,
    },
    /// The object does not satisfy the contract.
    #[error("check the answer: {} against the schema, first {}", count(errors.len()), errors.first().map(String::as_str).unwrap_or_default())]
    Invalid {
        /// The key that decides.
        key: String,
        /// Each with a JSON pointer, such as "`/findings/0`: \"issue\" is a required property".
        errors: Vec<String>,
    },
}

fn count(problems: usize) -> String {
    if problems == 1 { "1 problem".to_owned() } else { format!("{problems} problems") }
}

/// Takes the answer from an agent's last message and checks it against the role's contract.
///
/// # Errors
///
/// [`OutputProblem`]: none found, or not valid. The caller asks once more with [`re_ask`], then gives up.
pub fn check(contract: &Contract, text: &str) -> Result<Answer, OutputProblem> {
    let key = contract.key().to_owned();
    let scan = last_object_with(text, &key);
    let Some(value) = scan.object else {
        let reason = |broken| serde_json::from_str::<Value>(&text[broken..]).err().map(|error| error.to_string());
        let broken = scan.broken.and_then(|range| reason(range.start));
        return Err(OutputProblem::Missing { key, broken });
    };
    let mut errors: Vec<String> = contract.problems(&value).into_iter().map(|(path, text)| told(&path, text)).collect();
    let stated = value.get(&key).and_then(Value::as_str).map(str::to_owned);
    let Some(stated) = stated.filter(|_| errors.is_empty()) else {
        if errors.is_empty() {
            errors.push(told(&format!("/{key}"), "value is not a text".to_owned()));
        }
        return Err(OutputProblem::Invalid { key, errors });
    };
    let computed = computed(&value, &key);
    let (key_value, stated) = match computed {
        Some(computed) if computed != stated => (computed.to_owned(), Some(stated)),
        Some(_) | None => (stated, None),
    };
    Ok(Answer { value, key, key_value, stated })
}

fn told(path: &str, mut text: String) -> String {
    text.truncate(text.floor_char_boundary(PROBLEM_LENGTH));
    let path = if path.is_empty() { "/" } else { path };
    format!("`{path}`: {text}")
}

/// Returns what the two dimensions of a seconder come to: PASS when both pass, FAIL when either fails, else PARTIAL.
///
/// Spec 003, Appendix A.4.
pub fn seconder_overall(scope: &str, quality: &str) -> &'static str {
    match (scope, quality) {
        ("PASS", "PASS") => "PASS",
        ("FAIL", _) | (_, "FAIL") => "FAIL",
        _ => "PARTIAL",
    }
}

/// The overall verdict that the dimensions of an answer fix; `None` for answers without dimensions.
fn computed(answer: &Value, key: &str) -> Option<&'static str> {
    let dimension = |name| answer.get(name).and_then(Value::as_str);
    let (scope, quality) = (dimension("scope_verdict")?, dimension("quality_verdict")?);
    (key == "overall_verdict").then(|| seconder_overall(scope, quality))
}

/// Words the one repeated question after a message that is no answer.
pub fn re_ask(problem: &OutputProblem) -> String {
    let (what, key) = match problem {
        OutputProblem::Missing { key, broken: None } => {
            (format!("Your last message holds no JSON object with the key `{key}`."), key)
        }
        OutputProblem::Missing { key, broken: Some(reason) } => {
            (format!("The JSON object with the key `{key}` in your last message can't be read: {reason}."), key)
        }
        OutputProblem::Invalid { key, errors } => {
            let mut lines: Vec<String> = errors.iter().take(PROBLEMS_TOLD).map(|error| format!("- {error}")).collect();
            if errors.len() > PROBLEMS_TOLD {
                lines.push(format!("- and {} more", errors.len() - PROBLEMS_TOLD));
            }
            (format!("The JSON object in your last message does not satisfy the schema:\n{}", lines.join("\n")), key)
        }
    };
    format!(
        "{what}\n\nDo no further work. Answer now with exactly one JSON object that satisfies the schema in your \
         instructions, with `{key}` at its top level and no text after it. Report what is true: change a finding only \
         if it was wrong."
    )
}

#[cfg(test)]
mod tests;

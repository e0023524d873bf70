//! The agent's last text, held against its contract.

use serde_json::Value;

use super::machine::Reading;
use crate::chain::shape::Class;
use crate::chain::verdict::judge;
use crate::specialist::{Contract, OutputProblem, check, re_ask};

/// Characters of an answer's own summary that are kept.
const SUMMARY: usize = 200;

/// Returns what the contract of a role makes of a text. No text at all is a missing answer.
pub fn read(role: &str, class: Class, contract: &Contract, text: Option<&str>) -> Reading {
    match check(contract, text.unwrap_or_default()) {
        Ok(answer) => {
            let said = answer.value.get("summary").and_then(Value::as_str).unwrap_or_default();
            let said: String = said.lines().next().unwrap_or_default().chars().take(SUMMARY).collect();
            let summary = match said.is_empty() {
                true => format!("{} {}", answer.key, answer.key_value),
                false => format!("{} {}: {said}", answer.key, answer.key_value),
            };
            Reading::Answer { verdict: judge(role, class, &answer), summary }
        }
        Err(problem) => unusable(&problem),
    }
}

fn unusable(problem: &OutputProblem) -> Reading {
    Reading::Unusable { problem: problem.to_string(), re_ask: re_ask(problem) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::verdict::Verdict;

    #[test]
    fn a_text_is_an_answer_or_says_what_is_wrong_with_it() {
        let contract = Contract::shipped("reviewer").expect("shipped");
        let read = |text| read("reviewer", Class::Gate, &contract, text);
        let Reading::Unusable { re_ask, .. } = read(None) else { panic!("no text is no answer") };
        assert!(re_ask.contains("verdict"), "{re_ask}");
        assert!(matches!(read(Some("looks good to me")), Reading::Unusable { .. }));
        let schema = contract.schema();
        assert!(schema["required"].as_array().is_some_and(|keys| keys.contains(&"verdict".into())));
    }

    #[test]
    fn the_summary_is_one_bounded_line() {
        let contract = Contract::shipped("test-engineer").expect("shipped");
        let long = "x".repeat(1_000);
        let text = format!(
            "Done.\n{{\"status\":\"tests_written\",\"summary\":\"{long}\",\"files_changed\":[\"test/a\"],\"coverage_map\":[],\
             \"smoke_e2e_commands\":[],\"telemetry_assertions\":[],\"test_runner_commands\":[],\
             \"known_deferred_paths\":[],\"source_bug_suspicions\":[]}}"
        );
        match read("test-engineer", Class::Step, &contract, Some(&text)) {
            Reading::Answer { verdict: Verdict::Passed { .. }, summary } => {
                assert!(summary.starts_with("status tests_written: xxx") && summary.len() < 250, "{summary}");
            }
            other => panic!("{other:?}"),
        }
    }
}

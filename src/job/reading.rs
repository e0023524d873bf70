//! The agent's last text, held against its contract.

use serde_json::Value;

use super::machine::Reading;
use crate::chain::shape::Class;
use crate::chain::verdict::{BlockReason, Verdict, judge};
use crate::pi::ShellCall;
use crate::specialist::{Contract, OutputProblem, check, re_ask};

/// Characters of an answer's own summary that are kept.
const SUMMARY: usize = 200;

/// Returns what the contract of a role makes of a text, and what the commands that were seen to run make of its claims.
/// No text at all is a missing answer. `calls` is `None` where nothing could be seen.
pub fn read(role: &str, class: Class, contract: &Contract, text: Option<&str>, calls: Option<&[ShellCall]>) -> Reading {
    match check(contract, text.unwrap_or_default()) {
        Ok(answer) => {
            let said = answer.value.get("summary").and_then(Value::as_str).unwrap_or_default();
            let said: String = said.lines().next().unwrap_or_default().chars().take(SUMMARY).collect();
            let summary = match said.is_empty() {
                true => format!("{} {}", answer.key, answer.key_value),
                false => format!("{} {}: {said}", answer.key, answer.key_value),
            };
            let verdict = judge(role, class, &answer);
            match calls.and_then(|calls| doubt(role, &verdict, &answer.value, calls)) {
                None => Reading::Answer { verdict, summary },
                Some(doubt) => Reading::Doubted {
                    re_ask: format!(
                        "Your answer does not fit what happened here: {doubt}. What was observed counts. Run what has to \
                         be run, and answer again, in the same form, by what you then see."
                    ),
                    verdict: Verdict::Blocked { reason: BlockReason::Contradiction, detail: doubt },
                    summary,
                },
            }
        }
        Err(problem) => unusable(&problem),
    }
}

/// What was observed outranks what is claimed (spec 003 §4.2): returns what a good word is refuted by.
///
/// A command that is said to have ended well is known by its text within what was run, since agents tell a command
/// without the `cd` before it. One that was never seen is let pass where anything at all ended well: agents rephrase.
fn doubt(role: &str, verdict: &Verdict, answer: &Value, calls: &[ShellCall]) -> Option<String> {
    let Verdict::Passed { .. } = verdict else { return None };
    let claims = ["commands", "verification"].into_iter().filter_map(|key| answer.get(key)?.as_array()).flatten();
    let well = claims.filter(|claim| claim.get("exit_code") == Some(&Value::from(0)));
    for command in well.filter_map(|claim| claim.get("command")?.as_str()) {
        let claimed = spaced(command);
        let last = calls.iter().rfind(|call| !claimed.is_empty() && spaced(&call.command).contains(&claimed));
        if last.is_some_and(|call| call.failed) {
            return Some(format!("`{claimed}` is said to have exit code 0, and its last run ended in an error"));
        }
    }
    let ran_well = calls.iter().any(|call| !call.failed);
    (role == "test-runner" && !ran_well)
        .then(|| "the tests are said to pass, and no command was seen to run and to end well".to_owned())
}

fn spaced(command: &str) -> String {
    command.split_whitespace().collect::<Vec<_>>().join(" ")
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
        let read = |text| read("reviewer", Class::Gate, &contract, text, None);
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
        match read("test-engineer", Class::Step, &contract, Some(&text), None) {
            Reading::Answer { verdict: Verdict::Passed { .. }, summary } => {
                assert!(summary.starts_with("status tests_written: xxx") && summary.len() < 250, "{summary}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_seen_to_run_outranks_what_is_said_of_it() {
        let call = |command: &str, failed| ShellCall { command: command.to_owned(), failed };
        let tests = |command: &str| {
            format!(r#"{{"status":"passed","commands":[{{"command":"{command}","exit_code":0}}],"failures":[]}}"#)
        };
        let failed = r#"{"status":"failed","owner":"infrastructure","commands":[{"command":"./test.sh","exit_code":1}],
            "failures":[{"test":"all","message":"no shell"}]}"#;
        let done = r#"{"status":"success","summary":"Done.","files_changed":["a"],
            "verification":[{"command":"./test.sh","exit_code":0}]}"#;
        let bare = r#"{"status":"success","summary":"Done.","files_changed":["a"]}"#;
        let seen = Some;
        for (case, role, text, calls, doubted) in [
            ("it ended well", "test-runner", tests("./test.sh"), seen(vec![call("./test.sh", false)]), false),
            ("it failed", "test-runner", tests("./test.sh"), seen(vec![call("./test.sh", true)]), true),
            (
                "in another place, with other spaces",
                "test-runner",
                tests("./test.sh  --all"),
                seen(vec![call("cd sub && ./test.sh --all 2>&1", true), call("ls", false)]),
                true,
            ),
            (
                "the last run counts",
                "test-runner",
                tests("./test.sh"),
                seen(vec![call("./test.sh", true), call("./test.sh", false)]),
                false,
            ),
            (
                "also when it is the bad one",
                "test-runner",
                tests("./test.sh"),
                seen(vec![call("./test.sh", false), call("./test.sh", true)]),
                true,
            ),
            ("told in other words", "test-runner", tests("the tests"), seen(vec![call("./test.sh", false)]), false),
            ("nothing ran", "test-runner", tests("./test.sh"), seen(vec![]), true),
            ("nothing ended well", "test-runner", tests("the tests"), seen(vec![call("./test.sh", true)]), true),
            ("nothing could be seen", "test-runner", tests("./test.sh"), None, false),
            ("no good word, no doubt", "test-runner", failed.to_owned(), seen(vec![]), false),
            ("a writer's proof", "executor", done.to_owned(), seen(vec![call("./test.sh", true)]), true),
            ("a writer that ran nothing", "executor", done.to_owned(), seen(vec![]), false),
            ("a writer that claims nothing", "executor", bare.to_owned(), seen(vec![call("./test.sh", true)]), false),
        ] {
            let contract = Contract::shipped(role).expect("shipped");
            let found = read(role, Class::Gate, &contract, Some(&text), calls.as_deref());
            match found {
                Reading::Doubted { re_ask, verdict: Verdict::Blocked { reason, .. }, .. } => {
                    assert!(doubted, "{case}: {re_ask}");
                    assert_eq!(reason, BlockReason::Contradiction, "{case}");
                }
                Reading::Answer { .. } => assert!(!doubted, "{case}"),
                other => panic!("{case}: {other:?}"),
            }
        }
    }
}

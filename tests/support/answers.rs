//! Final answers that the schemas of the roles accept.

use serde_json::{Value, json};

/// executor: done.
pub fn done() -> Value {
    json!({ "status": "success", "summary": "The last page is counted.", "files_changed": ["src/pager.sh"] })
}

/// executor: not finished.
pub fn partial(missing: &str) -> Value {
    json!({ "status": "partial", "summary": missing })
}

/// reviewer: met.
pub fn pass() -> Value {
    review("PASS", 96, &[])
}

/// reviewer: something is missing.
pub fn review_partial(finding: &str) -> Value {
    review("PARTIAL", 60, &[finding])
}

/// reviewer: people must decide.
pub fn review_fail(finding: &str) -> Value {
    review("FAIL", 20, &[finding])
}

fn review(verdict: &str, score: u32, findings: &[&str]) -> Value {
    let findings: Vec<Value> = findings.iter().map(|finding| json!({ "severity": "high", "issue": finding })).collect();
    let status = if verdict == "PASS" { "met" } else { "partial" };
    json!({
        "verdict": verdict, "score": score, "summary": "Read with the evidence.", "findings": findings,
        "requirement_coverage": [{ "requirement": "the last page", "status": status, "evidence": "src/pager.sh" }],
    })
}

/// seconder: sound.
pub fn second() -> Value {
    seconding("PASS", &[])
}

/// seconder: the executor must mend it.
pub fn second_fail(finding: &str) -> Value {
    seconding("FAIL", &[finding])
}

/// seconder: people must decide.
pub fn second_unclear(finding: &str) -> Value {
    seconding("UNCLEAR", &[finding])
}

fn seconding(verdict: &str, findings: &[&str]) -> Value {
    let findings: Vec<Value> = findings
        .iter()
        .map(|issue| json!({ "file": "src/pager.sh", "category": "correctness", "issue": issue }))
        .collect();
    json!({
        "scope_verdict": "PASS", "scope_findings": [], "quality_verdict": verdict, "quality_findings": findings,
        "overall_verdict": verdict,
    })
}

/// test-engineer: there are tests.
pub fn tests_written() -> Value {
    json!({
        "status": "tests_written", "summary": "A test of the last page.", "files_changed": ["test/last_page_test.sh"],
        "test_runner_commands": ["./test.sh"],
    })
}

/// test-runner: all pass.
pub fn tests_passed() -> Value {
    json!({ "status": "passed", "commands": [{ "command": "./test.sh", "exit_code": 0 }], "failures": [] })
}

/// test-runner: one fails.
pub fn tests_failed(owner: &str) -> Value {
    json!({
        "status": "failed", "owner": owner, "commands": [{ "command": "./test.sh", "exit_code": 1 }],
        "failures": [{ "test": "the last page", "owner": owner, "message": "expected 3, got 2" }],
    })
}

/// obligations-scanner: nothing is left open.
pub fn clean() -> Value {
    json!({ "verdict": "CLEAN", "production_count": 0, "test_count": 0, "findings": [] })
}

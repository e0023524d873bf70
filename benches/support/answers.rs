//! A valid, passing answer of each role, by config/schemas.

use serde_json::{Value, json};

/// Returns the last text of an agent that passes as this role.
pub(crate) fn passing(role: &str) -> String {
    let answer: Value = match role {
        "executor" => json!({
            "status": "success",
            "summary": "The last page is counted now, so that it is shown.",
            "files_changed": ["src/pager.sh"],
            "symbols_modified": ["page_count"],
            "lint_pass": null,
            "verification": [{"command": "./test.sh", "exit_code": 0, "summary": "4 checks pass"}],
            "risks": [], "follow_ups": [],
        }),
        "seconder" => json!({
            "scope_verdict": "PASS", "scope_findings": [],
            "quality_verdict": "PASS", "quality_findings": [],
            "overall_verdict": "PASS",
        }),
        "test-engineer" => json!({
            "status": "tests_written",
            "summary": "A regression test for a last page that is not full.",
            "files_changed": ["test/pager_test.sh"],
            "coverage_map": [{"impl_path": "src/pager.sh", "test_path": "test/pager_test.sh"}],
            "smoke_e2e_commands": [], "telemetry_assertions": [],
            "test_runner_commands": ["./test.sh"],
            "known_deferred_paths": [], "source_bug_suspicions": [],
        }),
        "test-runner" => json!({
            "status": "passed",
            "commands": [{"command": "./test.sh", "exit_code": 0, "summary": "5 checks pass"}],
            "failures": [],
        }),
        "obligations-scanner" => {
            json!({"verdict": "CLEAN", "production_count": 0, "test_count": 0, "findings": []})
        }
        _ => json!({
            "verdict": "PASS", "score": 96, "summary": "Every line of a file is on one of its pages.",
            "findings": [],
            "requirement_coverage": [{
                "requirement": "Every line of a file is on one of its pages.", "status": "met",
                "evidence": "test/pager_test.sh, the last check",
            }],
            "release_checklist": [{"item": "tests pass", "answer": "yes"}],
        }),
    };
    format!("Done.\n\n```json\n{answer:#}\n```\n")
}

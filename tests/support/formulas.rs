//! The formulas of the tests. The small ones are in `.beads/formulas` of every repository.

use serde_json::{Value, json};

/// The shipped formula of six steps.
pub const CODE_STANDARD: &str = "code-standard";
/// executor → reviewer.
pub const PAIR: &str = "pair";
/// executor → test-engineer → reviewer.
pub const TESTED: &str = "tested";
/// executor → test-runner.
pub const RUN: &str = "run";

/// executor → test-runner and seconder, side by side → reviewer.
pub const READERS: &str = "readers";

/// The contract of the demo's bug.
pub const PAGER: &str = "\
<change-contract type=\"bug\" scrutiny=\"medium\">
  <problem>The pager loses its last page when the number of lines is no multiple of the page size.</problem>
  <scope><path>src/pager.sh</path></scope>
  <non-goals><item>New options</item></non-goals>
  <validation><criterion>`./test.sh` passes</criterion></validation>
  <acceptance><criterion>Every line of a file is on one of its pages.</criterion></acceptance>
</change-contract>
";

/// Returns the small formulas by name.
pub fn small() -> [(&'static str, Value); 4] {
    let executor = step("executor", &[], &["position:primary-writer", "edge:implements->root"]);
    let reviewer = |needs: &[&str]| step("reviewer", needs, &["gate:final"]);
    let engineer = step("test-engineer", &["executor"], &["position:secondary-writer"]);
    let seconder = step("seconder", &["executor"], &["gate:mandatory"]);
    let runner = step("test-runner", &["executor"], &["gate:mandatory"]);
    [
        (PAIR, formula(PAIR, &[executor.clone(), reviewer(&["executor"])])),
        (TESTED, formula(TESTED, &[executor.clone(), engineer, reviewer(&["test-engineer"])])),
        (
            READERS,
            formula(READERS, &[executor.clone(), runner.clone(), seconder, reviewer(&["test-runner", "seconder"])]),
        ),
        (RUN, formula(RUN, &[executor, runner])),
    ]
}

fn formula(name: &str, steps: &[Value]) -> Value {
    json!({ "formula": name, "version": 1, "type": "workflow", "description": "A short chain.", "steps": steps })
}

fn step(role: &str, needs: &[&str], labels: &[&str]) -> Value {
    let mut all = vec!["chain-step".to_owned(), "kind:step".to_owned(), format!("role:{role}")];
    all.extend(labels.iter().map(|label| (*label).to_owned()));
    json!({
        "id": role, "title": format!("{role} step"), "type": "task", "needs": needs, "labels": all,
        "description": format!("Work as {role}."),
    })
}

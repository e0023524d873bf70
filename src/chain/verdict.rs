//! What a step's answer means for the chain: go on, go back, ask for people. Rules: docs/design/outputs.md.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shape::Class;
use crate::specialist::Answer;

/// Longest findings text, in bytes: it goes into a prompt.
const FINDINGS_LIMIT: usize = 12_000;

/// What an answer asks the chain to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The step's own word is good. What it stands on (a commit, a voided verdict) is judged elsewhere.
    Passed {
        /// Something to record that holds nothing up.
        remark: Option<String>,
    },
    /// A writer must work again.
    Rework {
        /// Which writer.
        target: ReworkTarget,
        /// What that writer should mend; at most 12 kB.
        findings: String,
    },
    /// A person must decide.
    Blocked {
        /// Why, as a stable code.
        reason: BlockReason,
        /// Why, for people; at most 12 kB.
        detail: String,
    },
    /// The same step gets one more turn; see [`Verdict::without_another_turn`].
    Again {
        /// What is missing, by the agent's own word; at most 12 kB.
        why: String,
    },
}

/// The writer that a gate sends back to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReworkTarget {
    /// The owner of the production change: executor or debugger.
    PrimaryWriter,
    /// The test-engineer.
    SecondaryWriter,
}

/// Why a step waits for a person. The code is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockReason {
    /// A writer did not finish in its second turn either.
    Incomplete,
    /// A writer claims success without having changed anything. Judged where the commit is made.
    EmptyDiff,
    /// No valid answer, after the repeated question too. Judged where the answer is taken.
    NoVerdict,
    /// The answer contradicts its own evidence.
    Contradiction,
    /// The answer uses a word that no rule knows.
    UnknownAnswer,
    /// The test-engineer can't write a useful test.
    TestsNotWritable,
    /// The test-runner could not run the tests.
    TestsNotRunnable,
    /// The tests fail because of their surroundings.
    TestInfrastructure,
    /// The tests fail without this change too.
    PreExistingFailure,
    /// The seconder has no evidence for a dimension.
    Unclear,
    /// The obligations-scanner could not look.
    ScanBlocked,
    /// The reviewer, or a gate of unknown role, says FAIL.
    Rejected,
}

impl BlockReason {
    /// Returns the code, as it is stored and shown.
    pub fn code(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::EmptyDiff => "empty_diff",
            Self::NoVerdict => "no_verdict",
            Self::Contradiction => "contradiction",
            Self::UnknownAnswer => "unknown_answer",
            Self::TestsNotWritable => "tests_not_writable",
            Self::TestsNotRunnable => "tests_not_runnable",
            Self::TestInfrastructure => "test_infrastructure",
            Self::PreExistingFailure => "pre_existing_failure",
            Self::Unclear => "unclear",
            Self::ScanBlocked => "scan_blocked",
            Self::Rejected => "rejected",
        }
    }
}

impl Verdict {
    /// Returns the verdict where the step has had its second turn: what would ask for another one blocks.
    pub fn without_another_turn(self) -> Self {
        match self {
            Self::Again { why } => Self::Blocked { reason: BlockReason::Incomplete, detail: why },
            Self::Passed { .. } | Self::Rework { .. } | Self::Blocked { .. } => self,
        }
    }
}

/// Returns what the answer of a role means. The answer satisfies the role's contract already.
///
/// A role beyond the six answers on the general scale, `verdict` PASS, PARTIAL, FAIL or `status` success, partial,
/// failed. The best word passes. For the other two the class decides: a gate's middle word sends the primary writer back
/// and its worst blocks, a step gets one more turn. Any other word, of any role, blocks.
pub fn judge(role: &str, class: Class, answer: &Answer) -> Verdict {
    match role {
        "executor" => executor(answer),
        "test-engineer" => test_engineer(answer),
        "seconder" => seconder(answer),
        "test-runner" => test_runner(answer),
        "obligations-scanner" => obligations(answer),
        "reviewer" => gate(answer),
        _ => match class {
            Class::Gate => gate(answer),
            Class::Step => general_step(answer),
        },
    }
}

fn executor(answer: &Answer) -> Verdict {
    match word(answer) {
        ("status", "success") => passed(),
        ("status", "partial" | "failed") => Verdict::Again { why: findings(answer) },
        _ => unknown(answer),
    }
}

fn general_step(answer: &Answer) -> Verdict {
    match grade(answer) {
        Some(Grade::Best) => passed(),
        Some(Grade::Middle | Grade::Worst) => Verdict::Again { why: findings(answer) },
        None => unknown(answer),
    }
}

fn test_engineer(answer: &Answer) -> Verdict {
    match word(answer) {
        ("status", "tests_written") => passed(),
        ("status", "source_bug_suspected") => rework(ReworkTarget::PrimaryWriter, answer),
        ("status", "blocked") => blocked(BlockReason::TestsNotWritable, answer),
        _ => unknown(answer),
    }
}

fn seconder(answer: &Answer) -> Verdict {
    match word(answer) {
        ("overall_verdict", "PASS") => passed(),
        ("overall_verdict", "FAIL") => rework(ReworkTarget::PrimaryWriter, answer),
        ("overall_verdict", "PARTIAL") => blocked(BlockReason::Unclear, answer),
        _ => unknown(answer),
    }
}

fn test_runner(answer: &Answer) -> Verdict {
    let owner = answer.value.get("owner").and_then(Value::as_str);
    match (word(answer), owner) {
        // By its own word; whether the commands ran so is held against what was seen (`job::read`).
        (("status", "passed"), _) if has_failed_command(&answer.value) => blocked(BlockReason::Contradiction, answer),
        (("status", "passed"), _) => passed(),
        (("status", "failed"), Some("test_engineer")) => rework(ReworkTarget::SecondaryWriter, answer),
        (("status", "failed"), Some("debugger_or_executor")) => rework(ReworkTarget::PrimaryWriter, answer),
        (("status", "failed"), Some("infrastructure")) => blocked(BlockReason::TestInfrastructure, answer),
        (("status", "failed"), Some("pre_existing")) => blocked(BlockReason::PreExistingFailure, answer),
        (("status", "blocked"), _) => blocked(BlockReason::TestsNotRunnable, answer),
        _ => unknown(answer),
    }
}

fn has_failed_command(answer: &Value) -> bool {
    let commands = answer.get("commands").and_then(Value::as_array);
    commands.is_some_and(|commands| commands.iter().any(|command| command.get("exit_code") != Some(&Value::from(0))))
}

fn obligations(answer: &Answer) -> Verdict {
    match word(answer) {
        ("verdict", "CLEAN" | "OBLIGATIONS_FOUND") if owes_in_production(&answer.value) => {
            rework(ReworkTarget::PrimaryWriter, answer)
        }
        ("verdict", "CLEAN") => passed(),
        // Markers in tests never hold a chain up; they are recorded.
        ("verdict", "OBLIGATIONS_FOUND") => Verdict::Passed { remark: Some(findings(answer)) },
        ("verdict", "BLOCKED") => blocked(BlockReason::ScanBlocked, answer),
        _ => unknown(answer),
    }
}

/// By the count or by the list: an answer that forgets one of them still owes.
fn owes_in_production(answer: &Value) -> bool {
    let counted = answer.get("production_count").and_then(Value::as_f64).is_some_and(|count| count > 0.0);
    let is = |finding: &Value, key: &str, value: &str| finding.get(key).and_then(Value::as_str) == Some(value);
    let listed = answer.get("findings").and_then(Value::as_array).is_some_and(|findings| {
        findings.iter().any(|finding| is(finding, "surface", "production") && is(finding, "status", "UNTRACKED"))
    });
    counted || listed
}

/// The reviewer, and any gate of unknown role.
fn gate(answer: &Answer) -> Verdict {
    match grade(answer) {
        Some(Grade::Best) => passed(),
        Some(Grade::Middle) => rework(ReworkTarget::PrimaryWriter, answer),
        Some(Grade::Worst) => blocked(BlockReason::Rejected, answer),
        None => unknown(answer),
    }
}

/// A word of the general scale.
enum Grade {
    Best,
    Middle,
    Worst,
}

fn grade(answer: &Answer) -> Option<Grade> {
    match word(answer) {
        ("verdict" | "overall_verdict", "PASS") | ("status", "success") => Some(Grade::Best),
        ("verdict" | "overall_verdict", "PARTIAL") | ("status", "partial") => Some(Grade::Middle),
        ("verdict" | "overall_verdict", "FAIL") | ("status", "failed") => Some(Grade::Worst),
        _ => None,
    }
}

fn word(answer: &Answer) -> (&str, &str) {
    (&answer.key, &answer.key_value)
}

fn passed() -> Verdict {
    Verdict::Passed { remark: None }
}

fn rework(target: ReworkTarget, answer: &Answer) -> Verdict {
    Verdict::Rework { target, findings: findings(answer) }
}

fn blocked(reason: BlockReason, answer: &Answer) -> Verdict {
    Verdict::Blocked { reason, detail: findings(answer) }
}

fn unknown(answer: &Answer) -> Verdict {
    let word = &answer.key_value;
    let detail = format!("no rule for `{}` = {word:?}\n{}", answer.key, findings(answer));
    Verdict::Blocked { reason: BlockReason::UnknownAnswer, detail: bounded(detail) }
}

/// Parts of an answer that say what is wrong, in the order they are told; a list has one line for each entry.
const TELLING: [&str; 14] = [
    "summary",
    "blocked_reason",
    "owner",
    "scope_verdict",
    "scope_findings",
    "quality_verdict",
    "quality_findings",
    "source_bug_suspicions",
    "failures",
    "findings",
    "requirement_coverage",
    "release_checklist",
    "commands",
    "unresolved_questions",
];

/// Returns the telling parts of an answer as text for a writer or a person, at most 12 kB.
///
/// Met requirements, kept promises and commands that ended well are left out.
pub fn findings(answer: &Answer) -> String {
    let mut text = match &answer.stated {
        Some(stated) => format!("{}: {} (stated {stated}, which its parts contradict)\n", answer.key, answer.key_value),
        None => format!("{}: {}\n", answer.key, answer.key_value),
    };
    for key in TELLING {
        match answer.value.get(key) {
            Some(Value::Array(entries)) => {
                let mut lines = entries.iter().filter(|entry| !is_fine(entry)).map(line).peekable();
                if lines.peek().is_some() {
                    text.push_str(&format!("{key}:\n"));
                }
                for line in lines {
                    text.push_str(&line);
                    if text.len() > FINDINGS_LIMIT {
                        return bounded(text);
                    }
                }
            }
            None | Some(Value::Null) => {}
            Some(value) => text.push_str(&format!("{key}: {}\n", plain(value))),
        }
    }
    bounded(text)
}

fn is_fine(entry: &Value) -> bool {
    let is = |key: &str, value: Value| entry.get(key) == Some(&value);
    is("status", "met".into())
        || is("status", "TRACKED".into())
        || is("status", "N/A".into())
        || is("answer", "yes".into())
        || is("answer", "not_applicable".into())
        || is("exit_code", 0.into())
}

fn line(entry: &Value) -> String {
    let text = match entry {
        Value::Object(fields) => {
            let parts: Vec<String> = fields.iter().map(|(key, value)| format!("{key}: {}", plain(value))).collect();
            parts.join("; ")
        }
        value => plain(value),
    };
    // A finding of several lines stays one entry of the list.
    format!("- {}\n", text.trim().replace('\n', "\n  "))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn bounded(mut text: String) -> String {
    const CUT: &str = "\n[cut here; the rest is in the step's result]";
    if text.len() > FINDINGS_LIMIT {
        text.truncate(text.floor_char_boundary(FINDINGS_LIMIT - CUT.len()));
        text.push_str(CUT);
    }
    text
}

#[cfg(test)]
mod tests;

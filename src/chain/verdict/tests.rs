use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::specialist::{Contract, check};

/// An answer that went through its role's real contract.
fn answer(role: &str, value: &Value) -> Answer {
    let contract = Contract::shipped(role).unwrap_or_else(|| panic!("{role}"));
    check(&contract, &value.to_string()).unwrap_or_else(|problem| panic!("{role}: {problem}"))
}

/// The verdict without its texts.
#[derive(Debug, PartialEq)]
enum Kind {
    Passed,
    PassedWithRemark,
    ToPrimary,
    ToSecondary,
    Again,
    Blocked(&'static str),
}

fn kind(verdict: &Verdict) -> Kind {
    match verdict {
        Verdict::Passed { remark: None } => Kind::Passed,
        Verdict::Passed { remark: Some(_) } => Kind::PassedWithRemark,
        Verdict::Rework { target: ReworkTarget::PrimaryWriter, .. } => Kind::ToPrimary,
        Verdict::Rework { target: ReworkTarget::SecondaryWriter, .. } => Kind::ToSecondary,
        Verdict::Again { .. } => Kind::Again,
        Verdict::Blocked { reason, .. } => Kind::Blocked(reason.code()),
    }
}

fn writer(status: &str) -> Value {
    json!({"status": status, "summary": "what I did", "source_bug_suspicions": [{"issue": "off by one"}]})
}

fn seconder(scope: &str, quality: &str) -> Value {
    json!({
        "scope_verdict": scope, "scope_findings": [{"section": "SCOPE", "issue": "touches docs"}],
        "quality_verdict": quality, "quality_findings": [{"file": "a.sh", "category": "logic", "issue": "wrong sign"}],
        "overall_verdict": "PASS"
    })
}

fn tests_ended(status: &str, exit_code: i64, owner: &str) -> Value {
    let mut value = json!({
        "status": status, "commands": [{"command": "sh t.sh", "exit_code": exit_code}], "blocked_reason": "no sh"
    });
    if !owner.is_empty() {
        value["owner"] = json!(owner);
        value["failures"] = json!([{"test": "t.sh", "message": "expected 3, got 2"}]);
    }
    value
}

fn scanned(verdict: &str, production: u64, finding: Value) -> Value {
    json!({
        "verdict": verdict, "production_count": production, "test_count": 1, "blocked_reason": "no diff",
        "findings": if finding.is_null() { json!([]) } else { json!([finding]) }
    })
}

fn marker(surface: &str, status: &str) -> Value {
    json!({"file": "a.sh", "line": 3, "marker": "TODO", "surface": surface, "status": status})
}

fn reviewed(verdict: &str) -> Value {
    json!({
        "verdict": verdict, "score": 70, "findings": [{"severity": "high", "issue": "the last page is lost"}],
        "requirement_coverage": [{"requirement": "pages", "status": "partial", "evidence": "t.sh"}]
    })
}

#[test]
fn each_answer_of_the_six_roles_has_its_route() {
    for (role, value, expected) in [
        ("executor", writer("success"), Kind::Passed),
        ("executor", writer("partial"), Kind::Again),
        ("executor", writer("failed"), Kind::Again),
        ("test-engineer", writer("tests_written"), Kind::Passed),
        ("test-engineer", writer("source_bug_suspected"), Kind::ToPrimary),
        ("test-engineer", writer("blocked"), Kind::Blocked("tests_not_writable")),
        ("seconder", seconder("PASS", "PASS"), Kind::Passed),
        ("seconder", seconder("FAIL", "PASS"), Kind::ToPrimary),
        ("seconder", seconder("UNCLEAR", "FAIL"), Kind::ToPrimary),
        ("seconder", seconder("PASS", "UNCLEAR"), Kind::Blocked("unclear")),
        ("test-runner", tests_ended("passed", 0, ""), Kind::Passed),
        ("test-runner", tests_ended("passed", 1, ""), Kind::Blocked("contradiction")),
        ("test-runner", tests_ended("failed", 1, "test_engineer"), Kind::ToSecondary),
        ("test-runner", tests_ended("failed", 1, "debugger_or_executor"), Kind::ToPrimary),
        ("test-runner", tests_ended("failed", 127, "infrastructure"), Kind::Blocked("test_infrastructure")),
        ("test-runner", tests_ended("failed", 1, "pre_existing"), Kind::Blocked("pre_existing_failure")),
        ("test-runner", tests_ended("blocked", 1, ""), Kind::Blocked("tests_not_runnable")),
        ("obligations-scanner", scanned("CLEAN", 0, Value::Null), Kind::Passed),
        ("obligations-scanner", scanned("CLEAN", 0, marker("production", "TRACKED")), Kind::Passed),
        ("obligations-scanner", scanned("CLEAN", 0, marker("production", "UNTRACKED")), Kind::ToPrimary),
        ("obligations-scanner", scanned("OBLIGATIONS_FOUND", 1, Value::Null), Kind::ToPrimary),
        ("obligations-scanner", scanned("OBLIGATIONS_FOUND", 0, marker("production", "UNTRACKED")), Kind::ToPrimary),
        ("obligations-scanner", scanned("OBLIGATIONS_FOUND", 0, marker("test", "UNTRACKED")), Kind::PassedWithRemark),
        ("obligations-scanner", scanned("BLOCKED", 0, Value::Null), Kind::Blocked("scan_blocked")),
        ("reviewer", reviewed("PASS"), Kind::Passed),
        ("reviewer", reviewed("PARTIAL"), Kind::ToPrimary),
        ("reviewer", reviewed("FAIL"), Kind::Blocked("rejected")),
    ] {
        for class in [Class::Step, Class::Gate] {
            assert_eq!(kind(&judge(role, class, &answer(role, &value))), expected, "{role} {value}");
        }
    }
}

#[test]
fn a_role_beyond_the_six_answers_on_the_general_scale() {
    for (contract, word, as_step, as_gate) in [
        ("gate", "PASS", Kind::Passed, Kind::Passed),
        ("gate", "PARTIAL", Kind::Again, Kind::ToPrimary),
        ("gate", "FAIL", Kind::Again, Kind::Blocked("rejected")),
        ("step", "success", Kind::Passed, Kind::Passed),
        ("step", "partial", Kind::Again, Kind::ToPrimary),
        ("step", "failed", Kind::Again, Kind::Blocked("rejected")),
    ] {
        let key = Contract::shipped(contract).expect("shipped").key().to_owned();
        let given = answer(contract, &json!({key: word, "summary": "x"}));
        assert_eq!(kind(&judge("auditor", Class::Step, &given)), as_step, "step {word}");
        assert_eq!(kind(&judge("auditor", Class::Gate, &given)), as_gate, "gate {word}");
    }
}

#[test]
fn a_word_without_a_rule_never_passes() {
    let odd = Answer {
        value: json!({"status": "pass", "summary": "fine"}),
        key: "status".to_owned(),
        key_value: "pass".to_owned(),
        stated: None,
    };
    let roles = ["executor", "test-engineer", "seconder", "test-runner", "obligations-scanner", "reviewer", "auditor"];
    for role in roles {
        for class in [Class::Step, Class::Gate] {
            match judge(role, class, &odd) {
                Verdict::Blocked { reason: BlockReason::UnknownAnswer, detail } => {
                    assert!(detail.starts_with("no rule for `status` = \"pass\""), "{detail}");
                }
                other => panic!("{role}: {other:?}"),
            }
        }
    }
    // A right word under another role's key has no rule either.
    let borrowed = Answer { key: "verdict".to_owned(), key_value: "success".to_owned(), ..odd };
    assert_eq!(kind(&judge("executor", Class::Step, &borrowed)), Kind::Blocked("unknown_answer"));
}

#[test]
fn a_second_turn_is_the_last_one() {
    let again = judge("executor", Class::Step, &answer("executor", &writer("partial")));
    assert_eq!(kind(&again.without_another_turn()), Kind::Blocked("incomplete"));
    let passed = judge("executor", Class::Step, &answer("executor", &writer("success")));
    assert_eq!(kind(&passed.without_another_turn()), Kind::Passed);
}

#[test]
fn findings_tell_a_writer_what_to_mend_and_leave_out_what_is_fine() {
    let mut review = reviewed("PARTIAL");
    review["requirement_coverage"] = json!([
        {"requirement": "first page", "status": "met", "evidence": "t.sh"},
        {"requirement": "last page", "status": "unmet", "evidence": "shows\nnothing"}
    ]);
    insta::assert_snapshot!(findings(&answer("reviewer", &review)), @r"
    verdict: PARTIAL
    findings:
    - severity: high; issue: the last page is lost
    requirement_coverage:
    - requirement: last page; status: unmet; evidence: shows
      nothing
    ");
    insta::assert_snapshot!(findings(&answer("seconder", &seconder("PASS", "FAIL"))), @r"
    overall_verdict: FAIL (stated PASS, which its parts contradict)
    scope_verdict: PASS
    scope_findings:
    - section: SCOPE; issue: touches docs
    quality_verdict: FAIL
    quality_findings:
    - file: a.sh; category: logic; issue: wrong sign
    ");
    insta::assert_snapshot!(findings(&answer("test-runner", &tests_ended("failed", 1, "test_engineer"))), @r"
    status: failed
    blocked_reason: no sh
    owner: test_engineer
    failures:
    - test: t.sh; message: expected 3, got 2
    commands:
    - command: sh t.sh; exit_code: 1
    ");
}

#[test]
fn the_code_of_a_reason_is_the_stored_one() {
    for reason in [
        BlockReason::Incomplete,
        BlockReason::EmptyDiff,
        BlockReason::NoVerdict,
        BlockReason::Contradiction,
        BlockReason::UnknownAnswer,
        BlockReason::TestsNotWritable,
        BlockReason::TestsNotRunnable,
        BlockReason::TestInfrastructure,
        BlockReason::PreExistingFailure,
        BlockReason::Unclear,
        BlockReason::ScanBlocked,
        BlockReason::Rejected,
    ] {
        assert_eq!(serde_json::to_value(reason).expect("JSON"), reason.code());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn findings_of_any_size_stay_within_the_limit(issue in ".{1,12}", times in 1..1500usize, entries in 1..40usize) {
        let mut review = reviewed("PARTIAL");
        review["findings"] = Value::from(vec![json!({"severity": "low", "issue": issue.repeat(times)}); entries]);
        let text = findings(&answer("reviewer", &review));
        prop_assert!(text.len() <= FINDINGS_LIMIT);
        // Nothing is lost unsaid: either the part that comes last is there or the cut is.
        prop_assert!(text.contains("requirement_coverage") || text.ends_with("result]"), "{}", text);
    }
}

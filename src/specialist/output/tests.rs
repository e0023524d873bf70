use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn contract(role: &str) -> std::sync::Arc<Contract> {
    Contract::shipped(role).expect("shipped")
}

fn extract(text: &str, key: &str) -> Option<Value> {
    last_object_with(text, key).object
}

#[test]
fn the_last_top_level_object_with_the_key_is_the_answer() {
    for (case, text, expected) in [
        ("bare", r#"{"verdict":"PASS"}"#, Some("PASS")),
        ("in prose", r#"I think {this} is fine: {"verdict":"PASS"} - done."#, Some("PASS")),
        ("fenced", "Report\n```json\n{\n  \"verdict\": \"FAIL\"\n}\n```\nBye", Some("FAIL")),
        ("the last of several", r#"{"verdict":"FAIL"} then {"verdict":"PASS"}"#, Some("PASS")),
        ("followed by another object", r#"{"verdict":"PASS"} {"note":"x"}"#, Some("PASS")),
        ("followed by loose braces", r#"{"verdict":"PASS"} fn main() { x } {{"#, Some("PASS")),
        ("braces in strings", r#"{"verdict":"PASS","why":"} {\"verdict\":\"FAIL\"} {"}"#, Some("PASS")),
        ("in a list", r#"[{"verdict":"PASS"}]"#, Some("PASS")),
        ("after a quote and a brace", r#"it printed {"oops and then {"verdict":"PASS"}"#, Some("PASS")),
        ("a wrapper", r#"{"answer":{"verdict":"PASS"}}"#, None),
        ("an upstream verdict inside", r#"{"verdict":"FAIL","seen":[{"verdict":"PASS"}]}"#, Some("FAIL")),
        ("cut, with an upstream verdict inside", r#"{"verdict":"FAIL","seen":[{"verdict":"PASS"}"#, None),
        ("a draft before a cut answer", r#"{"verdict":"PASS"} no: {"verdict":"FAIL","find"#, None),
        ("a cut draft before the answer", r#"{"verdict":"PASS","find oh. {"verdict":"FAIL"}"#, Some("FAIL")),
        ("a trailing comma", r#"{"verdict":"PASS",}"#, None),
        ("a lone surrogate", r#"{"verdict":"\ud800"}"#, None),
        ("only the word", "verdict: PASS", None),
        ("nothing", "", None),
    ] {
        let found = extract(text, "verdict").map(|object| object["verdict"].as_str().map(str::to_owned));
        assert_eq!(found, expected.map(|verdict| Some(verdict.to_owned())), "{case}");
    }
}

#[test]
fn an_object_too_deep_to_read_is_not_an_answer() {
    let deep = format!(r#"{{"verdict":"PASS","deep":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(extract(&deep, "verdict"), None);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(Value::from("{\"k\":\"no\"} \\\" }{")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((".{0,5}", inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_answer() -> impl Strategy<Value = Value> {
    (vec((".{0,5}", any_json()), 0..4), any::<String>()).prop_map(|(fields, verdict)| {
        let mut object: Map<String, Value> = fields.into_iter().collect();
        object.insert("k".to_owned(), Value::from(verdict));
        Value::Object(object)
    })
}

/// Prose without a JSON object: loose braces and quotes, fences, code.
fn any_prose() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[^{]{0,20}",
        prop::sample::select(vec![
            "{ ",
            "{x}",
            "fn f() {\n}",
            "{{",
            "```json\n",
            "\"",
            "{'k': 1}",
            "}",
            "[",
            "{[",
            "{:"
        ])
        .prop_map(str::to_owned),
    ];
    // A brace and then a quote would begin an object that swallows the answer's first quote; the table has that case.
    vec(piece, 0..8).prop_map(|pieces| pieces.concat().replace(['"'], "'") + " ")
}

proptest! {
    #[test]
    fn an_answer_in_any_prose_is_found(before in any_prose(), answer in any_answer(), after in any_prose(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&answer) } else { serde_json::to_string(&answer) };
        let text = format!("{before}{}{after}", text.expect("JSON"));
        prop_assert_eq!(extract(&text, "k"), Some(answer));
    }

    #[test]
    fn any_text_is_survived(text in any::<String>(), cut in any::<prop::sample::Index>(), answer in any_answer()) {
        let whole = format!("{text}{answer}");
        let cut = whole.floor_char_boundary(cut.index(whole.len() + 1));
        for role in ["executor", "reviewer"] {
            let _ = check(&contract(role), &whole[..cut]);
        }
    }
}

fn reviewer(verdict: &str, coverage: &str) -> Value {
    json!({
        "verdict": verdict, "score": 80, "findings": [{"severity": "low", "issue": "x"}],
        "requirement_coverage": [{"requirement": "r", "status": coverage, "evidence": "e"}]
    })
}

#[test]
fn an_answer_is_taken_when_it_satisfies_its_roles_schema() {
    let runner = json!({"status": "passed", "commands": [{"command": "sh t.sh", "exit_code": 0}]});
    for (role, answer, key_value) in [
        ("executor", json!({"status": "success", "summary": "done"}), "success"),
        ("reviewer", reviewer("PASS", "met"), "PASS"),
        ("test-runner", runner, "passed"),
        (
            "obligations-scanner",
            json!({"verdict": "CLEAN", "production_count": 0, "test_count": 1, "findings": []}),
            "CLEAN",
        ),
        ("test-engineer", json!({"status": "blocked", "summary": "no seam"}), "blocked"),
        ("gate", json!({"verdict": "PARTIAL", "summary": "x"}), "PARTIAL"),
        ("step", json!({"status": "failed", "summary": "x", "assumptions": ["a"]}), "failed"),
    ] {
        let answer = check(&contract(role), &format!("So: {answer}")).unwrap_or_else(|error| panic!("{role}: {error}"));
        assert_eq!((answer.key_value.as_str(), answer.stated), (key_value, None), "{role}");
    }
}

#[test]
fn an_answer_that_says_more_than_it_shows_is_not_valid() {
    for (case, role, answer, path) in [
        ("unknown word", "executor", json!({"status": "done", "summary": "x"}), "`/status`"),
        ("no summary", "executor", json!({"status": "success"}), "`/`"),
        ("PASS over an unmet requirement", "reviewer", reviewer("PASS", "unmet"), "`/requirement_coverage/0/status`"),
        (
            "score above 100",
            "reviewer",
            {
                let mut answer = reviewer("PASS", "met");
                answer["score"] = json!(101);
                answer
            },
            "`/score`",
        ),
        ("passed without a command", "test-runner", json!({"status": "passed", "commands": []}), "`/commands`"),
        (
            "failed without an owner",
            "test-runner",
            json!({"status": "failed",
            "commands": [{"command": "t", "exit_code": 1}], "failures": [{"test": "t", "message": "m"}]}),
            "`/`",
        ),
        (
            "CLEAN with a count",
            "obligations-scanner",
            json!({"verdict": "CLEAN", "production_count": 2, "test_count": 0, "findings": []}),
            "`/production_count`",
        ),
        (
            "a bug without a word about it",
            "test-engineer",
            json!({"status": "source_bug_suspected", "summary": "x"}),
            "`/`",
        ),
        (
            "an extra key",
            "seconder",
            json!({"scope_verdict": "PASS", "scope_findings": [], "quality_verdict": "PASS",
            "quality_findings": [], "overall_verdict": "PASS", "mood": "good"}),
            "`/`",
        ),
        (
            "a handoff field of a wrong type",
            "step",
            json!({"status": "success", "summary": "x", "assumptions": "none"}),
            "`/assumptions`",
        ),
    ] {
        match check(&contract(role), &answer.to_string()) {
            Err(OutputProblem::Invalid { errors, .. }) => {
                assert!(errors.iter().any(|error| error.starts_with(path)), "{case}: {errors:?}");
            }
            other => panic!("{case}: {other:?}"),
        }
    }
}

#[test]
fn the_overall_verdict_follows_from_the_dimensions() {
    for (scope, quality, overall) in [
        ("PASS", "PASS", "PASS"),
        ("PASS", "UNCLEAR", "PARTIAL"),
        ("PASS", "FAIL", "FAIL"),
        ("UNCLEAR", "PASS", "PARTIAL"),
        ("UNCLEAR", "UNCLEAR", "PARTIAL"),
        ("UNCLEAR", "FAIL", "FAIL"),
        ("FAIL", "PASS", "FAIL"),
        ("FAIL", "UNCLEAR", "FAIL"),
        ("FAIL", "FAIL", "FAIL"),
    ] {
        assert_eq!(seconder_overall(scope, quality), overall, "{scope} {quality}");
        for stated in ["PASS", "PARTIAL", "FAIL"] {
            let answer = json!({
                "scope_verdict": scope, "scope_findings": [{"section": "SCOPE", "issue": "x"}],
                "quality_verdict": quality, "quality_findings": [{"file": "f", "category": "c", "issue": "x"}],
                "overall_verdict": stated
            });
            let answer = check(&contract("seconder"), &answer.to_string()).expect("valid");
            assert_eq!(answer.key_value, overall, "{scope} {quality} {stated}");
            assert_eq!(answer.stated.as_deref(), (stated != overall).then_some(stated), "{scope} {quality} {stated}");
            assert_eq!(answer.value["overall_verdict"], stated, "the record keeps what was said");
        }
    }
}

#[test]
fn the_repeated_question_says_what_was_wrong_and_stays_short() {
    let missing = check(&contract("reviewer"), "all good!").expect_err("no answer");
    assert!(re_ask(&missing).contains("no JSON object with the key `verdict`"), "{}", re_ask(&missing));

    let cut = check(&contract("reviewer"), r#"{"verdict": "PASS", "sc"#).expect_err("cut");
    assert!(re_ask(&cut).contains("EOF while parsing"), "{}", re_ask(&cut));

    let ten_thousand = vec![json!({"severity": "x".repeat(500)}); 10_000];
    let long = json!({"verdict": "FAIL", "score": 1, "findings": ten_thousand, "requirement_coverage": []});
    let asked = re_ask(&check(&contract("reviewer"), &long.to_string()).expect_err("invalid"));
    assert!(asked.contains("`/findings/0`: \"issue\" is a required property"), "{asked}");
    assert!(asked.contains("and 19980 more") && asked.len() < 8_000, "{} bytes: {asked}", asked.len());
    assert!(!asked.contains("xxxx"), "an answer's text is never repeated: {asked}");
}

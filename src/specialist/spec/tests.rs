use serde_json::json;

use super::*;
use crate::failure::Failure;

/// A valid file, with one value set or removed (`null`) at a path of dots.
fn file_with(path: &str, value: Value) -> String {
    let mut document = json!({"specialist": {
        "metadata": {"name": "scribe", "version": "1.2.3", "description": "Writes", "category": "writer"},
        "execution": {},
        "prompt": {"task_template": "Do $contract"}
    }});
    if !path.is_empty() {
        let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
        let parent = parents.split('.').filter(|name| !name.is_empty()).fold(&mut document, |at, name| &mut at[name]);
        let fields = parent.as_object_mut().expect("an object");
        if value.is_null() {
            fields.remove(last)
        } else {
            fields.insert(last.to_owned(), value)
        };
    }
    document.to_string()
}

fn parse(text: &str) -> Result<Specialist, SpecialistError> {
    Specialist::parse("mine/scribe.specialist.json", text)
}

#[test]
fn absent_fields_take_their_defaults() {
    let scribe = parse(&file_with("", Value::Null)).expect("valid");
    assert_eq!((scribe.name(), scribe.system(), scribe.tier()), ("scribe", "", Tier::ReadOnly));
    assert_eq!((scribe.model(), scribe.thinking()), (None, None));
    assert_eq!(scribe.timeout(), Some(Duration::from_secs(120)));
    assert_eq!(scribe.stall(), Some(Duration::from_secs(300)));
    assert_eq!((scribe.task_template(), scribe.contract().key()), ("Do $contract", "status"));
}

#[test]
fn given_fields_are_taken() {
    for (case, path, value, holds) in [
        ("no limit", "execution.timeout_ms", json!(0), (|s| s.timeout().is_none()) as fn(&Specialist) -> bool),
        ("no stall", "execution.stall_timeout_ms", json!(0), |s| s.stall().is_none()),
        ("model", "execution.model", json!("acme/big"), |s| s.model() == Some("acme/big")),
        ("thinking", "execution.thinking_level", json!("xhigh"), |s| {
            s.thinking().map(Thinking::as_str) == Some("xhigh")
        }),
        ("tier", "execution.permission_required", json!("HIGH"), |s| s.tier() == Tier::High),
        ("a reviewer", "execution.output_type", json!("review"), |s| s.contract().key() == "verdict"),
        ("own schema", "prompt.output_schema", json!({"required": ["overall_verdict"]}), |s| {
            s.contract().key() == "overall_verdict"
        }),
        ("shipped schema", "prompt.output_schema", json!({"$ref": "../schemas/reviewer.schema.json"}), |s| {
            s.contract().schema()["title"] == "reviewer"
        }),
    ] {
        let text = file_with(&format!("specialist.{path}"), value);
        assert!(holds(&parse(&text).unwrap_or_else(|error| panic!("{case}: {error}"))), "{case}");
    }
}

#[test]
fn fields_of_the_schema_that_are_not_read_yet_are_accepted() {
    for (path, value) in [
        ("metadata.updated", json!("2026-01-01")),
        ("metadata.tags", json!(["a"])),
        ("execution.mode", json!("auto")),
        ("execution.fallback_model", json!("acme/small")),
        ("execution.auto_commit", json!("never")),
        ("execution.extensions", json!({"serena": false})),
        ("skills", json!({"paths": ["./x"], "scripts": [{"run": "ls", "phase": "pre", "inject_output": true}]})),
        ("stall_detection", json!({"waiting_auto_close_ms": 5})),
        ("mandatory_rules", json!({"inline_rules": [{"id": "a", "text": "b"}]})),
        ("permissions", json!({"LOW": {"denied_natives_mode": "hard"}})),
        ("beads_write_notes", json!(true)),
        ("prompt.output_schema", json!({"required": ["status"], "properties": {"anything": {}}})),
    ] {
        let text = file_with(&format!("specialist.{path}"), value);
        parse(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

#[test]
fn a_fault_names_file_and_field() {
    for (path, value, words) in [
        ("specialist.execution.permision_required", json!("LOW"), "did you mean permission_required?"),
        ("specialist.promt", json!({}), "no field `specialist.promt` in the schema; did you mean prompt"),
        ("extra", json!(1), "no field `extra` in the schema"),
        ("specialist.execution.zzz", json!(1), "no field `specialist.execution.zzz` in the schema"),
        ("specialist.skills", json!({"scripts": [{"rum": "ls"}]}), "`specialist.skills.scripts[].rum`"),
        ("specialist.execution.timeout_ms", json!("soon"), "`specialist.execution.timeout_ms`: invalid type"),
        ("specialist.execution.timeout_ms", json!(-1), "`specialist.execution.timeout_ms`"),
        ("specialist.execution.permission_required", json!("ROOT"), "unknown variant `ROOT`"),
        ("specialist.execution.output_type", json!("poem"), "unknown variant `poem`"),
        ("specialist.metadata.name", json!("Scribe"), "`specialist.metadata.name`: \"Scribe\" is not lower-case"),
        ("specialist.metadata.name", json!("writer"), "differs from the file's name"),
        ("specialist.metadata.version", json!("1.0.0-rc1"), "is not three numbers"),
        ("specialist.metadata.description", Value::Null, "missing field `description`"),
        ("specialist.prompt.task_template", Value::Null, "missing field `task_template`"),
        ("specialist.prompt.output_schema", json!({"type": "object"}), "`specialist.prompt.output_schema`: compile"),
    ] {
        let failure = Failure::from(parse(&file_with(path, value)).expect_err(path));
        assert!(failure.message.contains(words), "{path}: {}", failure.message);
        assert!(failure.message.contains("mine/scribe.specialist.json"), "{path}: {}", failure.message);
        assert_eq!((failure.kind, failure.exit), ("usage", 2), "{path}");
    }
}

#[test]
fn text_that_is_not_one_json_object_is_refused() {
    for text in ["", "[]", "null", "{\"specialist\": ", "{\"specialist\": {}} x"] {
        assert!(parse(text).is_err(), "{text}");
    }
    let twice = file_with("", Value::Null).replacen(
        "\"execution\":{}",
        "\"execution\":{\"model\":\"a/b\",\"model\":\"c/d\"}",
        1,
    );
    let error = parse(&twice).expect_err("a field given twice").to_string();
    assert!(error.contains("duplicate field `model`"), "{error}");
}

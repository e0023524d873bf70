use serde_json::json;

use super::parse;
use crate::chain::formula::condition::{Condition, Test};
use crate::chain::formula::schema::VarKind;
use crate::chain::formula::{Format, Formula, FormulaError, SourceText};
use crate::failure::Failure;

fn json_text(text: &str) -> Result<Formula, FormulaError> {
    parse(&SourceText { origin: "f.json".to_owned(), text: text.to_owned(), format: Format::Json })
}

fn toml_text(text: &str) -> Result<Formula, FormulaError> {
    parse(&SourceText { origin: "f.toml".to_owned(), text: text.to_owned(), format: Format::Toml })
}

fn step_with(field: &str) -> String {
    format!(r#"{{"formula":"f","steps":[{{"id":"a","title":"A",{field}}}]}}"#)
}

#[test]
fn json_and_toml_of_one_formula_read_the_same() {
    let from_json = json_text(
        r#"{"formula":"f","description":"D","version":2,"type":"workflow","extends":["base"],"intent":"x","pour":true,"phase":"liquid",
            "vars":{"s":{"description":"d","required":true,"enum":["a","b"],"pattern":"^.$"},"n":{"default":"2","type":"int"}},
            "steps":[{"id":"a","title":"A","description":"d","notes":"n","type":"task","priority":1,"labels":["l"],
              "metadata":{"k":"v","n":3,"b":true,"l":["x",1.5]},"needs":["x"],"depends_on":["y","x"],"assignee":"me","condition":"{{s}} == a"}]}"#,
    )
    .unwrap();
    let mut from_toml = toml_text(
        r#"
formula = "f"
description = "D"
version = 2
type = "workflow"
extends = ["base"]
intent = "x"
pour = true
phase = "liquid"
[vars.s]
description = "d"
required = true
enum = ["a", "b"]
pattern = "^.$"
[vars.n]
default = "2"
type = "int"
[[steps]]
id = "a"
title = "A"
description = "d"
notes = "n"
type = "task"
priority = 1
labels = ["l"]
needs = ["x"]
depends_on = ["y", "x"]
assignee = "me"
condition = "{{s}} == a"
[steps.metadata]
k = "v"
n = 3
b = true
l = ["x", 1.5]
"#,
    )
    .unwrap();
    from_toml.origin.clone_from(&from_json.origin);
    from_toml.steps[0].origin.clone_from(&from_json.origin);
    assert_eq!(from_json, from_toml);
    let step = &from_json.steps[0];
    assert_eq!(step.needs, ["x", "y"]);
    assert_eq!(step.condition, Some(Condition { var: "s".to_owned(), test: Test::Is("a".to_owned()) }));
    assert_eq!(step.metadata["l"], json!(["x", 1.5]));
    assert_eq!(from_json.vars["n"].kind, VarKind::Int);
}

#[test]
fn toml_has_a_short_form_of_variables_and_json_has_not() {
    let formula = toml_text("formula='f'\n[vars]\nx='short'\n").unwrap();
    assert_eq!(formula.vars["x"].default.as_deref(), Some("short"));
    assert!(matches!(json_text(r#"{"formula":"f","vars":{"x":"short"}}"#), Err(FormulaError::Malformed { .. })));
}

#[test]
fn what_bd_knows_and_sp_cannot_run_is_refused_by_name() {
    for (field, value) in [
        ("loop", r#"{"count":3,"body":[]}"#),
        ("expand", r#""x""#),
        ("expand_vars", "{}"),
        ("waits_for", r#""all-children""#),
        ("on_complete", "{}"),
        ("children", "[]"),
        ("gate", r#"{"type":"human"}"#),
    ] {
        let error = json_text(&step_with(&format!("{field:?}:{value}"))).unwrap_err();
        assert_eq!(error.to_string(), format!("read f.json, step a, field {field}: bd knows it, sp can't run it yet"));
        assert_eq!(Failure::from(error).error_code, "formula_unsupported");
    }
    for (field, value) in [
        ("template", "[]"),
        ("compose", "{}"),
        ("advice", "[]"),
        ("pointcuts", "[]"),
        ("type", r#""aspect""#),
        ("type", r#""expansion""#),
        ("type", r#""convoy""#),
        ("phase", r#""vapor""#),
        ("pour", "false"),
    ] {
        let error = json_text(&format!(r#"{{"formula":"f",{field:?}:{value}}}"#)).unwrap_err();
        assert_eq!(error.to_string(), format!("read f.json, field {field}: bd knows it, sp can't run it yet"));
    }
    assert!(json_text(&step_with(r#""gate":null"#)).is_ok(), "null asks for nothing");
}

#[test]
fn an_error_names_file_step_and_field() {
    let step = |field: &str| json_text(&step_with(field)).map(drop);
    let whole = |text: &str| json_text(text).map(drop);
    let toml = |text: &str| toml_text(text).map(drop);
    for (result, expected) in [
        (
            step(r#""need":["x"]"#),
            "read f.json, step a, field need: not a key of the formula schema; did you mean needs?",
        ),
        (step(r#""applies_when":1"#), "read f.json, step a, field applies_when: not a key of the formula schema"),
        (step(r#""needs":"x""#), "read f.json, step a, field needs: expected a list of texts, found text"),
        (
            step(r#""labels":["x",3]"#),
            "read f.json, step a, field labels: expected a list of texts, found a number in it",
        ),
        (step(r#""metadata":[]"#), "read f.json, step a, field metadata: expected a table, found a list"),
        (
            step(r#""priority":5"#),
            "read f.json, step a, field priority: expected a whole number of at least 0 and at most 4, found 5",
        ),
        (
            step(r#""priority":-1"#),
            "read f.json, step a, field priority: expected a whole number of at least 0 and at most 4, found -1",
        ),
        (
            step(r#""condition":"v""#),
            "read f.json, step a, field condition: condition \"v\" is not `{{var}}`, `!{{var}}`, `{{var}} == value` or `{{var}} != value`",
        ),
        (whole(r#"{"formula":"f","steps":[{"title":"A"}]}"#), "read f.json, step #1, field id: missing or empty"),
        (whole(r#"{"formula":"f","steps":[{"id":"a"}]}"#), "read f.json, step a, field title: missing or empty"),
        (whole(r#"{"formula":"f","steps":[3]}"#), "read f.json, step #1: expected a table, found a number"),
        (
            whole(r#"{"formula":"f","stesp":[]}"#),
            "read f.json, field stesp: not a key of the formula schema; did you mean steps?",
        ),
        (whole("{}"), "read f.json, field formula: missing or empty"),
        (whole("[]"), "read f.json: expected a table, found a list"),
        (whole(r#"{"formula":"f","type":"flow"}"#), "read f.json, field type: expected workflow, found \"flow\""),
        (
            whole(r#"{"formula":"f","vars":{"v":{"defualt":"x"}}}"#),
            "read f.json, field vars.v.defualt: not a key of the formula schema; did you mean default?",
        ),
        (
            whole(r#"{"formula":"f","vars":{"v":{"default":3}}}"#),
            "read f.json, field vars.v.default: expected text, found a number",
        ),
        (
            whole(r#"{"formula":"f","vars":{"a-b":{}}}"#),
            "read f.json, field vars.a-b: no `{{…}}` can name it: a name is letters, digits and `_`, and starts with no digit",
        ),
        (
            whole(r#"{"formula":"f","vars":{"v":{"required":true,"default":""}}}"#),
            "read f.json, field vars.v.default: a required variable has no default",
        ),
        (
            whole(r#"{"formula":"f","steps":[{"id":"a","title":"A"},{"id":"a","title":"B"}]}"#),
            "read f.json, step a: the id is taken by a step of f.json",
        ),
        (whole("{\n  \"formula\": \"f\",\n  oops\n}"), "parse f.json, line 3, column 3: key must be a string"),
        (
            whole("{\"formula\":\"f\",\n\"formula\":\"g\"}"),
            "parse f.json, line 2, column 14: key \"formula\" stands twice",
        ),
        (toml("formula = \"broken\n"), "parse f.toml, line 1, column 18: invalid basic string, expected `\"`"),
        (
            toml("formula = 'f'\n[[steps]]\nid = 'a'\ntitle = 'A'\nunknown_key = 'x'\n"),
            "read f.toml, step a, field unknown_key: not a key of the formula schema",
        ),
    ] {
        assert_eq!(result.unwrap_err().to_string(), expected);
    }
}

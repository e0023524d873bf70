//! Formulas that can't be run.

use std::fs;

use serde_json::{Value, json};

use crate::begin;
use crate::door::{Door, look};
use crate::support::*;

/// Writes the formula `bad`.
fn formula(repo: &Repo, extension: &str, text: &str) {
    let directory = repo.root().join(".beads/formulas");
    for other in ["json", "toml"] {
        drop(fs::remove_file(directory.join(format!("bad.formula.{other}"))));
    }
    fs::write(directory.join(format!("bad.formula.{extension}")), text).unwrap();
}

fn step(id: &str, more: Value) -> Value {
    let mut step = json!({ "id": id, "title": "t", "description": "d" });
    step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    step
}

fn of(steps: &[Value], more: Value) -> String {
    let mut formula = json!({ "formula": "bad", "version": 1, "steps": steps });
    formula.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    formula.to_string()
}

#[test]
fn a_formula_that_can_t_be_run_is_refused_by_file_step_and_field() {
    let (repo, bead, script) = begin();
    let door = Door::of(&repo);
    let run = ["chain", "run", "bad", "--bead", &bead, "--rehearse", &script];
    let role = |role: &str, needs: &[&str]| json!({ "labels": [format!("role:{role}")], "needs": needs });
    let plain = || step("executor", json!({}));
    let mut cases: Vec<(&str, String, i32, &str, Vec<&str>)> = vec![
        (
            "json",
            "{\"formula\":\"bad\",\n \"steps\":[{\"id\":\"a\" \"title\":\"t\"}]}".into(),
            2,
            "formula_syntax",
            vec!["line 2, column"],
        ),
        ("toml", "formula = \"bad\"\n[[steps]\n".into(), 2, "formula_syntax", vec![".toml", "line 2, column"]),
        ("json", of(&[], json!({ "stepz": [] })), 2, "formula_unknown_key", vec!["field stepz", "did you mean steps"]),
        (
            "json",
            of(&[plain(), step("reviewer", json!({ "need": ["executor"] }))], json!({})),
            2,
            "formula_unknown_key",
            vec!["step reviewer", "field need", "did you mean needs"],
        ),
        (
            "json",
            of(&[json!({ "id": 5, "title": "t" })], json!({})),
            2,
            "formula_malformed",
            vec!["step #1", "field id"],
        ),
        ("json", of(&[plain()], json!({ "formula": "good" })), 2, "formula_malformed", vec!["field formula", "good"]),
        ("json", of(&[], json!({})), 2, "shape_empty", vec!["bad", "no step"]),
        (
            "json",
            of(&[step("a", role("executer", &[]))], json!({})),
            4,
            "specialist_not_found",
            vec!["step a", "executer", "did you mean executor"],
        ),
        ("json", of(&[step("work", json!({}))], json!({})), 2, "step_without_role", vec!["step work", "role:"]),
        (
            "json",
            of(
                &[
                    step("a", role("executor", &["c"])),
                    step("b", role("reviewer", &["a"])),
                    step("c", role("reviewer", &["b"])),
                ],
                json!({}),
            ),
            2,
            "shape_cycle",
            vec!["a -> b -> c -> a"],
        ),
        (
            "json",
            of(&[step("executor", json!({ "needs": ["exec"] }))], json!({})),
            2,
            "need_dangling",
            vec!["step executor", "exec"],
        ),
        (
            "json",
            of(&[plain(), step("b", role("executor", &[]))], json!({})),
            2,
            "writers_at_once",
            vec!["executor", "b needs executor"],
        ),
        (
            "json",
            of(&[plain()], json!({ "extends": ["nope"] })),
            4,
            "formula_not_found",
            vec!["nope", "extended by bad"],
        ),
        ("json", of(&[plain()], json!({ "extends": ["bad"] })), 2, "formula_extends_cycle", vec!["bad -> bad"]),
        (
            "json",
            of(&[step("seconder", json!({ "needs": ["executor"] }))], json!({ "extends": ["code-standard"] })),
            2,
            "gate_missing",
            vec!["seconder", "gate:mandatory"],
        ),
        (
            "json",
            of(
                &[step("reviewer", json!({ "needs": ["executor"], "labels": ["role:reviewer", "gate:final"] }))],
                json!({ "extends": ["code-standard"] }),
            ),
            2,
            "gates_reordered",
            vec!["reviewer must come after obligations-scanner"],
        ),
        (
            "json",
            of(&[step("executor", json!({ "title": "{{who}}" }))], json!({})),
            2,
            "var_undeclared",
            vec!["{{who}}", "step executor", "field title"],
        ),
    ];
    let unsupported = |key: &str| (of(&[plain()], json!({ key: ["x"] })), format!("field {key}"));
    let formula_keys = ["template", "compose", "advice", "pointcuts"].map(unsupported);
    let in_step =
        |key: &str| (of(&[step("executor", json!({ key: ["x"] }))], json!({})), format!("step executor, field {key}"));
    let step_keys = ["loop", "expand", "expand_vars", "children", "gate", "waits_for", "on_complete"].map(in_step);
    for (text, words) in formula_keys.iter().chain(&step_keys) {
        cases.push(("json", text.clone(), 2, "formula_unsupported", vec![words, "can't run it yet"]));
    }
    let before = look(&repo, repo.root());
    for (extension, text, exit, code, words) in cases {
        formula(&repo, extension, &text);
        door.tells(&run, exit, code, &words);
    }
    before.assert_untouched(&repo, repo.root());
}

#[test]
fn a_value_that_a_variable_does_not_take_is_refused() {
    let (repo, bead, script) = begin();
    let door = Door::of(&repo);
    let vars = json!({
        "who": { "required": true }, "level": { "enum": ["low", "high"], "default": "low" },
        "area": { "pattern": "^[a-z]+$", "default": "docs" }, "count": { "type": "int", "default": "1" },
    });
    let text = "{{who}} {{level}} {{area}} {{count}}";
    formula(&repo, "json", &of(&[step("executor", json!({ "title": text }))], json!({ "vars": vars })));
    let who = "who=me";
    let before = look(&repo, repo.root());
    for (values, code, words) in [
        (&[][..], "var_missing", &["who", "--var who="][..]),
        (&["who="], "var_bad_value", &["who", "empty"]),
        (&[who, "whom=x"], "var_unknown", &["whom", "did you mean who"]),
        (&[who, "level=middle"], "var_bad_value", &["level", "middle", "low, high"]),
        (&[who, "area=Docs 1"], "var_bad_value", &["area", "Docs 1", "^[a-z]+$"]),
        (&[who, "count=many"], "var_bad_value", &["count", "many"]),
    ] {
        let mut args = vec!["chain", "run", "bad", "--bead", &bead, "--rehearse", &script];
        values.iter().for_each(|value| args.extend(["--var", *value]));
        door.tells(&args, 2, code, words);
    }
    before.assert_untouched(&repo, repo.root());
}

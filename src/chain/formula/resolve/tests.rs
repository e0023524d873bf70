use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;

use super::{Resolved, resolve, resolve_named};
use crate::chain::formula::{Format, FormulaError, FormulaSource, Listed, SourceText, parse};
use crate::failure::Failure;

/// Formulas in memory, by name.
struct Memory(BTreeMap<String, String>);

impl Memory {
    fn new(formulas: &[(&str, serde_json::Value)]) -> Self {
        let named = |(name, mut body): (&str, serde_json::Value)| {
            body["formula"] = json!(name);
            (name.to_owned(), body.to_string())
        };
        Self(formulas.iter().cloned().map(named).collect())
    }
}

impl FormulaSource for Memory {
    fn load(&self, name: &str) -> Result<Option<SourceText>, FormulaError> {
        let text =
            |text: &String| SourceText { origin: format!("{name}.json"), text: text.clone(), format: Format::Json };
        Ok(self.0.get(name).map(text))
    }

    fn list(&self) -> Result<Vec<Listed>, FormulaError> {
        Ok(self.0.keys().map(|name| Listed { name: name.clone(), origin: String::new() }).collect())
    }
}

fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn of(formula: serde_json::Value, pairs: &[(&str, &str)]) -> Result<Resolved, FormulaError> {
    resolve_named("f", &given(pairs), &Memory::new(&[("f", formula)]))
}

#[test]
fn placeholders_are_filled_in_everywhere_and_only_once() {
    let resolved = of(
        json!({"description": "D {{v}}", "vars": {"v": {"default": "{{w}}"}, "w": {"default": "no"}},
            "steps": [{"id": "a", "title": "{{v}} {{{w}}} {x} {{ z }} {{a-b}} {{", "description": "d{{w}}", "notes": "n{{w}}",
                "labels": ["l:{{w}}"], "assignee": "{{w}}", "metadata": {"k": ["{{w}}", {"d": "{{v}}"}], "n": 3, "{{w}}": "x"}}]}),
        &[],
    )
    .unwrap();
    let step = &resolved.steps[0];
    assert_eq!(resolved.description, "D {{w}}");
    assert_eq!(step.title, "{{w}} {no} {x} {{ z }} {{a-b}} {{");
    assert_eq!((step.description.as_str(), step.notes.as_str()), ("dno", "nno"));
    assert_eq!((step.labels[0].as_str(), step.assignee.as_deref()), ("l:no", Some("no")));
    assert_eq!(json!(step.metadata), json!({"k": ["no", {"d": "{{w}}"}], "n": 3, "{{w}}": "x"}));
}

#[test]
fn a_variable_that_is_wrong_is_named_with_its_rule() {
    let formula = json!({
        "vars": {"must": {"required": true}, "env": {"default": "dev", "enum": ["dev", "prod"]}, "n": {"default": "", "pattern": "^[0-9]+$"},
            "count": {"default": "1", "type": "int"}, "on": {"default": "true", "type": "bool"}, "free": {}},
        "steps": [{"id": "a", "title": "A"}],
    });
    let fails = |pairs: &[(&str, &str)]| of(formula.clone(), pairs).unwrap_err().to_string();
    for (pairs, expected) in [
        (&[("must", "x"), ("evn", "y")][..], "set variable evn of formula f: not declared; did you mean env?"),
        (&[], "resolve formula f: no value for must"),
        (&[("must", "")], "set variable must of formula f to \"\": it has no default and can't be empty"),
        (
            &[("must", "x"), ("free", "")],
            "set variable free of formula f to \"\": it has no default and can't be empty",
        ),
        (&[("must", "x"), ("env", "test")], "set variable env of formula f to \"test\": not one of dev, prod"),
        (&[("must", "x"), ("env", "")], "set variable env of formula f to \"\": not one of dev, prod"),
        (&[("must", "x"), ("n", "1a")], "set variable n of formula f to \"1a\": does not match ^[0-9]+$"),
        (&[("must", "x"), ("count", "1.5")], "set variable count of formula f to \"1.5\": not an integer"),
        (&[("must", "x"), ("on", "yes")], "set variable on of formula f to \"yes\": neither true nor false"),
    ] {
        assert_eq!(fails(pairs), expected);
    }
    let resolved = of(formula.clone(), &[("must", "x")]).unwrap();
    assert_eq!(resolved.vars, given(&[("must", "x"), ("env", "dev"), ("n", ""), ("count", "1"), ("on", "true")]));
}

#[test]
fn a_placeholder_without_a_variable_or_a_value_is_an_error() {
    let one = |field: &str, text: &str| {
        let mut step = json!({"id": "a", "title": "A"});
        step[field] = if field == "labels" { json!([text]) } else { json!(text) };
        of(json!({"vars": {"scope": {}, "other": {}}, "steps": [step]}), &[]).unwrap_err().to_string()
    };
    for (field, text, expected) in [
        (
            "title",
            "{{scpoe}}",
            "substitute {{scpoe}} in f.json, step a, field title: no such variable is declared; did you mean scope?",
        ),
        ("labels", "x:{{qqq}}", "substitute {{qqq}} in f.json, step a, field labels: no such variable is declared"),
        ("condition", "{{qqq}}", "substitute {{qqq}} in f.json, step a, field condition: no such variable is declared"),
        (
            "notes",
            "{{ scope }}",
            "read f.json, step a, field notes: write {{scope}} without blanks, or bd and sp leave it as text",
        ),
        ("notes", "{{scope}} {{other}}", "resolve formula f: no value for other, scope"),
        ("condition", "!{{scope}}", "resolve formula f: no value for scope"),
    ] {
        assert_eq!(one(field, text), expected);
    }
}

#[test]
fn needs_are_bridged_over_steps_whose_condition_is_false() {
    let formula = json!({"vars": {"on": {"default": ""}}, "steps": [
        {"id": "a", "title": "A"}, {"id": "x", "title": "X"},
        {"id": "b", "title": "B", "needs": ["a"], "condition": "{{on}}"},
        {"id": "b2", "title": "B2", "depends_on": ["b", "x"], "condition": "{{on}} == yes"},
        {"id": "c", "title": "C", "needs": ["b2", "a"]}]});
    let needs = |pairs: &[(&str, &str)]| {
        let resolved = of(formula.clone(), pairs).unwrap();
        let step = resolved.steps.iter().find(|step| step.id == "c").unwrap().needs.clone();
        (step, resolved.dropped.len())
    };
    assert_eq!(needs(&[]), (vec!["a".to_owned(), "x".to_owned()], 2));
    assert_eq!(needs(&[("on", "yes")]), (vec!["b2".to_owned(), "a".to_owned()], 0));
}

#[test]
fn a_child_replaces_steps_and_variables_of_its_parents() {
    let source = Memory::new(&[
        (
            "base",
            json!({"description": "base", "vars": {"v": {"default": "base"}, "w": {"default": "base"}},
            "steps": [{"id": "a", "title": "A {{v}}"}, {"id": "b", "title": "B", "needs": ["a"], "labels": ["old"]}]}),
        ),
        ("more", json!({"vars": {"v": {"default": "more"}}, "steps": [{"id": "m", "title": "M"}]})),
        (
            "f",
            json!({"extends": ["base", "more"], "vars": {"w": {"default": "child {{w}}"}},
            "steps": [{"id": "b", "title": "B2 {{w}}"}, {"id": "c", "title": "C", "needs": ["b"]}]}),
        ),
    ]);
    let resolved = resolve_named("f", &given(&[]), &source).unwrap();
    let titles: Vec<&str> = resolved.steps.iter().map(|step| step.title.as_str()).collect();
    assert_eq!(titles, ["A base", "B2 child {{w}}", "M", "C"]);
    assert!(resolved.steps[1].needs.is_empty() && resolved.steps[1].labels.is_empty(), "replaced whole");
    assert_eq!(resolved.description, "");
    assert_eq!(resolved.lineage, BTreeSet::from(["base", "f", "more"].map(str::to_owned)));
    assert_eq!((resolved.steps[0].origin.as_str(), resolved.steps[1].origin.as_str()), ("base.json", "f.json"));
}

#[test]
fn families_that_cannot_be_merged_are_refused() {
    let step = json!([{"id": "a", "title": "A"}]);
    let source = Memory::new(&[
        ("circle", json!({"extends": ["round"]})),
        ("round", json!({"extends": ["circle"]})),
        ("itself", json!({"extends": ["itself"]})),
        ("orphan", json!({"extends": ["crcle"]})),
        ("outside", json!({"extends": ["../x"]})),
        ("one", json!({"steps": step})),
        ("two", json!({"steps": step})),
        ("both", json!({"extends": ["one", "two"]})),
        ("shape", json!({"extends": ["looped"]})),
        ("looped", json!({"steps": [{"id": "a", "title": "A", "loop": {"count": 2}}]})),
    ]);
    for (name, expected) in [
        ("circle", "resolve extends: circle -> round -> circle is a circle"),
        ("itself", "resolve extends: itself -> itself is a circle"),
        ("orphan", "find formula crcle (extended by orphan): not in the search path; did you mean circle?"),
        ("both", "read two.json, step a: the id is taken by a step of one.json"),
        ("shape", "read looped.json, step a, field loop: bd knows it, sp can't run it yet"),
    ] {
        assert_eq!(resolve_named(name, &given(&[]), &source).unwrap_err().to_string(), expected);
    }
    assert!(matches!(resolve_named("outside", &given(&[]), &source), Err(FormulaError::BadName { .. })));
}

#[test]
fn a_missing_variable_is_given_as_the_next_step() {
    let error = of(json!({"vars": {"a": {"required": true}, "b": {"required": true}}, "steps": []}), &[]).unwrap_err();
    let failure = Failure::from(error);
    assert_eq!((failure.exit, failure.error_code), (2, "var_missing"));
    assert_eq!(failure.next_safe_action, "give `--var a=…` `--var b=…`; see its variables: `sp formula show f`");
}

/// For each step the earlier steps it needs and whether it is dropped.
fn any_graph() -> impl Strategy<Value = Vec<(Vec<usize>, bool)>> {
    (1..12usize).prop_flat_map(|count| {
        let step = |index: usize| (proptest::collection::vec(0..index.max(1), 0..=index.min(3)), any::<bool>());
        (0..count).map(step).collect::<Vec<_>>()
    })
}

/// Pairs (earlier, later) joined by a path.
fn reach(needs: &BTreeMap<String, Vec<String>>) -> BTreeSet<(String, String)> {
    let mut pairs = BTreeSet::new();
    for step in needs.keys() {
        let mut open = needs[step].clone();
        while let Some(need) = open.pop() {
            if pairs.insert((need.clone(), step.clone())) {
                open.extend(needs.get(&need).into_iter().flatten().cloned());
            }
        }
    }
    pairs
}

proptest! {
    #[test]
    fn bridging_keeps_which_step_comes_before_which(graph in any_graph()) {
        let steps: Vec<_> = graph.iter().enumerate().map(|(index, (needs, dropped))| json!({
            "id": format!("s{index}"), "title": "T",
            "needs": needs.iter().filter(|need| **need < index).map(|need| format!("s{need}")).collect::<Vec<_>>(),
            "condition": if *dropped { "{{off}}" } else { "" },
        })).collect();
        let body = json!({"formula": "f", "vars": {"off": {"default": ""}}, "steps": steps}).to_string();
        let formula = parse(&SourceText { origin: "f.json".to_owned(), text: body, format: Format::Json }).unwrap();
        let resolved = resolve(&formula, &BTreeMap::new()).unwrap();
        let before = reach(&formula.steps.iter().map(|step| (step.id.clone(), step.needs.clone())).collect());
        let after = reach(&resolved.steps.iter().map(|step| (step.id.clone(), step.needs.clone())).collect());
        let kept = |id: &String| !resolved.dropped.contains(id);
        let expected: BTreeSet<_> = before.into_iter().filter(|(early, late)| kept(early) && kept(late)).collect();
        prop_assert_eq!(after, expected);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,80}|[\\[\\]{}\":=',a-c\\n ]{0,60}") {
        for format in Format::ALL {
            let _ = parse(&SourceText { origin: "f".to_owned(), text: text.clone(), format });
        }
    }
}

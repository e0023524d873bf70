use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::compile;
use crate::chain::formula::{Format, Resolved, SourceText, parse, resolve};
use crate::chain::graph::{ShapeError, waves};
use crate::chain::shape::{Class, Shape, Target, Writer};
use crate::failure::Failure;
use crate::ids::StepId;
use crate::specialist::Tier;

fn roster() -> BTreeMap<String, Tier> {
    [
        ("executor", Tier::High),
        ("seconder", Tier::ReadOnly),
        ("test-engineer", Tier::Medium),
        ("test-runner", Tier::Low),
        ("security-auditor", Tier::ReadOnly),
        ("obligations-scanner", Tier::ReadOnly),
        ("reviewer", Tier::ReadOnly),
        ("explorer", Tier::ReadOnly),
    ]
    .map(|(role, tier)| (role.to_owned(), tier))
    .into()
}

fn resolved(steps: &Value) -> Resolved {
    let body = json!({"formula": "f", "steps": steps, "vars": {"off": {"default": ""}}}).to_string();
    resolve(
        &parse(&SourceText { origin: "f.json".to_owned(), text: body, format: Format::Json }).unwrap(),
        &BTreeMap::new(),
    )
    .unwrap()
}

fn shape(steps: &Value) -> Result<Shape, ShapeError> {
    compile(&resolved(steps), &roster())
}

/// A step for each `id:labels:needs`, labels and needs separated by blanks. `G` and `F` are gate labels.
fn steps(rows: &[&str]) -> Value {
    let step = |row: &&str| {
        let mut parts = row.split('|');
        let mut words = || parts.next().unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (id, labels, needs) = (words().concat(), words(), words());
        let label = |label: String| match label.as_str() {
            "G" => "gate:mandatory".to_owned(),
            "F" => "gate:final".to_owned(),
            "P" => "position:primary-writer".to_owned(),
            "S" => "position:secondary-writer".to_owned(),
            _ => label,
        };
        json!({"id": id, "title": "T", "labels": labels.into_iter().map(label).collect::<Vec<_>>(), "needs": needs})
    };
    rows.iter().map(step).collect()
}

fn refusal(rows: &[&str]) -> String {
    shape(&steps(rows)).unwrap_err().to_string()
}

#[test]
fn a_small_formula_of_ones_own_compiles() {
    let shape = shape(&steps(&[
        "look|role:reviewer F edge:validates->fix edge:validates->contract|fix contract",
        "contract|kind:root scrutiny:low|",
        "fix|role:executor edge:implements->root|contract",
        "why|role:explorer advisor:pre-impl|",
    ]))
    .unwrap();
    let ids: Vec<&str> = shape.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["fix", "look", "why"], "the root is gone and needs come first");
    let (fix, look, why) = (&shape.steps[0], &shape.steps[1], &shape.steps[2]);
    assert_eq!((fix.class, fix.writer, fix.needs.len(), fix.priority), (Class::Step, Some(Writer::Primary), 0, 2));
    assert_eq!((look.class, look.writer, look.mandatory), (Class::Gate, None, true));
    assert_eq!(look.needs, BTreeSet::from([StepId::from("fix")]));
    let targets: Vec<&Target> = look.relations.iter().map(|relation| &relation.target).collect();
    assert_eq!(targets, [&Target::Step(StepId::from("fix")), &Target::Root]);
    assert!(why.advisor && why.writer.is_none() && !why.mandatory);
}

#[test]
fn a_label_makes_a_writer_and_ranks_it() {
    let shape = shape(&steps(&["executor||", "test-engineer|S|executor", "explorer|P|test-engineer"])).unwrap();
    let writers: Vec<Option<Writer>> = shape.steps.iter().map(|step| step.writer).collect();
    assert_eq!(writers, [Some(Writer::Primary), Some(Writer::Secondary), Some(Writer::Primary)]);
}

#[test]
fn steps_that_make_no_graph_are_refused_with_their_names() {
    for (rows, expected) in [
        (
            &["executor||reviewer", "reviewer||seconder", "seconder||executor"][..],
            "compile formula f: executor -> seconder -> reviewer -> executor is a circle: none could ever start",
        ),
        (&["executor||executor"], "compile f.json, step executor: it needs itself"),
        (
            &["executor||", "reviewer||exectuor"],
            "compile f.json, step reviewer: needs exectuor, which is no step; did you mean executor?",
        ),
        (
            &["reviewer|edge:validates->nobody|"],
            "compile f.json, step reviewer: label edge:validates->nobody leads to no other step",
        ),
        (
            &["reviewer|edge:validates->reviewer|"],
            "compile f.json, step reviewer: label edge:validates->reviewer leads to no other step",
        ),
        (&["fix|role:exekutor|"], "compile f.json, step fix: no specialist is called exekutor; did you mean executor?"),
        (
            &["revewer||"],
            "compile f.json, step revewer: no label role:<specialist>, and no specialist is called revewer; did you mean reviewer?",
        ),
        (&["root||", "top|chain-root|"], "compile formula f: root and top both stand for the root contract"),
        (
            &["root||executor", "executor||"],
            "compile f.json, step root, field needs: the root contract waits for the whole chain, not for executor",
        ),
        (&["root||"], "compile formula f: no step to run"),
        (
            &["Fix|role:executor|"],
            "compile f.json, step Fix, field id: lower-case letters, digits and `-` only, the first no `-`: it becomes part of a bead's id",
        ),
        (
            &["a.b|role:executor|"],
            "compile f.json, step a.b, field id: lower-case letters, digits and `-` only, the first no `-`: it becomes part of a bead's id",
        ),
        (
            &["executor|gate:soft|"],
            "compile f.json, step executor, field labels: label gate:soft is unknown (known: mandatory, final)",
        ),
        (
            &["executor||", "debug|role:executor|"],
            "compile formula f: writers executor and debug could run at once in one worktree",
        ),
        (
            &["executor|G|"],
            "compile formula f: gate executor is worked by executor, which may write: a gate must not change what it judges",
        ),
    ] {
        assert_eq!(refusal(rows), expected);
    }
}

#[test]
fn what_a_pour_would_lose_is_refused() {
    for (field, value, expected) in [
        ("type", json!("bug"), "field type: sp pours steps as tasks, not as bug"),
        (
            "assignee",
            json!("me"),
            "field assignee: sp claims each step itself, and bd calls an assigned bead nobody else's",
        ),
        ("metadata", json!({"sp_chain": 1}), "field metadata: key sp_chain: those that begin with sp_ are sp's own"),
        ("title", json!("{{off}} "), "field title: empty once its variables are filled in"),
        ("title", json!("x".repeat(501)), "field title: 501 bytes once its variables are filled in; bd takes 500"),
        ("labels", json!(["a,b"]), "field labels: \"a,b\" is empty or holds a comma or line break"),
    ] {
        let mut step = json!({"id": "executor", "title": "T"});
        step[field] = value;
        assert_eq!(
            shape(&json!([step])).unwrap_err().to_string(),
            format!("compile f.json, step executor, {expected}")
        );
    }
}

#[test]
fn gates_in_a_wrong_place_are_refused() {
    const ORDER: &str = "seconder, test-engineer, test-runner, security-auditor, obligations-scanner, reviewer";
    let reordered =
        |later: &str, earlier: &str| format!("compile formula f: {later} must come after {earlier} (order: {ORDER})");
    let text = |problem: &str| format!("compile formula f: {problem}");
    for (rows, expected) in [
        (&["executor||", "test-runner|G|executor", "seconder|G|test-runner"][..], reordered("test-runner", "seconder")),
        (
            &[
                "executor||",
                "obligations-scanner|G|executor",
                "test-engineer|S|obligations-scanner",
                "reviewer|F|test-engineer",
            ],
            reordered("obligations-scanner", "test-engineer"),
        ),
        (
            &["executor||", "reviewer|F|executor", "seconder|G|executor"],
            text("final gate reviewer does not come last: seconder does not come before it"),
        ),
        (
            &["executor||", "reviewer|F|executor", "explorer||reviewer"],
            text("final gate reviewer does not come last: explorer does not come before it"),
        ),
        (
            &["executor||reviewer", "reviewer|F|"],
            text("final gate reviewer does not come last: executor does not come before it"),
        ),
        (
            &["executor||", "reviewer|F|executor", "seconder|F|executor"],
            text("reviewer and seconder are both labelled gate:final"),
        ),
        (
            &["executor||", "seconder|G|", "reviewer|F|seconder executor"],
            text("gate seconder comes after no writer, so there is nothing for it to judge"),
        ),
        (
            &["executor||", "seconder|G|executor", "again|role:executor|seconder"],
            text("no gate comes after writer again"),
        ),
    ] {
        assert_eq!(refusal(rows), expected);
    }
}

#[test]
fn gates_in_a_sound_place_are_accepted() {
    for rows in [
        &["explorer|advisor:standalone|"][..],
        &["executor||"],
        &["executor||", "reviewer||executor"],
        &["executor||", "reviewer|G|executor"],
        &[
            "executor||",
            "seconder|G|executor",
            "obligations-scanner|G|executor",
            "reviewer|F|seconder obligations-scanner",
        ],
        // Another pass: the order begins again after the second writer.
        &[
            "executor||",
            "reviewer|G|executor",
            "more|role:executor|reviewer",
            "seconder|G|more",
            "last|role:reviewer F|seconder",
        ],
        // Tests are the production here, so the writer stands before seconder.
        &["test-engineer|P|", "seconder|G|test-engineer", "test-runner|G|seconder", "reviewer|F|test-runner"],
        &["reviewer|F|"],
    ] {
        assert!(shape(&steps(rows)).is_ok(), "{rows:?}: {:?}", shape(&steps(rows)).map(drop));
    }
}

#[test]
fn a_production_formula_holds_the_whole_pipeline() {
    const PIPELINE: [&str; 6] = [
        "executor||",
        "seconder|G|executor",
        "test-engineer|S|seconder",
        "test-runner|G|test-engineer",
        "obligations-scanner|G|test-runner",
        "reviewer|F|obligations-scanner",
    ];
    let production = |rows: &[&str]| {
        let mut resolved = resolved(&steps(rows));
        resolved.lineage.insert("code-standard".to_owned());
        compile(&resolved, &roster()).map(drop).map_err(|error| error.to_string())
    };
    let with = |at: usize, row: &'static str| {
        let mut rows = PIPELINE;
        rows[at] = row;
        production(&rows)
    };
    let missing =
        |what: &str| Err(format!("compile formula f: it is or extends code-standard and has no step with role:{what}"));
    assert_eq!(production(&PIPELINE), Ok(()));
    assert_eq!(with(0, "executor|role:explorer|"), missing("executor"));
    assert_eq!(with(1, "seconder||executor"), missing("seconder and gate:mandatory"));
    assert_eq!(with(2, "test-engineer|S role:explorer|seconder"), missing("test-engineer"));
    assert_eq!(with(5, "reviewer|G|obligations-scanner"), missing("reviewer and gate:final"));
    assert!(
        with(3, "test-runner|G|executor")
            .unwrap_err()
            .starts_with("compile formula f: test-runner must come after test-engineer")
    );
    let audited =
        [&PIPELINE[..5], &["security-auditor|G|test-runner", "reviewer|F|obligations-scanner security-auditor"]]
            .concat();
    assert_eq!(production(&audited), Ok(()));
}

#[test]
fn a_relation_to_a_dropped_step_goes_with_it() {
    let shape = shape(&json!([
        {"id": "executor", "title": "T", "condition": "{{off}}"},
        {"id": "reviewer", "title": "T", "labels": ["edge:validates->executor"], "needs": ["executor"]},
    ]))
    .unwrap();
    assert!(shape.steps[0].relations.is_empty() && shape.steps[0].needs.is_empty());
}

#[test]
fn an_unknown_specialist_ends_as_not_found_and_the_rest_as_usage() {
    let failure = |rows: &[&str]| Failure::from(shape(&steps(rows)).unwrap_err());
    assert_eq!((failure(&["fix|role:x|"]).exit, failure(&["fix|role:x|"]).error_code), (4, "specialist_not_found"));
    assert_eq!((failure(&["executor||executor"]).exit, failure(&["executor||executor"]).error_code), (2, "need_self"));
}

/// Any edges among up to nine steps, cycles and all.
fn any_edges() -> impl Strategy<Value = (usize, Vec<(usize, usize)>)> {
    (1..9usize).prop_flat_map(|count| (Just(count), proptest::collection::vec((0..count, 0..count), 0..14)))
}

fn rows(count: usize, edges: &[(usize, usize)]) -> Value {
    let needs = |step: usize| {
        edges.iter().filter(|(_, to)| *to == step).map(|(from, _)| format!("s{from}")).collect::<Vec<_>>()
    };
    (0..count)
        .map(|step| json!({"id": format!("s{step}"), "title": "T", "labels": ["role:explorer"], "needs": needs(step)}))
        .collect()
}

/// Whether following edges from any step comes back to it: the definition, without petgraph.
fn has_cycle(count: usize, edges: &[(usize, usize)]) -> bool {
    (0..count).any(|start| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(at) = open.pop() {
            open.extend(edges.iter().filter(|(from, _)| *from == at).map(|(_, to)| *to).filter(|to| seen.insert(*to)));
        }
        seen.contains(&start)
    })
}

proptest! {
    #[test]
    fn steps_are_refused_exactly_when_they_form_a_cycle_and_the_one_named_is_real((count, edges) in any_edges()) {
        match shape(&rows(count, &edges)) {
            Ok(_) => prop_assert!(!has_cycle(count, &edges)),
            Err(ShapeError::SelfNeed { .. }) => prop_assert!(edges.iter().any(|(from, to)| from == to)),
            Err(ShapeError::Cycle { steps, .. }) => {
                let number = |id: &str| id[1..].parse::<usize>().unwrap();
                prop_assert!(steps.len() > 2 && steps.first() == steps.last());
                prop_assert!(steps.windows(2).all(|pair| edges.contains(&(number(&pair[0]), number(&pair[1])))));
                let distinct: BTreeSet<&String> = steps.iter().collect();
                prop_assert_eq!(distinct.len(), steps.len() - 1);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn waves_hold_each_step_once_and_after_all_it_needs((count, edges) in any_edges()) {
        let forward: Vec<_> = edges.into_iter().filter(|(from, to)| from != to).map(|(a, b)| (a.min(b), a.max(b))).collect();
        let shape = shape(&rows(count, &forward)).unwrap();
        let mut done: BTreeSet<StepId> = BTreeSet::new();
        for wave in waves(&shape) {
            for id in &wave {
                prop_assert!(shape.step(id).unwrap().needs.is_subset(&done));
            }
            let before = done.len();
            prop_assert!(!wave.is_empty());
            done.extend(wave.iter().cloned());
            prop_assert_eq!(done.len(), before + wave.len());
        }
        prop_assert_eq!(done.len(), count);
        let position = |id: &StepId| shape.steps.iter().position(|step| step.id == *id).unwrap();
        prop_assert!(shape.steps.iter().all(|step| step.needs.iter().all(|need| position(need) < position(&step.id))));
    }
}

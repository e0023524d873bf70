use std::collections::BTreeSet;

use super::{answering_writer, critical_path, sent_back, upstream_writers, waves};
use crate::chain::graph::render::tests::step;
use crate::chain::shape::{Class, Shape, Writer};
use crate::ids::StepId;

/// write → (look, tests → run) → last, and an advisor beside them.
fn shape() -> Shape {
    let steps = vec![
        step("write", &[], Class::Step, Some(Writer::Primary)),
        step("advise", &[], Class::Step, None),
        step("look", &["write"], Class::Gate, None),
        step("tests", &["write"], Class::Step, Some(Writer::Secondary)),
        step("run", &["tests"], Class::Gate, None),
        step("last", &["look", "run"], Class::Gate, None),
    ];
    Shape { formula: "f".to_owned(), vars: Default::default(), steps }
}

fn names(ids: &[StepId]) -> Vec<&str> {
    ids.iter().map(StepId::as_str).collect()
}

#[test]
fn waves_are_in_the_order_of_the_shape() {
    let shape = shape();
    let waves: Vec<Vec<StepId>> = waves(&shape);
    let named: Vec<Vec<&str>> = waves.iter().map(|wave| names(wave)).collect();
    assert_eq!(named, [vec!["write", "advise"], vec!["look", "tests"], vec!["run"], vec!["last"]]);
}

#[test]
fn the_critical_path_is_the_heaviest_one() {
    let shape = shape();
    let cost = |table: &'static [(&'static str, u64)]| {
        move |step: &crate::chain::shape::Step| {
            table.iter().find(|(id, _)| *id == step.id.as_str()).map_or(1, |(_, cost)| *cost)
        }
    };
    for (table, expected, weight) in [
        (&[][..], vec!["write", "tests", "run", "last"], 4),
        (&[("look", 9)], vec!["write", "look", "last"], 11),
        (&[("advise", 50)], vec!["advise"], 50),
        (&[("look", 2)], vec!["write", "look", "last"], 4),
    ] {
        let (path, total) = critical_path(&shape, cost(table));
        assert_eq!((names(&path), total), (expected, weight), "{table:?}");
    }
    let empty = Shape { steps: Vec::new(), ..shape };
    assert_eq!(critical_path(&empty, |_| 1), (Vec::new(), 0));
}

#[test]
fn a_round_takes_the_writer_and_all_that_depends_on_it() {
    assert_eq!(names(&sent_back(&shape(), &StepId::from("write"))), ["write", "look", "tests", "run", "last"]);
    assert_eq!(names(&sent_back(&shape(), &StepId::from("tests"))), ["tests", "run", "last"]);
}

#[test]
fn a_gate_knows_the_writers_it_judges_and_the_one_that_answers() {
    let shape = shape();
    let upstream = |gate: &str| {
        upstream_writers(&shape, &StepId::from(gate)).iter().map(|step| step.id.as_str()).collect::<BTreeSet<_>>()
    };
    assert_eq!(upstream("look"), BTreeSet::from(["write"]));
    assert_eq!(upstream("last"), BTreeSet::from(["write", "tests"]));
    let answers = |gate: &str, kind| answering_writer(&shape, &StepId::from(gate), kind).map(|step| step.id.as_str());
    assert_eq!(answers("run", Writer::Primary), Some("write"));
    assert_eq!(answers("run", Writer::Secondary), Some("tests"));
    assert_eq!(answers("look", Writer::Secondary), None);
}

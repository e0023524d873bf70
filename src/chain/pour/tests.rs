use proptest::prelude::*;

use super::*;
use crate::chain::shape::Class;
use crate::ids::StepId;
use crate::specialist::Tier;

fn step(id: &str, needs: &[&str], relations: &[(&str, &str)]) -> Step {
    let target = |name: &str| if name == "root" { Target::Root } else { Target::Step(StepId::from(name)) };
    Step {
        id: StepId::from(id),
        title: format!("{id} for the pager"),
        description: format!("Do the {id} part."),
        notes: String::new(),
        role: id.to_owned(),
        tier: Tier::Low,
        class: Class::Step,
        writer: None,
        mandatory: false,
        advisor: false,
        needs: needs.iter().map(|need| StepId::from(*need)).collect(),
        relations: relations.iter().map(|(kind, to)| Relation { kind: (*kind).into(), target: target(to) }).collect(),
        labels: vec![format!("role:{id}")],
        metadata: BTreeMap::new(),
        priority: 1,
    }
}

fn poured(steps: Vec<Step>) -> GraphPlan {
    let shape = Shape { formula: "code-standard".into(), vars: BTreeMap::new(), steps };
    let root = Bead { id: "proj-x".into(), title: "Fix the pager".into(), ..Bead::default() };
    plan(&shape, &ChainId::from("proj-mol-1"), &root, &Origin { base: "c0ffee", rehearsal: true })
}

#[test]
fn a_pour_is_one_molecule_its_steps_and_their_edges() {
    let plan = poured(vec![
        step("executor", &[], &[("implements", "root")]),
        step("reviewer", &["executor"], &[("validates", "root")]),
    ]);
    insta::assert_json_snapshot!(plan, @r#"
    {
      "commit_message": "sp: pour code-standard on proj-x as proj-mol-1",
      "nodes": [
        {
          "key": "proj-mol-1",
          "id": "proj-mol-1",
          "title": "code-standard on proj-x: Fix the pager",
          "type": "molecule",
          "priority": 1,
          "labels": [],
          "metadata": {
            "sp_base": "c0ffee",
            "sp_bead": "proj-x",
            "sp_chain": "proj-mol-1",
            "sp_formula": "code-standard",
            "sp_rehearsal": true
          }
        },
        {
          "key": "proj-mol-1-executor",
          "id": "proj-mol-1-executor",
          "title": "executor for the pager",
          "type": "task",
          "description": "Do the executor part.",
          "priority": 1,
          "labels": [
            "kind:step",
            "role:executor"
          ],
          "metadata": {
            "sp_bead": "proj-x",
            "sp_chain": "proj-mol-1",
            "sp_edges": [
              {
                "type": "implements",
                "target": "root"
              }
            ],
            "sp_formula": "code-standard",
            "sp_step": "executor"
          },
          "parent_key": "proj-mol-1"
        },
        {
          "key": "proj-mol-1-reviewer",
          "id": "proj-mol-1-reviewer",
          "title": "reviewer for the pager",
          "type": "task",
          "description": "Do the reviewer part.",
          "priority": 1,
          "labels": [
            "kind:step",
            "role:reviewer"
          ],
          "metadata": {
            "sp_bead": "proj-x",
            "sp_chain": "proj-mol-1",
            "sp_edges": [
              {
                "type": "validates",
                "target": "root"
              }
            ],
            "sp_formula": "code-standard",
            "sp_step": "reviewer"
          },
          "parent_key": "proj-mol-1"
        }
      ],
      "edges": [
        {
          "from_key": "proj-mol-1-reviewer",
          "to_key": "proj-mol-1-executor",
          "type": "blocks"
        },
        {
          "from_id": "proj-x",
          "to_key": "proj-mol-1",
          "type": "blocks"
        },
        {
          "from_key": "proj-mol-1-reviewer",
          "to_id": "proj-x",
          "type": "validates"
        }
      ]
    }
    "#);
}

#[test]
fn a_relation_becomes_an_edge_only_where_bd_knows_it_and_the_pair_is_free() {
    for (case, relations, expected) in [
        ("known, free", vec![("validates", "first")], vec![("validates", "proj-mol-1-first")]),
        ("known, to the root", vec![("discovered-from", "root")], vec![("discovered-from", "proj-x")]),
        ("the pair has a need", vec![("validates", "second")], vec![]),
        (
            "the first of two on a pair",
            vec![("tracks", "first"), ("validates", "first")],
            vec![("tracks", "proj-mol-1-first")],
        ),
        ("unknown to bd", vec![("informs", "first"), ("implements", "root")], vec![]),
        ("would re-parent the root", vec![("parent-child", "root")], vec![]),
        ("would block", vec![("blocks", "first"), ("waits-for", "root")], vec![]),
        ("itself", vec![("validates", "third")], vec![]),
        ("a step that is not there", vec![("validates", "fourth")], vec![]),
    ] {
        let third = step("third", &["second"], &relations);
        let plan = poured(vec![step("first", &[], &[]), step("second", &["first"], &[]), third]);
        let typed: Vec<_> = plan
            .edges
            .iter()
            .filter(|edge| edge.edge_type != "blocks")
            .map(|edge| (edge.edge_type.as_str(), edge.to_key.as_deref().or(edge.to_id.as_deref()).unwrap()))
            .collect();
        assert_eq!(typed, expected, "{case}");
        let kept = plan.nodes[3].metadata["sp_edges"].as_array().unwrap().len();
        assert_eq!(kept, relations.len(), "{case}: every relation is kept");
    }
}

#[test]
fn a_formula_can_neither_claim_our_metadata_nor_double_our_label() {
    let mut odd = step("executor", &[], &[]);
    odd.metadata =
        BTreeMap::from([("sp_chain".into(), json!("other")), ("sp_x".into(), json!(1)), ("team".into(), json!("a"))]);
    odd.labels = vec!["kind:step".into(), "role:executor".into(), "role:executor".into()];
    let node = &poured(vec![odd]).nodes[1];
    assert_eq!(node.labels, ["kind:step", "role:executor"]);
    assert_eq!(node.metadata["sp_chain"], "proj-mol-1");
    assert_eq!(node.metadata["team"], "a");
    assert!(!node.metadata.contains_key("sp_x"));
}

#[test]
fn a_title_is_never_empty_and_never_over_500_bytes() {
    assert_eq!(title(" \n", "executor"), "executor");
    assert_eq!(title(&"é".repeat(300), "x"), "é".repeat(250));
    assert_eq!(title(&format!("a{}", "é".repeat(300)), "x").len(), 499);
}

proptest! {
    #[test]
    fn no_pair_of_beads_has_two_edges(links in proptest::collection::vec((0..6usize, 0..7usize, 0..4usize), 0..30)) {
        let name = |at: usize| if at == 6 { "root".to_owned() } else { format!("s{at}") };
        let kinds = ["need", "validates", "tracks", "informs"];
        let steps = (0..6).map(|at| {
            let own = links.iter().filter(|(from, ..)| *from == at);
            let mut made = step(&name(at), &[], &[]);
            for (_, to, kind) in own {
                match kinds[*kind] {
                    "need" if *to < at => drop(made.needs.insert(StepId::new(name(*to)))),
                    "need" => {}
                    kind if *to == 6 => made.relations.push(Relation { kind: kind.into(), target: Target::Root }),
                    kind => made.relations.push(Relation { kind: kind.into(), target: Target::Step(StepId::new(name(*to))) }),
                }
            }
            made
        });
        let plan = poured(steps.collect());
        let end = |key: &Option<String>, id: &Option<String>| key.clone().xor(id.clone()).expect("one of key and id");
        let pairs: Vec<_> = plan.edges.iter().map(|e| (end(&e.from_key, &e.from_id), end(&e.to_key, &e.to_id))).collect();
        let distinct: BTreeSet<_> = pairs.iter().collect();
        prop_assert_eq!(distinct.len(), pairs.len());
        prop_assert!(pairs.iter().all(|(from, to)| from != to));
        // Children of the molecule have their parent edge already.
        prop_assert!(pairs.iter().all(|(from, to)| to != "proj-mol-1" || from == "proj-x"));
    }
}

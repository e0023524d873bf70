use std::collections::BTreeMap;

use super::{ascii, dot, mermaid};
use crate::chain::shape::{Class, Relation, Shape, Step, Target, Writer};
use crate::ids::StepId;
use crate::specialist::Tier;

/// A step whose role is its id.
pub(in crate::chain::graph) fn step(id: &str, needs: &[&str], class: Class, writer: Option<Writer>) -> Step {
    Step {
        id: StepId::from(id),
        title: "T".to_owned(),
        description: String::new(),
        notes: String::new(),
        role: id.to_owned(),
        tier: Tier::ReadOnly,
        class,
        writer,
        mandatory: false,
        advisor: false,
        needs: needs.iter().copied().map(StepId::from).collect(),
        relations: Vec::new(),
        labels: Vec::new(),
        metadata: BTreeMap::new(),
        priority: 2,
    }
}

fn shape() -> Shape {
    let mut end = step("end", &["fix", "look"], Class::Gate, None);
    end.role = "reviewer".to_owned();
    end.mandatory = true;
    end.labels = vec!["gate:final".to_owned()];
    end.relations = vec![
        Relation { kind: "validates".to_owned(), target: Target::Step(StepId::from("fix")) },
        Relation { kind: "validates".to_owned(), target: Target::Root },
    ];
    let steps = vec![step("fix", &[], Class::Step, Some(Writer::Primary)), step("look", &[], Class::Step, None), end];
    Shape { formula: "my \"formula\"".to_owned(), vars: BTreeMap::new(), steps }
}

fn status() -> BTreeMap<StepId, String> {
    BTreeMap::from([(StepId::from("fix"), "failed: \"a\" <b> {c} #1\nsecond \\line".to_owned())])
}

#[test]
fn lines_are_aligned_and_a_status_stays_on_its_line() {
    insta::assert_snapshot!(ascii(&shape(), &BTreeMap::new()), @r"
    1  fix   writer
       look  step
    2  end   final gate (reviewer)  <- fix, look
    ");
    insta::assert_snapshot!(ascii(&shape(), &status()), @r##"
    1  fix   writer                 failed: "a" <b> {c} #1 second \line
       look  step
    2  end   final gate (reviewer)                                       <- fix, look
    "##);
}

#[test]
fn dot_escapes_what_would_end_a_label() {
    insta::assert_snapshot!(dot(&shape(), &status()), @r##"
    digraph "my \"formula\"" {
      rankdir=LR;
      node [shape=box];
      "fix" [label="fix\nwriter\nfailed: \"a\" <b> {c} #1\nsecond \\line"];
      "look" [label="look\nstep"];
      "end" [label="end\nfinal gate (reviewer)", shape=diamond];
      "fix" -> "end";
      "look" -> "end";
      "end" -> "fix" [label="validates", style=dashed, constraint=false];
    }
    "##);
}

#[test]
fn mermaid_escapes_what_it_would_read_and_numbers_its_nodes() {
    insta::assert_snapshot!(mermaid(&shape(), &status()), @r##"
    flowchart LR
      s0["fix<br/>writer<br/>failed: #34;a#34; #60;b#62; #123;c#125; #35;1 second \line"]
      s1["look<br/>step"]
      s2{{"end<br/>final gate (reviewer)"}}
      s0 --> s2
      s1 --> s2
      s2 -.->|"validates"| s0
    "##);
}

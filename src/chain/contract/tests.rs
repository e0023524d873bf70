use proptest::prelude::*;

use super::model::{Section, UnknownPart};
use super::*;
use crate::chain::scrutiny::Scrutiny;
use crate::failure::Failure;

const XML: &str = r#"Please do this soon.

<change-contract work-package="WP-7" issue-id="proj-1" type="bug" scrutiny="high">
  <problem>The pager skips the last page
    when it is not full &amp; nobody sees it.

    A second paragraph.</problem>
  <scope>
    <repo>acme/pager</repo>
    <path>src/pager.js</path>
    <path>test/**</path>
  </scope>
  <non-goals><item>No new dependency.</item></non-goals>
  <dependencies><work-package>WP-6</work-package></dependencies>
  <deliverables><item>A fix.</item><item>A test.</item></deliverables>
  <validation><criterion>`node --test` passes</criterion></validation>
  <acceptance><criterion>The last page is shown.</criterion></acceptance>
  <rollback>Revert the commit.</rollback>
  <retirement-trigger>None: no bridge.</retirement-trigger>
  <owner>Dev One</owner>
</change-contract>
Thanks!
"#;

const HEADED: &str = "# Fix the pager

- Type: bug
- Scrutiny: high
Work-package: WP-7
**Issue id:** proj-1

## Problem
The pager skips the last page
when it is not full & nobody sees it.


A second paragraph.

## SCOPE
- repo: acme/pager
- `src/pager.js`
* test/**

### Non-goals
1. No new dependency.

## Dependencies
WP-6

## Deliverables
- [ ] A fix.
- [x] A
  test.

Validation
----------
- `node --test` passes

## Acceptance criteria:
- The last page is shown.

## Rollback: Revert the commit.

## Retirement trigger
None: no bridge.

## owner
Dev One
";

const PLAIN: &str = "TYPE: bug
SCRUTINY: high (it is the core)
WORK_PACKAGE: WP-7
ISSUE-ID: proj-1
PROBLEM: The pager skips the last page
when it is not full & nobody sees it.

A second paragraph.
SCOPE:
- repo: acme/pager
- src/pager.js, test/**
NON_GOALS:
- No new dependency.
DEPENDENCIES: WP-6
**Deliverables:**
- A fix.
- A test.
VALIDATION:
- `node --test` passes
ACCEPTANCE: The last page is shown.
ROLLBACK: Revert the commit.
RETIREMENT TRIGGER: None: no bridge.
";

/// The same contract with what depends on the form taken out.
fn content(mut contract: Contract) -> Contract {
    contract.form = Form::None;
    contract.raw.clear();
    contract
}

#[test]
fn xml_headings_and_plain_lines_of_the_same_content_give_the_same_contract() {
    let xml = parse(XML).unwrap();
    assert_eq!(xml.form, Form::Xml);
    assert_eq!(xml.raw, XML);
    let headed = parse(HEADED).unwrap();
    assert_eq!(headed.form, Form::Markdown);
    assert_eq!(content(headed), content(xml.clone()));
    let mut plain = parse(PLAIN).unwrap();
    // Plain lines have no way to say an unknown section.
    plain.unknown.clone_from(&xml.unknown);
    assert_eq!(content(plain), content(xml.clone()));
    insta::assert_json_snapshot!(content(xml), @r#"
    {
      "form": "none",
      "work_package": "WP-7",
      "issue_id": "proj-1",
      "kind": "bug",
      "scrutiny": "high",
      "problem": "The pager skips the last page\nwhen it is not full & nobody sees it.\n\nA second paragraph.",
      "scope": {
        "repos": [
          "acme/pager"
        ],
        "paths": [
          "src/pager.js",
          "test/**"
        ]
      },
      "non_goals": [
        "No new dependency."
      ],
      "dependencies": [
        "WP-6"
      ],
      "deliverables": [
        "A fix.",
        "A test."
      ],
      "validation": [
        "`node --test` passes"
      ],
      "acceptance": [
        "The last page is shown."
      ],
      "rollback": "Revert the commit.",
      "retirement_trigger": "None: no bridge.",
      "unknown": [
        {
          "name": "owner",
          "text": "Dev One"
        }
      ]
    }
    "#);
}

#[test]
fn a_required_section_that_is_missing_is_named() {
    use Section::{Acceptance, NonGoals, Problem, Scope, Validation};
    for (description, expected) in [
        (XML, vec![]),
        ("just do it", vec![Problem, Scope, NonGoals, Validation, Acceptance]),
        ("", vec![Problem, Scope, NonGoals, Validation, Acceptance]),
        ("## Problem\nx\n## Scope\n- a\n## Validation\n## Acceptance\n- y", vec![NonGoals, Validation]),
        (
            "<change-contract><problem> </problem></change-contract>",
            vec![Problem, Scope, NonGoals, Validation, Acceptance],
        ),
        (
            "<change-contract><scope><repo>a/b</repo></scope></change-contract>",
            vec![Problem, NonGoals, Validation, Acceptance],
        ),
    ] {
        assert_eq!(missing(&parse(description).unwrap()), expected, "{description}");
    }
}

#[test]
fn a_description_says_by_itself_which_form_it_has() {
    for (description, expected) in [
        ("```xml\n<change-contract/>\n```", Form::Xml),
        ("Teach the parser `<change-contract>`.\n\n## Problem\nx", Form::Markdown),
        ("<change-contracts>", Form::None),
        ("```\n## Problem\nPROBLEM: x\n```", Form::None),
        ("The scope: unclear. Problem: none.", Form::None),
        ("#### problem", Form::Markdown),
        ("__Note__: nothing", Form::None),
    ] {
        assert_eq!(parse(description).unwrap().form, expected, "{description}");
    }
}

#[test]
fn what_cannot_be_read_says_where_and_what() {
    for (description, code, message) in [
        (
            "Do it.\n  <change-contract><problem>a</problm></change-contract>",
            "contract_malformed",
            "read the change contract, line 2, column 30: expected 'problem' tag, not 'problm'",
        ),
        (
            "<change-contract>\n<problem>a & b</problem></change-contract>",
            "contract_malformed",
            "read the change contract, line 2, column 12: malformed entity reference",
        ),
        (
            "<change-contract>\n<problem>a",
            "contract_malformed",
            "read the change contract, line 1, column 1: the root node was opened but never closed",
        ),
        (
            "<change-contract/>\ntext\n<change-contract/>",
            "contract_ambiguous",
            "read the change contract: the description holds 2 of them (the second in line 3)",
        ),
        (
            "<change-contract type='refacto'/>",
            "contract_type_unknown",
            "read the contract's type `refacto`: did you mean `refactor`? Known are: feature, bug, refactor, research, docs",
        ),
        (
            "TYPE: quantum",
            "contract_type_unknown",
            "read the contract's type `quantum`: known are: feature, bug, refactor, research, docs",
        ),
        (
            "<change-contract scrutiny='hihg'/>",
            "contract_scrutiny_unknown",
            "read the contract's scrutiny: read scrutiny `hihg`: did you mean `high`? Known are: none, low, medium, high, critical",
        ),
    ] {
        let failure = Failure::from(parse(description).unwrap_err());
        assert_eq!((failure.error_code, failure.message.as_str(), failure.exit), (code, message, 3), "{description}");
    }
}

#[test]
fn an_entity_bomb_is_refused_and_a_deep_nest_is_read() {
    let bomb = "<change-contract><!DOCTYPE a [<!ENTITY b 'c'>]><problem>&b;</problem></change-contract>";
    assert!(matches!(parse(bomb), Err(ContractError::Malformed { .. })));
    let deep = format!(
        "<change-contract><problem>{}x{}</problem></change-contract>",
        "<b>".repeat(50_000),
        "</b>".repeat(50_000)
    );
    assert_eq!(parse(&deep).unwrap().problem, "x");
}

#[test]
fn unknown_parts_are_kept_with_their_place() {
    let text = "<change-contract owner='me'>stray<scope><file>a.rs</file></scope><notes>n</notes></change-contract>";
    let names: Vec<_> = parse(text).unwrap().unknown.into_iter().map(|part| (part.name, part.text)).collect();
    let expected = [("@owner", "me"), ("text", "stray"), ("scope/file", "a.rs"), ("notes", "n")];
    assert_eq!(names, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
}

#[test]
fn entries_are_items_paragraphs_and_lines_of_code() {
    for (body, expected) in [
        ("- a\n- b\n  c\n\n  d\n- e", vec!["a", "b c d", "e"]),
        ("- outer\n  - inner", vec!["outer", "inner"]),
        ("one\ntwo\n\nthree", vec!["one two", "three"]),
        ("Run:\n\n```sh\ncargo test\ncargo fmt\n```", vec!["Run:", "cargo test", "cargo fmt"]),
        ("- run\n\n  ```\n  make\n  ```", vec!["run make"]),
        ("- *all* of `a b` and [x](y)", vec!["*all* of `a b` and [x](y)"]),
        ("", vec![]),
    ] {
        let contract = parse(&format!("## Validation\n{body}")).unwrap();
        assert_eq!(contract.validation, expected, "{body}");
    }
}

#[test]
fn a_deeper_heading_structures_its_section_and_one_of_the_same_level_ends_it() {
    let contract = parse("## Problem\na\n### Details\nb\n## Background\nc\n## Scope\nx.rs").unwrap();
    assert_eq!(contract.problem, "a\n### Details\nb");
    assert_eq!(contract.unknown, [UnknownPart { name: "Background".into(), text: "c".into() }]);
    assert_eq!(contract.scope.paths, ["x.rs"]);
}

#[test]
fn each_kind_of_contract_has_a_bead_type() {
    let types = ContractKind::WORDS.map(|word| word.parse::<ContractKind>().unwrap().bead_type());
    assert_eq!(types, ["feature", "bug", "task", "task", "task"]);
}

/// A word that neither form takes for markup.
fn word() -> impl Strategy<Value = String> {
    "[a-z]{1,8}(/[a-z]{1,6})?(\\.[a-z]{1,3})?"
}

fn line() -> impl Strategy<Value = String> {
    (
        word(),
        proptest::collection::vec(
            prop_oneof![word(), "`[a-z]{1,5} -[a-z]`", Just("&".to_owned()), Just("é".to_owned())],
            0..5,
        ),
        word(),
    )
        .prop_map(|(first, middle, last)| [vec![first], middle, vec![last]].concat().join(" "))
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(line(), 0..4)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

proptest! {
    #[test]
    fn both_forms_of_any_content_agree(
        problem in line(), paths in proptest::collection::vec(word(), 0..4), sections in [lines(), lines(), lines()],
        scrutiny in proptest::option::of(0..5usize),
    ) {
        let word = scrutiny.map(|at| ["none", "low", "medium", "high", "critical"][at]);
        let element = |outer: &str, inner: &str, entries: &[String]| {
            let inside: String = entries.iter().map(|e| format!("\n  <{inner}>{}</{inner}>", escaped(e))).collect();
            format!("<{outer}>{inside}\n</{outer}>\n")
        };
        let heading = |title: &str, entries: &[String]| {
            format!("## {title}\n{}\n", entries.iter().map(|e| format!("- {e}\n")).collect::<String>())
        };
        let [non_goals, validation, acceptance] = &sections;
        let xml = format!(
            "<change-contract{}>\n<problem>{}</problem>\n{}{}{}{}</change-contract>",
            word.map(|w| format!(" scrutiny=\"{w}\"")).unwrap_or_default(), escaped(&problem), element("scope", "path", &paths),
            element("non-goals", "item", non_goals), element("validation", "criterion", validation),
            element("acceptance", "criterion", acceptance),
        );
        let headed = format!(
            "{}## Problem\n{problem}\n{}{}{}{}",
            word.map(|w| format!("Scrutiny: {w}\n\n")).unwrap_or_default(), heading("Scope", &paths),
            heading("Non-goals", non_goals), heading("Validation", validation), heading("Acceptance", acceptance),
        );
        let (xml, headed) = (parse(&xml).unwrap(), parse(&headed).unwrap());
        prop_assert_eq!(&missing(&xml), &missing(&headed));
        prop_assert_eq!(xml.scrutiny.map(Scrutiny::as_str), word);
        prop_assert_eq!(content(xml), content(headed));
    }

    #[test]
    fn no_description_makes_the_reader_panic(text in "(\\PC|\n|<change-contract|</change-contract>|## Problem|SCOPE:|```|- |<|>|`){0,40}") {
        let _ = parse(&text);
    }
}

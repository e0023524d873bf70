use std::collections::BTreeSet;

use super::*;
use crate::chain::contract::parse;
use crate::chain::scrutiny::{Origin, Scrutiny, assess};
use crate::failure::Failure;
use crate::ids::{BeadId, ChainId};
use crate::ports::Bead;

const GOOD: &str = "TYPE: bug
PROBLEM: the pager skips a page
SCOPE:
- src/pager.js
NON_GOALS:
- no new dependency
VALIDATION:
- `node --test`
ACCEPTANCE:
- the last page is shown
";

fn bead(change: impl FnOnce(&mut Bead)) -> Bead {
    let mut bead = Bead {
        id: "proj-x".into(),
        status: "open".into(),
        issue_type: "bug".into(),
        description: GOOD.into(),
        ..Bead::default()
    };
    change(&mut bead);
    bead
}

fn asked(bead: Bead) -> Preflight {
    let contract = parse(&bead.description);
    let paths = contract.as_ref().map(|contract| contract.scope.named_paths()).unwrap_or_default();
    let scrutiny = assess((Scrutiny::Medium, Origin::Default), &paths);
    Preflight {
        bead: BeadId::from("proj-x"),
        root: Some(RootFacts { bead, contract, scrutiny }),
        formula: "code-standard".into(),
        chain: None,
        live_chains: Vec::new(),
        dirty_paths: 0,
        modes: Modes::all(Mode::Warn),
    }
}

fn live(chain: &str, formula: &str, bead: &str, scope: &[&str]) -> LiveChain {
    LiveChain {
        chain: ChainId::from(chain),
        formula: formula.into(),
        bead: BeadId::from(bead),
        scope: scope.iter().map(|path| (*path).to_owned()).collect(),
    }
}

fn with(mut preflight: Preflight, change: impl FnOnce(&mut Preflight)) -> Preflight {
    change(&mut preflight);
    preflight
}

#[test]
fn a_sound_bead_is_neither_refused_nor_remarked_upon() {
    assert_eq!(evaluate(&asked(bead(|_| {}))), Ruling::default());
}

/// Error code, exit status, what blocks, and a word of the message.
type Told = (&'static str, u8, &'static [&'static str], &'static str);

fn hard_cases() -> Vec<(Preflight, Told)> {
    let sp_bead = |bead: &mut Bead| drop(bead.metadata.insert("sp_bead".into(), "proj-root".into()));
    vec![
        (with(asked(bead(|_| {})), |ask| ask.root = None), ("bead_not_found", 4, &[], "no such bead")),
        (asked(bead(|b| b.status = "closed".into())), ("bead_closed", 3, &[], "closed")),
        (asked(bead(|b| b.issue_type = "epic".into())), ("bead_is_epic", 3, &[], "epic")),
        (
            asked(bead(|b| {
                b.issue_type = "molecule".into();
                sp_bead(b);
            })),
            ("bead_is_molecule", 3, &["proj-root"], "molecule"),
        ),
        (
            asked(bead(|b| {
                b.labels = vec!["kind:step".into()];
                b.status = "closed".into();
                sp_bead(b);
            })),
            ("bead_is_step", 3, &["proj-root"], "a step of the chain on bead proj-root"),
        ),
        (asked(bead(|b| b.labels = vec!["kind:step".into()])), ("bead_is_step", 3, &[], "a step of a chain")),
        (asked(bead(|b| b.issue_type = "gate".into())), ("bead_is_internal", 3, &[], "gate")),
        (asked(bead(|b| b.labels = vec!["contract:draft".into()])), ("contract_draft", 3, &[], "draft")),
        (asked(bead(|b| b.status = "deferred".into())), ("bead_deferred", 3, &[], "deferred")),
        (asked(bead(|b| b.status = "blocked".into())), ("bead_status_blocked", 3, &[], "blocked")),
        (asked(bead(|b| b.status = "hooked".into())), ("bead_hooked", 3, &[], "hooked")),
        (asked(bead(|b| b.status = "pinned".into())), ("bead_pinned", 3, &[], "pinned")),
        (asked(bead(|b| b.status = "odd".into())), ("bead_status_unknown", 3, &[], "odd")),
        (asked(bead(|b| b.assignee = Some("dev-one".into()))), ("bead_held", 5, &["dev-one"], "dev-one holds it")),
        (asked(bead(|b| b.assignee = Some("sp/proj-mol-2".into()))), ("bead_held", 5, &["sp/proj-mol-2"], "holds it")),
        (
            with(asked(bead(|b| b.assignee = Some("sp/proj-mol-12".into()))), |ask| {
                ask.chain = Some(ChainId::from("proj-mol-1"));
            }),
            ("bead_held", 5, &["sp/proj-mol-12"], "holds it"),
        ),
        (
            asked(bead(|b| b.open_children = vec!["proj-x.1".into(), "proj-x.2".into()])),
            ("bead_has_open_children", 3, &["proj-x.1", "proj-x.2"], "proj-x.1, proj-x.2"),
        ),
        (
            asked(bead(|b| b.open_blockers = vec!["proj-y".into()])),
            ("bead_blocked", 3, &["proj-y"], "waits for proj-y"),
        ),
        (
            with(asked(bead(|_| {})), |ask| ask.live_chains = vec![live("proj-mol-9", "debug", "proj-x", &[])]),
            ("bead_in_other_chain", 5, &["proj-mol-9"], "debug is live"),
        ),
        (
            asked(bead(|b| b.description = "<change-contract><a></change-contract>".into())),
            ("contract_malformed", 3, &[], "line 1, column 21"),
        ),
        (
            asked(bead(|b| b.description = "<change-contract type='task'/>".into())),
            ("contract_type_unknown", 3, &[], "`task`"),
        ),
    ]
}

#[test]
fn what_would_cost_work_is_refused_in_every_mode() {
    for (ask, (code, exit, blocked_by, words)) in hard_cases() {
        for mode in [Mode::Off, Mode::Shadow, Mode::Warn, Mode::Enforce] {
            let ruling = evaluate(&with(ask.clone(), |ask| ask.modes = Modes::all(mode)));
            let failure = Failure::from(ruling.refused().expect(code));
            assert_eq!((failure.error_code, failure.exit), (code, exit), "{mode}");
            assert!(failure.blocked_by.starts_with(&blocked_by.iter().map(ToString::to_string).collect::<Vec<_>>()));
            assert!(failure.message.starts_with("run code-standard on bead proj-x: "), "{}", failure.message);
            assert!(failure.message.contains(words), "{code}: {}", failure.message);
            assert!(!failure.next_safe_action.is_empty() && failure.diagnose_command.is_some(), "{code}");
        }
    }
}

#[test]
fn a_step_is_pointed_to_its_root() {
    let step = asked(bead(|b| {
        b.labels = vec!["kind:step".into()];
        b.metadata.insert("sp_bead".into(), "proj-root".into());
    }));
    let failure = Failure::from(evaluate(&step).refused().unwrap());
    assert_eq!(failure.next_safe_action, "name the root: `sp chain run code-standard --bead proj-root`");
}

#[test]
fn a_chain_that_goes_on_is_not_stopped_by_itself() {
    let own = ChainId::from("proj-mol-1");
    let held = bead(|b| {
        b.status = "in_progress".into();
        b.assignee = Some("sp/proj-mol-1".into());
        b.open_blockers = vec!["proj-mol-1".into()];
    });
    let adopted = with(asked(held.clone()), |ask| ask.chain = Some(own.clone()));
    assert_eq!(evaluate(&adopted), Ruling::default());
    let attached =
        with(asked(held), |ask| ask.live_chains = vec![live("proj-mol-1", "code-standard", "proj-x", &["src"])]);
    assert_eq!(evaluate(&attached), Ruling::default());
}

#[test]
fn every_reason_is_told_and_the_first_decides() {
    let ask = asked(bead(|b| {
        b.open_blockers = vec!["proj-y".into()];
        b.assignee = Some("dev-one".into());
    }));
    let failure = Failure::from(evaluate(&ask).refused().unwrap());
    assert_eq!(failure.error_code, "bead_held");
    assert_eq!(failure.blocked_by, ["dev-one", "proj-y"]);
    assert!(failure.message.contains("; also: run code-standard on bead proj-x: it waits for proj-y"));
}

/// A request per kind of finding, with the subject of that finding.
fn soft_cases() -> Vec<(FindingKind, &'static str, Preflight)> {
    let described = |text: &str| asked(bead(|b| b.description = text.into()));
    let good = || asked(bead(|_| {}));
    vec![
        (FindingKind::ContractMissing, "", described("just do it")),
        (FindingKind::ContractSectionMissing, "acceptance", described(GOOD.split("ACCEPTANCE").next().unwrap())),
        (
            FindingKind::ContractUnknownPart,
            "@owner",
            described(
                "<change-contract owner='me'><problem>p</problem><scope><path>a</path></scope><non-goals><item>n</item>\
                 </non-goals><validation><criterion>make</criterion></validation><acceptance><criterion>c</criterion>\
                 </acceptance></change-contract>",
            ),
        ),
        (FindingKind::ContractTypeMismatch, "", asked(bead(|b| b.issue_type = "feature".into()))),
        (
            FindingKind::ContractOversized,
            "",
            described(&GOOD.replace("a page", &"a page ".repeat(crate::chain::context::CONTRACT_LIMIT / 7))),
        ),
        (FindingKind::ValidationWithoutCommand, "", described(&GOOD.replace("`node --test`", "look at it"))),
        (FindingKind::ScopeOutsideRepository, "../other", described(&GOOD.replace("src/pager.js", "../other"))),
        (
            FindingKind::ScopeCollision,
            "proj-mol-9",
            with(good(), |ask| ask.live_chains = vec![live("proj-mol-9", "debug", "proj-z", &["src/**"])]),
        ),
        (
            FindingKind::ScrutinyEscalated,
            "authentication and secrets",
            described(&GOOD.replace("src/pager.js", "src/auth/login.js")),
        ),
        (FindingKind::BeadWithoutHolder, "", asked(bead(|b| b.status = "in_progress".into()))),
        (FindingKind::MainCheckoutDirty, "", with(good(), |ask| ask.dirty_paths = 3)),
    ]
}

#[test]
fn a_finding_weighs_what_its_mode_says() {
    for (kind, subject, ask) in soft_cases() {
        for (mode, expected) in [
            (Mode::Off, None),
            (Mode::Shadow, Some(Disposition::Recorded)),
            (Mode::Warn, Some(Disposition::Shown)),
            (Mode::Enforce, Some(Disposition::Refused)),
        ] {
            let ruling = evaluate(&with(ask.clone(), |ask| ask.modes = Modes::all(mode)));
            let found: Vec<_> = ruling.findings.iter().map(|f| (f.kind, f.subject.as_str(), f.disposition)).collect();
            assert_eq!(
                found,
                expected.map(|as_| (kind, subject, as_)).into_iter().collect::<Vec<_>>(),
                "{kind:?} {mode}"
            );
            assert_eq!(ruling.shown().count(), usize::from(mode >= Mode::Warn));
            let codes: Vec<_> = ruling.refusals.iter().map(|refusal| refusal.error_code).collect();
            let expected = if mode == Mode::Enforce { vec![kind.code()] } else { vec![] };
            assert_eq!(codes, expected, "{kind:?} {mode}");
        }
    }
}

#[test]
fn every_kind_of_finding_has_a_case_and_its_own_code() {
    let cases: BTreeSet<_> = soft_cases().into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(cases, FindingKind::ALL.into_iter().collect());
    let codes: BTreeSet<_> = FindingKind::ALL.map(FindingKind::code).into_iter().collect();
    assert_eq!(codes.len(), FindingKind::ALL.len());
    for kind in FindingKind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.code());
    }
}

#[test]
fn a_finding_keeps_its_fingerprint_while_its_evidence_changes() {
    let print = |paths: usize, id: &str| {
        let ask = with(asked(bead(|_| {})), |ask| {
            ask.dirty_paths = paths;
            ask.bead = BeadId::from(id);
        });
        evaluate(&ask).findings.remove(0).fingerprint
    };
    assert_eq!(print(1, "proj-x"), print(7, "proj-x"));
    assert_ne!(print(1, "proj-x"), print(1, "proj-y"));
    assert_eq!(print(1, "proj-x").len(), 64);
}

#[test]
fn one_kind_can_have_a_mode_of_its_own() {
    let mut modes = Modes::all(Mode::Enforce);
    modes.set("main_checkout_dirty", Mode::Warn).unwrap();
    let ask = with(asked(bead(|_| {})), |ask| {
        ask.dirty_paths = 1;
        ask.modes = modes.clone();
    });
    assert!(evaluate(&ask).refused().is_none());
    let slip = Failure::from(modes.set("main_checkout_dirt", Mode::Warn).unwrap_err());
    assert!(slip.message.contains("did you mean `main_checkout_dirty`?"), "{}", slip.message);
    let slip = Failure::from("enforced".parse::<Mode>().unwrap_err());
    assert_eq!((slip.error_code, slip.exit), ("policy_mode_unknown", 2));
    assert!(slip.message.contains("did you mean `enforce`?"));
    assert_eq!("Shadow".parse(), Ok(Mode::Shadow));
}

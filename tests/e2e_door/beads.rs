//! Beads that no chain may work on, contracts, policy and scrutiny.

use std::fs;

use serde_json::{Value, json};

use crate::begin;
use crate::door::{Door, look};
use crate::support::*;

#[test]
fn a_bead_that_no_chain_may_work_on_is_refused_whatever_the_policy() {
    let (repo, root, script) = begin();
    let bead = |more: &[&str]| repo.bead("another").contract(PAGER).with(more).create();
    let changed = |args: &[&str]| {
        let bead = bead(&[]);
        repo.bd([&["update", &bead][..], args].concat());
        bead
    };
    let closed = bead(&[]);
    repo.bd(["close", &closed]);
    let waits = bead(&[]);
    let first = bead(&[]);
    repo.bd(["dep", "add", &waits, &first]);
    let parent = bead(&[]);
    let child = bead(&["--parent", &parent]);
    let metadata = json!({ "sp_bead": root }).to_string();
    let cases: Vec<(String, i32, &str, Vec<&str>)> = vec![
        (closed, 3, "bead_closed", vec!["closed"]),
        (repo.bead("e").contract(PAGER).kind("epic").create(), 3, "bead_is_epic", vec!["epic", "bd children"]),
        (repo.bead("m").contract(PAGER).kind("molecule").create(), 3, "bead_is_molecule", vec!["molecule"]),
        (bead(&["-l", "kind:step", "--metadata", &metadata]), 3, "bead_is_step", vec!["step", "--bead", &root]),
        (bead(&["-l", "contract:draft"]), 3, "contract_draft", vec!["contract:draft"]),
        (waits, 3, "bead_blocked", vec!["waits for", &first]),
        (parent, 3, "bead_has_open_children", vec![&child]),
        (changed(&["-a", "alice"]), 5, "bead_held", vec!["alice"]),
        (changed(&["--claim"]), 5, "bead_held", vec!["Demo"]),
        (changed(&["-s", "deferred"]), 3, "bead_deferred", vec!["bd undefer"]),
        (changed(&["-s", "blocked"]), 3, "bead_status_blocked", vec!["blocked"]),
        (changed(&["-s", "pinned"]), 3, "bead_pinned", vec!["pinned"]),
    ];
    let before = look(&repo, repo.root());
    for (bead, exit, code, words) in cases {
        let door = Door::of(&repo).with("SP_POLICY_MODE", "off");
        let words: Vec<&str> = words.into_iter().chain([bead.as_str(), "bd show"]).collect();
        door.tells(&["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script], exit, code, &words);
    }
    before.assert_untouched(&repo, repo.root());
}

#[test]
fn an_unsafe_request_is_refused_without_any_hook() {
    let (repo, _, script) = begin();
    let hooks = repo.root().join(".git/hooks");
    assert!(!hooks.exists() || fs::read_dir(&hooks).unwrap().count() == 0, "this repository has hooks");
    let draft = repo.bead("not thought through").contract(PAGER).with(&["-l", "contract:draft"]).create();
    let run = ["chain", "run", PAIR, "--bead", &draft, "--rehearse", &script];
    Door::of(&repo).refuses(&run, 3, "contract_draft", &[&draft]);
    let background: Vec<&str> = run.iter().copied().chain(["--background"]).collect();
    Door::of(&repo).refuses(&background, 3, "contract_draft", &[&draft]);
}

#[test]
fn a_contract_that_can_t_be_read_is_refused_by_its_line() {
    let (repo, ..) = begin();
    for (text, code, words) in [
        (
            "<change-contract>\n <problem>x</problem>\n <scope><path>a</path></sco>\n</change-contract>",
            "contract_malformed",
            &["line 3"][..],
        ),
        ("words\n<change-contract>\n <problem>x</problem>\n", "contract_malformed", &["line 2"]),
        (
            "<change-contract scrutiny=\"hi\"><problem>x</problem></change-contract>",
            "contract_scrutiny_unknown",
            &["hi", "high"],
        ),
        (
            "<change-contract type=\"bugg\"><problem>x</problem></change-contract>",
            "contract_type_unknown",
            &["bugg", "bug"],
        ),
        (
            "<change-contract><problem>x</problem></change-contract>\n<change-contract><problem>y</problem></change-contract>",
            "contract_ambiguous",
            &["2"],
        ),
    ] {
        let bead = repo.bead("b").contract(text).create();
        Door::of(&repo).refuses(&["chain", "run", PAIR, "--bead", &bead], 3, code, words);
    }
}

/// The codes of the findings that a dry run shows.
fn findings(shown: &Value) -> Vec<&str> {
    shown["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found.as_str().unwrap().split(':').next().unwrap())
        .collect()
}

#[test]
fn missing_sections_weigh_what_the_policy_says() {
    let (repo, ..) = begin();
    let bead = repo.bead("b").contract("## Problem\nx\n\n## Scope\n- src/pager.sh\n").create();
    let dry = ["chain", "run", PAIR, "--bead", &bead, "--dry-run"];
    let missing = "contract_section_missing";
    for (mode, expected) in [("off", 0), ("shadow", 0), ("warn", 3)] {
        let shown = Door::of(&repo).with("SP_POLICY_MODE", mode).only_shows(&dry);
        assert_eq!(findings(&shown), vec![missing; expected], "{mode}");
    }
    let words = ["non-goals", "validation", "acceptance", "Problem, Scope, Non-goals, Validation and Acceptance"];
    Door::of(&repo).with("SP_POLICY_MODE", "enforce").refuses(&dry, 3, missing, &words);
    Door::of(&repo).with("SP_POLICY_MODE", "enforce").refuses(
        &["chain", "run", PAIR, "--bead", &bead],
        3,
        missing,
        &words,
    );

    let config = repo.base().join("home/.config/specialists/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "[policy]\nmode = \"enforce\"\n").unwrap();
    Door::of(&repo).refuses(&dry, 3, missing, &words);
    fs::write(&config, "[policy]\nmode = \"enforce\"\ncontract_section_missing = \"warn\"\n").unwrap();
    assert_eq!(findings(&Door::of(&repo).only_shows(&dry)), [missing; 3]);
}

#[test]
fn scrutiny_is_stated_by_flag_variable_contract_or_formula_and_never_below_the_floor_of_a_surface() {
    let repo = Repo::new();
    let bead = |scrutiny: &str, path: &str| {
        let contract = PAGER.replace("src/pager.sh", path).replace(" scrutiny=\"medium\"", scrutiny);
        repo.bead("b").contract(&contract).create()
    };
    let (plain, stated) = (bead("", "src/pager.sh"), bead(" scrutiny=\"low\"", "src/pager.sh"));
    let (auth, hooks) = (bead(" scrutiny=\"low\"", "src/auth/login.sh"), bead("", ".githooks/pre-commit"));
    let before = look(&repo, repo.root());
    for (bead, args, expected) in [
        (&plain, &[][..], ["medium", "medium"]),
        (&plain, &["--var", "scrutiny=high"], ["high", "high"]),
        (&plain, &["--scrutiny", "none"], ["none", "none"]),
        (&stated, &[], ["low", "low"]),
        (&stated, &["--var", "scrutiny=high"], ["high", "high"]),
        (&stated, &["--scrutiny", "critical", "--var", "scrutiny=high"], ["critical", "critical"]),
        (&auth, &[], ["low", "high"]),
        (&auth, &["--scrutiny", "none"], ["none", "high"]),
        (&auth, &["--scrutiny", "critical"], ["critical", "critical"]),
        (&hooks, &[], ["medium", "critical"]),
    ] {
        let args = [&["chain", "run", CODE_STANDARD, "--bead", bead, "--dry-run"][..], args].concat();
        let shown = Door::of(&repo).shows(&args);
        assert_eq!(["stated", "effective"].map(|name| shown["scrutiny"][name].as_str().unwrap()), expected, "{args:?}");
        let raised = expected[0] != expected[1];
        assert_eq!(findings(&shown).contains(&"scrutiny_escalated"), raised, "{args:?}: {shown}");
        assert_eq!(shown["scrutiny"]["escalations"].as_array().unwrap().is_empty(), !raised, "{args:?}: {shown}");
    }
    before.assert_untouched(&repo, repo.root());
}

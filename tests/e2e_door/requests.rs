//! What is asked for: command lines, values, rehearsals, settings, names.

use std::fs;

use serde_json::json;

use crate::begin;
use crate::door::{Door, look};
use crate::support::*;

#[test]
fn a_wrong_command_line_is_refused_before_anything_is_looked_at() {
    let (repo, bead, script) = begin();
    let door = Door::of(&repo);
    let before = look(&repo, repo.root());
    for (args, words) in [
        (&["chain", "run", PAIR][..], &["--bead"][..]),
        (&["chain", "run", PAIR, "--bead", ""], &["--bead"]),
        (&["chain", "run", PAIR, "--bead", &bead, "--var", "x"], &["--var", "NAME=VALUE"]),
        (&["chain", "run", PAIR, "--bead", &bead, "--var", "a=1", "--var", "a=2"], &["--var a", "twice"]),
        (&["chain", "run", PAIR, "--bead", &bead, "--scrutiny", "hi"], &["--scrutiny", "did you mean `high`"]),
        (&["chain", "run", PAIR, "--bead", &bead, "--max-fix-loops=-1"], &["--max-fix-loops"]),
        (&["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script, "--model", "a/b"], &["--rehearse", "--model"]),
        (&["chain", "run", PAIR, "--bead", &bead, "--dry-run", "--background"], &["--dry-run", "--background"]),
        (&["chain", "abandon", &bead], &["--reason"]),
        (&["chain", "runn"], &["runn"]),
        (&["frobnicate"], &["frobnicate"]),
    ] {
        door.tells(args, 2, "usage", words);
    }
    let run = ["chain", "run", PAIR, "--bead", &bead, "--base"];
    let based = |base| run.into_iter().chain([base]).collect::<Vec<_>>();
    door.tells(&based("no-such-ref"), 4, "no_revision", &["no-such-ref", "git branch --all"]);
    door.tells(&["chain", "run", PAIR, "--bead", &bead, "--base=-x"], 4, "no_revision", &["-x"]);
    door.tells(&["chain", "run", "code-standrad", "--bead", &bead], 4, "formula_not_found", &["code-standard"]);
    door.tells(&["chain", "run", "../pair", "--bead", &bead], 2, "formula_name_bad", &["../pair"]);
    for bead in ["pager-none", "-x", "a b", "pager-none\n", "%"] {
        let option = format!("--bead={bead}");
        door.tells(&["chain", "run", PAIR, &option], 4, "bead_not_found", &[bead.trim_end(), "bd list"]);
    }
    // bd takes a part of an id for the whole; what is recorded must be the whole.
    let part = format!("--bead={}", bead.strip_prefix("pager-").unwrap());
    door.tells(&["chain", "run", PAIR, &part], 4, "bead_not_found", &["bd list"]);
    before.assert_untouched(&repo, repo.root());
}

#[test]
fn a_rehearsal_that_can_t_be_played_is_refused_by_file_line_and_field() {
    let (repo, bead, _) = begin();
    let door = Door::of(&repo);
    let file = repo.base().join("mine.json");
    let path = file.to_str().unwrap();
    let before = look(&repo, repo.root());
    let turn = |turn: &str| {
        format!("{{\"rehearsal\":1,\n\"roles\":{{\"executor\":{{\"rounds\":[{{\"turns\":[{turn}]}}]}}}}}}")
    };
    for (text, code, words) in [
        ("{\"rehearsal\":1,\n\"roles\":{,}}".to_owned(), "rehearsal_invalid", &["mine.json", "line 2, column"][..]),
        (String::new(), "rehearsal_invalid", &["line 1"]),
        ("{\"rehearsal\":2,\"roles\":{}}".to_owned(), "rehearsal_invalid", &["field `rehearsal`"]),
        ("{\"rehearsal\":1,\"rolez\":{}}".to_owned(), "rehearsal_invalid", &["rolez", "did you mean roles"]),
        (turn("{\"txt\":\"x\"}"), "rehearsal_invalid", &["line 2", "roles.executor.rounds[0].turns[0].txt", "`text`"]),
        (turn("{\"text\":5}"), "rehearsal_invalid", &["roles.executor.rounds[0].turns[0].text"]),
        (turn("{\"tools\":[{\"name\":\"rm\",\"arguments\":{}}]}"), "rehearsal_invalid", &["tools[0].name", "rm"]),
        (turn("{\"text\":\"x\"}"), "rehearsal_uncovered", &["mine.json", "reviewer"]),
    ] {
        fs::write(&file, text).unwrap();
        door.tells(&["chain", "run", PAIR, "--bead", &bead, "--rehearse", path], 2, code, words);
        door.tells_as_json(&["chain", "run", PAIR, "--bead", &bead, "--rehearse", path, "--dry-run"], 2, code, words);
    }
    fs::remove_file(&file).unwrap();
    let run = ["chain", "run", PAIR, "--bead", &bead, "--rehearse", path];
    door.tells(&run, 4, "rehearsal_missing", &["mine.json"]);
    before.assert_untouched(&repo, repo.root());
}

#[test]
fn a_setting_that_is_not_understood_is_refused_by_file_line_and_key() {
    let (repo, bead, _) = begin();
    let run = ["chain", "run", PAIR, "--bead", &bead];
    let user = repo.base().join("home/.config/specialists");
    let own = repo.root().join(".specialists");
    for directory in [user, own] {
        fs::create_dir_all(&directory).unwrap();
        let file = directory.join("config.toml");
        let before = look(&repo, repo.root());
        for (text, code, words) in [
            ("[chain", "config_syntax", &["line 1"][..]),
            ("[chain]\nmax_fix_loop = 3", "config_unknown_key", &["line 2", "chain.max_fix_loop", "did you mean"]),
            ("[chain]\nmax_fix_loops = \"x\"", "config_bad_value", &["line 2", "chain.max_fix_loops", "whole number"]),
            ("[policy]\nmode = \"strict\"", "config_bad_value", &["policy.mode", "enforce"]),
            ("[models]\nexecuter = \"a/b\"", "config_unknown_key", &["models.executer", "did you mean `executor`"]),
            ("[tools]\nbd = 5", "config_bad_value", &["tools.bd"]),
            ("x = 1", "config_unknown_key", &["`x`"]),
        ] {
            fs::write(&file, text).unwrap();
            let words: Vec<&str> = words.iter().copied().chain([file.to_str().unwrap()]).collect();
            Door::of(&repo).tells(&run, 2, code, &words);
        }
        fs::remove_file(&file).unwrap();
        before.assert_untouched(&repo, repo.root());
    }
    for (name, value) in [
        ("SP_MAX_FIX_LOOPS", "x"),
        ("SP_MAX_FIX_LOOPS", "-1"),
        ("SP_STALL_SECONDS", "1.5"),
        ("SP_POLICY_MODE", "strict"),
    ] {
        Door::of(&repo).with(name, value).refuses(&run, 2, "config_bad_variable", &[name, value]);
    }
}

#[test]
fn a_dry_run_shows_the_composition_and_writes_nothing() {
    let (repo, bead, _) = begin();
    fs::write(repo.root().join("new.txt"), "x").unwrap();
    let args = ["chain", "run", CODE_STANDARD, "--bead", &bead, "--dry-run", "--max-fix-loops", "3"];
    let shown = Door::of(&repo).only_shows(&args);
    let ids: Vec<&str> = shown["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect();
    let six = ["executor", "seconder", "test-engineer", "test-runner", "obligations-scanner", "reviewer"];
    assert_eq!(ids, six);
    assert_eq!(shown["critical_path"], json!(six));
    assert_eq!((&shown["root_bead_id"], &shown["dirty_paths"]), (&json!(bead), &json!(1)));
    assert_eq!(shown["base_sha"].as_str().unwrap(), repo.git(["rev-parse", "HEAD"]));
    let text = repo.sp(args).success();
    for word in ["nothing was created", "seconder", "gate, mandatory", "scrutiny", "main_checkout_dirty"] {
        assert!(text.contains(word), "no `{word}` in {text}");
    }

    // From anywhere in the repository it is the same.
    repo.git(["worktree", "add", "-q", "-b", "side", repo.base().join("side").to_str().unwrap()]);
    for place in [repo.root().join("src"), repo.base().join("side"), repo.base().join("side/src")] {
        let there = repo.order(args).within(&place).run();
        assert_eq!(there.success(), text, "{}", place.display());
        let there = repo.order(["-C", place.to_str().unwrap()].iter().chain(&args)).within("/").run();
        assert_eq!(there.success(), text, "{}", place.display());
    }
    repo.git(["commit", "-q", "--allow-empty", "-m", "later"]);
    repo.git(["tag", "here", "HEAD~1"]);
    for base in ["here", "HEAD~1", &repo.git(["rev-parse", "HEAD~1"])] {
        let based: Vec<&str> = args.iter().copied().chain(["--base", base]).collect();
        let shown = Door::of(&repo).only_shows(&based);
        let expected = (&json!(base), &json!(repo.git(["rev-parse", "HEAD~1"])));
        assert_eq!((&shown["base_ref"], &shown["base_sha"]), expected);
    }
}

#[test]
fn names_of_nothing_are_refused_by_every_command_that_takes_one() {
    let (repo, ..) = begin();
    let door = Door::of(&repo);
    for args in [
        &["chain", "show", "pager-mol-none"][..],
        &["chain", "resume", "pager-mol-none"],
        &["chain", "stop", "pager-mol-none"],
        &["chain", "abandon", "pager-mol-none", "--reason", "r"],
    ] {
        door.refuses(args, 4, "store_not_there", &["sp chain run"]);
    }
    door.refuses(&["chain", "graph", "pager-mol-none"], 4, "no_such_graph", &["pager-mol-none"]);
    door.refuses(&["feed", "pager-mol-none"], 4, "no_such_subject", &["pager-mol-none", "sp ps --all"]);
    door.refuses(&["result", "0aaaaaaa"], 4, "no_such_job", &["0aaaaaaa", "sp ps --all"]);
    for args in [&["ps"][..], &["ps", "--all"], &["chain", "list"], &["chain", "list", "--all"], &["doctor"]] {
        door.only_shows(args);
    }
}

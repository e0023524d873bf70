//! What may be said to a chain that is there, and what a newcomer sees of it.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::begin;
use crate::door::{Door, look, real, stand_in};
use crate::support::*;

/// The executor works until the file `go` is there.
const WAITS: &str = "touch \"$TMPDIR/../waits\"; while [ ! -e \"$TMPDIR/../go\" ]; do sleep 0.05; done";

#[test]
fn a_finished_chain_is_shown_by_its_id_and_its_bead_and_takes_no_more_orders() {
    let (repo, bead, script) = begin();
    let run = ["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script];
    repo.sp(run).success();
    let (chain, door) = (repo.chain(), Door::of(&repo));
    let jobs = ["executor", "reviewer"].map(|step| repo.job(step, 1));

    let before = look(&repo, repo.root());
    // The chain is there by either name, and a second run only shows it.
    for name in [&chain, &bead] {
        let shown = door.shows(&["chain", "show", name]);
        assert_eq!((&shown["chain_id"], &shown["status"]), (&json!(chain), &json!("ready_to_merge")));
        assert_eq!(door.shows(&["chain", "stop", name])["was_running"], false);
        let graph = door.shows(&["chain", "graph", name, "--format", "mermaid"]);
        assert_eq!((&graph["formula"], &graph["critical_path"]), (&json!(PAIR), &json!(["executor", "reviewer"])));
        assert!(graph["picture"].as_str().unwrap().contains("passed"), "{graph}");
        let ids: Vec<String> = door.shows(&["ps", name])["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|job| job["id"].as_str().unwrap().to_owned())
            .collect();
        assert!(jobs.iter().all(|job| ids.contains(job)), "{ids:?}");
    }
    assert_eq!(door.shows(&run)["status"], "ready_to_merge");
    assert_eq!(door.shows(&["chain", "list"])["chains"][0]["id"], json!(chain));
    let answer = door.shows(&["result", &jobs[1]])["output"].as_str().unwrap().to_owned();
    assert!(answer.contains("\"PASS\""), "{answer}");
    let feed = repo.sp(["feed", &chain]).success();
    for word in ["opened", "worktree", "dispatch", "read", "edit", "answer", "closed", "ready"] {
        assert!(feed.contains(word), "no `{word}` in the feed:\n{feed}");
    }
    assert_eq!(door.shows(&["doctor"])["usable"], true);

    for (args, exit, code, words) in [
        (vec!["chain", "resume", &chain], 3, "not_merged", vec!["git merge --no-ff"]),
        (vec!["chain", "resume", &bead, "--accept", "executor"], 3, "step_not_blocked", vec!["executor"]),
        (vec!["chain", "resume", &bead, "--accept", "nobody"], 4, "no_such_step", vec!["nobody", "executor, reviewer"]),
        (vec!["chain", "resume", &bead, "--from", "nobody", "--note", "n"], 4, "no_such_step", vec!["nobody"]),
        (vec!["chain", "run", RUN, "--bead", &bead], 5, "bead_in_other_chain", vec![&chain, PAIR]),
        (vec!["chain", "run", PAIR, "--bead", &chain], 3, "bead_is_molecule", vec!["sp chain show"]),
        (vec!["chain", "show", "pager-mol-none"], 4, "no_such_chain", vec!["sp chain list --all"]),
        (vec!["chain", "stop", "pager-none"], 4, "no_such_chain", vec!["pager-none"]),
        (vec!["chain", "abandon", "pager-none", "--reason", "r"], 4, "no_such_chain", vec!["pager-none"]),
        (vec!["result", &chain], 4, "no_such_job", vec!["sp ps --all"]),
        (vec!["result", ""], 4, "no_such_job", vec!["sp ps --all"]),
    ] {
        door.tells(&args, exit, code, &words);
    }
    let step = format!("{chain}-executor");
    door.tells(&["chain", "run", PAIR, "--bead", &step], 3, "bead_is_step", &[&format!("--bead {bead}")]);
    let other = repo.rehearse().round("executor", [says(done())]).round("reviewer", [says(pass())]).write();
    door.tells(&["chain", "run", PAIR, "--bead", &bead, "--rehearse", &other], 3, "other_model", &["another script"]);
    before.assert_untouched(&repo, repo.root());
    repo.must_equal(&Expected::pair(&bead).ready());
}

#[test]
fn a_blocked_chain_wants_a_word_and_one_that_is_over_wants_none() {
    let (repo, bead, _) = begin();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), says(done())])
        .round("reviewer", [says(review_fail("not what was asked for"))])
        .write();
    let run = ["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script];
    repo.sp(run).code(7);
    let (chain, door) = (repo.chain(), Door::of(&repo));
    let model = Expected::pair(&bead).passes("executor").blocks("reviewer", "rejected");
    let before = look(&repo, repo.root());
    for name in [&chain, &bead] {
        door.tells(&["chain", "resume", name], 7, "needs_note", &["reviewer", "--note", "sp chain show"]);
    }
    door.tells(&["chain", "resume", &bead, "--accept", "executor"], 3, "step_not_blocked", &["executor"]);
    // What is shown of it is a report; its status is that of a chain that waits for people.
    door.tells_as_json(&run, 7, "chain_blocked", &["reviewer (rejected)"]);
    let other = repo.rehearse().round("executor", [says(done())]).round("reviewer", [says(pass())]).write();
    let resume = ["chain", "resume", &bead, "--note", "n", "--rehearse", &other];
    door.tells(&resume, 3, "other_model", &["another script", "sp chain resume"]);
    before.assert_untouched(&repo, repo.root());
    repo.must_equal(&model);

    repo.sp(["chain", "abandon", &chain, "--reason", "by mistake"]).success();
    for args in [
        &["chain", "resume", &bead, "--note", "n"][..],
        &["chain", "abandon", &chain, "--reason", "r"],
        &["chain", "resume", &chain, "--accept", "reviewer"],
    ] {
        door.tells(args, 3, "chain_over", &["abandoned", "sp chain show"]);
    }
    assert_eq!(door.only_shows(&["chain", "list"])["chains"], json!([]));
    assert_eq!(door.only_shows(&["chain", "list", "--all"])["chains"][0]["status"], "abandoned");
    repo.must_equal(&model.abandoned());
    // The bead is free again, and its branch is its own.
    let dry: Vec<&str> = run.iter().copied().chain(["--dry-run"]).collect();
    door.only_shows(&dry);
}

#[test]
fn a_chain_that_runs_elsewhere_takes_no_orders_that_would_be_lost() {
    let (repo, bead, _) = begin();
    let script = repo
        .rehearse()
        .round("executor", [bash(WAITS), fixes(), says(done())])
        .round("reviewer", [says(pass())])
        .write();
    let run = repo.order(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).spawn();
    repo.until_file(&repo.base().join("waits"));
    let door = Door::of(&repo);
    for args in [
        &["chain", "abandon", &bead, "--reason", "r"][..],
        &["chain", "resume", &bead, "--note", "n"],
        &["chain", "resume", &bead, "--from", "executor"],
    ] {
        door.tells(args, 5, "chain_runs_elsewhere", &[&run.pid().to_string(), "sp chain stop"]);
    }
    door.tells(&["chain", "run", RUN, "--bead", &bead], 5, "bead_in_other_chain", &[PAIR]);
    let again = ["chain", "run", PAIR, "--bead", &bead, "--background"];
    let told = repo.sp(again.iter().chain(&["--json"]));
    told.success();
    assert_eq!((&told.json()["chain_id"], &told.json()["pid"]), (&json!(repo.chain()), &json!(run.pid())), "{told}");
    // timeout(1) sends its signal twice; that is still one request, and the chain stops gracefully.
    run.signal(Signal::TERM);
    run.signal(Signal::TERM);
    let end = run.wait();
    end.code(130);
    assert!(end.stderr.contains("sp chain resume") && !end.stderr.contains("ending now"), "{end}");
    fs::write(repo.base().join("go"), "").unwrap();
    repo.sp(["chain", "resume", &bead]).success();
    repo.must_equal(&Expected::pair(&bead).ready());
}

#[test]
fn a_run_that_is_refused_in_the_background_says_why_itself() {
    let (repo, bead, script) = begin();
    let door = Door::of(&repo);
    let background = |bead: &str, script: &str| {
        let args = ["chain", "run", PAIR, "--bead", bead, "--rehearse", script, "--background"];
        args.map(str::to_owned)
    };
    for (wanted, exit, code) in [
        (background("pager-none", &script), 4, "bead_not_found"),
        (background(&bead, "/no/such/script"), 4, "rehearsal_missing"),
    ] {
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        door.refuses(&wanted, exit, code, &[]);
    }
    let old = stand_in(&repo, "old", &real("SP_PI", "pi"), "echo 1.5.9\n");
    let wanted = background(&bead, &script);
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    Door::of(&repo).with("SP_PI", &old).refuses(&wanted, 6, "pi_unsupported", &["1.5.9"]);
}

#[test]
fn nothing_is_poured_beside_a_molecule_that_can_not_be_gone_on_with() {
    let (repo, bead, _) = begin();
    let script = repo.rehearse().round("executor", [says(done())]).round("reviewer", [says(pass())]).write();
    let run = ["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script];
    repo.sp(run).code(7);
    let (chain, door) = (repo.chain(), Door::of(&repo));
    let (own, beads) = (repo.root().join(".specialists"), repo.root().join(".beads"));
    let kept = repo.base().join("kept");

    // The database is lost.
    fs::rename(&own, &kept).unwrap();
    let other = ["chain", "run", "code-standard", "--bead", &bead];
    door.refuses(&other, 3, "chain_unrecorded", &[&chain, PAIR, "restore .specialists/db", "bd close"]);
    door.refuses(&["chain", "run", PAIR, "--bead", &bead], 3, "other_model", &[&chain, "rehearsal"]);
    let dry: Vec<&str> = run.iter().copied().chain(["--dry-run"]).collect();
    let told = repo.sp(&dry).success();
    assert!(told.contains("chain_recovered"), "{told}");
    assert!(!own.exists(), "a dry run wrote something");
    fs::rename(&kept, &own).unwrap();

    fs::rename(&beads, &kept).unwrap();
    let init = "init --prefix pager --stealth --skip-hooks --skip-agents --quiet --non-interactive --init-if-missing";
    repo.bd(init.split(' '));
    door.refuses(&["chain", "resume", &bead, "--note", "n"], 10, "other_beads_workspace", &[&chain, ".beads"]);
}

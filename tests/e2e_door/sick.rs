//! Programs that fail for a while, that answer nothing, and others who reach for the same work.

use std::fs;
use std::process::Stdio;
use std::thread;

use crate::begin;
use crate::door::{Door, real, stand_in};
use crate::support::*;

#[test]
fn a_bd_that_fails_for_a_while_is_waited_for() {
    let (repo, bead, script) = begin();
    // The first two calls of each kind that writes or lists fail. A read that fails is asked again at once.
    let sick = stand_in(
        &repo,
        "sick",
        &real("SP_BD", "bd"),
        "case \"$*\" in *--dry-run*) exec \"$real\" \"$@\";; esac\n\
         case $1 in create|update|batch|ready|note|worktree)\n\
         if [ ! -e \"$base/second.$1\" ]; then\n\
         if [ -e \"$base/first.$1\" ]; then : >\"$base/second.$1\"; fi; : >\"$base/first.$1\"\n\
         echo 'Error: failed to open database: disk I/O error' >&2; exit 1\nfi;;\nesac\nexec \"$real\" \"$@\"\n",
    );
    let run = repo.order(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).env("SP_BD", &sick).run();
    run.success();
    for verb in ["create", "update", "batch", "note", "worktree create"] {
        let said = format!("tracker: run `bd {verb}`: failed to open database");
        assert!(run.stderr.contains(&said), "it does not say that it waits for `{verb}`: {run}");
    }
    repo.must_equal(&Expected::pair(&bead).ready());
}

#[test]
fn a_bd_that_refuses_the_worktree_stops_the_chain_with_its_words_and_without_a_worktree() {
    let (repo, bead, script) = begin();
    let picky = stand_in(
        &repo,
        "picky",
        &real("SP_BD", "bd"),
        "case $1 in worktree) echo 'Error: not here, says bd' >&2; exit 1;; esac\nexec \"$real\" \"$@\"\n",
    );
    let run = repo.order(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).env("SP_BD", &picky).run();
    run.code(10);
    assert!(run.stderr.contains("not here, says bd"), "{run}");
    assert!(!run.stderr.contains("waiting: tracker"), "words that nobody knows are not waited for: {run}");
    assert_eq!(repo.git(["worktree", "list"]).lines().count(), 1, "git made a worktree that bd refused");
    repo.sp(["chain", "resume", &bead]).success();
    repo.must_equal(&Expected::pair(&bead).remarks("bd_refused", "the chain").ready());
}

#[test]
fn a_pi_that_answers_nothing_blocks_its_step_and_a_note_goes_on_with_a_sound_one() {
    let (repo, bead, script) = begin();
    let mute = "case \" $* \" in *' --version '*) exec \"$real\" \"$@\";; esac\nexit 0\n";
    let mute = stand_in(&repo, "mute", &real("SP_PI", "pi"), mute);
    let run = repo.order(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).env("SP_PI", &mute).run();
    run.code(7);
    assert!(run.stderr.contains("executor (agent_exited)"), "{run}");
    let door = Door::of(&repo);
    door.refuses(&["chain", "resume", &bead], 7, "needs_note", &["executor", "--note"]);
    repo.sp(["chain", "resume", &bead, "--note", "pi is mended"]).success();
    assert_eq!(repo.show(&bead)["status"], "in_progress");
}

/// Of two processes that claim one step at the same moment one wins, whoever they are (R3-0480).
#[test]
fn one_of_two_processes_claims_a_step() {
    let repo = Repo::new();
    let molecule = repo.bead("m").kind("molecule").contract("m").create();
    let metadata = r#"{"sp_step":"executor"}"#;
    for round in 0..3 {
        let step = repo.bead("s").contract("s").with(&["--parent", &molecule, "--metadata", metadata]).create();
        let claim = |actor: &str| {
            let mut bd = repo.program(real("SP_BD", "bd"));
            bd.args([
                "ready",
                "--claim",
                "-u",
                "--metadata-field",
                "sp_step=executor",
                "--json",
                "--parent",
                &molecule,
            ]);
            bd.args(["--actor", actor]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            bd.spawn().unwrap()
        };
        let claims = ["a", "b"].map(claim).map(|child| thread::spawn(|| child.wait_with_output().unwrap()));
        let answers = claims.map(|claim| String::from_utf8_lossy(&claim.join().unwrap().stdout).into_owned());
        let winners = answers.iter().filter(|answer| answer.contains(&step)).count();
        let holder = repo.show(&step)["assignee"].as_str().unwrap_or_default().to_owned();
        assert_eq!(winners, 1, "round {round}: {answers:?}, held by {holder:?}");
        let winner = answers.iter().position(|answer| answer.contains(&step)).unwrap();
        assert_eq!(holder, ["a", "b"][winner], "round {round}");
        repo.bd(["close", &step, "--actor", &holder]);
    }
}

#[test]
fn a_step_that_another_claimed_first_is_theirs_until_they_let_go() {
    let (repo, bead, script) = begin();
    let thief = stand_in(
        &repo,
        "thief",
        &real("SP_BD", "bd"),
        "case \"$*\" in 'ready --json --claim'*)\nif [ ! -e \"$base/stolen\" ]; then : >\"$base/stolen\"\n\
         for word; do case $word in --parent=*) molecule=${word#--parent=};; esac; done\n\
         \"$real\" update \"$molecule-executor\" --claim --actor mallory >/dev/null 2>&1; fi;;\nesac\n\
         exec \"$real\" \"$@\"\n",
    );
    let order = repo.order(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).env("SP_BD", &thief);
    let run = order.spawn();
    run.until_it_says("held by mallory");
    let step = format!("{}-executor", repo.chain());
    assert_eq!(repo.show(&step)["assignee"], "mallory");
    assert!(fs::read_dir(repo.root().join(".specialists")).unwrap().all(|entry| entry.unwrap().file_name() != "jobs"));
    repo.bd(["unclaim", &step, "--actor", "mallory"]);
    run.wait().success();
    let holder = repo.show(&step)["assignee"].as_str().unwrap().to_owned();
    assert!(holder.starts_with(&format!("sp/{}/executor/", repo.chain())), "{holder}");
}

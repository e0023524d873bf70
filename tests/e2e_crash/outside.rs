//! Killed from outside, in the middle of a turn, of a call of bd or of a hook.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::story::{Begun, GoOn, SHORT};
use crate::support::*;

/// A command that says it runs and then sleeps; it leaves a child in a session of its own behind.
const SLEEPS: &str = "setsid sleep 1000 & touch \"$TMPDIR/asleep\"; sleep 1000";

/// A chain whose executor fixes the bug and is then caught in a command.
pub fn caught(command: &str) -> Begun {
    let repo = Repo::new();
    let bead = repo.bead("The last page is lost").contract(PAGER).create();
    let script = repo
        .rehearse()
        .round("executor", [fixes(), bash(command), says(done())])
        .round("reviewer", [says(pass())])
        .write();
    let command = ["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script].map(str::to_owned).into();
    Begun { repo, bead, command }
}

/// Removes what the command of the script left to be seen.
pub fn awake(repo: &Repo) {
    fs::remove_file(repo.tmp().join("asleep")).unwrap();
}

/// A program before bd that waits as long as the file `hold` is there, in the calls whose arguments hold `needle`.
pub fn held_bd(repo: &Repo, needle: &str) -> (PathBuf, PathBuf) {
    let (program, hold) = (repo.base().join("held-bd"), repo.base().join("hold"));
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *'{needle}'*) while [ -e '{}' ]; do touch '{}.seen'; sleep 0.05; done;; esac\n\
         exec '{}' \"$@\"\n",
        hold.display(),
        hold.display(),
        tool("SP_BD", "bd").display(),
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&hold, "").unwrap();
    (program, hold)
}

#[test]
fn no_tool_of_a_killed_sp_outlives_the_resume() {
    let begun = caught(SLEEPS);
    let run = begun.repo.order(&begun.command).spawn();
    begun.repo.until_file(&begun.repo.tmp().join("asleep"));
    run.signal(Signal::KILL);
    run.wait().killed();
    awake(&begun.repo);
    assert!(!begun.repo.processes().is_empty(), "the child in a session of its own should have survived until now");
    begun.go_on(GoOn::Resume).run().success();
    begun.repo.must_equal(&Expected::pair(&begun.bead).ready());
}

#[test]
fn a_killed_pi_is_replaced_and_takes_its_tools_with_it() {
    let begun = caught(SLEEPS);
    let run = begun.repo.order(&begun.command).spawn();
    begun.repo.until_file(&begun.repo.tmp().join("asleep"));
    let pi = begun.repo.processes().into_iter().find(|process| process.parent == run.pid()).expect("pi runs");
    let tools: Vec<i32> =
        begun.repo.processes().into_iter().map(|process| process.pid).filter(|pid| *pid != pi.pid).collect();
    assert!(tools.len() >= 2, "the tool and its child run: {tools:?}");
    signal(pi.pid, Signal::KILL);
    begun.repo.until("the tools of the killed pi are gone", || !tools.iter().any(|pid| is_alive(*pid)));
    run.wait().success();
    awake(&begun.repo);
    assert!(begun.repo.story().contains(&"job_failed executor".to_owned()), "{:?}", begun.repo.story());
    begun.repo.must_equal(&Expected::pair(&begun.bead).ready());
}

#[test]
fn an_answer_that_was_written_the_moment_sp_died_counts() {
    let begun = SHORT.begin();
    let run = begun.repo.order(&begun.command).spawn();
    let jobs = || begun.repo.column("SELECT job_id FROM specialist_jobs");
    begun.repo.until("the executor has a job", || !jobs().is_empty());
    let session = begun.repo.job_dir(&jobs()[0]).join("session.jsonl");
    // Between the answer in the session and its settlement lie some milliseconds: look without a rest.
    let answered = || fs::read_to_string(&session).is_ok_and(|text| text.contains("\"stopReason\":\"stop\""));
    while !answered() {
        assert!(is_alive(run.pid()), "sp ended before the executor answered");
        thread::yield_now();
    }
    run.signal(Signal::KILL);
    run.wait().killed();
    begun.go_on(GoOn::Rerun).run().success();
    begun.repo.must_equal(&Expected::pair(&begun.bead).ready());
}

#[test]
fn a_note_that_a_killed_sps_bd_still_writes_is_not_written_again() {
    let begun = SHORT.begin();
    let (program, hold) = held_bd(&begun.repo, "note ");
    let run = begun.repo.order(&begun.command).env("SP_BD", &program).spawn();
    begun.repo.until_file(&hold.with_extension("seen"));
    run.signal(Signal::KILL);
    run.wait().killed();
    let next = begun.go_on(GoOn::Resume).spawn();
    let lock = fs::metadata(begun.repo.root().join(".specialists/bd.lock")).unwrap().ino();
    let waits = || {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|line| line.contains("-> ") && line.contains(&format!(":{lock} ")))
    };
    begun.repo.until("the next sp waits for the bd of the dead one", || waits() || !is_alive(next.pid()));
    fs::remove_file(&hold).unwrap();
    next.wait().success();
    begun.repo.must_equal(&(SHORT.model)(&begun.bead));
}

#[test]
fn a_commit_whose_hook_outlives_a_killed_sp_is_made_once() {
    let begun = SHORT.begin();
    let hook = begun.repo.root().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let [seen, go] = ["hook-runs", "hook-may-end"].map(|name| begun.repo.base().join(name));
    let text =
        format!("#!/bin/sh\necho >>'{}'\nwhile [ ! -e '{}' ]; do sleep 0.05; done\n", seen.display(), go.display());
    fs::write(&hook, text).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let run = begun.repo.order(&begun.command).spawn();
    begun.repo.until_file(&seen);
    run.signal(Signal::KILL);
    run.wait().killed();
    let next = begun.go_on(GoOn::Rerun).spawn();
    begun.repo.until_event("reread");
    fs::write(&go, "").unwrap();
    next.wait().success();
    begun.repo.must_equal(&(SHORT.model)(&begun.bead));
}

#[test]
fn a_merge_is_published_once_whenever_sp_dies() {
    let begun = SHORT.begin();
    begun.repo.sp(&begun.command).success();
    begun.repo.git(["merge", "-q", "--no-ff", "-m", "merged", &format!("feature/{}-executor", begun.bead)]);
    let at = SHORT.log.len() as u64;
    // adopted, publish_requested | reread | published
    begun.go_on(GoOn::Resume).killed_after(at + 2).run().killed();
    let published = begun.repo.events().len() as u64 + 3;
    begun.go_on(GoOn::Resume).killed_before(published).run().killed();
    begun.go_on(GoOn::Resume).limit(Duration::from_secs(120)).run().success();
    begun.repo.must_equal(&(SHORT.model)(&begun.bead).published());
}

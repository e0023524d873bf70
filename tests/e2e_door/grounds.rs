//! Places, programs and files that chains can't stand on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;

use crate::begin;
use crate::door::{self, Door, real, stand_in};
use crate::support::*;

#[test]
fn a_place_where_no_chain_can_run_is_refused() {
    let (repo, bead, _) = begin();
    let run = ["chain", "run", PAIR, "--bead", &bead];
    let at = |name: &str| repo.base().join(name);

    fs::create_dir(at("plain")).unwrap();
    let plain = Door::at(&repo, &at("plain"));
    plain.refuses(&run, 6, "not_a_repository", &["/plain", "git init"]);
    for args in [&["chain", "show", "x"][..], &["ps"], &["feed", "x"], &["chain", "resume", "x"]] {
        plain.refuses(args, 6, "not_a_repository", &["/plain"]);
    }
    Door::of(&repo).refuses(&["-C", "/no/such/place", "ps"], 2, "no_directory", &["/no/such/place"]);

    repo.git(["clone", "-q", "--bare", ".", at("bare.git").to_str().unwrap()]);
    Door::at(&repo, &at("bare.git")).refuses(&run, 6, "bare_repository", &["bare.git"]);

    repo.git(["init", "-q", at("fresh").to_str().unwrap()]);
    Door::at(&repo, &at("fresh")).refuses(&run, 6, "no_commit", &["/fresh", "first commit"]);

    repo.git(["clone", "-q", ".", at("clone").to_str().unwrap()]);
    Door::at(&repo, &at("clone")).refuses(&run, 6, "no_beads_workspace", &["/clone", "bd init"]);

    fs::remove_file(repo.root().join(".beads/metadata.json")).unwrap();
    Door::of(&repo).refuses(&run, 6, "beads_workspace_damaged", &["metadata.json", "backup"]);
}

/// bd looks at the plan before the chain is recorded (R3-0481).
#[test]
fn a_plan_that_bd_refuses_is_told_in_its_words_before_anything_is_made() {
    let (repo, bead, script) = begin();
    let said = r#"{"schema_version":1,"data":{"error":"invalid graph plan: not such steps, says bd"}}"#;
    let picky = format!("case \"$*\" in *--dry-run*) echo '{said}'; exit 1;; *) exec \"$real\" \"$@\";; esac\n");
    let picky = stand_in(&repo, "picky", &real("SP_BD", "bd"), &picky);
    let door = Door::of(&repo).with("SP_BD", &picky);
    for more in [&[][..], &["--dry-run"]] {
        let run = ["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script];
        door.refuses(&[&run[..], more].concat(), 3, "bd_refused", &["invalid graph plan: not such steps, says bd"]);
    }
}

#[test]
fn a_bd_that_is_none_of_ours_is_refused() {
    let (repo, bead, script) = begin();
    let run = ["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script];
    let with = |bd: &Path| Door::of(&repo).with("SP_BD", bd);
    let bd = real("SP_BD", "bd");

    with(Path::new("/no/such/bd")).refuses(&run, 6, "bd_missing", &["/no/such/bd", "install bd 1.3"]);
    let paper = repo.base().join("paper");
    fs::write(&paper, "not a program").unwrap();
    with(&paper).refuses(&run, 6, "bd_missing", &["paper", "executable"]);
    fs::set_permissions(&paper, fs::Permissions::from_mode(0o755)).unwrap();
    with(&paper).refuses(&run, 10, "bd_io", &["bd version"]);

    let version = r#"{"schema_version":1,"data":{"branch":"main","build":"dev","version":"1.2.0"}}"#;
    let old =
        stand_in(&repo, "old", &bd, &format!("case $1 in version) echo '{version}';; *) exec $real \"$@\";; esac\n"));
    with(&old).refuses(&run, 6, "bd_unsupported", &["1.2.0", "1.3.x", "SP_BD"]);
    let chatty = stand_in(&repo, "chatty", &bd, "echo hello\n");
    with(&chatty).refuses(&run, 10, "bd_garbled", &["bd version", "sp doctor"]);
    // A slip of one's own is told before any bd is asked.
    with(&chatty).refuses(&["chain", "run", "no-such", "--bead", &bead], 4, "formula_not_found", &["no-such"]);
    let silent = stand_in(&repo, "silent", &bd, "exit 0\n");
    with(&silent).refuses(&run, 10, "bd_garbled", &["bd version"]);
    let sick = stand_in(&repo, "sick", &bd, "echo 'Error: failed to open database: disk I/O error' >&2; exit 1\n");
    with(&sick).refuses(&run, 10, "bd_failed", &["disk I/O error"]);
    let half = stand_in(&repo, "half", &bd, "case $1 in show) kill -9 $$;; *) exec $real \"$@\";; esac\n");
    with(&half).refuses(&run, 10, "bd_failed", &["bd show", "signal"]);
}

#[test]
fn a_bd_that_hangs_is_given_up_and_leaves_no_process() {
    let (repo, bead, script) = begin();
    let bd = real("SP_BD", "bd");
    let hangs = stand_in(&repo, "hangs", &bd, "case $1 in show) sleep 3600;; *) exec $real \"$@\";; esac\n");
    let before = door::look(&repo, repo.root());
    let run = ["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script];
    Door::of(&repo).with("SP_BD", &hangs).tells_as_json(&run, 10, "bd_timed_out", &["bd show", "60 s"]);
    before.assert_untouched(&repo, repo.root());
    let left = repo.run("sh", ["-c", "grep -al 'hangs' /proc/[0-9]*/cmdline | grep -v /$$/ || true"]);
    assert!(!left.lines().any(|file| fs::read(file).is_ok_and(|line| line.ends_with(b"hangs\0show\0"))), "{left}");
}

#[test]
fn a_pi_that_can_t_be_driven_is_refused() {
    let (repo, bead, script) = begin();
    let run = ["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script];
    let with = |pi: &Path| Door::of(&repo).with("SP_PI", pi);
    let pi = real("SP_PI", "pi");

    with(Path::new("/no/such/pi")).refuses(&run, 6, "pi_missing", &["/no/such/pi", "npm install"]);
    with(&stand_in(&repo, "old", &pi, "echo 1.5.9\n")).refuses(&run, 6, "pi_unsupported", &["1.5.9", ">=1.6.0, <2"]);
    with(&stand_in(&repo, "new", &pi, "echo 2.0.0\n")).refuses(&run, 6, "pi_unsupported", &["2.0.0"]);
    with(&stand_in(&repo, "mute", &pi, "exit 0\n")).refuses(&run, 6, "pi_unanswered", &["--version", "node 22"]);
    with(&stand_in(&repo, "other", &pi, "echo 3.14159\n")).refuses(&run, 6, "pi_unanswered", &["3.14159"]);
}

#[test]
fn files_of_ours_that_can_t_be_written_are_told_and_nothing_is_poured() {
    let (repo, bead, script) = begin();
    let run = ["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script];
    // sp's own paths are excluded before its first file is written.
    fs::write(
        repo.root().join(".git/info/exclude"),
        ".specialists\n.specialists/\n.worktrees/\n*.gate.lock*\n.beads/\n",
    )
    .unwrap();
    fs::write(repo.root().join(".specialists"), "a file").unwrap();
    Door::of(&repo).refuses(&run, 11, "chain_file", &[".specialists"]);
    fs::remove_file(repo.root().join(".specialists")).unwrap();
    fs::create_dir_all(repo.root().join(".specialists")).unwrap();
    for lock in ["bd.lock", "bd.lock.next"] {
        fs::write(repo.root().join(".specialists").join(lock), "").unwrap();
    }
    fs::write(repo.root().join(".specialists/db"), "a file").unwrap();
    Door::of(&repo).refuses(&run, 11, "job_file_failed", &[".specialists/db"]);
}

/// The words of spec 000 §7.
const UNWRITTEN: &str = "[session] Failed to write worktree boundary extension: ";

#[test]
fn without_a_usable_temporary_directory_a_chain_runs_and_its_sessions_stay_confined() {
    for place in ["/proc", "/no/such/directory"] {
        let (repo, bead, _) = begin();
        let script = repo
            .rehearse()
            .round("executor", [writes("../../../outside.txt", "escaped"), fixes(), says(done())])
            .round("reviewer", [says(pass())])
            .write();
        let run = ["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script];
        let run = repo.order(run).env("TMPDIR", place).run();
        run.success();
        assert!(run.stderr.contains(UNWRITTEN) && run.stderr.contains("the job's directory"), "{place}: {run}");
        assert!(!repo.root().join("outside.txt").exists(), "{place}: it was written from within the worktree");
        let session = fs::read_to_string(repo.job_dir(&repo.job("executor", 1)).join("session.jsonl")).unwrap();
        assert!(session.contains("\"isError\":true"), "{place}: the attempt is no error: {session}");
        repo.must_equal(&Expected::pair(&bead).ready());
    }
}

#[test]
fn a_writer_whose_boundary_can_be_written_nowhere_is_refused() {
    let (repo, bead, _) = begin();
    let script = repo
        .rehearse()
        .round("executor", [bash("touch \"$TMPDIR/asleep\"; sleep 1000"), fixes(), says(done())])
        .round("executor", [fixes(), says(done())])
        .round("reviewer", [says(pass())])
        .write();
    let begun = repo.order(["chain", "run", PAIR, "--bead", &bead, "--rehearse", &script]).spawn();
    repo.until_file(&repo.tmp().join("asleep"));
    begun.signal(Signal::TERM);
    begun.wait().code(130);
    fs::remove_file(repo.tmp().join("asleep")).unwrap();

    // A directory in its place can't be replaced by a file, not even by root.
    let job = repo.job_dir(&repo.job("executor", 1));
    for extension in fs::read_dir(repo.tmp().join("specialists-pi-extensions")).unwrap() {
        fs::create_dir_all(job.join(extension.unwrap().file_name()).join("taken")).unwrap();
    }
    let run = repo.order(["chain", "resume", &bead]).env("TMPDIR", "/proc").run();
    run.code(7);
    assert!(run.stderr.contains("executor (no_boundary)"), "{run}");
    assert!(run.stderr.contains(UNWRITTEN) && run.stderr.contains("no session is started"), "{run}");
    repo.sp(["chain", "resume", &bead, "--note", "there is a temporary directory again"]).success();
}

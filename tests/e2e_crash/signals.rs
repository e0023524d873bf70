//! Asked to stop: by Ctrl-C, by TERM, by a terminal that goes away, by another process.

use std::fs;

use rustix::process::Signal;

use crate::outside::{awake, caught, held_bd};
use crate::story::{Begun, GoOn, SHORT};
use crate::support::*;

/// What a chain leaves behind that was stopped while its executor worked.
fn stopped(bead: &str) -> Expected {
    Expected::pair(bead).interrupted("executor", 0).stopped().with_changes(&["M src/pager.sh"])
}

fn asleep(begun: &Begun) -> Running<'_> {
    let run = begun.repo.order(&begun.command).spawn();
    begun.repo.until_file(&begun.repo.tmp().join("asleep"));
    run
}

fn stops_at(which: Signal) {
    let begun = caught("touch \"$TMPDIR/asleep\"; sleep 1000");
    let run = asleep(&begun);
    run.signal(which);
    let end = run.wait();
    end.code(130);
    awake(&begun.repo);
    let hint = format!("sp chain resume {}", begun.repo.chain());
    assert!(end.stderr.contains(&hint), "it does not say how to go on: {end}");
    begun.repo.must_equal(&stopped(&begun.bead));
    begun.go_on(GoOn::Resume).run().success();
    begun.repo.must_equal(&Expected::pair(&begun.bead).ready());
}

#[test]
fn ctrl_c_stops_a_chain_that_goes_on_later() {
    stops_at(Signal::INT);
}

#[test]
fn sigterm_stops_a_chain_that_goes_on_later() {
    stops_at(Signal::TERM);
}

#[test]
fn a_terminal_that_goes_away_stops_its_chain() {
    let begun = caught("touch \"$TMPDIR/asleep\"; sleep 1000");
    let repo = &begun.repo;
    repo.take_slot();
    let line = format!("exec '{}' {}", env!("CARGO_BIN_EXE_sp"), begun.command.join(" "));
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("tmux").to_str().unwrap().to_owned();
    let tmux = |args: &[&str]| repo.run("tmux", [&["-S", &socket, "-f", "/dev/null"], args].concat());
    tmux(&["new-session", "-d", "-x", "120", "-y", "40", &line]);
    repo.until_file(&repo.tmp().join("asleep"));
    let sp: i32 = tmux(&["display-message", "-p", "#{pane_pid}"]).trim().parse().unwrap();
    tmux(&["kill-server"]);
    repo.until("sp has ended", || !is_alive(sp));
    let why = repo.events().last().map(|event| event["why"].clone());
    assert_eq!(why, Some("SIGHUP".into()));
    awake(repo);
    repo.must_equal(&stopped(&begun.bead));
    begun.go_on(GoOn::Rerun).run().success();
    repo.must_equal(&Expected::pair(&begun.bead).ready());
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let begun = SHORT.begin();
    let (program, hold) = held_bd(&begun.repo, "--claim");
    let run = begun.repo.order(&begun.command).env("SP_BD", &program).spawn();
    begun.repo.until_file(&hold.with_extension("seen"));
    run.signal(Signal::INT);
    run.until_it_says("stopping (Ctrl-C)");
    // bd does not answer, so nothing else could end it. Signals close together are one, so we insist.
    begun.repo.until("it has ended", || {
        run.signal(Signal::INT);
        !is_alive(run.pid())
    });
    let end = run.wait();
    end.code(130);
    assert!(end.stderr.contains(&format!("sp chain resume {}", begun.repo.chain())), "{end}");
    fs::remove_file(&hold).unwrap();
    begun.go_on(GoOn::Rerun).run().success();
    begun.repo.must_equal(&(SHORT.model)(&begun.bead));
}

#[test]
fn another_process_can_stop_a_chain() {
    let begun = caught("touch \"$TMPDIR/asleep\"; sleep 1000");
    let run = asleep(&begun);
    let stop = begun.repo.sp(["chain", "stop", &begun.bead]);
    assert_eq!(stop.success().lines().next(), Some("[CHAIN] stopped, it is stopped"));
    run.wait().code(130);
    awake(&begun.repo);
    begun.repo.must_equal(&stopped(&begun.bead));
    begun.go_on(GoOn::Rerun).run().success();
    begun.repo.must_equal(&Expected::pair(&begun.bead).ready());
}

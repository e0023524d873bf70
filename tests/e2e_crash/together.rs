//! More than one `sp` on one chain.

use std::fs;

use rustix::process::Signal;

use crate::outside::caught;
use crate::story::{GoOn, SHORT};
use crate::support::*;

/// The executor works until the file `go` is there.
const WAITS: &str = "touch \"$TMPDIR/../waits\"; while [ ! -e \"$TMPDIR/../go\" ]; do sleep 0.05; done";

#[test]
fn two_runs_on_one_bead_are_one_chain() {
    let begun = SHORT.begin();
    let runs = [begun.repo.order(&begun.command).spawn(), begun.repo.order(&begun.command).spawn()];
    let ends = runs.map(Running::wait);
    for end in &ends {
        end.success();
    }
    let views = ends.iter().filter(|end| end.stderr.contains("this only shows it")).count();
    assert_eq!(views, 1, "one of the two shows the other:\n{}\n{}", ends[0], ends[1]);
    begun.repo.must_equal(&(SHORT.model)(&begun.bead));
}

#[test]
fn ctrl_c_on_a_view_leaves_the_run_alone() {
    let begun = caught(WAITS);
    let run = begun.repo.order(&begun.command).spawn();
    begun.repo.until_file(&begun.repo.base().join("waits"));
    let view = begun.go_on(GoOn::Rerun).spawn();
    view.until_it_says("this only shows it");
    view.signal(Signal::INT);
    view.wait().code(130);
    assert!(is_alive(run.pid()), "the view took the run with it");
    fs::write(begun.repo.base().join("go"), "").unwrap();
    run.wait().success();
    begun.repo.must_equal(&Expected::pair(&begun.bead).ready());
}

#[test]
fn a_run_in_the_background_says_its_chain_and_survives_its_parent() {
    let begun = caught(WAITS);
    let mut command = begun.command.clone();
    command.push("--background".to_owned());
    let run = begun.repo.order(command).run();
    run.success();
    assert_eq!(run.stdout.lines().next(), Some(begun.repo.chain().as_str()), "{run}");
    begun.repo.until_file(&begun.repo.base().join("waits"));
    fs::write(begun.repo.base().join("go"), "").unwrap();
    // The view comes back with the report of the run.
    begun.go_on(GoOn::Rerun).run().success();
    begun.repo.must_equal(&Expected::pair(&begun.bead).ready().with_files(&["logs"]));
}

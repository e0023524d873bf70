//! What becomes of the output when nobody takes it.

use std::fs::OpenOptions;
use std::process::Stdio;

use crate::begin;
use crate::support::*;

/// Runs `sp` with this as its stdout; returns exit status and stderr.
fn into(repo: &Repo, stdout: impl Into<Stdio>, args: &str) -> (Option<i32>, String) {
    let mut command = repo.program(env!("CARGO_BIN_EXE_sp"));
    let child = command.args(args.split(' ')).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn();
    let output = child.unwrap().wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_reader_that_has_gone_is_no_failure_and_a_full_disk_is_one() {
    let (repo, bead, _) = begin();
    for (args, expected) in [
        ("--help", 0),
        ("formula list", 0),
        ("formula list --json", 0),
        ("formula show code-standard", 0),
        ("chain graph code-standard --format dot", 0),
        ("doctor", 0),
        ("ps --all", 0),
        ("chain list --all --json", 0),
        (&format!("chain run code-standard --bead {bead} --dry-run"), 0),
        (&format!("chain run code-standard --bead {bead} --dry-run --json"), 0),
        ("result 0aaaaaaa --json", 4),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (status, said) = into(&repo, writer, args);
        assert_eq!(status, Some(expected), "sp {args}: {said}");
        assert!(!said.contains("error") && !said.contains("panicked"), "sp {args}: {said}");
    }
    for args in ["formula list", "formula list --json", "doctor"] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (status, said) = into(&repo, full, args);
        assert_eq!(status, Some(11), "sp {args}: {said}");
        assert!(args.ends_with("--json") || said.contains("write to stdout"), "sp {args}: {said}");
    }
}

//! The runner with a stand-in for bd (`tests/fixtures/bd/replay`) that runs a shell fragment a call.

use std::path::Path;

use tempfile::TempDir;

use super::*;

/// A folder with a workspace, in which `replay` stands for bd.
fn stage(fragments: &[(&str, &str)]) -> (TempDir, Runner) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (name, text) in fragments {
        fs::write(root.join(name), text).unwrap();
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bd/replay");
    let mut runner = Runner::new(program, root.to_owned(), root.join(".beads"), root.join(".specialists/bd.lock"));
    runner.variables.push(("REPLAY".into(), root.into()));
    (folder, runner)
}

#[test]
fn no_value_can_be_taken_for_an_option() {
    let call = Call::write("worktree create").with("--branch", "-f").flag("--claim").on("--force");
    assert_eq!(call.arguments(), ["worktree", "create", "--json", "--branch=-f", "--claim", "--", "--force"]);
    assert_eq!(Call::read("context").arguments(), ["context", "--json"]);
}

#[tokio::test]
async fn bd_runs_in_the_repository_with_our_environment_and_closed_input() {
    let fragment = r#"printf '%s|%s|%s|' "$PWD" "$BEADS_DIR" "$BEADS_ACTOR$BD_JSON_ENVELOPE${BD_BACKEND-none}"; cat; echo oops >&2; exit 3"#;
    let (folder, runner) = stage(&[("show.1", fragment)]);
    let answer = runner.run(&Call::read("show")).await.unwrap();
    let root = folder.path().display();
    assert_eq!(String::from_utf8(answer.stdout).unwrap(), format!("{root}|{root}/.beads|sp1none|"));
    assert_eq!((answer.code, answer.stderr.as_slice()), (Some(3), b"oops\n".as_slice()));
}

#[tokio::test]
async fn a_read_leaves_no_trace_and_a_write_makes_the_lock() {
    let (folder, runner) = stage(&[("show.1", ""), ("note.1", ""), ("show.2", "")]);
    runner.run(&Call::read("show")).await.unwrap();
    assert!(!folder.path().join(".specialists").exists());
    runner.run(&Call::write("note")).await.unwrap();
    assert!(folder.path().join(".specialists/bd.lock").is_file());
    runner.run(&Call::read("show")).await.unwrap();
}

#[tokio::test]
async fn a_missing_program_and_a_missing_folder_are_told_apart() {
    let (folder, mut runner) = stage(&[]);
    runner.program = folder.path().join("no-bd");
    assert!(matches!(runner.run(&Call::read("show")).await, Err(TrackerError::Missing { .. })));
    runner.repository = folder.path().join("no-folder");
    assert!(matches!(runner.run(&Call::read("show")).await, Err(TrackerError::Io { .. })));
}

#[tokio::test]
async fn a_bd_past_its_deadline_is_gone_with_all_it_started() {
    let (folder, runner) = stage(&[("show.1", "sleep 1000 & echo $! >\"$REPLAY/started\"; wait")]);
    let started = folder.path().join("started");
    assert!(Command::new("mkfifo").arg(&started).status().unwrap().success());

    let mut command = async_process::Command::from(runner.command(&Call::read("show")));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let group = Group::of(child.id());
    // The deadline comes as soon as the grandchild runs.
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || tell.send(fs::read_to_string(started).unwrap()));
    let mut grandchild = String::new();
    let deadline = async { grandchild = told.await.unwrap() };
    assert!(settle(child.output(), deadline, group).await.is_none());

    let grandchild = grandchild.trim().parse().unwrap();
    let is_gone = || {
        let state = procfs::process::Process::new(grandchild).and_then(|process| process.stat());
        state.map_or(true, |stat| matches!(stat.state, 'Z' | 'X'))
    };
    // A dying process closes its streams, which is what we wait for, a moment before it is dead.
    let looks = std::iter::repeat_with(is_gone).inspect(|_| std::thread::yield_now()).take(100_000);
    assert!(looks.into_iter().any(|gone| gone), "the grandchild still runs");
}

#[tokio::test]
async fn a_call_over_its_limit_says_so() {
    let (_folder, runner) = stage(&[("show.1", "exec sleep 1000")]);
    let call = Call { limit: Duration::ZERO, ..Call::read("show") };
    assert!(matches!(runner.run(&call).await, Err(TrackerError::TimedOut { verb: "show", seconds: 0 })));
}

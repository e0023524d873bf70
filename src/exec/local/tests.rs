use std::collections::BTreeMap;
use std::path::PathBuf;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use super::*;
use crate::exec::is_alive;

fn sh(script: &str) -> Program {
    Program {
        path: "sh".into(),
        args: vec!["-c".into(), script.into()],
        cwd: std::env::temp_dir(),
        env: BTreeMap::new(),
        unset: Vec::new(),
    }
}

/// Reads one line with a pid and adds the start time, while the process is known to live.
async fn read_identity(stdout: &mut (impl AsyncBufReadExt + Unpin)) -> (u32, u64) {
    let mut line = String::new();
    stdout.read_line(&mut line).await.unwrap();
    let pid = line.trim().parse().unwrap();
    (pid, started(pid).unwrap())
}

/// Yields until the process is dead. KILL is not immediate, and the test runner's own deadline bounds the wait.
async fn dead((pid, started): (u32, u64)) {
    while is_alive(pid, started) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn wait_gives_the_same_report_twice_and_to_two_waiters() {
    let spawned = LocalExec.spawn(sh("exit 7")).await.unwrap();
    let (first, second) = tokio::join!(spawned.child.wait(), spawned.child.wait());
    let third = spawned.child.wait().await;
    let expected = ExitReport { code: Some(7), signal: None };
    for report in [first, second, third] {
        assert_eq!(report.unwrap(), expected);
    }
}

#[tokio::test]
async fn streams_are_piped_and_dropping_stdin_is_end_of_file() {
    let mut spawned = LocalExec.spawn(sh("cat; echo over >&2")).await.unwrap();
    spawned.stdin.write_all("hällo\n".as_bytes()).await.unwrap();
    drop(spawned.stdin);
    let (mut out, mut err) = (String::new(), String::new());
    spawned.stdout.read_to_string(&mut out).await.unwrap();
    spawned.stderr.read_to_string(&mut err).await.unwrap();
    assert_eq!((out.as_str(), err.as_str()), ("hällo\n", "over\n"));
    assert!(spawned.child.wait().await.unwrap().is_success());
}

#[tokio::test]
async fn gastown_736_killing_the_group_leaves_no_grandchild() {
    let spawned = LocalExec.spawn(sh("sleep 1000 & echo $!; wait")).await.unwrap();
    let mut stdout = BufReader::new(spawned.stdout);
    let grandchild = read_identity(&mut stdout).await;
    assert!(is_alive(grandchild.0, grandchild.1));
    spawned.child.kill();
    assert_eq!(spawned.child.wait().await.unwrap(), ExitReport { code: None, signal: Some(9) });
    dead(grandchild).await;
    spawned.child.kill();
}

#[tokio::test]
async fn the_group_can_be_killed_after_its_leader_has_ended() {
    let spawned = LocalExec.spawn(sh("sleep 1000 & echo $!")).await.unwrap();
    let mut stdout = BufReader::new(spawned.stdout);
    let grandchild = read_identity(&mut stdout).await;
    assert!(spawned.child.wait().await.unwrap().is_success());
    assert!(is_alive(grandchild.0, grandchild.1));
    spawned.child.kill();
    dead(grandchild).await;
}

#[tokio::test]
async fn terminate_lets_the_program_end_by_itself() {
    let script = "trap 'echo asked; exit 3' TERM; echo $$; while :; do sleep 1000 & wait; done";
    let spawned = LocalExec.spawn(sh(script)).await.unwrap();
    let mut stdout = BufReader::new(spawned.stdout);
    read_identity(&mut stdout).await;
    spawned.child.terminate();
    assert_eq!(spawned.child.wait().await.unwrap(), ExitReport { code: Some(3), signal: None });
    // Not to the end: a `sleep` that was being forked may have missed the signal, and holds the pipe until the drop.
    let mut line = String::new();
    stdout.read_line(&mut line).await.unwrap();
    assert_eq!(line, "asked\n");
}

#[tokio::test]
async fn a_dropped_handle_takes_the_whole_group_with_it() {
    let spawned = LocalExec.spawn(sh("trap '' TERM; sleep 1000 & echo $!; echo $$; wait")).await.unwrap();
    let mut stdout = BufReader::new(spawned.stdout);
    let (grandchild, leader) = (read_identity(&mut stdout).await, read_identity(&mut stdout).await);
    assert_eq!(spawned.child.identity(), Some(leader));
    drop(spawned.child);
    dead(grandchild).await;
    dead(leader).await;
    // Reaped too, by async-process: the number goes back.
    while std::path::Path::new(&format!("/proc/{}", leader.0)).exists() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_environment_is_inherited_less_what_is_unset_plus_what_is_set() {
    let mut program = sh("echo \"${HOME-none} ${PATH+path} $MARK\"");
    program.unset = vec!["HOME".into(), "MARK".into()];
    program.env.insert("MARK".into(), "set".into());
    let mut spawned = LocalExec.spawn(program).await.unwrap();
    let mut out = String::new();
    spawned.stdout.read_to_string(&mut out).await.unwrap();
    assert_eq!(out, "none path set\n");
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let mut absent = sh("");
    absent.path = "no-such-program-of-sp".into();
    let mut nowhere = sh("");
    nowhere.cwd = PathBuf::from("/no/such/directory");
    let mut not_executable = sh("");
    not_executable.path = "/etc/passwd".into();
    for (program, expected) in [
        (absent, "start `no-such-program-of-sp`: not found"),
        (nowhere, "start `sh` in /no/such/directory: no such directory"),
        (not_executable, "start `/etc/passwd`"),
    ] {
        let error = LocalExec.spawn(program).await.err().unwrap();
        assert_eq!(error.to_string(), expected);
    }
}

//! The real pi, started as sp starts it: it takes the arguments, loads the boundary and carries our marks.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use specialists::ports::{Agent, Launch, ModelSource, Tool};
use specialists::{LocalExec, PiAgent};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

#[tokio::test]
async fn a_real_pi_starts_confined_marked_and_with_the_rehearsal_model() {
    starts(vec![Tool::Read, Tool::Bash, Tool::Edit, Tool::Write]).await;
}

#[tokio::test]
async fn a_real_pi_without_tools_that_write_takes_the_boundary_too() {
    starts(vec![Tool::Read]).await;
}

/// Starts a pi with these tools and looks at it.
async fn starts(tools: Vec<Tool>) {
    let pi = std::env::var_os("SP_PI").expect("this test needs pi 1.6: name it in SP_PI, such as .tools/bin/pi");
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| fs::canonicalize(root.path()).unwrap().join(name);
    for directory in ["work", "job"] {
        fs::create_dir(at(directory)).unwrap();
    }
    fs::write(at("job/system.md"), "You rehearse.").unwrap();
    let launch = Launch {
        job: "launch01".into(),
        root: at("work"),
        cwd: at("work"),
        session_file: at("job/session.jsonl"),
        system_prompt_file: at("job/system.md"),
        tools,
        boundary: Some(at("work")),
        job_dir: at("job"),
        model: ModelSource::Rehearsal {
            // Nobody listens there, and nobody is asked: only the start is tried.
            base_url: "http://127.0.0.1:9/executor/1/v1".to_owned(),
            model: "rehearsal/executor".to_owned(),
            agent_dir: at("job/agent"),
        },
        thinking: Some("low".to_owned()),
    };
    let agent = PiAgent { exec: Arc::new(LocalExec), program: PathBuf::from(pi) };
    let mut session = agent.launch(&launch).await.unwrap();
    session.stdin.write_all(b"{\"id\":1,\"type\":\"get_state\"}\n").await.unwrap();
    let mut stdout = BufReader::new(session.stdout);
    let mut line = String::new();
    stdout.read_line(&mut line).await.unwrap();
    if line.is_empty() {
        session.stderr.read_to_string(&mut line).await.unwrap();
        panic!("pi ended: {line}");
    }
    let state: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(state["id"], 1);
    assert_eq!(state["data"]["model"]["provider"], "rehearsal");
    assert_eq!(state["data"]["model"]["id"], "executor");
    assert_eq!(state["data"]["sessionFile"], at("job/session.jsonl").to_str().unwrap());

    let (pid, _) = session.child.identity().unwrap();
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let has = |entry: String| environment.split(|byte| *byte == 0).any(|found| found == entry.as_bytes());
    assert!(has("SP_JOB_ID=launch01".to_owned()), "the mark is gone once pi has set its title");
    assert!(has(format!("SP_ROOT={}", at("work").display())));
    for name in ["WORKTREE_BOUNDARY", "SPECIALISTS_WORKTREE_BOUNDARY"] {
        assert!(has(format!("{name}={}", at("work").display())), "{name}");
    }

    drop(session.stdin);
    assert!(session.child.wait().await.unwrap().is_success());
    let mut complaints = String::new();
    session.stderr.read_to_string(&mut complaints).await.unwrap();
    assert_eq!(complaints, "", "the extension is taken without a word");
}

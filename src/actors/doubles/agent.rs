//! A stub of pi: in-process pipes, pi's protocol from a script, and a record of what it was told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::lines::{delta, ending, state};
use super::script::{Act, Script};
use crate::ports::{Agent, AgentError, Child, ExecError, ExitReport, Launch, Spawned, Tool};

/// Size of a pipe.
const PIPE: usize = 64 * 1024;

/// Whether a session is a writer's, by its tools.
pub(in crate::actors) fn writes(launch: &Launch) -> bool {
    launch.tools.contains(&Tool::Write)
}

type Choose = Box<dyn Fn(&Launch, usize) -> Result<Script, AgentError> + Send + Sync>;

/// The agent port. Each launch plays the script that is chosen for it.
pub(in crate::actors) struct StubAgent {
    choose: Choose,
    processes: Mutex<Vec<Arc<Process>>>,
}

/// One process of the stub, and all it was told.
pub(in crate::actors) struct Process {
    pub(in crate::actors) launch: Launch,
    begun: Instant,
    /// (when, what): `get_state`, `prompt` …, `EOF`, `TERM`, `KILL`, `exit …`.
    log: Mutex<Vec<(Duration, String)>>,
    prompts: Mutex<Vec<String>>,
    /// Lines of floods that were written so far.
    pub(in crate::actors) flooded: AtomicUsize,
    end: watch::Sender<Option<ExitReport>>,
    cancelled: Notify,
    ignores_term: bool,
    panics_on_term: bool,
}

impl StubAgent {
    /// Plays the scripts one launch after the other, the last one again and again.
    pub(in crate::actors) fn plays<const N: usize>(scripts: [Script; N]) -> Arc<Self> {
        Self::chooses(move |_, launch| Ok(scripts[launch.min(N - 1)].clone()))
    }

    /// Plays what is chosen by launch and its number, from 0.
    pub(in crate::actors) fn chooses(
        choose: impl Fn(&Launch, usize) -> Result<Script, AgentError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { choose: Box::new(choose), processes: Mutex::default() })
    }

    /// Returns the processes so far.
    pub(in crate::actors) fn processes(&self) -> Vec<Arc<Process>> {
        self.processes.lock().unwrap().clone()
    }

    /// Returns the only process.
    pub(in crate::actors) fn only(&self) -> Arc<Process> {
        let processes = self.processes();
        assert_eq!(processes.len(), 1, "one process is launched");
        Arc::clone(&processes[0])
    }
}

impl Process {
    fn note(&self, what: impl Into<String>) {
        self.log.lock().unwrap().push((self.begun.elapsed(), what.into()));
    }

    /// Returns what it was told, in order.
    pub(in crate::actors) fn told(&self) -> Vec<String> {
        self.log.lock().unwrap().iter().map(|(_, what)| what.clone()).collect()
    }

    /// Returns when it was first told something, from its launch on.
    pub(in crate::actors) fn when(&self, what: &str) -> Duration {
        let log = self.log.lock().unwrap();
        log.iter().find(|(_, told)| told == what).map(|(at, _)| *at).unwrap_or_else(|| panic!("no {what} in {log:?}"))
    }

    /// Returns how often it was told something.
    pub(in crate::actors) fn count(&self, what: &str) -> usize {
        self.told().iter().filter(|told| *told == what).count()
    }

    /// Returns the texts of its prompts.
    pub(in crate::actors) fn prompts(&self) -> Vec<String> {
        self.prompts.lock().unwrap().clone()
    }

    /// Returns whether it still runs.
    pub(in crate::actors) fn is_alive(&self) -> bool {
        self.end.borrow().is_none()
    }

    fn exit(&self, report: ExitReport) {
        self.end.send_if_modified(|end| {
            let first = end.is_none();
            if first {
                self.note(format!("exit {}", report.code.or(report.signal).unwrap_or_default()));
                *end = Some(report);
            }
            first
        });
    }
}

#[async_trait]
impl Agent for StubAgent {
    async fn launch(&self, launch: &Launch) -> Result<Spawned, AgentError> {
        let number = self.processes().len();
        let script = (self.choose)(launch, number)?;
        let process = Arc::new(Process {
            launch: launch.clone(),
            begun: Instant::now(),
            log: Mutex::default(),
            prompts: Mutex::default(),
            flooded: AtomicUsize::new(0),
            end: watch::Sender::new(None),
            cancelled: Notify::new(),
            ignores_term: script.ignores_term,
            panics_on_term: script.panics_on_term,
        });
        self.processes.lock().unwrap().push(Arc::clone(&process));
        let (stdin, commands) = duplex(PIPE);
        let (out, stdout) = duplex(PIPE);
        let (mut complaints, stderr) = duplex(PIPE);
        complaints.write_all(script.complaint.as_bytes()).await.unwrap();
        drop(complaints);
        let pi =
            Pi { process: Arc::clone(&process), out: Arc::new(tokio::sync::Mutex::new(out)), said: Arc::default() };
        tokio::spawn(async move {
            let mut end = pi.process.end.subscribe();
            tokio::select! {
                _ = end.wait_for(Option::is_some) => {}
                () = pi.run(script, commands) => {}
            }
        });
        let child = StubChild(process);
        Ok(Spawned {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            child: Box::new(child),
        })
    }
}

struct StubChild(Arc<Process>);

#[async_trait]
impl Child for StubChild {
    fn identity(&self) -> Option<(u32, u64)> {
        Some((4711, 77))
    }

    async fn wait(&self) -> Result<ExitReport, ExecError> {
        let mut end = self.0.end.subscribe();
        let report = end.wait_for(Option::is_some).await.expect("the process is held by this child");
        Ok(report.expect("waited for"))
    }

    fn terminate(&self) {
        if !self.0.is_alive() {
            return;
        }
        self.0.note("TERM");
        assert!(!self.0.panics_on_term, "a port that panics");
        if !self.0.ignores_term {
            self.0.exit(ExitReport { code: Some(143), signal: None });
        }
    }

    fn kill(&self) {
        if self.0.is_alive() {
            self.0.note("KILL");
            self.0.exit(ExitReport { code: None, signal: Some(9) });
        }
    }
}

/// The running stub.
#[derive(Clone)]
struct Pi {
    process: Arc<Process>,
    out: Arc<tokio::sync::Mutex<DuplexStream>>,
    said: Arc<Mutex<Option<String>>>,
}

impl Pi {
    async fn run(&self, mut script: Script, commands: DuplexStream) {
        self.play(std::mem::take(&mut script.first)).await;
        if script.deaf {
            return std::future::pending().await;
        }
        let mut commands = BufReader::new(commands).lines();
        let (mut turn, mut held): (Option<JoinHandle<()>>, Option<String>) = (None, None);
        while let Ok(Some(line)) = commands.next_line().await {
            let command: Value = serde_json::from_str(&line).expect("sp writes JSON objects");
            let kind = command["type"].as_str().expect("with a type").to_owned();
            self.process.note(kind.clone());
            let answer = self.answer(&script, &kind, &command);
            if script.silent.contains(&kind.as_str()) {
                continue;
            }
            match kind.as_str() {
                "prompt" if answer["success"] == true => {
                    self.process
                        .prompts
                        .lock()
                        .unwrap()
                        .push(command["message"].as_str().unwrap_or_default().to_owned());
                    self.line(&answer.to_string()).await;
                    let (pi, acts) = (self.clone(), script.turns.pop_front().unwrap_or_default());
                    turn = Some(tokio::spawn(pi.until_exit(acts)));
                }
                "abort" => {
                    if let Some(turn) = turn.take().filter(|turn| !turn.is_finished()) {
                        turn.abort();
                        drop(turn.await);
                        for line in ending("", "aborted", Some("Request was aborted")) {
                            self.line(&line).await;
                        }
                    }
                    self.line(&answer.to_string()).await;
                }
                "extension_ui_response" => self.process.cancelled.notify_one(),
                "get_state" if script.reversed && turn.is_some() => held = Some(answer.to_string()),
                _ => {
                    self.line(&answer.to_string()).await;
                    if let Some(held) = held.take() {
                        self.line(&held).await;
                    }
                }
            }
        }
        self.process.note("EOF");
        if script.ignores_eof {
            return std::future::pending().await;
        }
        self.process.exit(ExitReport { code: Some(0), signal: None });
    }

    fn answer(&self, script: &Script, kind: &str, command: &Value) -> Value {
        let mut answer = json!({"id": command["id"], "type": "response", "command": kind, "success": true});
        match kind {
            _ if script.refuses.is_some_and(|(refused, _)| refused == kind) => {
                answer["success"] = false.into();
                answer["error"] = script.refuses.map(|(_, text)| text).into();
            }
            "get_state" => answer["data"] = state(script.messages),
            "prompt" => answer["data"] = json!({"disposition": "started"}),
            "clear_queue" => answer["data"] = json!({"steering": [], "followUp": []}),
            "get_last_assistant_text" => {
                // Where there is no text pi leaves the key out.
                let said = self.said.lock().unwrap().clone().or(script.text.map(str::to_owned));
                answer["data"] = said.map_or_else(|| json!({}), |text| json!({"text": text}));
            }
            _ => {}
        }
        answer
    }

    /// Plays a turn; what is left of it when the process ends is never said, and its pipe closes.
    async fn until_exit(self, acts: Vec<Act>) {
        let mut end = self.process.end.subscribe();
        tokio::select! {
            _ = end.wait_for(Option::is_some) => {}
            () = self.play(acts) => {}
        }
    }

    async fn play(&self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Line(line) => self.line(&line).await,
                Act::Bytes(bytes) => self.bytes(&bytes).await,
                Act::Rest(time) => sleep(time).await,
                Act::Flood(lines) => {
                    let line = format!("{}\n", delta("eight by"));
                    for _ in 0..lines {
                        self.bytes(line.as_bytes()).await;
                        self.process.flooded.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Act::Answered => self.process.cancelled.notified().await,
                Act::Said(text) => *self.said.lock().unwrap() = Some(text),
                Act::Exit(code) => self.process.exit(ExitReport { code: Some(code), signal: None }),
            }
        }
    }

    async fn line(&self, line: &str) {
        self.bytes(format!("{line}\n").as_bytes()).await;
    }

    async fn bytes(&self, bytes: &[u8]) {
        // sp may have gone; the process learns by a signal or end of file.
        drop(self.out.lock().await.write_all(bytes).await);
    }
}

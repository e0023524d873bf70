//! An agent in this process: a task at the other end of two in-memory pipes that speaks pi 1.6's RPC.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::{Value, json};
use specialists::ports::{Agent, AgentError, Child, ExecError, ExitReport, Launch, Spawned};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::sync::watch;

use super::wire::{FloodTurn, Part, Script, response, state};

/// As much as a pipe of Linux holds.
const PIPE: usize = 64 * 1024;
/// Delta lines written at once.
const CHUNK: u64 = 250;

/// How much an executor says before its answer, on top of what every role says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flood {
    /// Text blocks, each in a turn of its own that ends with a tool call.
    pub(crate) blocks: u64,
    /// Deltas of one block, a multiple of 250.
    pub(crate) deltas: u64,
}

/// Starts sessions of a stub of pi.
#[derive(Debug, Clone, Default)]
pub(crate) struct StubAgent {
    /// What an executor says.
    pub(crate) flood: Flood,
    /// Whether writers really write a file, for a real repository.
    pub(crate) writes: bool,
    scripts: Arc<Mutex<HashMap<String, Arc<Script>>>>,
}

impl StubAgent {
    /// Makes an agent whose executors say this much.
    pub(crate) fn flooding(flood: Flood) -> Self {
        Self { flood, ..Self::default() }
    }

    /// Makes an agent whose writers write.
    pub(crate) fn writing() -> Self {
        Self { writes: true, ..Self::default() }
    }

    fn script(&self, role: &str) -> Arc<Script> {
        let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(scripts.entry(role.to_owned()).or_insert_with(|| Arc::new(Script::of(role))))
    }
}

struct StubChild {
    ended: watch::Receiver<bool>,
    task: tokio::task::AbortHandle,
}

#[async_trait]
impl Child for StubChild {
    fn identity(&self) -> Option<(u32, u64)> {
        None
    }

    async fn wait(&self) -> Result<ExitReport, ExecError> {
        // An error means that the task is gone, which is an end too.
        drop(self.ended.clone().wait_for(|ended| *ended).await);
        Ok(ExitReport { code: Some(0), signal: None })
    }

    fn terminate(&self) {
        self.task.abort();
    }

    fn kill(&self) {
        self.task.abort();
    }
}

#[async_trait]
impl Agent for StubAgent {
    async fn launch(&self, launch: &Launch) -> Result<Spawned, AgentError> {
        let (stdin, commands) = duplex(PIPE);
        let (events, stdout) = duplex(PIPE);
        let (end, ended) = watch::channel(false);
        let session = Session {
            events,
            agent: self.clone(),
            role: String::new(),
            tree: launch.cwd.clone(),
            job: launch.job.to_string(),
            messages: 0,
        };
        let task = tokio::spawn(async move {
            // A broken pipe ends the session, as it ends pi.
            drop(session.serve(commands).await);
            end.send_replace(true);
        });
        Ok(Spawned {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(tokio::io::empty()),
            child: Box::new(StubChild { ended, task: task.abort_handle() }),
        })
    }
}

struct Session {
    events: DuplexStream,
    agent: StubAgent,
    role: String,
    tree: PathBuf,
    job: String,
    messages: u32,
}

impl Session {
    async fn serve(mut self, commands: DuplexStream) -> io::Result<()> {
        let mut commands = BufReader::new(commands).lines();
        while let Some(line) = commands.next_line().await? {
            let command: Value = serde_json::from_str(&line)?;
            let data = match command["type"].as_str().unwrap_or_default() {
                "get_state" => state(self.messages),
                "get_last_assistant_text" => json!({"text": self.agent.script(&self.role).answer}),
                "prompt" => json!({"disposition": "started"}),
                _ => Value::Null,
            };
            self.events.write_all(&response(&command, &data)).await?;
            if let Some(prompt) = command["message"].as_str() {
                self.run(prompt).await?;
            }
        }
        Ok(())
    }

    /// One run: a turn that thinks and reads, the flood, and a turn that answers.
    async fn run(&mut self, prompt: &str) -> io::Result<()> {
        // A re-ask names no role: it goes on in the same session.
        if let Some((role, _)) =
            prompt.split_once("<current-role>").and_then(|(_, rest)| rest.split_once("</current-role>"))
        {
            role.clone_into(&mut self.role);
        }
        self.write_file()?;
        let script = self.agent.script(&self.role);
        let mut echo = Part::default();
        echo.message(&json!({"role": "user", "content": [{"type": "text", "text": prompt}], "timestamp": 1}));
        let flood = Some(self.agent.flood).filter(|flood| self.role == "executor" && flood.blocks > 0);
        let turn = flood.map(|flood| (flood, FloodTurn::of(flood.deltas, CHUNK)));
        for lines in [&script.before.lines, &echo.lines, &script.opening.lines] {
            self.events.write_all(lines).await?;
        }
        if let Some((flood, turn)) = &turn {
            for _ in 0..flood.blocks {
                self.events.write_all(&turn.start).await?;
                for _ in 0..flood.deltas / CHUNK {
                    self.events.write_all(&turn.deltas).await?;
                }
                self.events.write_all(&turn.end.lines).await?;
            }
        }
        self.events.write_all(&script.closing.lines).await?;

        // The end of a run repeats every message of it.
        self.events.write_all(br#"{"type":"agent_end","messages":["#).await?;
        self.events.write_all(&script.before.messages.as_bytes()[1..]).await?;
        for messages in [&echo.messages, &script.opening.messages] {
            self.events.write_all(messages.as_bytes()).await?;
        }
        if let Some((flood, turn)) = &turn {
            for _ in 0..flood.blocks {
                self.events.write_all(turn.end.messages.as_bytes()).await?;
            }
        }
        self.events.write_all(script.closing.messages.as_bytes()).await?;
        self.events.write_all(b"],\"willRetry\":false}\n{\"type\":\"agent_settled\",\"aborted\":false}\n").await?;
        self.messages += 6;
        Ok(())
    }

    /// A writer changes one file of its own kind.
    fn write_file(&self) -> io::Result<()> {
        let directory = match (self.agent.writes, self.role.as_str()) {
            (true, "executor") => self.tree.join("src"),
            (true, "test-engineer") => self.tree.join("test"),
            _ => return Ok(()),
        };
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(format!("{}_test.sh", self.job)), "true\n")
    }
}

//! The Session: owns one pi process and its stream. Transport and acknowledgement only; what it means is the job's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::messages::{JobMsg, Pulse, SessionEnd, SessionMsg, SessionUp};
use crate::pi::{
    BlockPhase, Command, DEFAULT_LINE_CAP, Encoder, Frame, Line, NdjsonReader, PiEvent, Response, SessionState,
    StderrTail, decode, decode_head, repeats,
};
use crate::ports::{Child, Spawned};
use crate::storage::SessionMeta;

/// The agent that sessions are of.
const BACKEND: &str = "pi";
/// How long pi may take to answer a command (R0-031).
const RPC_TIMEOUT: Duration = Duration::from_secs(30);
/// How long pi may take to end after end of file or TERM, before the next means.
const ENDING: Duration = Duration::from_secs(5);
/// Lines that one message carries at most.
const BATCH: usize = 64;
/// Batches in flight between reader and job at most.
const CREDITS: usize = 8;

/// One session.
pub struct Session {
    /// Whom it serves.
    pub job: ActorRef<JobMsg>,
    /// Beaten with every line.
    pub pulse: Pulse,
    /// When its process was started. Wall clock, ms since 1970 UTC.
    pub started_at_ms: i64,
}

/// The live process.
pub struct Live {
    /// Lines on their way to pi. Dropping it is end of file, once they are written.
    stdin: Option<UnboundedSender<Vec<u8>>>,
    child: Arc<dyn Child>,
    encoder: Encoder,
    pending: BTreeMap<u64, Pending>,
    /// Whether pi has begun the run of the last prompt; an abort before that is lost (pi-rpc §5.4).
    started: bool,
    abort_held: bool,
    ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Greeting,
    Prompt,
    State,
    Text,
    Abort,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Ending {
    No,
    /// Stdin is closed.
    Asked,
    /// TERM was sent.
    Termed,
    /// KILL was sent.
    Killed,
}

impl Drop for Live {
    /// Whatever ends the actor, the process does not outlive it (`post_stop` is skipped after a panic).
    fn drop(&mut self) {
        self.child.kill();
    }
}

impl Actor for Session {
    type Msg = SessionMsg;
    type State = Live;
    type Arguments = Spawned;

    async fn pre_start(&self, me: ActorRef<SessionMsg>, spawned: Spawned) -> Result<Live, ActorProcessingErr> {
        let Spawned { stdin, stdout, stderr, child } = spawned;
        let child: Arc<dyn Child> = Arc::from(child);
        self.follow(&me, stdout, stderr, Arc::clone(&child));
        Ok(Live {
            stdin: Some(write_to(stdin)),
            child,
            encoder: Encoder::default(),
            pending: BTreeMap::new(),
            started: false,
            abort_held: false,
            ending: Ending::No,
        })
    }

    async fn post_start(&self, me: ActorRef<SessionMsg>, live: &mut Live) -> Result<(), ActorProcessingErr> {
        // pi prints nothing when it is ready; the answer to this is the sign (pi-rpc §3.5).
        self.send(&me, live, &Command::GetState, Some(Pending::Greeting));
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<SessionMsg>,
        mail: SessionMsg,
        live: &mut Live,
    ) -> Result<(), ActorProcessingErr> {
        match mail {
            SessionMsg::Lines(lines, credit) => {
                let mut events = Vec::new();
                for line in lines {
                    match line {
                        Line::Event(event) => self.heard(&me, live, event, &mut events),
                        Line::Response(response) => self.answered(live, response),
                        Line::Unknown { kind } => tracing::debug!(kind, "an event that this sp does not know"),
                    }
                }
                if !events.is_empty() {
                    drop(self.job.cast(JobMsg::Events(events, credit)));
                }
            }
            SessionMsg::Garbled(detail) => self.fail("garbled_stream", detail),
            SessionMsg::Prompt(message) => {
                live.started = false;
                self.send(&me, live, &Command::Prompt { message }, Some(Pending::Prompt));
            }
            SessionMsg::ReadText => {
                self.send(&me, live, &Command::GetState, Some(Pending::State));
                self.send(&me, live, &Command::GetLastAssistantText, Some(Pending::Text));
            }
            SessionMsg::Abort if live.started => self.abort(&me, live),
            SessionMsg::Abort => live.abort_held = true,
            SessionMsg::Close => {
                live.stdin = None;
                self.end(&me, live, Ending::Asked);
            }
            SessionMsg::Kill => {
                live.stdin = None;
                self.end(&me, live, Ending::Termed);
            }
            SessionMsg::Insist => self.insist(&me, live),
            SessionMsg::Overdue { id } => {
                if let Some(what) = live.pending.remove(&id) {
                    self.fail("rpc_timeout", format!("RPC timeout: {what:?} was not answered within 30 s"));
                }
            }
            SessionMsg::Gone(end) => {
                drop(self.job.cast(JobMsg::SessionEnded(end)));
                me.stop(None);
            }
        }
        Ok(())
    }
}

impl Session {
    /// Starts what reads stdout and stderr and waits for the end.
    fn follow(
        &self,
        me: &ActorRef<SessionMsg>,
        stdout: Box<dyn AsyncRead + Send + Unpin>,
        stderr: Box<dyn AsyncRead + Send + Unpin>,
        child: Arc<dyn Child>,
    ) {
        let tail = StderrTail::default();
        let complaints = tail.clone();
        let stderr = tokio::spawn(async move { complaints.follow(stderr).await });
        let reader = tokio::spawn(read(stdout, me.clone(), self.pulse.clone()));
        let me = me.clone();
        tokio::spawn(async move {
            let exit = child.wait().await.ok();
            // A tool in a session of its own would go on writing in the tree that is judged next.
            if let Err(error) = child.end_escaped().await {
                tracing::warn!(%error, "processes that left their session are not looked for");
            }
            // What pi said before it went counts. A tool that escaped may hold the pipe open: don't wait for ever.
            drop(tokio::time::timeout(ENDING, reader).await);
            drop(tokio::time::timeout(Duration::from_millis(200), stderr).await);
            drop(me.cast(SessionMsg::Gone(SessionEnd { exit, stderr: tail.text() })));
        });
    }

    fn send(&self, me: &ActorRef<SessionMsg>, live: &mut Live, command: &Command, pending: Option<Pending>) {
        let encoded = live.encoder.encode(command);
        let Some(stdin) = &live.stdin else { return };
        if stdin.send(encoded.line).is_err() {
            // pi is going or gone; its end is on the way and says why.
            live.stdin = None;
            return;
        }
        if let (Some(id), Some(pending)) = (encoded.id, pending) {
            live.pending.insert(id, pending);
            me.send_after(RPC_TIMEOUT, move || SessionMsg::Overdue { id });
        }
    }

    fn heard(&self, me: &ActorRef<SessionMsg>, live: &mut Live, event: PiEvent, events: &mut Vec<PiEvent>) {
        match &event {
            PiEvent::AgentStart => {
                live.started = true;
                if std::mem::take(&mut live.abort_held) {
                    self.abort(me, live);
                }
            }
            // Nobody is there to answer, and an unanswered dialog blocks the run for ever (pi-rpc §9.3).
            PiEvent::UiRequest { id, needs_answer: true, .. } => {
                let cancel = Command::cancel_dialog(id.clone());
                self.send(me, live, &cancel, None);
            }
            _ => {}
        }
        events.push(event);
    }

    fn answered(&self, live: &mut Live, response: Response) {
        let Some(what) = response.id.and_then(|id| live.pending.remove(&id)) else { return };
        if !response.success {
            let text = response.error.clone().unwrap_or_else(|| "no reason given".to_owned());
            let code = if what == Pending::Prompt { "prompt_refused" } else { "command_refused" };
            return self.fail(code, format!("pi refused {}: {text}", response.command));
        }
        let understood = match what {
            Pending::Greeting => {
                response.state().map(|state| drop(self.job.cast(JobMsg::SessionReady(self.up(state)))))
            }
            Pending::Text => response.last_assistant_text().map(|text| drop(self.job.cast(JobMsg::TextRead(text)))),
            Pending::Prompt | Pending::State | Pending::Abort => Ok(()),
        };
        if let Err(error) = understood {
            self.fail("garbled_answer", error.to_string());
        }
    }

    fn up(&self, state: SessionState) -> SessionUp {
        let meta = SessionMeta {
            backend: BACKEND.to_owned(),
            model: state.model.as_ref().map(|model| format!("{}/{}", model.provider, model.id)),
            session_id: state.session_id,
            started_at_ms: self.started_at_ms,
        };
        let context_window = state.model.map_or(0, |model| model.context_window);
        SessionUp { meta, messages: state.message_count, context_window }
    }

    fn abort(&self, me: &ActorRef<SessionMsg>, live: &mut Live) {
        self.send(me, live, &Command::ClearQueue, None);
        self.send(me, live, &Command::Abort, Some(Pending::Abort));
    }

    fn fail(&self, code: &'static str, detail: String) {
        drop(self.job.cast(JobMsg::SessionFailed { code, detail }));
    }

    fn end(&self, me: &ActorRef<SessionMsg>, live: &mut Live, by: Ending) {
        if by <= live.ending {
            return;
        }
        live.ending = by;
        live.pending.clear();
        match by {
            Ending::No | Ending::Asked => {}
            Ending::Termed => live.child.terminate(),
            Ending::Killed => live.child.kill(),
        }
        me.send_after(ENDING, || SessionMsg::Insist);
    }

    fn insist(&self, me: &ActorRef<SessionMsg>, live: &mut Live) {
        match live.ending {
            Ending::No => {}
            Ending::Asked => self.end(me, live, Ending::Termed),
            Ending::Termed => self.end(me, live, Ending::Killed),
            Ending::Killed => live.child.kill(),
        }
    }
}

/// Starts what writes to pi. Apart from the actor: a pi that reads nothing fills its pipe, and who waits for room there
/// hears neither a timeout nor the word to kill.
fn write_to(mut stdin: Box<dyn AsyncWrite + Send + Unpin>) -> UnboundedSender<Vec<u8>> {
    let (line, mut lines) = unbounded_channel::<Vec<u8>>();
    tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
                return;
            }
        }
    });
    line
}

/// Reads stdout to its end: decoded, deltas of one block summed, one credit a batch.
async fn read(stdout: Box<dyn AsyncRead + Send + Unpin>, session: ActorRef<SessionMsg>, pulse: Pulse) {
    let credits = Arc::new(Semaphore::new(CREDITS));
    let mut reader = NdjsonReader::new(stdout, DEFAULT_LINE_CAP).passing_over(repeats);
    while let Ok(Some(batch)) = reader.read_batch(BATCH).await {
        pulse.beat();
        let (mut lines, mut garbled) = (Vec::new(), None);
        for frame in batch.iter() {
            match frame {
                Frame::Line(line) => match decode(line) {
                    Ok(line) => push_summed(&mut lines, line),
                    Err(error) => garbled = garbled.or(Some(error)),
                },
                Frame::Head(head) => lines.push(decode_head(head)),
                Frame::Oversize { bytes } => tracing::warn!(bytes, "a line of pi was too long and is passed over"),
            }
        }
        // One of a batch, which takes a credit: a flood of nonsense must not fill the mailbox.
        if let Some(error) = garbled {
            drop(session.cast(SessionMsg::Garbled(error.to_string())));
        }
        let Ok(credit) = Arc::clone(&credits).acquire_owned().await else { return };
        if session.cast(SessionMsg::Lines(lines, credit)).is_err() {
            return;
        }
    }
}

/// Adds a line; a delta is summed into the delta of the same block before it.
fn push_summed(lines: &mut Vec<Line>, line: Line) {
    if let (
        Some(Line::Event(PiEvent::Block { kind: k, index: i, phase: BlockPhase::Delta { chars: sum }, .. })),
        Line::Event(PiEvent::Block { kind, index, phase: BlockPhase::Delta { chars }, .. }),
    ) = (lines.last_mut(), &line)
        && k == kind
        && i == index
    {
        *sum += chars;
        return;
    }
    lines.push(line);
}

#[cfg(test)]
mod tests;

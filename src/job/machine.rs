//! What a job does next: one activation of a specialist, from its session's start to its outcome.
//!
//! A job is not folded from its events after a crash: a new incarnation starts a new session on the same session file
//! (chain-machine.md), so the state lives in memory and only its outcome is durable.

use crate::chain::machine::Outcome;
use crate::chain::verdict::Verdict;
use crate::pi::{PiEvent, StopReason};

/// What is said to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptKind {
    /// The whole task.
    Full,
    /// The session holds the task already: go on with it.
    GoOn,
    /// The answer was not usable: give it again.
    ReAsk(String),
    /// The result was partial: one more turn.
    ExtraTurn(String),
}

/// What the job's contract makes of the agent's last text.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// The answer is valid.
    Answer {
        /// What it means.
        verdict: Verdict,
        /// One line about it.
        summary: String,
    },
    /// The answer is valid, and what was seen of its commands refutes it.
    Doubted {
        /// What it means when it is given a second time.
        verdict: Verdict,
        /// One line about it.
        summary: String,
        /// What to say to the agent.
        re_ask: String,
    },
    /// There is none, or it is not valid.
    Unusable {
        /// What is wrong, for people.
        problem: String,
        /// What to say to the agent.
        re_ask: String,
    },
}

/// What the session file holds of this job's task when its session starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Nothing: the task is new to it.
    Nothing,
    /// The task, not finished.
    Task,
    /// The task, and a text that ended the run: the incarnation that heard it died before it was judged.
    Answer,
}

/// Why a job is being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopping {
    /// The running turn is being aborted.
    Aborting,
    /// The process was told to end.
    Terminating,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobPhase {
    /// The session is coming up.
    Starting,
    /// The agent works.
    Working,
    /// The turn is over; the last text is being read and judged.
    Reading,
    /// The outcome is known; the session is ending.
    Ending,
    /// Nothing runs any more.
    Ended,
}

/// What a job knows.
#[derive(Debug, Clone, PartialEq)]
pub struct JobState {
    /// Where it stands.
    pub phase: JobPhase,
    /// What the session file holds from an earlier incarnation.
    held: Held,
    re_asked: bool,
    extra_turn: bool,
    stopping: Option<Stopping>,
    last: Option<(StopReason, Option<String>)>,
    outcome: Option<Outcome>,
}

impl JobState {
    /// Returns the state before the session is up.
    pub fn new(held: Held) -> Self {
        Self {
            phase: JobPhase::Starting,
            held,
            re_asked: false,
            extra_turn: false,
            stopping: None,
            last: None,
            outcome: None,
        }
    }

    /// Returns whether silence of the session means something.
    pub fn expects_activity(&self) -> bool {
        matches!(self.phase, JobPhase::Starting | JobPhase::Working)
    }
}

/// What the world reports to a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobInput {
    /// The session answered its first `get_state`.
    SessionReady {
        /// Messages that it holds.
        messages: u64,
    },
    /// The session could not be started, or broke its protocol.
    SessionFailed {
        /// Whether another try makes sense.
        retry: bool,
        /// Stable code.
        code: String,
        /// What happened.
        detail: String,
    },
    /// Something happened in the session.
    Event(PiEvent),
    /// The agent's last text, asked for after a turn.
    TextRead(Option<String>),
    /// The last text, judged by the job's contract.
    Judged(Reading),
    /// The process is gone.
    Exited {
        /// Exit code or signal, and the end of what it complained.
        how: String,
    },
    /// Nothing was heard for too long.
    Stalled {
        /// For how long, in ms.
        silence_ms: u64,
    },
    /// The job took longer than it may.
    TimedOut {
        /// How long it may take, in ms.
        limit_ms: u64,
    },
    /// Somebody wants the job stopped.
    StopAsked,
    /// The agent did not come to rest within the grace after an abort.
    GraceOver,
}

/// What a job asks of the world, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum JobEffect {
    /// Say something to the agent.
    Prompt(PromptKind),
    /// Ask for the session's state and then for its last text; answered by `TextRead`.
    ReadText,
    /// Hold the last text against the contract; answered by `Judged`.
    Judge(Option<String>),
    /// Abort the running turn and begin the grace; answered by events or `GraceOver`.
    Abort,
    /// Write the outcome to disk.
    Persist(Outcome),
    /// End the session by end of file; answered by `Exited`.
    Close,
    /// End the session by signal; answered by `Exited`.
    Kill,
    /// Tell the chain; the job is over.
    Report(Outcome),
}

/// Takes one input and returns what to do. Anything that comes after the end changes nothing (gastown#909).
pub fn step(job: &mut JobState, input: JobInput) -> Vec<JobEffect> {
    match (job.phase, input) {
        (JobPhase::Ended, _) => Vec::new(),
        (_, JobInput::Exited { how }) => exited(job, how),
        (JobPhase::Ending, _) => Vec::new(),
        (_, JobInput::StopAsked) => stop(job),
        (_, JobInput::GraceOver) => match job.stopping {
            Some(Stopping::Aborting) => terminate(job),
            Some(Stopping::Terminating) | None => Vec::new(),
        },
        (_, JobInput::SessionFailed { retry, code, detail }) => {
            finish(job, Outcome::Failed { retry, code, detail }, JobEffect::Kill)
        }
        (_, JobInput::Stalled { silence_ms }) => {
            let detail = format!("nothing was heard of the agent for {} s", silence_ms / 1000);
            finish(job, failed("stalled", detail), JobEffect::Kill)
        }
        (_, JobInput::TimedOut { limit_ms }) => {
            let detail = format!("the job took longer than its {} s", limit_ms / 1000);
            finish(job, failed("timed_out", detail), JobEffect::Kill)
        }
        (JobPhase::Starting, JobInput::SessionReady { messages }) => {
            job.phase = JobPhase::Working;
            match job.held {
                // Asked to go on, an agent that has finished would work again, or have nothing to say.
                Held::Answer if messages > 0 => {
                    job.phase = JobPhase::Reading;
                    vec![JobEffect::ReadText]
                }
                Held::Task if messages > 0 => vec![JobEffect::Prompt(PromptKind::GoOn)],
                Held::Nothing | Held::Task | Held::Answer => vec![JobEffect::Prompt(PromptKind::Full)],
            }
        }
        (JobPhase::Working, JobInput::Event(event)) => heard(job, event),
        (JobPhase::Reading, JobInput::TextRead(text)) => vec![JobEffect::Judge(text)],
        (JobPhase::Reading, JobInput::Judged(reading)) => judged(job, reading),
        (
            JobPhase::Starting | JobPhase::Working | JobPhase::Reading,
            JobInput::SessionReady { .. } | JobInput::Event(_) | JobInput::TextRead(_) | JobInput::Judged(_),
        ) => Vec::new(),
    }
}

fn heard(job: &mut JobState, event: PiEvent) -> Vec<JobEffect> {
    match event {
        PiEvent::MessageEnd { assistant: Some(message), .. } => {
            job.last = Some((message.stop_reason.clone(), message.error_message.clone()));
            Vec::new()
        }
        PiEvent::AgentSettled { .. } if job.stopping.is_some() => terminate(job),
        PiEvent::AgentSettled { .. } => settled(job),
        _ => Vec::new(),
    }
}

/// The turn is over for good: what its last message says decides.
fn settled(job: &mut JobState) -> Vec<JobEffect> {
    match job.last.take() {
        Some((StopReason::Stop | StopReason::Length | StopReason::ToolUse | StopReason::Other(_), _)) => {
            job.phase = JobPhase::Reading;
            vec![JobEffect::ReadText]
        }
        Some((StopReason::Error, error)) => {
            let text = error.unwrap_or_else(|| "the model gave an error without a text".to_owned());
            let outcome = match fatal_code(&text) {
                Some(code) => Outcome::Failed { retry: false, code: code.to_owned(), detail: text },
                None => failed("model_error", text),
            };
            finish(job, outcome, JobEffect::Close)
        }
        Some((StopReason::Aborted, _)) => {
            finish(job, failed("aborted", "the turn was aborted from outside".to_owned()), JobEffect::Close)
        }
        None => finish(
            job,
            failed("empty_result", "the run ended without an answer of the model".to_owned()),
            JobEffect::Close,
        ),
    }
}

fn judged(job: &mut JobState, reading: Reading) -> Vec<JobEffect> {
    match reading {
        Reading::Answer { verdict: Verdict::Again { why }, .. } if !job.extra_turn => {
            job.extra_turn = true;
            job.phase = JobPhase::Working;
            vec![JobEffect::Prompt(PromptKind::ExtraTurn(why))]
        }
        Reading::Doubted { re_ask, .. } | Reading::Unusable { re_ask, .. } if !job.re_asked => {
            job.re_asked = true;
            job.phase = JobPhase::Working;
            vec![JobEffect::Prompt(PromptKind::ReAsk(re_ask))]
        }
        Reading::Answer { verdict, summary } | Reading::Doubted { verdict, summary, .. } => {
            finish(job, Outcome::Answered { verdict, summary }, JobEffect::Close)
        }
        Reading::Unusable { problem, .. } => finish(job, Outcome::NoAnswer { problem }, JobEffect::Close),
    }
}

fn stop(job: &mut JobState) -> Vec<JobEffect> {
    match (job.stopping, job.phase) {
        (Some(_), _) => Vec::new(),
        (None, JobPhase::Working) => {
            job.stopping = Some(Stopping::Aborting);
            vec![JobEffect::Abort]
        }
        // The answer is out already: it is read and counts.
        (None, JobPhase::Reading) => Vec::new(),
        (None, JobPhase::Starting | JobPhase::Ending | JobPhase::Ended) => terminate(job),
    }
}

fn terminate(job: &mut JobState) -> Vec<JobEffect> {
    job.stopping = Some(Stopping::Terminating);
    finish(job, Outcome::Stopped, JobEffect::Kill)
}

fn finish(job: &mut JobState, outcome: Outcome, ending: JobEffect) -> Vec<JobEffect> {
    job.phase = JobPhase::Ending;
    job.outcome = Some(outcome.clone());
    vec![JobEffect::Persist(outcome), ending]
}

fn exited(job: &mut JobState, how: String) -> Vec<JobEffect> {
    job.phase = JobPhase::Ended;
    match job.outcome.take() {
        Some(outcome) => vec![JobEffect::Report(outcome)],
        None if job.stopping.is_some() => {
            vec![JobEffect::Persist(Outcome::Stopped), JobEffect::Report(Outcome::Stopped)]
        }
        None => {
            // Also with exit status 0: without a settled run nothing was finished (paperclip#1721).
            let outcome = failed("agent_exited", how);
            vec![JobEffect::Persist(outcome.clone()), JobEffect::Report(outcome)]
        }
    }
}

fn failed(code: &str, detail: String) -> Outcome {
    Outcome::Failed { retry: true, code: code.to_owned(), detail }
}

/// Returns the code of a provider error that no second try mends, by the status that its text names.
pub fn fatal_code(text: &str) -> Option<&'static str> {
    let has = |needle: &str| text.to_ascii_lowercase().contains(needle);
    let status = |code: &str| text.split(|c: char| !c.is_ascii_digit()).any(|number| number == code);
    if status("401") || status("403") || has("unauthorized") || has("no api key") || has("invalid api key") {
        Some("unauthorized")
    } else if has("model not found") || has("unknown model") || status("404") {
        Some("unknown_model")
    } else if status("400") || has("invalid request") {
        Some("bad_request")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;

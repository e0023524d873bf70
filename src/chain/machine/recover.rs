//! What bd knows of a chain whose log is lost, for its molecule to be gone on with (chain-rules, "Pour": adoption).
//!
//! A closed step counts as passed by its job only where our note on its bead says so and names the job that this step
//! had in that round; a gate also only on the newest commit of the writers above it. Whatever else is closed was closed
//! by somebody, and is treated like that when bd is read ([`super::decide()`]).

use std::collections::BTreeMap;

use super::event::{ChainEvent, ClosedBy, RecoveredStep, Standing};
use super::state::{Blocked, job_id};
use crate::chain::evidence::{Note, Word, notes};
use crate::chain::shape::{Shape, Step};
use crate::ids::{ChainId, StepId};

/// A step's bead, as bd has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepRecord {
    /// bd's status word.
    pub status: String,
    /// Who holds it, or held it last.
    pub assignee: Option<String>,
    /// All its notes.
    pub notes: String,
}

/// Returns the event that stands for the log that is lost.
pub fn recovered(chain: &ChainId, shape: &Shape, records: &BTreeMap<StepId, StepRecord>) -> ChainEvent {
    let read: BTreeMap<&StepId, Vec<Note>> = shape
        .steps
        .iter()
        .filter_map(|step| Some((&step.id, notes(&step.id, &records.get(&step.id)?.notes))))
        .collect();
    let rounds: Vec<Opened> = read.values().flatten().filter_map(opened).collect();
    let noted = read.values().flatten().map(|note| note.round).max().unwrap_or(1);
    let round = rounds.iter().map(|round| round.opens).max().unwrap_or(1).max(noted);
    let by_gates = rounds.iter().filter(|round| round.gate.is_some()).count();
    let loops_used = u32::try_from(by_gates).unwrap_or(u32::MAX);

    let mut steps: Vec<RecoveredStep> = Vec::new();
    let none = StepRecord::default();
    for step in &shape.steps {
        let record = records.get(&step.id).unwrap_or(&none);
        let last = read.get(&step.id).and_then(|notes| notes.last());
        let upstream = upstream(shape, step, &steps);
        let stands = standing(chain, step, record, last, round, upstream.as_deref());
        let passed = matches!(stands, Standing::Closed { .. } | Standing::Closing);
        let note = last.filter(|_| passed);
        let asks = rounds.iter().rfind(|open| open.opens == round && open.to == step.id && !passed);
        steps.push(RecoveredStep {
            step: step.id.clone(),
            round: note.map_or(round, |note| note.round),
            epoch: epoch(chain, step, record),
            job: note.and_then(job),
            commit: note.and_then(|note| note.commit.clone()),
            summary: note.map(|note| note.text.clone()),
            findings: asks.map(|open| open.findings.clone()),
            sent_back_by: asks.and_then(|open| open.gate.clone()),
            stands,
        });
    }
    ChainEvent::Recovered { round, loops_used, steps }
}

/// A round, as the note tells it that opened it.
struct Opened {
    gate: Option<StepId>,
    opens: u32,
    to: StepId,
    findings: String,
}

fn opened(note: &Note) -> Option<Opened> {
    match note.word {
        Word::Failed(_) => {}
        Word::Asked => {
            let (to, findings) = (note.step.clone(), note.text.clone());
            return Some(Opened { gate: None, opens: note.round, to, findings });
        }
        Word::Passed(_) | Word::Accepted(_) | Word::Blocked(_) => return None,
    }
    let at = note.text.lines().position(|line| line.starts_with("opens round "))?;
    let (opens, to) = note.text.lines().nth(at)?.strip_prefix("opens round ")?.split_once(" at ")?;
    let findings: Vec<&str> = note.text.lines().skip(at + 1).collect();
    Some(Opened {
        gate: Some(note.step.clone()),
        opens: opens.parse().ok()?,
        to: StepId::from(to),
        findings: findings.join("\n"),
    })
}

fn job(note: &Note) -> Option<crate::ids::JobId> {
    match &note.word {
        Word::Passed(job) | Word::Failed(job) => Some(job.clone()),
        Word::Accepted(job) => job.clone(),
        Word::Blocked(_) | Word::Asked => None,
    }
}

/// The newest commit of the writers above a step, of what is recovered so far: steps come after what they need.
fn upstream(shape: &Shape, step: &Step, so_far: &[RecoveredStep]) -> Option<String> {
    shape.ancestors(&step.id).into_iter().rev().filter(|above| above.writer.is_some()).find_map(|above| {
        so_far.iter().find(|recovered| recovered.step == above.id).and_then(|recovered| recovered.commit.clone())
    })
}

fn standing(
    chain: &ChainId,
    step: &Step,
    record: &StepRecord,
    last: Option<&Note>,
    round: u32,
    upstream: Option<&str>,
) -> Standing {
    let proven = last.is_some_and(|note| match &note.word {
        Word::Passed(job) => {
            let judged = step.writer.is_some() || note.commit.as_deref() == upstream || upstream.is_none();
            judged && *job == job_id(chain, &step.id, note.round)
        }
        Word::Accepted(_) | Word::Failed(_) | Word::Blocked(_) | Word::Asked => false,
    });
    let accepted = last.is_some_and(|note| matches!(note.word, Word::Accepted(_)));
    match (record.status.as_str(), last) {
        ("closed", _) if proven => Standing::Closed { by: ClosedBy::Job },
        ("closed", _) if accepted => Standing::Closed { by: ClosedBy::Operator },
        // Noted, and then came the end.
        ("in_progress", Some(note)) if proven && note.round == round => Standing::Closing,
        ("in_progress", _) if epoch(chain, step, record) > 0 => Standing::Held,
        ("blocked", Some(Note { word: Word::Blocked(code), text, .. })) => {
            Standing::Blocked { why: Blocked { code: code.clone(), detail: text.clone() } }
        }
        ("blocked", _) => {
            let detail = "bd calls it blocked, and no note of the chain says why".to_owned();
            Standing::Blocked { why: Blocked { code: "blocked_by_hand".into(), detail } }
        }
        _ => Standing::Pending,
    }
}

/// The incarnation that held the bead last, by its name; 0 when none of ours did.
fn epoch(chain: &ChainId, step: &Step, record: &StepRecord) -> u32 {
    let holder = record.assignee.as_deref().unwrap_or_default();
    holder.strip_prefix(&format!("sp/{chain}/{}/", step.id)).and_then(|epoch| epoch.parse().ok()).unwrap_or(0)
}

//! What a chain notes on its step beads.

use super::outstanding::NoteKind;
use super::state::{ChainState, Phase};
use crate::chain::evidence::{Note, Word};
use crate::ids::StepId;

/// Returns the evidence of a step that passed, or of a gate that failed; `None` for a step that the chain has not.
pub fn evidence_of(chain: &ChainState, step: &StepId, kind: NoteKind) -> Option<Note> {
    let state = chain.steps.get(step)?;
    let job = || state.job.clone().unwrap_or_else(|| chain.job_of(step, state.round));
    let word = match kind {
        NoteKind::Passed if state.by_operator => Word::Accepted(state.job.clone()),
        NoteKind::Passed => Word::Passed(job()),
        NoteKind::Failed => Word::Failed(job()),
    };
    let mut text = state.summary.clone().unwrap_or_else(|| "no summary".to_owned());
    if let (NoteKind::Failed, Some(open)) = (kind, &chain.reopening) {
        text.push_str(&format!("\nopens round {} at {}\n{}", open.round, open.to, open.findings));
    }
    let commit = Some(state.commit.clone().unwrap_or_else(|| "none".to_owned()));
    Some(Note { step: step.clone(), word, round: state.round, commit, text })
}

/// Returns what a round asks that no gate opened; `None` when none is on its way.
pub fn request_of(chain: &ChainState) -> Option<Note> {
    let open = chain.reopening.as_ref().filter(|open| open.gate.is_none())?;
    let (step, text) = (open.to.clone(), open.findings.clone());
    Some(Note { step, word: Word::Asked, round: open.round, commit: None, text })
}

/// Returns why a step waits for people; `None` when it does not.
pub fn block_of(chain: &ChainState, step: &StepId) -> Option<Note> {
    let state = chain.steps.get(step)?;
    let Phase::Blocked { why, .. } = &state.phase else { return None };
    let (word, text) = (Word::Blocked(why.code.clone()), why.detail.clone());
    Some(Note { step: step.clone(), word, round: state.round, commit: None, text })
}

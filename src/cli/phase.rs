//! The word for where a step stands, for pictures and lists.

use crate::chain::machine::{Activity, ChainEvent, ChainState, Phase, StepState, fold};
use crate::failure::{Explain, Failure, FailureKind};
use crate::ids::ChainId;
use crate::storage::Reader;

/// Returns one word for where a step stands, with its round from the second on.
pub fn phase_word(step: &StepState) -> String {
    let word = match &step.phase {
        Phase::Pending => "pending",
        Phase::Active(Activity::Claiming) => "claiming",
        Phase::Active(Activity::Running) => "running",
        Phase::Active(Activity::Interrupted) => "interrupted",
        Phase::Active(Activity::Settling { .. }) => "settling",
        Phase::Active(Activity::Noting | Activity::Closing) => "closing",
        Phase::Closed if step.by_operator => "accepted",
        Phase::Closed => "passed",
        Phase::Blocked { .. } => "blocked",
    };
    if step.round > 1 { format!("{word}, round {}", step.round) } else { word.to_owned() }
}

/// An event of a chain that this sp can't read.
#[derive(Debug, thiserror::Error)]
#[error("read event {seq} of chain {chain}")]
struct UnreadableEvent {
    chain: ChainId,
    seq: u64,
    source: serde_json::Error,
}

impl Explain for UnreadableEvent {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        (FailureKind::Store, "chain_event_unreadable", "use the sp that ran this chain, or a later one".into())
    }
}

/// Folds the log of a chain; `None` before its first event.
///
/// # Errors
/// What the database says; an event of a later sp.
pub fn folded(reader: &Reader, chain: &ChainId) -> Result<Option<ChainState>, Failure> {
    let mut events: Vec<ChainEvent> = Vec::new();
    for row in reader.chain_events(chain, 0)? {
        let event = serde_json::from_str(&row.body);
        events.push(event.map_err(|source| UnreadableEvent { chain: chain.clone(), seq: row.seq, source })?);
    }
    Ok(fold(&events))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fixture::Recorded;
    use crate::ids::StepId;

    #[test]
    fn a_folded_chain_has_a_word_for_each_step() {
        let recorded = Recorded::chain_in_its_second_step();
        let mut chain = folded(&recorded.reader(), &ChainId::new("proj-mol-1")).unwrap().unwrap();
        assert_eq!(phase_word(&chain.steps[&StepId::new("executor")]), "running");
        let step = chain.steps.get_mut(&StepId::new("seconder")).unwrap();
        assert_eq!(phase_word(step), "pending");
        (step.phase, step.round) = (Phase::Closed, 2);
        assert_eq!(phase_word(step), "passed, round 2");
        assert!(folded(&recorded.reader(), &ChainId::new("nobody")).unwrap().is_none());
    }
}

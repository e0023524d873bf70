//! The effects of a chain on its beads. Each is harmless when repeated; see the table beside `outstanding`.

use std::collections::BTreeMap;

use crate::chain::evidence::Note;
use crate::chain::machine::{
    BeadsView, ChainEffect, ChainInput, ChainState, NoteKind, StepView, block_of, evidence_of, request_of,
};
use crate::chain::pour::{Origin, plan};
use crate::ids::StepId;
use crate::messages::{CoordinatorMsg, TrackerWork};
use crate::ports::{BatchOp, ClaimAnswer, Release, Tracker, TrackerError};

/// Does one effect; returns what to tell the chain.
pub(super) async fn perform(tracker: &dyn Tracker, work: &TrackerWork) -> Result<Vec<CoordinatorMsg>, TrackerError> {
    let chain = work.chain.as_ref();
    let input = match &work.effect {
        ChainEffect::Pour => {
            let root = root(tracker, chain).await?;
            let origin = Origin { base: &chain.base, rehearsal: chain.rehearsal };
            tracker.pour(&plan(&chain.shape, &chain.chain, &root, &origin)).await?;
            ChainInput::Poured
        }
        ChainEffect::HoldRoot => {
            tracker.hold(&chain.bead, &chain.chain).await?;
            ChainInput::RootHeld
        }
        ChainEffect::Reread => return reread(tracker, chain).await,
        ChainEffect::Claim { step, epoch } => {
            let answer = claim(tracker, chain, step, *epoch).await?;
            ChainInput::ClaimAnswered { step: step.clone(), epoch: *epoch, answer }
        }
        ChainEffect::Note { step, epoch, kind } => {
            if let Some(note) = evidence_of(chain, step, *kind) {
                append(tracker, chain, &note, work.again).await?;
            }
            match kind {
                NoteKind::Passed => ChainInput::EvidenceNoted { step: step.clone(), epoch: *epoch },
                NoteKind::Failed => ChainInput::RoundNoted { round: chain.round },
            }
        }
        ChainEffect::Close { step } => {
            let reason =
                chain.steps.get(step).and_then(|state| state.summary.clone()).unwrap_or_else(|| "passed".into());
            let close = BatchOp::Close { bead: chain.chain.step_bead(step), reason };
            tracker.batch(&[close], &format!("sp: {step} of {} passed", chain.chain)).await?;
            ChainInput::StepClosed { step: step.clone() }
        }
        ChainEffect::Reopen { round } => {
            reopen(tracker, chain, work.again).await?;
            ChainInput::RoundReopened { round: *round }
        }
        ChainEffect::NoteBlock { step } => {
            block(tracker, chain, step, work.again).await?;
            ChainInput::BlockNoted { step: step.clone() }
        }
        ChainEffect::ClosePublished => {
            publish(tracker, chain).await?;
            ChainInput::Published
        }
        ChainEffect::FreeRoot => {
            free(tracker, chain).await?;
            ChainInput::Abandoned
        }
        // Theirs to do: Workspaces and Jobs.
        ChainEffect::PrepareTree
        | ChainEffect::StartJob { .. }
        | ChainEffect::StopJob { .. }
        | ChainEffect::SettleWork { .. } => return Ok(Vec::new()),
    };
    Ok(vec![CoordinatorMsg::Input(Box::new(input))])
}

async fn root(tracker: &dyn Tracker, chain: &ChainState) -> Result<crate::ports::Bead, TrackerError> {
    tracker.show(&chain.bead).await?.ok_or_else(|| TrackerError::NotFound { verb: "show", bead: chain.bead.clone() })
}

async fn reread(tracker: &dyn Tracker, chain: &ChainState) -> Result<Vec<CoordinatorMsg>, TrackerError> {
    let root = tracker.show(&chain.bead).await?;
    let molecule = tracker.show(&chain.chain.molecule()).await?;
    let children = tracker.children(&chain.chain.molecule()).await?;
    let prefix = format!("{}-", chain.chain);
    let steps: BTreeMap<StepId, StepView> = children
        .into_iter()
        .filter_map(|bead| {
            let step = StepId::from(bead.id.strip_prefix(&prefix)?);
            Some((step, StepView { status: bead.status, assignee: bead.assignee }))
        })
        .collect();
    let view = BeadsView {
        root: root.as_ref().map(|bead| bead.status.clone()),
        molecule: molecule.map(|bead| bead.status),
        steps,
    };
    let mut answers = Vec::new();
    if let Some(root) = root {
        answers.push(CoordinatorMsg::RootRead(Box::new(root)));
    }
    answers.push(CoordinatorMsg::Input(Box::new(ChainInput::BeadsRead(view))));
    Ok(answers)
}

/// Claims under the incarnation's own name; an older incarnation of ours is released first.
async fn claim(
    tracker: &dyn Tracker,
    chain: &ChainState,
    step: &StepId,
    epoch: u32,
) -> Result<ClaimAnswer, TrackerError> {
    let ours = format!("sp/{}/{step}/", chain.chain);
    let actor = format!("{ours}{epoch}");
    let answer = tracker.claim_step(&chain.chain, step, &actor).await?;
    let ClaimAnswer::HeldBy(holder) = &answer else { return Ok(answer) };
    let older = holder.strip_prefix(&ours).and_then(|number| number.parse::<u32>().ok()).is_some_and(|it| it < epoch);
    if !older {
        return Ok(answer);
    }
    let reason = format!("incarnation {epoch} takes over");
    match tracker.release(&chain.chain.step_bead(step), holder, &reason).await? {
        Release::Released => tracker.claim_step(&chain.chain, step, &actor).await,
        Release::NotHeld => Ok(answer),
    }
}

/// Appends a note. Its header is its key: looked up first where an earlier try may have gone through.
async fn append(tracker: &dyn Tracker, chain: &ChainState, note: &Note, again: bool) -> Result<(), TrackerError> {
    let epoch = chain.steps.get(&note.step).map_or(0, |state| state.epoch);
    let (bead, header) = (chain.chain.step_bead(&note.step), note.header());
    if again && tracker.show(&bead).await?.is_some_and(|bead| bead.notes.lines().any(|line| line == header)) {
        return Ok(());
    }
    tracker.append_note(&bead, &note.to_string(), &format!("sp/{}/{}/{epoch}", chain.chain, note.step)).await
}

async fn reopen(tracker: &dyn Tracker, chain: &ChainState, again: bool) -> Result<(), TrackerError> {
    let Some(open) = &chain.reopening else { return Ok(()) };
    if let Some(note) = request_of(chain) {
        append(tracker, chain, &note, again).await?;
    }
    let operations: Vec<BatchOp> = open
        .steps
        .iter()
        .map(|step| BatchOp::Update {
            bead: chain.chain.step_bead(step),
            status: "open",
            assignee: Some(String::new()),
        })
        .collect();
    tracker.batch(&operations, &format!("sp: round {} of {}", open.round, chain.chain)).await
}

async fn block(tracker: &dyn Tracker, chain: &ChainState, step: &StepId, again: bool) -> Result<(), TrackerError> {
    let Some(note) = block_of(chain, step) else { return Ok(()) };
    append(tracker, chain, &note, again).await?;
    let update = BatchOp::Update { bead: chain.chain.step_bead(step), status: "blocked", assignee: None };
    tracker.batch(&[update], &format!("sp: {step} of {} is blocked", chain.chain)).await
}

/// Closes the molecule and the contract bead, in one transaction.
async fn publish(tracker: &dyn Tracker, chain: &ChainState) -> Result<(), TrackerError> {
    let tip = chain.tree.as_ref().map_or("", |tree| tree.head.as_str());
    let mut operations = Vec::new();
    for bead in [chain.chain.molecule(), chain.bead.clone()] {
        if tracker.show(&bead).await?.is_some_and(|found| found.status != "closed") {
            operations.push(BatchOp::Close { bead, reason: format!("published {tip}") });
        }
    }
    if operations.is_empty() {
        return Ok(());
    }
    tracker.batch(&operations, &format!("sp: {} is published", chain.chain)).await
}

/// Closes the molecule and frees the contract bead, in one transaction.
async fn free(tracker: &dyn Tracker, chain: &ChainState) -> Result<(), TrackerError> {
    let reason = chain.abandoning.clone().unwrap_or_default();
    let molecule = chain.chain.molecule();
    let mut operations = Vec::new();
    if tracker.show(&molecule).await?.is_some_and(|bead| bead.status != "closed") {
        operations.push(BatchOp::Close { bead: molecule, reason: format!("abandoned: {reason}") });
    }
    let ours = format!("sp/{}", chain.chain);
    let held = |bead: &crate::ports::Bead| bead.assignee.as_deref() == Some(&ours) && bead.status != "closed";
    if tracker.show(&chain.bead).await?.as_ref().is_some_and(held) {
        operations.push(BatchOp::Update { bead: chain.bead.clone(), status: "open", assignee: Some(String::new()) });
    }
    if operations.is_empty() {
        return Ok(());
    }
    tracker.batch(&operations, &format!("sp: {} is abandoned", chain.chain)).await
}

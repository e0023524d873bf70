//! Folding: how each event changes the state. Never chooses.

use super::event::{Cause, ChainEvent, ClosedBy, RecoveredStep, Standing};
use super::state::{Activity, ChainState, Phase, Reopening, Status, StepState, Tree};
use crate::ids::StepId;

/// Folds a whole log; `None` when it does not begin with `Opened`.
pub fn fold<'a>(log: impl IntoIterator<Item = &'a ChainEvent>) -> Option<ChainState> {
    let mut events = log.into_iter();
    let ChainEvent::Opened(opening) = events.next()? else { return None };
    Some(events.fold(ChainState::opened(opening), evolve))
}

/// Folds one event.
pub fn evolve(mut chain: ChainState, event: &ChainEvent) -> ChainState {
    match event {
        ChainEvent::Opened(opening) => chain = ChainState::opened(opening),
        ChainEvent::Adopted { incarnation } => adopt(&mut chain, *incarnation),
        ChainEvent::Reread => chain.must_reread = false,
        ChainEvent::Recovered { round, loops_used, steps } => {
            chain.round = *round;
            chain.loops_used = *loops_used;
            steps.iter().for_each(|step| recover(&mut chain, step));
        }
        ChainEvent::Poured => chain.status = Status::Poured,
        ChainEvent::RootHeld => chain.status = Status::Held,
        ChainEvent::TreeReady { path, branch, head, reused: _ } => {
            let moved = head != chain.tree.as_ref().map_or(&chain.base, |tree| &tree.head);
            if let Some(writer) = chain.writer_of_moves().filter(|_| moved) {
                with(&mut chain, &writer, |state| state.commit = Some(head.clone()));
                accept_moved(&mut chain);
            }
            if chain.status == Status::Held {
                chain.status = Status::Running;
            }
            chain.must_find_tree = false;
            chain.tree = Some(Tree { path: path.clone(), branch: branch.clone(), head: head.clone() });
        }
        ChainEvent::StepClaiming { step, epoch } => with(&mut chain, step, |state| {
            state.phase = Phase::Active(Activity::Claiming);
            state.epoch = *epoch;
        }),
        ChainEvent::ClaimLost { step, .. } => with(&mut chain, step, |state| state.phase = Phase::Pending),
        ChainEvent::StepDispatched { step, job, .. } => dispatch(&mut chain, step, job),
        ChainEvent::StepInterrupted { step, .. } => {
            with(&mut chain, step, |state| state.phase = Phase::Active(Activity::Interrupted));
        }
        ChainEvent::JobFailed { step, .. } => with(&mut chain, step, |state| {
            state.failures += 1;
            state.phase = Phase::Active(Activity::Interrupted);
        }),
        ChainEvent::JobAnswered { step, verdict, summary, .. } => with(&mut chain, step, |state| {
            state.phase = Phase::Active(Activity::Settling { verdict: verdict.clone() });
            state.summary = Some(summary.clone());
        }),
        ChainEvent::WorkSettled { step, head, .. } => settle(&mut chain, step, head),
        ChainEvent::ScrutinyRaised { to, .. } => chain.scrutiny.effective.clone_from(to),
        ChainEvent::StepPassed { step, commit, .. } => with(&mut chain, step, |state| {
            state.commit = Some(commit.clone());
            state.phase = Phase::Active(Activity::Noting);
        }),
        ChainEvent::EvidenceNoted { step, .. } => {
            with(&mut chain, step, |state| state.phase = Phase::Active(Activity::Closing));
        }
        ChainEvent::StepAccepted { step, commit } => {
            with(&mut chain, step, |state| {
                state.phase = Phase::Active(Activity::Noting);
                state.commit = Some(commit.clone());
                state.by_operator = true;
            });
            unblock(&mut chain);
        }
        ChainEvent::StepClosed { step, by } => {
            with(&mut chain, step, |state| {
                state.phase = Phase::Closed;
                state.by_operator = *by == ClosedBy::Operator;
            });
            unblock(&mut chain);
        }
        ChainEvent::ResumeAsked { note, from } => chain.asked = Some((note.clone(), from.clone())),
        ChainEvent::ResumeDropped => chain.asked = None,
        ChainEvent::RoundOpened { round, cause, to, steps, findings } => {
            open_round(&mut chain, *round, cause, to, steps, findings);
        }
        ChainEvent::RoundNoted { .. } => {
            if let Some(reopening) = &mut chain.reopening {
                reopening.noted = true;
            }
        }
        ChainEvent::RoundReopened { round } => reopen(&mut chain, *round),
        ChainEvent::StepBlocked { step, why } => {
            with(&mut chain, step, |state| state.phase = Phase::Blocked { why: why.clone(), noted: false });
        }
        ChainEvent::BlockNoted { step } => with(&mut chain, step, |state| {
            if let Phase::Blocked { noted, .. } = &mut state.phase {
                *noted = true;
            }
        }),
        ChainEvent::ChainBlocked => chain.status = Status::Blocked,
        ChainEvent::StopRequested { why } => chain.stopping = Some(why.clone()),
        ChainEvent::ChainStopped { why } => {
            chain.stopping = None;
            chain.status = Status::Stopped { why: why.clone() };
        }
        ChainEvent::ChainReady { .. } => chain.status = Status::Ready,
        ChainEvent::PublishRequested => chain.publishing = true,
        ChainEvent::Published { .. } => {
            chain.publishing = false;
            chain.status = Status::Published;
        }
        ChainEvent::AbandonRequested { reason } => chain.abandoning = Some(reason.clone()),
        ChainEvent::Abandoned { .. } => {
            chain.abandoning = None;
            chain.status = Status::Abandoned;
        }
        ChainEvent::Cancelled { why } => chain.status = Status::Cancelled { why: why.clone() },
        ChainEvent::Remarked { code, step, .. } => {
            chain.remarks.insert((code.clone(), step.clone()));
        }
    }
    chain
}

fn with(chain: &mut ChainState, step: &StepId, change: impl FnOnce(&mut StepState)) {
    if let Some(state) = chain.steps.get_mut(step) {
        change(state);
    }
}

/// A take-over: whatever ran, ran in a process that is gone.
fn adopt(chain: &mut ChainState, incarnation: u64) {
    chain.incarnation = incarnation;
    chain.stopping = None;
    if let Status::Stopped { .. } = chain.status {
        chain.status = match &chain.tree {
            Some(_) => Status::Running,
            None => Status::Opened,
        };
    }
    // A chain that is ready needs no tree any more: after the merge it may well be gone.
    chain.must_find_tree = chain.tree.is_some() && chain.status != Status::Ready;
    // Before the pour is known to be in bd there is nothing to read, unless steps were recovered from there.
    let has_steps = chain.steps.values().any(|state| state.phase != Phase::Pending);
    chain.must_reread = has_steps || !matches!(chain.status, Status::Opened);
}

/// Who passes a gate by hand in the take-over that finds the branch moved has seen what is there.
fn accept_moved(chain: &mut ChainState) {
    let accepted: Vec<StepId> = chain.active().map(|(step, _, _)| step.id.clone()).collect();
    for step in accepted {
        if chain.shape.step(&step).is_some_and(|shape| shape.writer.is_none()) {
            let newest = chain.upstream_commit(&step).to_owned();
            with(chain, &step, |state| state.commit = Some(newest));
        }
    }
}

fn recover(chain: &mut ChainState, recovered: &RecoveredStep) {
    with(chain, &recovered.step, |state| {
        state.phase = match &recovered.stands {
            Standing::Pending => Phase::Pending,
            Standing::Held => Phase::Active(Activity::Interrupted),
            Standing::Closing => Phase::Active(Activity::Closing),
            Standing::Closed { .. } => Phase::Closed,
            Standing::Blocked { why } => Phase::Blocked { why: why.clone(), noted: true },
        };
        state.by_operator = recovered.stands == Standing::Closed { by: ClosedBy::Operator };
        state.round = recovered.round;
        state.epoch = recovered.epoch;
        state.job.clone_from(&recovered.job);
        state.commit.clone_from(&recovered.commit);
        state.summary.clone_from(&recovered.summary);
        state.findings.clone_from(&recovered.findings);
        state.sent_back_by.clone_from(&recovered.sent_back_by);
    });
}

/// With the last blocked step gone the chain goes on where it stands.
fn unblock(chain: &mut ChainState) {
    if chain.status == Status::Blocked && !chain.has_blocked_step() {
        chain.status = Status::Running;
    }
}

fn dispatch(chain: &mut ChainState, step: &StepId, job: &crate::ids::JobId) {
    let head = chain.tree.as_ref().map(|tree| tree.head.clone());
    let judged = chain.upstream_commit(step).to_owned();
    let is_writer = chain.shape.step(step).is_some_and(|shape| shape.writer.is_some());
    let others: Vec<StepId> = chain.active().map(|(other, _, _)| other.id.clone()).filter(|id| id != step).collect();
    let beside_writer = others.iter().filter_map(|id| chain.shape.step(id)).any(|other| other.writer.is_some());
    if is_writer {
        for other in &others {
            with(chain, other, |state| state.shared = true);
        }
    }
    with(chain, step, |state| {
        state.phase = Phase::Active(Activity::Running);
        // A later incarnation of the same job looks back to where the first began.
        if state.job.as_ref() != Some(job) || state.before.is_none() {
            state.before = head;
        }
        state.job = Some(job.clone());
        state.shared |= beside_writer;
        if !is_writer {
            state.commit = Some(judged);
        }
    });
}

fn settle(chain: &mut ChainState, step: &StepId, head: &str) {
    if chain.shape.step(step).is_some_and(|shape| shape.writer.is_some()) {
        if let Some(tree) = &mut chain.tree {
            tree.head = head.to_owned();
        }
        with(chain, step, |state| state.commit = Some(head.to_owned()));
    }
}

fn open_round(chain: &mut ChainState, round: u32, cause: &Cause, to: &StepId, steps: &[StepId], findings: &str) {
    chain.round = round;
    let gate = match cause {
        Cause::Gate(gate) => {
            chain.loops_used += 1;
            with(chain, gate, |state| state.phase = Phase::Active(Activity::Noting));
            Some(gate.clone())
        }
        Cause::Operator | Cause::Moved => None,
    };
    chain.must_find_tree |= chain.status == Status::Ready;
    if matches!(chain.status, Status::Blocked | Status::Ready) {
        chain.status = Status::Running;
    }
    chain.asked = None;
    chain.reopening = Some(Reopening {
        round,
        to: to.clone(),
        noted: gate.is_none(),
        gate,
        steps: steps.to_vec(),
        findings: findings.to_owned(),
    });
}

fn reopen(chain: &mut ChainState, round: u32) {
    let Some(reopening) = chain.reopening.take() else { return };
    for step in &reopening.steps {
        with(chain, step, |state| {
            state.phase = Phase::Pending;
            state.round = round;
            state.failures = 0;
            state.before = None;
            state.shared = false;
            state.by_operator = false;
            let works_first = *step == reopening.to;
            state.findings = works_first.then(|| reopening.findings.clone());
            state.sent_back_by = reopening.gate.clone().filter(|_| works_first);
        });
    }
}

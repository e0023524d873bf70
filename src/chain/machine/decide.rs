//! Choosing: what a chain makes of what the world reports.

use std::collections::BTreeSet;

use super::event::{Cause, ChainEvent, ClosedBy};
use super::evolve::evolve;
use super::input::{BeadsView, ChainInput, Outcome, Work};
use super::judge::{Ruling, judge};
use super::state::{Activity, Blocked, ChainState, Phase, Status};
use crate::chain::scrutiny::{Origin, Scrutiny, assess};
use crate::chain::verdict::{BlockReason, Verdict};
use crate::ids::StepId;
use crate::ports::{ClaimAnswer, Commit};

/// Returns the events that an input makes of a chain, in order; none when the input is late or says nothing new.
///
/// The effects follow from the state that these events fold into: see [`super::newly_outstanding`].
pub fn decide(chain: &ChainState, input: ChainInput) -> Vec<ChainEvent> {
    if chain.status.is_over() {
        return Vec::new();
    }
    let mut draft = Draft { chain: chain.clone(), events: Vec::new() };
    draft.take(input);
    draft.conclude();
    draft.events
}

/// Events so far, and the state that they fold into.
struct Draft {
    chain: ChainState,
    events: Vec<ChainEvent>,
}

impl Draft {
    fn push(&mut self, event: ChainEvent) {
        self.chain = evolve(self.chain.clone(), &event);
        self.events.push(event);
    }

    fn take(&mut self, input: ChainInput) {
        match input {
            ChainInput::Started { incarnation } if incarnation > self.chain.incarnation => {
                self.push(ChainEvent::Adopted { incarnation });
            }
            ChainInput::Started { .. } => {}
            ChainInput::Poured if self.chain.status == Status::Opened => self.push(ChainEvent::Poured),
            ChainInput::RootHeld if self.chain.status == Status::Poured => self.push(ChainEvent::RootHeld),
            ChainInput::TreeReady { path, branch, head, reused }
                if self.chain.status == Status::Held || self.chain.must_find_tree =>
            {
                self.tree_ready(path, branch, head, reused);
            }
            ChainInput::Poured | ChainInput::RootHeld | ChainInput::TreeReady { .. } => {}
            ChainInput::BeadsRead(view) => self.beads_read(&view),
            ChainInput::ReadyListed(ready) => self.ready_listed(&ready),
            ChainInput::ClaimAnswered { step, epoch, answer } => self.claim_answered(step, epoch, answer),
            ChainInput::JobSettled { step, epoch, outcome } => self.job_settled(step, epoch, outcome),
            ChainInput::WorkSettled { step, epoch, work } => self.work_settled(step, epoch, &work),
            ChainInput::EvidenceNoted { step, epoch } => {
                if self.is_at(&step, epoch, |activity| *activity == Activity::Noting) {
                    self.push(ChainEvent::EvidenceNoted { step, epoch });
                }
            }
            ChainInput::StepClosed { step } => {
                if self.activity(&step) == Some(&Activity::Closing) {
                    let by_hand = self.chain.steps.get(&step).is_some_and(|state| state.by_operator);
                    let by = if by_hand { ClosedBy::Operator } else { ClosedBy::Job };
                    self.push(ChainEvent::StepClosed { step, by });
                }
            }
            ChainInput::RoundNoted { round } => {
                if self.chain.reopening.as_ref().is_some_and(|open| open.round == round && !open.noted) {
                    self.push(ChainEvent::RoundNoted { round });
                }
            }
            ChainInput::RoundReopened { round } => {
                if self.chain.reopening.as_ref().is_some_and(|open| open.round == round) {
                    self.push(ChainEvent::RoundReopened { round });
                }
            }
            ChainInput::BlockNoted { step } => {
                if matches!(self.phase(&step), Some(Phase::Blocked { noted: false, .. })) {
                    self.push(ChainEvent::BlockNoted { step });
                }
            }
            ChainInput::StepRefused { step, code, detail } => {
                if self.activity(&step).is_some() {
                    self.block(step, code, detail);
                }
            }
            ChainInput::ChainRefused { code, detail } => self.chain_refused(code, detail),
            ChainInput::StopAsked { why } => {
                let may_stop = !matches!(self.chain.status, Status::Ready | Status::Blocked | Status::Stopped { .. });
                if self.chain.stopping.is_none() && may_stop {
                    self.push(ChainEvent::StopRequested { why });
                }
            }
            ChainInput::Resumed { note, from } => self.push(ChainEvent::ResumeAsked { note, from }),
            ChainInput::Accepted { step } => {
                if matches!(self.phase(&step), Some(Phase::Blocked { .. })) {
                    let writes = self.chain.shape.step(&step).is_some_and(|shape| shape.writer.is_some());
                    let commit = if writes { self.tip() } else { self.chain.upstream_commit(&step).to_owned() };
                    self.push(ChainEvent::StepAccepted { step, commit });
                }
            }
            ChainInput::AbandonAsked { reason } => {
                if self.chain.abandoning.is_none() {
                    self.push(ChainEvent::AbandonRequested { reason });
                }
            }
            ChainInput::Abandoned => {
                if let Some(reason) = self.chain.abandoning.clone() {
                    self.push(ChainEvent::Abandoned { reason });
                }
            }
            ChainInput::BranchMoved { head } => self.branch_moved(head),
            ChainInput::PublishAsked => {
                if self.chain.status == Status::Ready && !self.chain.publishing {
                    self.push(ChainEvent::PublishRequested);
                }
            }
            ChainInput::Published if self.chain.publishing => {
                let tip = self.tip();
                self.push(ChainEvent::Published { tip });
            }
            ChainInput::Published => {}
        }
    }

    /// What follows once nothing runs any more.
    fn conclude(&mut self) {
        let at_rest = self.chain.at_rest();
        if self.chain.status.is_over() || !at_rest && !self.only_round_gate_active() {
            return;
        }
        if let Some(why) = self.chain.stopping.clone() {
            self.push(ChainEvent::ChainStopped { why });
        } else if at_rest
            && !self.chain.must_reread
            && !self.chain.must_find_tree
            && self.chain.reopening.is_none()
            && self.chain.asked.is_some()
        {
            self.resume();
        } else if self.chain.status == Status::Running && self.chain.all_closed() && self.chain.reopening.is_none() {
            match self.chain.stale_gate() {
                Some(gate) => self.judge_again(gate),
                None => {
                    let tip = self.tip();
                    self.push(ChainEvent::ChainReady { tip });
                }
            }
        } else if self.chain.status == Status::Running
            && self.chain.reopening.is_none()
            && self.chain.has_blocked_step()
            && at_rest
            && self.blocks_are_noted()
        {
            self.push(ChainEvent::ChainBlocked);
        }
    }

    /// The failed gate of a round stays active until its round is reopened: with a stop asked, that is rest as well.
    fn only_round_gate_active(&self) -> bool {
        let gate = self.chain.reopening.as_ref().filter(|open| open.noted).and_then(|open| open.gate.as_ref());
        gate.is_some()
            && self.chain.active().all(|(step, _, activity)| {
                *activity == Activity::Interrupted || Some(&step.id) == gate && *activity == Activity::Noting
            })
    }

    fn blocks_are_noted(&self) -> bool {
        self.chain.steps.values().all(|state| !matches!(state.phase, Phase::Blocked { noted: false, .. }))
    }

    fn beads_read(&mut self, view: &BeadsView) {
        if !self.chain.must_reread {
            return;
        }
        // Given up or published: both may be closed by ourselves already, with the word about it lost.
        let closing = self.chain.abandoning.is_some() || self.chain.publishing;
        for (what, status) in [("contract bead", &view.root), ("molecule", &view.molecule)] {
            if status.as_deref().is_none_or(|status| status == "closed") && !closing {
                let state = if status.is_none() { "gone" } else { "closed" };
                return self.push(ChainEvent::Cancelled { why: format!("the {what} is {state}") });
            }
        }
        self.push(ChainEvent::Reread);
        let by_hand: Vec<StepId> = self
            .chain
            .in_order()
            .filter(|(step, state)| {
                let closed_in_bd = view.steps.get(&step.id).is_some_and(|bead| bead.status == "closed");
                // Closing: our own close went through before the crash.
                closed_in_bd && !matches!(state.phase, Phase::Closed | Phase::Active(Activity::Closing))
            })
            .filter(|_| self.chain.reopening.is_none())
            .map(|(step, _)| step.id.clone())
            .collect();
        for step in by_hand {
            if self.chain.shape.step(&step).is_some_and(|shape| shape.mandatory) {
                let known = |why: &Blocked| why.code == "closed_by_hand";
                if matches!(self.phase(&step), Some(Phase::Blocked { why, .. }) if known(why)) {
                    continue;
                }
                let detail = format!("{step} is a mandatory gate and was closed by hand in bd");
                self.block(step, "closed_by_hand".into(), detail);
            } else {
                self.push(ChainEvent::StepClosed { step, by: ClosedBy::Operator });
            }
        }
        // Nothing is claimed before there is a tree to work in.
        if self.chain.tree.is_some() {
            self.reclaim();
        }
    }

    /// What was ready is not what is on the branch now: the gates that judged it judge again.
    fn branch_moved(&mut self, head: String) {
        let Some(tree) = self.chain.tree.clone().filter(|tree| tree.head != head) else { return };
        if self.chain.status != Status::Ready || self.chain.publishing {
            return;
        }
        self.tree_ready(tree.path, tree.branch, head, true);
        match self.chain.stale_gate() {
            Some(gate) => self.judge_again(gate),
            None => {
                let tip = self.tip();
                self.push(ChainEvent::ChainReady { tip });
            }
        }
    }

    fn judge_again(&mut self, gate: StepId) {
        let findings = format!("The branch was moved by hand to {}: judge it as it is now.", self.tip());
        self.open_round(Cause::Moved, gate, findings);
    }

    /// The paths of a commit may touch what the scope did not name.
    fn raise_scrutiny(&mut self, paths: &[String]) {
        let now = self.chain.scrutiny.effective.parse().unwrap_or(Scrutiny::Medium);
        let found = assess((now, Origin::Default), paths);
        if found.effective > now {
            let why: Vec<String> =
                found.escalations.iter().map(|raised| format!("{} touches {}", raised.path, raised.surface)).collect();
            self.push(ChainEvent::ScrutinyRaised { to: found.effective.as_str().to_owned(), why: why.join(", ") });
        }
    }

    fn tree_ready(&mut self, path: String, branch: String, head: String, reused: bool) {
        let is_first = self.chain.tree.is_none();
        if let Some(known) = self.chain.tree.as_ref().map(|tree| tree.head.clone())
            && known != head
            && self.chain.writer_of_moves().is_some()
        {
            let detail = format!("{branch} stood at {known} and stands at {head} now, by hand");
            self.push(ChainEvent::Remarked { code: "branch_moved".to_owned(), step: None, detail });
        }
        self.push(ChainEvent::TreeReady { path, branch, head, reused });
        if is_first {
            self.reclaim();
        }
    }

    /// New incarnations for whatever was under way in a process that is gone.
    fn reclaim(&mut self) {
        let reopened: BTreeSet<StepId> =
            self.chain.reopening.as_ref().map(|open| open.steps.iter().cloned().collect()).unwrap_or_default();
        if self.chain.abandoning.is_some() {
            return;
        }
        let lost: Vec<(StepId, u32)> = self
            .chain
            .active()
            .filter(|(_, _, activity)| {
                matches!(activity, Activity::Claiming | Activity::Running | Activity::Interrupted)
            })
            .map(|(step, state, _)| (step.id.clone(), state.epoch))
            .collect();
        for (step, epoch) in lost {
            if reopened.contains(&step) {
                self.push(ChainEvent::StepInterrupted { step, epoch });
            } else {
                self.push(ChainEvent::StepClaiming { step, epoch: epoch + 1 });
            }
        }
    }

    fn ready_listed(&mut self, ready: &BTreeSet<StepId>) {
        if !self.chain.wants_ready() {
            return;
        }
        let expected = self.chain.expected_ready();
        for step in ready.symmetric_difference(&expected) {
            self.remark_divergence(step, ready.contains(step));
        }
        let order: Vec<StepId> = self.chain.shape.steps.iter().map(|step| step.id.clone()).collect();
        for step in order.into_iter().filter(|step| ready.contains(step)) {
            let Some(state) = self.chain.steps.get(&step) else { continue };
            let writes = self.chain.shape.step(&step).is_some_and(|shape| shape.writer.is_some());
            // One writer in a worktree at a time (R3-0018); it is asked for again when the other has settled.
            if state.phase == Phase::Pending && !(writes && self.chain.writer_active()) {
                let epoch = state.epoch + 1;
                self.push(ChainEvent::StepClaiming { step, epoch });
            }
        }
    }

    fn remark_divergence(&mut self, step: &StepId, in_bd: bool) {
        let is_pending = self.phase(step) == Some(&Phase::Pending);
        let code = "readiness_divergence".to_owned();
        let key = (code.clone(), Some(step.clone()));
        if !is_pending || self.chain.remarks.contains(&key) {
            return;
        }
        let detail = if in_bd {
            "bd calls the step ready, the graph does not; bd decides"
        } else {
            "the graph calls the step ready, bd does not; bd decides"
        };
        self.push(ChainEvent::Remarked { code, step: Some(step.clone()), detail: detail.to_owned() });
    }

    fn claim_answered(&mut self, step: StepId, epoch: u32, answer: ClaimAnswer) {
        if !self.is_at(&step, epoch, |activity| *activity == Activity::Claiming) {
            return;
        }
        let why = match answer {
            ClaimAnswer::Claimed => {
                let round = self.chain.steps.get(&step).map_or(1, |state| state.round);
                let job = self.chain.job_of(&step, round);
                return self.push(ChainEvent::StepDispatched { step, epoch, job });
            }
            ClaimAnswer::HeldBy(holder) => format!("held by {holder}"),
            ClaimAnswer::NotReady { status } => format!("not ready, status {status}"),
        };
        self.push(ChainEvent::ClaimLost { step, epoch, why });
    }

    fn job_settled(&mut self, step: StepId, epoch: u32, outcome: Outcome) {
        if !self.is_at(&step, epoch, |activity| *activity == Activity::Running) {
            return;
        }
        match outcome {
            Outcome::Answered { verdict, summary } => {
                if let Verdict::Passed { remark: Some(detail) } = &verdict {
                    let code = "passed_with_remark".to_owned();
                    self.push(ChainEvent::Remarked { code, step: Some(step.clone()), detail: detail.clone() });
                }
                self.push(ChainEvent::JobAnswered { step, epoch, verdict, summary });
            }
            Outcome::NoAnswer { problem } => {
                let verdict = Verdict::Blocked { reason: BlockReason::NoVerdict, detail: problem };
                self.push(ChainEvent::JobAnswered { step, epoch, verdict, summary: "no usable answer".into() });
            }
            Outcome::Stopped if self.chain.is_halting(&step) => self.push(ChainEvent::StepInterrupted { step, epoch }),
            Outcome::Stopped => self.block(step, "job_stopped".into(), "its job was stopped by hand".into()),
            Outcome::Failed { retry, code, detail } => self.failed(step, epoch, retry, code, detail),
        }
    }

    fn failed(&mut self, step: StepId, epoch: u32, retry: bool, code: String, detail: String) {
        let failures = self.chain.steps.get(&step).map_or(0, |state| state.failures);
        if self.chain.is_halting(&step) {
            self.push(ChainEvent::StepInterrupted { step, epoch });
        } else if retry && failures < self.chain.limits.retries {
            self.push(ChainEvent::JobFailed { step: step.clone(), epoch, code, detail });
            self.push(ChainEvent::StepClaiming { step, epoch: epoch + 1 });
        } else {
            self.block(step, code, detail);
        }
    }

    fn work_settled(&mut self, step: StepId, epoch: u32, work: &Work) {
        let Some(Phase::Active(Activity::Settling { verdict })) = self.phase(&step).cloned() else { return };
        let Some(shape) = self.chain.shape.step(&step).cloned() else { return };
        if self.chain.steps.get(&step).is_none_or(|state| state.epoch != epoch) {
            return;
        }
        let (ruling, head) = judge(&self.chain, &shape, &verdict, work);
        self.push(ChainEvent::WorkSettled { step: step.clone(), epoch, head });
        if let Work::Committed(Commit::Made { paths, .. }) = work {
            self.raise_scrutiny(paths);
        }
        let reopened = self.chain.reopening.as_ref().is_some_and(|open| open.steps.contains(&step));
        match ruling {
            // Another gate sent the writer back meanwhile: this word is about the old commit, whatever it says.
            _ if reopened => self.push(ChainEvent::StepInterrupted { step, epoch }),
            Ruling::Pass { commit } => self.push(ChainEvent::StepPassed { step, epoch, commit }),
            // One round at a time: a second failing gate waits for the first one's round, which reopens it if it is
            // downstream of that writer, and blocks otherwise.
            Ruling::Rework { findings, .. } if self.chain.reopening.is_some() => {
                self.block(step, "second_gate_failed".into(), findings);
            }
            Ruling::Rework { to, findings } => self.open_round(Cause::Gate(step), to, findings),
            Ruling::Void { code, detail } => {
                self.push(ChainEvent::Remarked { code: code.into(), step: Some(step.clone()), detail: detail.clone() });
                self.block(step, code.into(), detail);
            }
            Ruling::Block(why) => self.block(step, why.code, why.detail),
        }
    }

    fn open_round(&mut self, cause: Cause, to: StepId, findings: String) {
        let below: BTreeSet<StepId> =
            self.chain.shape.descendants(&to).into_iter().map(|step| step.id.clone()).collect();
        let steps = self
            .chain
            .in_order()
            .filter(|(step, state)| {
                step.id == to
                    || below.contains(&step.id) && state.phase != Phase::Pending
                    || cause == Cause::Operator && matches!(state.phase, Phase::Blocked { .. })
            })
            .map(|(step, _)| step.id.clone())
            .collect();
        self.push(ChainEvent::RoundOpened { round: self.chain.round + 1, cause, to, steps, findings });
    }

    /// Opens the round that the operator asked for, once nothing stands in its way.
    fn resume(&mut self) {
        let Some((note, from)) = self.chain.asked.clone() else { return };
        let blocked = || {
            let mut blocked = self.chain.in_order().filter(|(_, state)| matches!(state.phase, Phase::Blocked { .. }));
            blocked.next().map(|(step, _)| step.id.clone())
        };
        let known = |step: &StepId| self.chain.steps.contains_key(step);
        match from.filter(known).or_else(blocked) {
            Some(to) => self.open_round(Cause::Operator, to, note),
            None => self.push(ChainEvent::ResumeDropped),
        }
    }

    fn chain_refused(&mut self, code: String, detail: String) {
        self.push(ChainEvent::Remarked { code: code.clone(), step: None, detail: detail.clone() });
        if self.chain.stopping.is_none() {
            self.push(ChainEvent::StopRequested { why: format!("{code}: {detail}") });
        }
    }

    fn block(&mut self, step: StepId, code: String, detail: String) {
        self.push(ChainEvent::StepBlocked { step, why: Blocked { code, detail } });
    }

    fn phase(&self, step: &StepId) -> Option<&Phase> {
        self.chain.steps.get(step).map(|state| &state.phase)
    }

    fn activity(&self, step: &StepId) -> Option<&Activity> {
        self.chain.steps.get(step).and_then(|state| state.activity())
    }

    /// Whether a word about (step, epoch) is about what runs now.
    fn is_at(&self, step: &StepId, epoch: u32, expected: impl Fn(&Activity) -> bool) -> bool {
        self.chain.steps.get(step).is_some_and(|state| state.epoch == epoch && state.activity().is_some_and(&expected))
    }

    fn tip(&self) -> String {
        self.chain.tree.as_ref().map_or_else(|| self.chain.base.clone(), |tree| tree.head.clone())
    }
}

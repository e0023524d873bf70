//! A world for the machine: a small tracker, jobs and a worktree, all scripted by a seed, with crashes anywhere.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::chain::shape::{Class, Shape, Step, Writer};
use crate::chain::verdict::{ReworkTarget, Verdict};
use crate::ids::{BeadId, ChainId, JobId, StepId};
use crate::ports::{ClaimAnswer, Commit};
use crate::specialist::Tier;

/// A small deterministic source of choices (xorshift64*).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}

pub(super) fn step(id: &str, needs: &[&str], writer: Option<Writer>, class: Class) -> Step {
    Step {
        id: id.into(),
        title: id.to_owned(),
        description: String::new(),
        notes: String::new(),
        role: id.to_owned(),
        tier: if writer.is_some() { Tier::High } else { Tier::ReadOnly },
        class,
        writer,
        mandatory: class == Class::Gate,
        advisor: false,
        needs: needs.iter().map(|need| StepId::from(*need)).collect(),
        relations: Vec::new(),
        labels: Vec::new(),
        metadata: BTreeMap::new(),
        priority: 2,
    }
}

/// code-standard with its first two gates beside each other, so that rounds meet running jobs.
pub(super) fn wide_shape() -> Shape {
    Shape {
        formula: "code-standard".into(),
        vars: BTreeMap::new(),
        steps: vec![
            step("executor", &[], Some(Writer::Primary), Class::Step),
            step("seconder", &["executor"], None, Class::Gate),
            step("obligations", &["executor"], None, Class::Gate),
            step("tests", &["seconder"], Some(Writer::Secondary), Class::Step),
            step("runner", &["tests"], None, Class::Gate),
            step("reviewer", &["runner", "obligations"], None, Class::Gate),
        ],
    }
}

pub(super) fn opening(shape: Shape) -> Opening {
    Opening {
        chain: ChainId::from("proj-mol-0a1b2c3d"),
        bead: BeadId::from("proj-x"),
        shape,
        limits: Limits::default(),
        scrutiny: Scrutinies { stated: "medium".into(), effective: "medium".into() },
        base: "c0".into(),
        incarnation: 1,
    }
}

#[derive(Default)]
struct Bead {
    closed: bool,
    blocked: bool,
    holder: Option<String>,
}

/// What effects did to the world. Every count is kept, so that doing something twice shows.
pub(super) struct World {
    dice: Dice,
    shape: Shape,
    pours: u32,
    beads: BTreeMap<StepId, Bead>,
    root_free: bool,
    /// Outcomes on disk, by job, with the epoch that wrote them.
    settled: BTreeMap<JobId, (u32, Outcome)>,
    /// How often a job did its work to the end.
    pub(super) answers: BTreeMap<JobId, u32>,
    commits: BTreeMap<JobId, Commit>,
    head: u32,
    notes: BTreeSet<(StepId, u32, String)>,
    note_count: u32,
    failures_left: u32,
}

impl World {
    pub(super) fn new(seed: u64, shape: Shape) -> Self {
        let beads = shape.steps.iter().map(|step| (step.id.clone(), Bead::default())).collect();
        Self {
            dice: Dice::new(seed),
            shape,
            pours: 0,
            beads,
            root_free: true,
            settled: BTreeMap::new(),
            answers: BTreeMap::new(),
            commits: BTreeMap::new(),
            head: 0,
            notes: BTreeSet::new(),
            note_count: 0,
            failures_left: 6,
        }
    }

    /// What the tracker calls ready.
    fn ready(&self) -> BTreeSet<StepId> {
        let closed = |id: &StepId| self.beads[id].closed;
        self.shape
            .steps
            .iter()
            .filter(|step| {
                let bead = &self.beads[&step.id];
                !bead.closed && !bead.blocked && bead.holder.is_none() && step.needs.iter().all(closed)
            })
            .map(|step| step.id.clone())
            .collect()
    }

    /// Does an effect; the answers come later, or never if a crash falls in between.
    fn perform(&mut self, chain: &ChainState, effect: &ChainEffect) -> Vec<ChainInput> {
        match effect {
            ChainEffect::Pour => {
                self.pours = 1;
                vec![ChainInput::Poured]
            }
            ChainEffect::HoldRoot => {
                self.root_free = false;
                vec![ChainInput::RootHeld]
            }
            ChainEffect::PrepareTree => {
                vec![ChainInput::TreeReady { path: "/tree".into(), branch: "feature/x".into(), head: self.head_name() }]
            }
            ChainEffect::Reread => vec![ChainInput::BeadsRead(self.view())],
            ChainEffect::Claim { step, epoch } => vec![self.claim(chain, step, *epoch)],
            ChainEffect::StartJob { step, epoch, job, last_try } => {
                vec![self.run_job(step, *epoch, job, *last_try)]
            }
            ChainEffect::StopJob { step, epoch, job } => {
                let outcome = match self.settled.get(job) {
                    Some((_, done @ (Outcome::Answered { .. } | Outcome::NoAnswer { .. }))) => done.clone(),
                    _ => Outcome::Stopped,
                };
                vec![ChainInput::JobSettled { step: step.clone(), epoch: *epoch, outcome }]
            }
            ChainEffect::SettleWork { step, epoch, job } => vec![self.settle_work(step, *epoch, job)],
            ChainEffect::Note { step, epoch, kind } => {
                let round = chain.steps[step].round;
                if self.notes.insert((step.clone(), round, format!("{kind:?}"))) {
                    self.note_count += 1;
                }
                vec![match kind {
                    NoteKind::Passed => ChainInput::EvidenceNoted { step: step.clone(), epoch: *epoch },
                    NoteKind::Failed => ChainInput::RoundNoted { round: chain.round },
                }]
            }
            ChainEffect::Close { step } => {
                self.bead(step).closed = true;
                vec![ChainInput::StepClosed { step: step.clone() }]
            }
            ChainEffect::Reopen { round } => {
                for step in chain.reopening.as_ref().map(|open| open.steps.clone()).unwrap_or_default() {
                    *self.bead(&step) = Bead::default();
                }
                vec![ChainInput::RoundReopened { round: *round }]
            }
            ChainEffect::NoteBlock { step } => {
                self.bead(step).blocked = true;
                vec![ChainInput::BlockNoted { step: step.clone() }]
            }
            ChainEffect::FreeRoot => {
                self.root_free = true;
                vec![ChainInput::Abandoned]
            }
        }
    }

    fn bead(&mut self, step: &StepId) -> &mut Bead {
        self.beads.get_mut(step).expect("effects name steps of the shape")
    }

    fn head_name(&self) -> String {
        format!("c{}", self.head)
    }

    fn view(&self) -> BeadsView {
        let status = |bead: &Bead| match (bead.closed, bead.blocked, &bead.holder) {
            (true, ..) => "closed",
            (_, true, _) => "blocked",
            (_, _, Some(_)) => "in_progress",
            _ => "open",
        };
        BeadsView {
            root: Some("in_progress".into()),
            molecule: Some("open".into()),
            steps: self
                .beads
                .iter()
                .map(|(id, bead)| (id.clone(), StepView { status: status(bead).into(), assignee: bead.holder.clone() }))
                .collect(),
        }
    }

    fn claim(&mut self, chain: &ChainState, step: &StepId, epoch: u32) -> ChainInput {
        let actor = format!("sp/{}/{step}/{epoch}", chain.chain);
        let ours = format!("sp/{}/{step}/", chain.chain);
        let ready = self.ready().contains(step);
        let bead = self.bead(step);
        let answer = match &bead.holder {
            Some(holder) if !holder.starts_with(&ours) => ClaimAnswer::HeldBy(holder.clone()),
            None if !ready => ClaimAnswer::NotReady { status: "blocked".into() },
            Some(_) | None => {
                bead.holder = Some(actor);
                ClaimAnswer::Claimed
            }
        };
        ChainInput::ClaimAnswered { step: step.clone(), epoch, answer }
    }

    fn run_job(&mut self, step: &StepId, epoch: u32, job: &JobId, last_try: bool) -> ChainInput {
        let known = self.settled.get(job).filter(|(wrote, outcome)| {
            *wrote == epoch || matches!(outcome, Outcome::Answered { .. } | Outcome::NoAnswer { .. })
        });
        let outcome = match known {
            Some((_, outcome)) => outcome.clone(),
            None => {
                let outcome = self.outcome(step, last_try);
                if matches!(outcome, Outcome::Answered { .. } | Outcome::NoAnswer { .. }) {
                    *self.answers.entry(job.clone()).or_default() += 1;
                }
                self.settled.insert(job.clone(), (epoch, outcome.clone()));
                outcome
            }
        };
        ChainInput::JobSettled { step: step.clone(), epoch, outcome }
    }

    fn outcome(&mut self, step: &StepId, last_try: bool) -> Outcome {
        let fails = self.failures_left > 0 && self.dice.one_in(4);
        if !fails {
            return Outcome::Answered { verdict: Verdict::Passed, summary: "passed".into() };
        }
        self.failures_left -= 1;
        let writes = self.shape.step(step).is_some_and(|step| step.writer.is_some());
        match self.dice.below(if last_try { 4 } else { 5 }) {
            0 if !writes => {
                let verdict = Verdict::Rework { target: ReworkTarget::PrimaryWriter, findings: "wrong".into() };
                Outcome::Answered { verdict, summary: "failed".into() }
            }
            1 if !writes => {
                let verdict = Verdict::Rework { target: ReworkTarget::SecondaryWriter, findings: "untested".into() };
                Outcome::Answered { verdict, summary: "failed".into() }
            }
            2 => Outcome::NoAnswer { problem: "prose only".into() },
            _ => Outcome::Failed { retry: true, code: "agent_crashed".into(), detail: "exit 1".into() },
        }
    }

    fn settle_work(&mut self, step: &StepId, epoch: u32, job: &JobId) -> ChainInput {
        let writes = self.shape.step(step).is_some_and(|step| step.writer.is_some());
        let work = if writes {
            if !self.commits.contains_key(job) {
                self.head += 1;
                let made = Commit::Made { head: self.head_name(), paths: vec!["src/a".into()], refused: Vec::new() };
                self.commits.insert(job.clone(), made);
            }
            Work::Committed(self.commits[job].clone())
        } else {
            Work::Compared(None)
        };
        ChainInput::WorkSettled { step: step.clone(), epoch, work }
    }
}

/// One chain driven through its world, with everything a crash can lose kept apart from what it can't.
pub(super) struct Run {
    pub(super) log: Vec<ChainEvent>,
    pub(super) world: World,
    in_flight: Vec<ChainInput>,
    incarnation: u64,
    crashes_left: u32,
    resumes_left: u32,
    crash_at: Option<usize>,
    dice: Dice,
}

impl Run {
    pub(super) fn new(seed: u64, crashes: u32) -> Self {
        let shape = wide_shape();
        Self {
            log: vec![ChainEvent::Opened(Box::new(opening(shape.clone())))],
            world: World::new(seed, shape),
            in_flight: Vec::new(),
            incarnation: 1,
            crashes_left: crashes,
            resumes_left: 3,
            crash_at: None,
            dice: Dice::new(seed ^ 0xABCD),
        }
    }

    /// Has the process die once, as soon as the log is this long.
    pub(super) fn crash_after(&mut self, events: usize) {
        self.crash_at = Some(events);
    }

    pub(super) fn state(&self) -> ChainState {
        fold(&self.log).expect("the log begins with Opened")
    }

    /// Runs until nothing is left to do; returns the last state.
    pub(super) fn to_the_end(&mut self) -> ChainState {
        self.restart();
        for _ in 0..4_000 {
            let state = self.state();
            if self.crashes_left > 0 && self.dice.one_in(12) {
                self.crashes_left -= 1;
                self.restart();
                continue;
            }
            if self.in_flight.is_empty() {
                if state.wants_ready() {
                    let ready = self.world.ready();
                    self.feed(ChainInput::ReadyListed(ready));
                } else if matches!(state.status, Status::Blocked) && self.resumes_left > 0 {
                    self.resumes_left -= 1;
                    self.feed(ChainInput::Resumed { note: "try again".into(), from: None });
                } else if matches!(state.status, Status::Stopped { .. }) {
                    self.restart();
                } else {
                    return state;
                }
                continue;
            }
            let input = self.in_flight.remove(self.dice.below(self.in_flight.len()));
            self.feed(input);
            if self.dice.one_in(60) {
                self.feed(ChainInput::StopAsked { why: "test".into() });
            }
        }
        panic!("no end after 4,000 inputs: {:?}", self.state().status);
    }

    /// The process dies and another takes over: what was in flight is lost, what is on disk is folded.
    fn restart(&mut self) {
        self.incarnation += 1;
        self.in_flight.clear();
        let input = ChainInput::Started { incarnation: self.incarnation };
        self.log.extend(decide(&self.state(), input));
        let state = self.state();
        for effect in outstanding(&state) {
            self.in_flight.extend(self.world.perform(&state, &effect));
        }
    }

    fn feed(&mut self, input: ChainInput) {
        let before = self.state();
        for event in decide(&before, input) {
            self.log.push(event);
        }
        if self.crash_at.is_some_and(|length| self.log.len() >= length) {
            self.crash_at = None;
            return self.restart();
        }
        let after = self.state();
        for effect in newly_outstanding(&before, &after) {
            // A crash between "on disk" and "done", or between "done" and "answered".
            if self.crashes_left > 0 && self.dice.one_in(40) {
                self.crashes_left -= 1;
                if self.dice.one_in(2) {
                    self.world.perform(&after, &effect);
                }
                return self.restart();
            }
            self.in_flight.extend(self.world.perform(&after, &effect));
        }
    }

    /// What must hold of every run, however it went.
    pub(super) fn check(&self, end: &ChainState) -> Result<(), String> {
        let say = |text: String| Err(format!("{text}\n{:#?}", self.log));
        if self.world.pours != 1 {
            return say(format!("{} molecules", self.world.pours));
        }
        if let Some((job, times)) = self.world.answers.iter().find(|(_, times)| **times > 1) {
            return say(format!("job {job} did its work {times} times"));
        }
        if self.world.note_count as usize != self.world.notes.len() {
            return say("a note was appended twice".into());
        }
        for (step, state) in &end.steps {
            let bead = &self.world.beads[step];
            if (state.phase == Phase::Closed) != bead.closed {
                return say(format!("{step} is {:?}, closed in bd: {}", state.phase, bead.closed));
            }
            let blocked = matches!(state.phase, Phase::Blocked { .. });
            if blocked != bead.blocked {
                return say(format!("{step} is {:?}, blocked in bd: {}", state.phase, bead.blocked));
            }
        }
        if end.loops_used > end.limits.fix_loops {
            return say(format!("{} fix loops", end.loops_used));
        }
        match end.status {
            Status::Ready => self.check_gates(end),
            Status::Blocked => Ok(()),
            _ => say(format!("ended {:?}", end.status)),
        }
    }

    /// Every gate judged the newest commit of the writers above it (R3-0054).
    fn check_gates(&self, end: &ChainState) -> Result<(), String> {
        for step in end.shape.steps.iter().filter(|step| step.class == Class::Gate) {
            let judged = end.steps[&step.id].commit.as_deref();
            if judged != Some(end.upstream_commit(&step.id)) {
                return Err(format!("{} judged {judged:?}, newest is {}", step.id, end.upstream_commit(&step.id)));
            }
        }
        Ok(())
    }
}

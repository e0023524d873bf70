//! A world for the machine: a small tracker, jobs and a worktree, all scripted by a seed, with crashes anywhere.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::event::Standing;
use super::*;
use crate::chain::evidence::Note;
use crate::chain::shape::{Class, Shape, Step, Writer};
use crate::chain::verdict::{ReworkTarget, Verdict};
use crate::ids::{BeadId, ChainId, JobId, StepId};
use crate::ports::{ClaimAnswer, Commit};
use crate::specialist::Tier;

/// A small deterministic source of choices (xorshift64*).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}

pub(crate) fn step(id: &str, needs: &[&str], writer: Option<Writer>, class: Class) -> Step {
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

pub(crate) fn opening(shape: Shape) -> Opening {
    Opening {
        chain: ChainId::from("proj-mol-0a1b2c3d"),
        bead: BeadId::from("proj-x"),
        shape,
        limits: Limits::default(),
        scrutiny: Scrutinies { stated: "medium".into(), effective: "medium".into() },
        base: "c0".into(),
        incarnation: 1,
        rehearsal: false,
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
    notes: BTreeMap<StepId, String>,
    /// Whether the log was lost.
    lost: bool,
    /// Steps that were passed and closed when the log was lost, with their jobs.
    kept: BTreeMap<StepId, JobId>,
    failures_left: u32,
    /// Jobs with a live process.
    live: BTreeMap<JobId, StepId>,
    /// What went wrong in the world itself.
    faults: Vec<String>,
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
            notes: BTreeMap::new(),
            lost: false,
            kept: BTreeMap::new(),
            failures_left: 6,
            live: BTreeMap::new(),
            faults: Vec::new(),
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
                vec![ChainInput::TreeReady {
                    path: "/tree".into(),
                    branch: "feature/x".into(),
                    head: self.head_name(),
                    reused: false,
                }]
            }
            ChainEffect::Reread => vec![ChainInput::BeadsRead(self.view())],
            ChainEffect::Claim { step, epoch } => vec![self.claim(chain, step, *epoch)],
            ChainEffect::StartJob { step, epoch, job, last_try } => {
                self.start(step, job);
                vec![self.run_job(step, *epoch, job, *last_try)]
            }
            ChainEffect::StopJob { step, epoch, job } => {
                self.live.remove(job);
                let outcome = match self.settled.get(job) {
                    Some((_, done @ (Outcome::Answered { .. } | Outcome::NoAnswer { .. }))) => done.clone(),
                    _ => Outcome::Stopped,
                };
                vec![ChainInput::JobSettled { step: step.clone(), epoch: *epoch, outcome }]
            }
            ChainEffect::SettleWork { step, epoch, job } => vec![self.settle_work(step, *epoch, job)],
            ChainEffect::Note { step, epoch, kind } => {
                self.note(evidence_of(chain, step, *kind));
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
                if let Some(note) = request_of(chain) {
                    self.note(Some(note));
                }
                for step in chain.reopening.as_ref().map(|open| open.steps.clone()).unwrap_or_default() {
                    if self.live.values().any(|at| *at == step) {
                        self.faults.push(format!("{step} was reopened under its running job"));
                    }
                    *self.bead(&step) = Bead::default();
                }
                vec![ChainInput::RoundReopened { round: *round }]
            }
            ChainEffect::NoteBlock { step } => {
                self.note(block_of(chain, step));
                self.bead(step).blocked = true;
                vec![ChainInput::BlockNoted { step: step.clone() }]
            }
            ChainEffect::ClosePublished => vec![ChainInput::Published],
            ChainEffect::FreeRoot => {
                self.root_free = true;
                vec![ChainInput::Abandoned]
            }
        }
    }

    fn note(&mut self, note: Option<Note>) {
        let note = note.expect("effects name steps of the shape");
        let all = self.notes.entry(note.step.clone()).or_default();
        if !all.lines().any(|line| line == note.header()) {
            all.push_str(&format!("{note}\n"));
        }
    }

    /// The database is lost: what bd, git and nobody else knows stays.
    fn recovered(&mut self, chain: &ChainId) -> ChainEvent {
        self.lost = true;
        self.settled.clear();
        let view = self.view();
        let record = |(step, bead): (&StepId, &StepView)| {
            let notes = self.notes.get(step).cloned().unwrap_or_default();
            let record = StepRecord { status: bead.status.clone(), assignee: bead.assignee.clone(), notes };
            (step.clone(), record)
        };
        let event = recovered(chain, &self.shape, &view.steps.iter().map(record).collect());
        if let ChainEvent::Recovered { steps, .. } = &event {
            for step in steps.iter().filter(|step| step.stands == Standing::Closed { by: ClosedBy::Job }) {
                self.kept.extend(step.job.clone().map(|job| (step.step.clone(), job)));
            }
        }
        event
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

    /// A job's process begins; in the real world it lives until it settles or is stopped.
    fn start(&mut self, step: &StepId, job: &JobId) {
        let writes = |id: &StepId| self.shape.step(id).is_some_and(|step| step.writer.is_some());
        let others: Vec<&StepId> = self.live.iter().filter(|(id, _)| *id != job).map(|(_, at)| at).collect();
        if others.contains(&step) {
            self.faults.push(format!("two live jobs on {step}"));
        }
        if writes(step) && others.into_iter().any(writes) {
            self.faults.push(format!("{step} wrote beside another writer"));
        }
        self.live.insert(job.clone(), step.clone());
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
            return Outcome::Answered { verdict: Verdict::Passed { remark: None }, summary: "passed".into() };
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

fn step_of(effect: &ChainEffect) -> Option<StepId> {
    match effect {
        ChainEffect::StartJob { step, .. }
        | ChainEffect::StopJob { step, .. }
        | ChainEffect::SettleWork { step, .. } => Some(step.clone()),
        _ => None,
    }
}

/// One chain driven through its world, with everything a crash can lose kept apart from what it can't.
pub(super) struct Run {
    pub(super) log: Vec<ChainEvent>,
    pub(super) world: World,
    /// Effects that the tracker has not done yet: one at a time, in order.
    tracker_queue: VecDeque<(ChainState, ChainEffect)>,
    /// Effects that somebody else has not done yet, in any order.
    others_queue: Vec<(ChainState, ChainEffect)>,
    answers: Vec<ChainInput>,
    incarnation: u64,
    crashes_left: u32,
    resumes_left: u32,
    crash_at: Option<usize>,
    /// Whether the log is lost with the crash.
    lose_log: bool,
    dice: Dice,
}

impl Run {
    pub(super) fn new(seed: u64, crashes: u32) -> Self {
        let shape = wide_shape();
        Self {
            log: vec![ChainEvent::Opened(Box::new(opening(shape.clone())))],
            world: World::new(seed, shape),
            tracker_queue: VecDeque::new(),
            others_queue: Vec::new(),
            answers: Vec::new(),
            incarnation: 1,
            crashes_left: crashes,
            resumes_left: 3,
            crash_at: None,
            lose_log: false,
            dice: Dice::new(seed ^ 0xABCD),
        }
    }

    /// Has the process die once, as soon as the log is this long.
    pub(super) fn crash_after(&mut self, events: usize) {
        self.crash_at = Some(events);
    }

    /// Has the process die once, as soon as the log is this long, and the database with it.
    pub(super) fn lose_all_after(&mut self, events: usize) {
        self.crash_at = Some(events);
        self.lose_log = true;
    }

    pub(super) fn state(&self) -> ChainState {
        fold(&self.log).expect("the log begins with Opened")
    }

    /// Runs until nothing is left to do; returns the last state.
    pub(super) fn run_to_the_end(&mut self) -> ChainState {
        self.restart();
        for _ in 0..6_000 {
            if self.crashes_left > 0 && self.dice.one_in(25) {
                self.crashes_left -= 1;
                self.restart();
            } else if self.dice.one_in(120) {
                self.feed(ChainInput::StopAsked { why: "test".into() });
            } else if !self.step() && !self.nudge() {
                return self.state();
            }
        }
        panic!("no end after 6,000 steps: {:?}", self.state().status);
    }

    /// Does one thing that is under way; `false` when nothing is.
    fn step(&mut self) -> bool {
        let choices = [!self.tracker_queue.is_empty(), !self.others_queue.is_empty(), !self.answers.is_empty()];
        let open: Vec<usize> = (0..3).filter(|choice| choices[*choice]).collect();
        if open.is_empty() {
            return false;
        }
        match open[self.dice.below(open.len())] {
            0 => {
                if let Some((state, effect)) = self.tracker_queue.pop_front() {
                    self.answers.extend(self.world.perform(&state, &effect));
                }
            }
            1 => {
                let (state, effect) = self.next_of_others();
                self.answers.extend(self.world.perform(&state, &effect));
            }
            _ => {
                let input = self.answers.remove(self.dice.below(self.answers.len()));
                if let ChainInput::JobSettled { step, .. } = &input {
                    self.world.live.retain(|_, at| at != step);
                }
                self.feed(input);
            }
        }
        true
    }

    /// Jobs run beside each other, but the words about one step keep their order: one actor owns them.
    fn next_of_others(&mut self) -> (ChainState, ChainEffect) {
        let chosen = step_of(&self.others_queue[self.dice.below(self.others_queue.len())].1);
        let first = self.others_queue.iter().position(|(_, effect)| step_of(effect) == chosen);
        self.others_queue.remove(first.expect("the chosen one is in the queue"))
    }

    /// Nothing is under way: asks for ready steps, or plays the operator; `false` when the run is over.
    fn nudge(&mut self) -> bool {
        let state = self.state();
        if state.wants_ready() {
            let ready = self.world.ready();
            self.feed(ChainInput::ReadyListed(ready));
        } else if matches!(state.status, Status::Blocked) && self.resumes_left > 0 {
            self.resumes_left -= 1;
            self.feed(ChainInput::Resumed { note: "try again".into(), from: None });
        } else if matches!(state.status, Status::Stopped { .. }) {
            self.restart();
        } else {
            return false;
        }
        true
    }

    /// The process dies and another takes over: what was under way is lost, what is on disk is folded.
    fn restart(&mut self) {
        self.incarnation += 1;
        self.tracker_queue.clear();
        self.others_queue.clear();
        self.answers.clear();
        self.world.live.clear();
        let input = ChainInput::Started { incarnation: self.incarnation };
        self.log.extend(decide(&self.state(), input));
        let state = self.state();
        for effect in outstanding(&state) {
            self.enqueue(state.clone(), effect);
        }
    }

    /// The database is gone: the log begins anew with what bd knows.
    fn lose(&mut self) {
        let before = self.state();
        let opened = Opening { incarnation: self.incarnation, ..opening(before.shape.clone()) };
        self.log = vec![ChainEvent::Opened(Box::new(opened))];
        // Before the pour there is nothing to recover from: a chain begins.
        if self.world.pours > 0 {
            self.log.extend([ChainEvent::Poured, self.world.recovered(&before.chain)]);
        }
    }

    fn enqueue(&mut self, state: ChainState, effect: ChainEffect) {
        match effect {
            ChainEffect::StartJob { .. } | ChainEffect::StopJob { .. } | ChainEffect::SettleWork { .. } => {
                self.others_queue.push((state, effect));
            }
            ChainEffect::Pour
            | ChainEffect::HoldRoot
            | ChainEffect::PrepareTree
            | ChainEffect::Reread
            | ChainEffect::Claim { .. }
            | ChainEffect::Note { .. }
            | ChainEffect::Close { .. }
            | ChainEffect::Reopen { .. }
            | ChainEffect::NoteBlock { .. }
            | ChainEffect::ClosePublished
            | ChainEffect::FreeRoot => self.tracker_queue.push_back((state, effect)),
        }
    }

    fn feed(&mut self, input: ChainInput) {
        let before = self.state();
        self.log.extend(decide(&before, input));
        if self.crash_at.is_some_and(|length| self.log.len() >= length) {
            self.crash_at = None;
            if std::mem::take(&mut self.lose_log) {
                self.lose();
            }
            return self.restart();
        }
        let after = self.state();
        for effect in newly_outstanding(&before, &after) {
            self.enqueue(after.clone(), effect);
        }
    }

    /// What must hold of every run, however it went.
    pub(super) fn check(&self, end: &ChainState) -> Result<(), String> {
        let say = |text: String| Err(format!("{text}\n{:#?}", self.log));
        if let Some(fault) = self.world.faults.first() {
            return say(fault.clone());
        }
        if self.world.pours != 1 {
            return say(format!("{} molecules", self.world.pours));
        }
        let once = |job: &JobId| !self.world.lost || self.world.kept.values().any(|kept| kept == job);
        if let Some((job, times)) = self.world.answers.iter().find(|(job, times)| **times > 1 && once(job)) {
            return say(format!("job {job} did its work {times} times"));
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

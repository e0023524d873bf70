//! The model of expected outcomes: what a chain must leave behind in bd, git, the database and on disk.
//!
//! A test tells the story of a run in the words of the rules (`passes`, `sends_back`, `blocks`, …); the model says what
//! follows from it for every bead, note, job, commit and ref. [`super::Repo::must_equal`] compares both ways.

use std::collections::BTreeMap;

use super::formulas::{CODE_STANDARD, PAIR, RUN, TESTED};

/// Facts by name, as [`super::world`] reads them.
pub type Facts = BTreeMap<String, String>;

/// Where a step's bead stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Pending,
    /// Claimed by us; its job is to go on.
    Claimed,
    Blocked,
    Closed,
}

/// One job.
#[derive(Debug, Clone)]
struct Job {
    round: u32,
    status: &'static str,
    /// Final answers that it gave itself.
    answers: u32,
    /// Final answers in its session file: those of earlier rounds too.
    in_session: u32,
    /// Whether its result is kept.
    result: bool,
}

/// One step.
#[derive(Debug, Clone)]
struct Step {
    id: &'static str,
    writes: bool,
    round: u32,
    phase: Phase,
    /// Whether an incarnation of ours is named as holder.
    held: bool,
    notes: Vec<String>,
    jobs: Vec<Job>,
    closes: u32,
}

/// The model of one chain.
#[derive(Debug, Clone)]
#[must_use]
pub struct Expected {
    formula: &'static str,
    bead: String,
    steps: Vec<Step>,
    round: u32,
    commits: Vec<String>,
    rescued: Vec<(&'static str, u32)>,
    remarks: Vec<String>,
    status: &'static str,
    /// Changed paths of the worktree, as `git status` has them.
    changes: Vec<&'static str>,
    files: Vec<&'static str>,
}

impl Expected {
    /// The six steps of code-standard.
    pub fn code_standard(bead: &str) -> Self {
        let steps = ["executor", "seconder", "test-engineer", "test-runner", "obligations-scanner", "reviewer"];
        Self::of(CODE_STANDARD, bead, &steps)
    }

    /// executor → reviewer.
    pub fn pair(bead: &str) -> Self {
        Self::of(PAIR, bead, &["executor", "reviewer"])
    }

    /// executor → test-engineer → reviewer.
    pub fn tested(bead: &str) -> Self {
        Self::of(TESTED, bead, &["executor", "test-engineer", "reviewer"])
    }

    /// executor → test-runner.
    pub fn run(bead: &str) -> Self {
        Self::of(RUN, bead, &["executor", "test-runner"])
    }

    fn of(formula: &'static str, bead: &str, steps: &[&'static str]) -> Self {
        let step = |id: &&'static str| Step {
            id,
            writes: matches!(*id, "executor" | "test-engineer"),
            round: 1,
            phase: Phase::Pending,
            held: false,
            notes: Vec::new(),
            jobs: Vec::new(),
            closes: 0,
        };
        Self {
            formula,
            bead: bead.to_owned(),
            steps: steps.iter().map(step).collect(),
            round: 1,
            commits: Vec::new(),
            rescued: Vec::new(),
            remarks: Vec::new(),
            status: "running",
            changes: Vec::new(),
            files: Vec::new(),
        }
    }

    fn at(&self, id: &str) -> usize {
        self.steps.iter().position(|step| step.id == id).unwrap_or_else(|| panic!("no step {id}"))
    }

    /// A job of the step in its present round gave `answers` final answers.
    fn answered(&mut self, at: usize, status: &'static str, answers: u32, result: bool) {
        let step = &mut self.steps[at];
        // Each round goes on in a copy of the session before.
        let before = step.jobs.last().map_or(0, |job| job.in_session);
        step.jobs.push(Job { round: step.round, status, answers, in_session: before + answers, result });
        step.held = true;
    }

    fn commit(&mut self, at: usize) {
        let step = &self.steps[at];
        if step.writes {
            self.commits.push(format!("checkpoint({}): {} turn {}", step.id, self.bead, step.round));
        }
    }

    fn close(&mut self, at: usize, note: String) {
        let step = &mut self.steps[at];
        step.notes.push(note);
        step.phase = Phase::Closed;
        step.closes += 1;
    }

    /// The step passes at once.
    pub fn passes(self, id: &str) -> Self {
        self.passes_after(id, 1)
    }

    /// The step passes with its n-th answer.
    pub fn passes_after(mut self, id: &str, answers: u32) -> Self {
        let at = self.at(id);
        self.answered(at, "done", answers, true);
        self.commit(at);
        let note = format!("passed round {}", self.steps[at].round);
        self.close(at, note);
        self
    }

    /// Every step that is still to run passes at once.
    pub fn rest_passes(mut self) -> Self {
        let pending: Vec<_> =
            self.steps.iter().filter(|step| step.phase == Phase::Pending).map(|step| step.id).collect();
        for id in pending {
            self = self.passes(id);
        }
        self
    }

    /// A gate fails and sends the work back to a writer: a new round.
    pub fn sends_back(mut self, gate: &str, to: &str) -> Self {
        let at = self.at(gate);
        self.answered(at, "done", 1, true);
        let note = format!("failed round {}", self.steps[at].round);
        self.steps[at].notes.push(note);
        self.steps[at].phase = Phase::Claimed;
        self.reopens(to)
    }

    /// A second writer reached for production paths: undone, and back to the first.
    pub fn oversteps(mut self, id: &'static str, to: &str) -> Self {
        self.rescued.push((id, self.steps[self.at(id)].round));
        self.sends_back(id, to)
    }

    fn reopens(mut self, to: &str) -> Self {
        self.round += 1;
        let first = self.at(to);
        let operator = self.steps.iter().all(|step| step.phase != Phase::Claimed);
        for (at, step) in self.steps.iter_mut().enumerate() {
            let below = at > first && step.phase != Phase::Pending;
            if at == first || below || operator && step.phase == Phase::Blocked {
                step.phase = Phase::Pending;
                step.held = false;
                step.round = self.round;
            }
        }
        self
    }

    /// The step answers, and waits for people.
    pub fn blocks(self, id: &str, code: &str) -> Self {
        self.blocks_with(id, code, "done", 1, true)
    }

    /// The step waits for people, with this of its job: status, answers, and whether its last answer is kept.
    pub fn blocks_with(mut self, id: &str, code: &str, status: &'static str, answers: u32, result: bool) -> Self {
        let at = self.at(id);
        self.answered(at, status, answers, result);
        let step = &mut self.steps[at];
        step.notes.push(format!("blocked {code} round {}", step.round));
        step.phase = Phase::Blocked;
        self.status = "blocked";
        self
    }

    /// The commit of a blocked step went through before it was blocked.
    pub fn with_commit(mut self, id: &str) -> Self {
        let at = self.at(id);
        self.commit(at);
        self
    }

    /// What a reader changed is saved and undone; its word is void and it waits for people.
    pub fn voided(mut self, id: &'static str) -> Self {
        self.rescued.push((id, self.steps[self.at(id)].round));
        self.remarks.push(format!("reader_changed_tree {id}"));
        self.blocks(id, "reader_changed_tree")
    }

    /// The operator has a step worked again.
    pub fn resumed_at(mut self, to: &str) -> Self {
        self.status = "running";
        let at = self.at(to);
        self.steps[at].notes.push(format!("is to work again by hand round {}", self.round + 1));
        self.reopens(to)
    }

    /// The operator passes a blocked step by hand.
    pub fn accepted(mut self, id: &str) -> Self {
        let at = self.at(id);
        let note = format!("accepted by the operator round {}", self.steps[at].round);
        self.close(at, note);
        self.status = "running";
        self
    }

    /// A stop came while the step's job worked.
    pub fn interrupted(mut self, id: &str, answers: u32) -> Self {
        let at = self.at(id);
        self.answered(at, "waiting", answers, false);
        self.steps[at].phase = Phase::Claimed;
        self
    }

    /// The record of the step's last job is closed without a result.
    pub fn left_behind(mut self, id: &str) -> Self {
        let at = self.at(id);
        let job = self.steps[at].jobs.last_mut().unwrap();
        job.status = "cancelled";
        self
    }

    /// A remark is in the log.
    pub fn remarks(mut self, code: &str, step: &str) -> Self {
        self.remarks.push(format!("{code} {step}"));
        self
    }

    /// The worktree has these changes that are not committed, as `git status --porcelain` has them.
    pub fn with_changes(mut self, changes: &[&'static str]) -> Self {
        self.changes = changes.to_vec();
        self
    }

    /// These are in `.specialists/` beside the usual.
    pub fn with_files(mut self, files: &[&'static str]) -> Self {
        self.files = files.to_vec();
        self
    }

    /// What is left passes, and the chain is ready to merge.
    pub fn ready(self) -> Self {
        let mut all = self.rest_passes();
        all.status = "ready_to_merge";
        all
    }

    /// The chain rests, stopped.
    pub fn stopped(mut self) -> Self {
        self.status = "stopped";
        self
    }

    /// The work is merged and its beads are closed.
    pub fn published(mut self) -> Self {
        self.status = "published";
        self
    }

    /// The chain is given up.
    pub fn abandoned(mut self) -> Self {
        self.status = "abandoned";
        self
    }

    /// Returns every fact that follows.
    pub(super) fn facts(&self) -> Facts {
        let mut facts = Facts::new();
        let mut add = |name: String, what: String| drop(facts.insert(name, what));
        let (root, molecule) = match self.status {
            "published" => ("closed, held by the chain", "closed"),
            "abandoned" => ("open, held by nobody", "closed"),
            _ => ("in_progress, held by the chain", "open"),
        };
        add("chain".into(), format!("{} on {}: {}", self.formula, self.bead, self.status));
        add("contract bead".into(), root.into());
        // Also afterwards: it is how people find the chain's molecule from the bead.
        add("chain that the contract bead names".into(), "the chain".into());
        add("molecule".into(), molecule.into());
        for step in &self.steps {
            let (id, holder) = (step.id, if step.held { "us" } else { "nobody" });
            let status = match step.phase {
                Phase::Pending => "open",
                Phase::Claimed => "in_progress",
                Phase::Blocked => "blocked",
                Phase::Closed => "closed",
            };
            add(format!("bead of {id}"), format!("{status}, held by {holder}"));
            add(format!("notes on {id}"), step.notes.join("; "));
            add(format!("closes of {id}"), step.closes.to_string());
            for job in &step.jobs {
                let result = if job.result { "its result kept" } else { "no result" };
                let ends = u32::from(job.status != "waiting");
                let what = format!("{}, {} answers in session, {result}, {ends} ends", job.status, job.in_session);
                add(format!("job of {id} in round {}", job.round), what);
            }
        }
        let branch = format!("feature/{}-executor", self.bead);
        add(format!("ref refs/heads/{branch}"), self.commits.join("; "));
        for (step, round) in &self.rescued {
            add(format!("ref refs/sp/rescue/{step}.{round}"), "a commit".into());
        }
        add("worktree".into(), format!("on {branch}"));
        add("changes in the worktree".into(), self.changes.join("; "));
        let mut remarks = self.remarks.clone();
        remarks.sort();
        add("remarks".into(), remarks.join("; "));
        add("other files".into(), self.files.join("; "));
        facts
    }
}

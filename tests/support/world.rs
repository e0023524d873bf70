//! Reads what a chain has left behind in bd, git, the database, on disk and among the processes, as facts that can be
//! compared with the model. What no run may ever leave is a fact too: a `fault`, which no model has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::expected::{Expected, Facts};
use super::repo::Repo;

/// Files that a job may have.
const JOB_FILES: [&str; 12] = [
    "agent",
    "before.json",
    "diff.patch",
    "events.jsonl",
    "prompt.md",
    "rehearsal-faults.json",
    "result.txt",
    "session.jsonl",
    "status.json",
    "system.md",
    "tmp",
    "upstream",
];
/// Files that every job must have.
const ALWAYS: [&str; 6] = ["before.json", "events.jsonl", "prompt.md", "session.jsonl", "status.json", "system.md"];

/// Returns in what the world and the model differ, looking both ways.
pub fn differences(repo: &Repo, expected: &Expected) -> Vec<String> {
    let (wanted, found) = (expected.facts(), Reading::of(repo));
    let names: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
    let side = |mark, what: Option<&String>| what.map_or(String::new(), |what| format!("\n  {mark} {what}"));
    let differs = |name: &&&String| wanted.get(**name) != found.get(**name);
    let tell = |name| format!("{name}:{}{}", side("expected", wanted.get(name)), side("found   ", found.get(name)));
    names.iter().filter(differs).map(|name| tell(*name)).collect()
}

/// One row of `specialist_jobs`.
struct Row {
    job: String,
    step: String,
    round: u32,
    epoch: u32,
    status: String,
    json: String,
    pid: Option<i64>,
}

struct Reading<'a> {
    repo: &'a Repo,
    chain: String,
    facts: Facts,
    jobs: Vec<Row>,
}

impl<'a> Reading<'a> {
    fn of(repo: &'a Repo) -> Facts {
        let mut reading = Self { repo, chain: repo.chain(), facts: Facts::new(), jobs: rows(repo) };
        reading.chain_row();
        reading.log();
        reading.beads();
        reading.jobs();
        reading.refs();
        reading.trees();
        reading.files();
        reading.processes();
        reading.facts
    }

    fn add(&mut self, name: impl Into<String>, what: impl Into<String>) {
        self.facts.insert(name.into(), what.into());
    }

    fn fault(&mut self, what: impl Into<String>) {
        let number = self.facts.keys().filter(|name| name.starts_with("fault")).count() + 1;
        self.add(format!("fault {number}"), what);
    }

    fn chain_row(&mut self) {
        let rows = self.repo.column("SELECT formula || ' on ' || bead_id || ': ' || status FROM chains");
        self.add("chain", rows.join(" and "));
        for held in self.repo.column("SELECT resource FROM owners WHERE boot_id IS NOT NULL") {
            self.fault(format!("{held} is still owned"));
        }
    }

    /// The log is gapless, answers once a job and closes as often as the model says.
    fn log(&mut self) {
        let seqs = self.repo.column("SELECT CAST(seq AS TEXT) FROM chain_events ORDER BY seq");
        let gapless = seqs.iter().zip(1..).all(|(seq, at): (&String, u64)| *seq == at.to_string());
        if !gapless {
            self.fault(format!("the chain's log has a gap: {seqs:?}"));
        }
        let mut answers: BTreeMap<String, u32> = BTreeMap::new();
        let mut closes: BTreeMap<String, u32> = BTreeMap::new();
        let mut remarks = Vec::new();
        for event in self.repo.events() {
            let step = event["step"].as_str().unwrap_or("the chain").to_owned();
            match event["type"].as_str().unwrap() {
                "job_answered" => *answers.entry(step).or_default() += 1,
                "step_closed" => *closes.entry(step).or_default() += 1,
                "remarked" => remarks.push(format!("{} {step}", event["code"].as_str().unwrap())),
                _ => {}
            }
        }
        remarks.sort();
        self.add("remarks", remarks.join("; "));
        let settled = |step: &str| {
            let ended = |row: &&Row| row.step == step && answered(&row.json);
            u32::try_from(self.jobs.iter().filter(ended).count()).unwrap()
        };
        let doubled: Vec<String> = answers
            .iter()
            .filter(|(step, count)| **count != settled(step))
            .map(|(step, count)| format!("{step} answered {count} times in the log, {} in its jobs", settled(step)))
            .collect();
        doubled.into_iter().for_each(|what| self.fault(what));
        for step in self.steps() {
            let count = closes.get(&step).copied().unwrap_or_default();
            self.add(format!("closes of {step}"), count.to_string());
        }
    }

    /// The steps of the chain's stored shape, in order.
    fn steps(&self) -> Vec<String> {
        let shape: Value = serde_json::from_str(&self.repo.column("SELECT shape_json FROM chains")[0]).unwrap();
        shape["steps"].as_array().unwrap().iter().map(|step| step["id"].as_str().unwrap().to_owned()).collect()
    }

    fn beads(&mut self) {
        let listed = self.repo.bd_json(["list", "--all", "-n", "0"]);
        let contract = self.repo.column("SELECT bead_id FROM chains").remove(0);
        let text = |bead: &Value, name: &str| bead[name].as_str().unwrap_or_default().to_owned();
        let mut seen = BTreeSet::new();
        for bead in listed.as_array().unwrap() {
            let (id, status, holder) = (text(bead, "id"), text(bead, "status"), text(bead, "assignee"));
            if id == contract {
                let holder =
                    if holder == format!("sp/{}", self.chain) { "the chain".to_owned() } else { named(&holder) };
                self.add("contract bead", format!("{status}, held by {holder}"));
                let chain = bead["metadata"]["sp_chain"].as_str().unwrap_or("none");
                let chain = if chain == self.chain { "the chain" } else { chain };
                self.add("chain that the contract bead names", chain);
            } else if id == self.chain {
                self.add("molecule", status);
            } else if let Some(step) = id.strip_prefix(&format!("{}-", self.chain)) {
                seen.insert(step.to_owned());
                self.step_bead(step, &status, &holder, &text(bead, "notes"));
            } else if id.contains("-mol-") {
                self.fault(format!("{id} is a bead of no chain we know"));
            }
        }
        for step in self.steps().into_iter().filter(|step| !seen.contains(step)).collect::<Vec<_>>() {
            self.fault(format!("{step} has no bead"));
        }
    }

    fn step_bead(&mut self, step: &str, status: &str, holder: &str, notes: &str) {
        let ours =
            holder.strip_prefix(&format!("sp/{}/{step}/", self.chain)).and_then(|epoch| epoch.parse::<u32>().ok());
        let holder = if ours.is_some() { "us".to_owned() } else { named(holder) };
        self.add(format!("bead of {step}"), format!("{status}, held by {holder}"));
        let newest = self.jobs.iter().filter(|row| row.step == step).max_by_key(|row| row.round);
        if let (Some(epoch), Some(row)) = (ours, newest)
            && row.epoch > epoch
        {
            let what = format!("{step} is claimed for epoch {epoch}, its job is at epoch {}", row.epoch);
            self.fault(what);
        }
        let said: Vec<String> =
            notes.lines().filter_map(|line| line.strip_prefix(&format!("[sp] {step} "))).map(str::to_owned).collect();
        let said: Vec<String> = said.iter().map(|line| self.note(step, line)).collect();
        self.add(format!("notes on {step}"), said.join("; "));
    }

    /// A note without its job, which must be the one of that round.
    fn note(&self, step: &str, line: &str) -> String {
        let (word, rest) = line.split_once(": ").unwrap_or((line, ""));
        let Some((job, round)) = rest.strip_prefix("job ").and_then(|rest| rest.split_once(" round ")) else {
            return format!("{word} {rest}");
        };
        let its = self.jobs.iter().find(|row| row.step == step && row.round.to_string() == round);
        match its {
            Some(row) if row.job == job => format!("{word} round {round}"),
            _ => format!("{word} round {round} by job {job}, which is none of {step}"),
        }
    }

    fn jobs(&mut self) {
        for row in std::mem::take(&mut self.jobs) {
            let name = format!("job of {} in round {}", row.step, row.round);
            let (what, faults) = job_facts(self.repo, &row);
            self.add(&*name, what);
            faults.into_iter().for_each(|fault| self.fault(format!("{name}: {fault}")));
            self.jobs.push(row);
        }
    }

    fn refs(&mut self) {
        let base = self.repo.column("SELECT base_sha FROM chains").remove(0);
        for name in self.repo.git(["for-each-ref", "--format=%(refname)"]).lines() {
            if name == "refs/heads/main" {
                continue;
            }
            let rescued = name.strip_prefix("refs/sp/rescue/");
            match rescued.and_then(|job| self.jobs.iter().find(|row| row.job == job)) {
                Some(row) => {
                    let name = format!("ref refs/sp/rescue/{}.{}", row.step, row.round);
                    self.add(name, "a commit");
                }
                None => {
                    let range = format!("{base}..{name}");
                    let subjects = self.repo.git(["log", "--reverse", "--format=%s", &range]);
                    self.add(format!("ref {name}"), subjects.lines().collect::<Vec<_>>().join("; "));
                }
            }
        }
    }

    fn trees(&mut self) {
        let listed = self.repo.git(["worktree", "list", "--porcelain"]);
        let mut trees = Vec::new();
        for entry in listed.split("\n\n").skip(1) {
            let field = |name: &str| entry.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            let (path, branch) = (field("worktree ").unwrap(), field("branch refs/heads/").unwrap_or_default());
            let status = self.repo.git(["-C", &path, "status", "--porcelain"]);
            self.add("changes in the worktree", status.lines().map(str::trim).collect::<Vec<_>>().join("; "));
            trees.push(format!("on {branch}"));
        }
        self.add("worktree", trees.join(" and "));
        for (what, args) in [("git status", ["status", "--porcelain"]), ("git stash", ["stash", "list"])] {
            let said = self.repo.git(args);
            if !said.is_empty() {
                self.fault(format!("{what} of the main checkout says {said}"));
            }
        }
    }

    fn files(&mut self) {
        let base = self.repo.root().join(".specialists");
        let usual = ["bd.lock", "bd.lock.next", "chains", "db", "jobs", "config.toml"];
        let other: Vec<String> = names(&base).into_iter().filter(|name| !usual.contains(&name.as_str())).collect();
        self.add("other files", other.join("; "));
        let jobs: BTreeSet<String> = self.jobs.iter().map(|row| row.job.clone()).collect();
        let strange = |name: &String| !jobs.contains(name);
        for name in names(&base.join("jobs")).into_iter().filter(strange).collect::<Vec<_>>() {
            self.fault(format!("jobs/{name} is the directory of no job"));
        }
        if names(&base.join("chains")) != [self.chain.clone()] {
            self.fault(format!("directories of chains: {:?}", names(&base.join("chains"))));
        }
        for name in names(&self.repo.tmp()) {
            // The boundary of the sessions, and what node and pi keep between runs.
            // A killed sp can't take its scratch files with it; a temporary directory is where they may stay.
            let is_scratch = name.starts_with(".tmp") && self.repo.was_killed();
            if !is_scratch && !["specialists-pi-extensions", "jiti", "node-compile-cache"].contains(&name.as_str()) {
                self.fault(format!("{name} is left in the temporary directory"));
            }
        }
    }

    fn processes(&mut self) {
        for process in self.repo.processes() {
            self.fault(format!("a process is left: {process:?}"));
        }
    }
}

fn rows(repo: &Repo) -> Vec<Row> {
    let db = repo.db();
    let sql = "SELECT job_id, chain_step, round, epoch, status, status_json, pid FROM specialist_jobs
               ORDER BY started_at_ms, round";
    let mut select = db.prepare(sql).unwrap();
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Row {
            job: row.get(0)?,
            step: row.get(1)?,
            round: row.get(2)?,
            epoch: row.get(3)?,
            status: row.get(4)?,
            json: row.get(5)?,
            pid: row.get(6)?,
        })
    };
    select.query_map([], read).unwrap().map(Result::unwrap).collect()
}

/// Whether a job's record says that it answered, or was found to have no answer.
fn answered(json: &str) -> bool {
    let row: Value = serde_json::from_str(json).unwrap();
    let outcome = row["outcome"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    outcome.is_some_and(|outcome| matches!(outcome["kind"].as_str(), Some("answered" | "no_answer")))
}

/// What there is of one job: its row, timeline, result, session and files; and what of that can't be.
fn job_facts(repo: &Repo, row: &Row) -> (String, Vec<String>) {
    let (dir, job) = (repo.job_dir(&row.job), &row.job);
    let mut faults = Vec::new();
    let events = repo.column(&format!("SELECT event_json FROM specialist_events WHERE job_id = '{job}' ORDER BY seq"));
    let file = fs::read_to_string(dir.join("events.jsonl")).unwrap_or_default();
    let mirrored: Vec<&str> = file.lines().collect();
    if events != mirrored {
        faults.push(format!("events.jsonl has {} events, the database {}", mirrored.len(), events.len()));
    }
    let parsed: Vec<Value> = events.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    if let Some((_, at)) = parsed.iter().zip(1..).find(|(event, at): &(&Value, u64)| event["seq"] != *at) {
        faults.push(format!("its timeline has a gap before {at}"));
    }
    let ends = parsed.iter().filter(|event| event["type"] == "run_complete").count();
    if ends > 0 && parsed.last().is_some_and(|event| event["type"] != "run_complete") {
        faults.push("something was said after its end".to_owned());
    }
    let stored = repo.column(&format!("SELECT output FROM specialist_results WHERE job_id = '{job}'")).pop();
    let on_disk = fs::read_to_string(dir.join("result.txt")).ok();
    if stored != on_disk {
        faults.push(format!("result.txt is {on_disk:?}, the database has {stored:?}"));
    }
    let answers = session_answers(&dir.join("session.jsonl"));
    if let Some(stored) = stored.as_deref().filter(|stored| answers.last().map(String::as_str) != Some(stored)) {
        faults.push(format!("its result is {stored:?}, the last answer of its session {:?}", answers.last()));
    }
    let status = fs::read_to_string(dir.join("status.json")).unwrap_or_default();
    if status.trim_end() != row.json {
        faults.push(format!("status.json is {status}, the database has {}", row.json));
    }
    let (named, there_is) = (session_named(&row.json), session_id(&dir.join("session.jsonl")));
    // A session that was killed young may have no file yet, or was not heard of.
    if named != there_is && (answered(&row.json) || named.is_some() && there_is.is_some()) {
        faults.push(format!("its row names session {named:?}, its file is {there_is:?}"));
    }
    let (counted, spent) = (input_tokens(&row.json), session_tokens(&dir.join("session.jsonl"), job));
    if counted != spent {
        faults.push(format!("its row counts {counted} input tokens, its session {spent}"));
    }
    if let Some(pid) = row.pid {
        faults.push(format!("its row still names process {pid}"));
    }
    let there = names(&dir);
    faults.extend(
        there
            .iter()
            // The boundary lies here where there is no temporary directory.
            .filter(|name| !JOB_FILES.contains(&name.as_str()) && !name.starts_with("worktree-boundary-"))
            .map(|name| format!("{name} is no file of a job")),
    );
    faults.extend(
        ALWAYS.iter().filter(|name| !there.iter().any(|found| found == *name)).map(|name| format!("{name} is missing")),
    );
    let result = if stored.is_some() { "its result kept" } else { "no result" };
    (format!("{}, {} answers in session, {result}, {ends} ends", row.status, answers.len()), faults)
}

/// The final answers in a session file: texts of the assistant that ended a run by themselves.
fn session_answers(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .map(|entry| entry["message"].clone())
        .filter(|message| message["role"] == "assistant" && message["stopReason"] == "stop")
        .map(|message| {
            let parts = message["content"].as_array().cloned().unwrap_or_default();
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>()
        })
        .collect()
}

/// The session that a job's record names.
fn session_named(json: &str) -> Option<String> {
    let row: Value = serde_json::from_str(json).unwrap();
    row["session"]["session_id"].as_str().map(str::to_owned)
}

/// The id in the head of a session file; `None` where there is none.
fn session_id(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let head: Value = serde_json::from_str(text.lines().next()?).unwrap();
    head["id"].as_str().map(str::to_owned)
}

/// The input tokens of a job's record, cached ones left out.
fn input_tokens(json: &str) -> u64 {
    let row: Value = serde_json::from_str(json).unwrap();
    row["totals"]["input_tokens"].as_u64().unwrap()
}

/// The input tokens of all answers in a session file since the task of a job was given.
fn session_tokens(file: &Path, job: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mark = format!("(sp job {job})");
    let since = text.lines().skip_while(|line| !line.contains(&mark));
    let messages = since.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|entry| entry["message"]["usage"]["input"].as_u64()).sum()
}

fn named(holder: &str) -> String {
    if holder.is_empty() { "nobody".to_owned() } else { holder.to_owned() }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).map(|entries| entries.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let mut names: Vec<String> = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

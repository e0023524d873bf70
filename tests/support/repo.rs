//! One hermetic repository.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::expected::Expected;
use super::processes::{Process, marked, signal};
use super::run::{Order, Run};
use super::script::Rehearsal;
use super::slots::Slot;
use super::template::{copy_to, environment, must, place, tool};
use super::{redact, world};

/// How long something may take to come about.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// A copy of the demo repository with an empty beads workspace, and a home of its own.
///
/// What it runs gets a cleared environment. When the test fails, it prints what was run, the feed of every job and the
/// tree, and stays on disk; else it is removed. No process outlives it.
pub struct Repo {
    base: PathBuf,
    root: PathBuf,
    directory: Option<TempDir>,
    slot: OnceCell<Rc<Slot>>,
    numbers: Cell<u32>,
    told: RefCell<Vec<String>>,
    killed: Cell<bool>,
}

impl Repo {
    /// Copies the template.
    pub fn new() -> Self {
        Self::named("pager")
    }

    /// Copies the template into a directory of this name: spaces, quotes and accents must work.
    pub fn named(name: &str) -> Self {
        fs::create_dir_all(place()).unwrap();
        let directory = tempfile::Builder::new().prefix("t").tempdir_in(place()).unwrap();
        let base = fs::canonicalize(directory.path()).unwrap();
        copy_to(&base);
        let root = base.join(name);
        if name != "pager" {
            fs::rename(base.join("pager"), &root).unwrap();
        }
        let told = RefCell::default();
        Self {
            base,
            root,
            directory: Some(directory),
            slot: OnceCell::new(),
            numbers: Cell::new(0),
            told,
            killed: Cell::new(false),
        }
    }

    /// Returns the root of the main checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory around it, with the home and the temporary directory.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Returns the temporary directory of its programs.
    pub fn tmp(&self) -> PathBuf {
        self.base.join("tmp")
    }

    /// Begins a bead.
    pub fn bead(&self, title: &str) -> BeadBuilder<'_> {
        BeadBuilder { repo: self, title: title.to_owned(), kind: "bug".to_owned(), contract: None, more: Vec::new() }
    }

    /// Begins the script of a rehearsal.
    pub fn rehearse(&self) -> Rehearsal<'_> {
        Rehearsal::new(self)
    }

    /// Runs `sp` to its end.
    pub fn sp(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run<'_> {
        self.order(args).run()
    }

    /// Begins a command of `sp`, for variables, other directories and to run it beside the test.
    pub fn order(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Order<'_> {
        Order::new(self, args)
    }

    /// Returns a program with the hermetic environment, in the repository.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(environment(&self.base)).env("RUST_BACKTRACE", "1").current_dir(&self.root);
        command
    }

    /// Runs a program that must succeed, and returns what it printed.
    pub fn run(&self, program: impl AsRef<OsStr>, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
        must(self.program(program).args(args))
    }

    /// Runs git.
    pub fn git(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
        self.run("git", args).trim_end().to_owned()
    }

    /// Runs bd.
    pub fn bd(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
        self.run(tool("SP_BD", "bd"), args)
    }

    /// Runs bd and reads its JSON.
    pub fn bd_json(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Value {
        let args: Vec<_> = args.into_iter().collect();
        let text = must(self.program(tool("SP_BD", "bd")).args(args).arg("--json"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("bd printed no JSON: {error}\n{text}"))
    }

    /// Reads one bead.
    pub fn show(&self, bead: &str) -> Value {
        self.bd_json(["show", bead])[0].clone()
    }

    /// Opens the database for reading.
    pub fn db(&self) -> Connection {
        let path = self.root.join(".specialists/db/observability.db");
        Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .unwrap_or_else(|error| panic!("open {}: {error}", path.display()))
    }

    /// Returns the one chain of this repository, once it is recorded.
    pub fn chain(&self) -> String {
        let mut chains = self.column("SELECT chain_id FROM chains");
        assert_eq!(chains.len(), 1, "one chain: {chains:?}");
        chains.remove(0)
    }

    /// Returns the events of the one chain, in order.
    pub fn events(&self) -> Vec<Value> {
        let events = self.column("SELECT body FROM chain_events ORDER BY chain_id, seq");
        events.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
    }

    /// Returns the kinds of the chain's events, in order, each with its step: `step_closed executor`.
    pub fn story(&self) -> Vec<String> {
        let word = |event: &Value, name: &str| event[name].as_str().map(str::to_owned);
        let one = |event: &Value| [word(event, "type"), word(event, "step")].into_iter().flatten().collect::<Vec<_>>();
        self.events().iter().map(|event| one(event).join(" ")).collect()
    }

    /// Returns a text column of the database; nothing while there is none.
    pub fn column(&self, sql: &str) -> Vec<String> {
        let path = self.root.join(".specialists/db/observability.db");
        let Ok(db) = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY) else { return Vec::new() };
        let Ok(mut rows) = db.prepare(sql) else { return Vec::new() };
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Returns the job of a step in a round.
    pub fn job(&self, step: &str, round: u32) -> String {
        let sql = format!("SELECT job_id FROM specialist_jobs WHERE chain_step = '{step}' AND round = {round}");
        self.column(&sql).pop().unwrap_or_else(|| panic!("no job of {step} in round {round}"))
    }

    /// Returns the directory of a job.
    pub fn job_dir(&self, job: &str) -> PathBuf {
        self.root.join(".specialists/jobs").join(job)
    }

    /// Returns the living processes that were started for this repository.
    pub fn processes(&self) -> Vec<Process> {
        marked(&self.root)
    }

    /// Waits until something holds.
    pub fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain until {what}");
            thread::sleep(LOOK);
        }
    }

    /// Waits until the chain's log holds an event, such as `step_dispatched executor`.
    pub fn until_event(&self, event: &str) {
        self.until(&format!("the log holds `{event}`"), || self.story().iter().any(|found| found == event));
    }

    /// Waits until a file is there.
    pub fn until_file(&self, path: &Path) {
        self.until(&format!("{} is there", path.display()), || path.exists());
    }

    /// Takes ids, times and paths out of a text.
    pub fn redact(&self, text: &str) -> String {
        redact::redact(self, text)
    }

    /// Asserts that bd, git, the disk, the database and the processes are what the model says, no more and no less.
    pub fn must_equal(&self, expected: &Expected) {
        let differences = self.differences(expected);
        assert!(differences.is_empty(), "the world is not as the model has it:\n{}", differences.join("\n"));
    }

    /// Returns in what the world and the model differ.
    pub fn differences(&self, expected: &Expected) -> Vec<String> {
        world::differences(self, expected)
    }

    pub(super) fn next_number(&self) -> u32 {
        self.numbers.set(self.numbers.get() + 1);
        self.numbers.get()
    }

    /// Waits until this test may run a chain; [`Order::spawn`] does it for what runs through it.
    pub fn take_slot(&self) {
        self.slot.get_or_init(Slot::take);
    }

    pub(super) fn tell(&self, what: String) {
        self.told.borrow_mut().push(what);
    }

    pub(super) fn note_kill(&self) {
        self.killed.set(true);
    }

    /// Returns whether an sp of this repository was killed.
    pub(super) fn was_killed(&self) -> bool {
        self.killed.get()
    }

    /// Prints all that may help to understand a failure.
    fn explain(&self) {
        eprintln!("==== what was run\n{}", self.told.borrow().join("\n"));
        eprintln!("==== the log\n{}", self.story().join("\n"));
        for job in self.column("SELECT job_id FROM specialist_jobs ORDER BY started_at_ms") {
            let sql = format!("SELECT event_json FROM specialist_events WHERE job_id = '{job}' ORDER BY seq");
            eprintln!("==== feed of {job}\n{}", self.column(&sql).join("\n"));
        }
        eprintln!("==== processes\n{:#?}", self.processes());
        let show = |program: &str, args: &[&str]| {
            let output = self.program(program).args(args).output();
            let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
            eprintln!("==== {program} {}\n{}", args.join(" "), text.unwrap_or_default());
        };
        show("git", &["log", "--oneline", "--all", "--graph"]);
        show(
            "find",
            &[".", "-path", "./.git", "-prune", "-o", "-path", "./.beads", "-prune", "-o", "-type", "f", "-print"],
        );
        eprintln!("==== kept in {}", self.base.display());
    }
}

impl Drop for Repo {
    fn drop(&mut self) {
        let failed = thread::panicking();
        if failed {
            self.explain();
        }
        // A tool that leaves its group while we look is found at the next look.
        for _ in 0..10 {
            let found = self.processes();
            if found.is_empty() {
                break;
            }
            found.iter().for_each(|process| signal(process.pid, Signal::KILL));
        }
        if let Some(directory) = self.directory.take().filter(|_| failed) {
            drop(directory.keep());
        }
    }
}

/// A bead on its way.
#[must_use]
pub struct BeadBuilder<'a> {
    repo: &'a Repo,
    title: String,
    kind: String,
    contract: Option<String>,
    more: Vec<String>,
}

impl BeadBuilder<'_> {
    /// Sets the text of the bead.
    pub fn contract(mut self, text: &str) -> Self {
        self.contract = Some(text.to_owned());
        self
    }

    /// Sets the type of the bead, `bug` by default.
    pub fn kind(mut self, kind: &str) -> Self {
        self.kind = kind.to_owned();
        self
    }

    /// Adds arguments of `bd create`.
    pub fn with(mut self, args: &[&str]) -> Self {
        self.more.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// Creates it and returns its id.
    pub fn create(self) -> String {
        let repo = self.repo;
        let mut args = vec!["create".to_owned(), self.title, "-t".to_owned(), self.kind, "--silent".to_owned()];
        if let Some(text) = self.contract {
            let file = repo.base().join(format!("contract-{}.txt", repo.next_number()));
            fs::write(&file, text).unwrap();
            args.extend(["--body-file".to_owned(), file.to_str().unwrap().to_owned()]);
        }
        args.extend(self.more);
        repo.bd(args).trim().to_owned()
    }
}

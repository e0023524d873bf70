//! What the tests of the door stand on: how everything was before, what a refusal must look like, and programs that are
//! not what they should be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Order, Repo, Run};

/// Exit status and `kind` of every failure, as docs/cli.md has them.
const KINDS: [(i32, &str); 12] = [
    (1, "internal"),
    (2, "usage"),
    (3, "refused"),
    (4, "not_found"),
    (5, "contested"),
    (6, "unusable"),
    (7, "blocked"),
    (10, "tracker"),
    (11, "store"),
    (12, "agent"),
    (13, "git"),
    (130, "interrupted"),
];

/// Everything that a refused command could have changed, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before(BTreeMap<String, String>);

/// Looks at a directory, its repository and workspace if it has them, and what lies around it.
pub fn look(repo: &Repo, directory: &Path) -> Before {
    let mut facts = BTreeMap::new();
    files(directory, directory, &mut facts);
    for around in [repo.tmp(), repo.base().join("home")] {
        files(&around, repo.base(), &mut facts);
    }
    let git = |args: &[&str]| {
        let output = repo.program("git").current_dir(directory).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for args in [
        &["status", "--porcelain", "--ignored"][..],
        &["for-each-ref"],
        &["worktree", "list", "--porcelain", "-z"],
        &["stash", "list"],
    ] {
        facts.insert(format!("git {}", args.join(" ")), git(args));
    }
    if let Ok(entries) = fs::read_dir(directory.join(".git")) {
        let names: BTreeSet<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        facts.insert("the names in .git".to_owned(), format!("{names:?}"));
    }
    let exclude = fs::read_to_string(directory.join(".git/info/exclude")).unwrap_or_default();
    facts.insert("what git excludes".to_owned(), exclude);
    if directory == repo.root() && directory.join(".beads/metadata.json").exists() {
        let beads = repo.bd_json(["list", "--all", "-n", "0", "--include-gates"]);
        facts.insert("the beads".to_owned(), format!("{beads:#}"));
    }
    Before(facts)
}

/// Adds every file below a directory. What git and bd keep for themselves is asked of them; a reader of the database
/// may make and remove SQLite's own two files, and node keeps what it compiled.
fn files(directory: &Path, from: &Path, facts: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let own = [".git", ".beads", "specialists-pi-extensions", "node-compile-cache"];
        if own.contains(&name.as_str()) || name.ends_with("-wal") || name.ends_with("-shm") {
            continue;
        }
        let kind = path.symlink_metadata().unwrap().file_type();
        let what =
            if kind.is_file() { format!("{:?}", fs::read(&path).map(|bytes| bytes.len())) } else { String::new() };
        facts.insert(format!("file {}", path.strip_prefix(from).unwrap().display()), format!("{kind:?} {what}"));
        if kind.is_dir() {
            files(&path, from, facts);
        }
    }
}

impl Before {
    /// Asserts that all is as it was.
    pub fn assert_untouched(&self, repo: &Repo, directory: &Path) {
        let after = look(repo, directory);
        let names: BTreeSet<&String> = self.0.keys().chain(after.0.keys()).collect();
        let changed: Vec<String> = names
            .into_iter()
            .filter(|name| self.0.get(*name) != after.0.get(*name))
            .map(|name| format!("{name}:\n  was {:?}\n  is  {:?}", self.0.get(name), after.0.get(name)))
            .collect();
        assert!(changed.is_empty(), "something was left behind:\n{}", changed.join("\n"));
    }
}

/// A place before which commands are refused.
pub struct Door<'a> {
    repo: &'a Repo,
    directory: PathBuf,
    variables: Vec<(String, String)>,
}

impl<'a> Door<'a> {
    /// The main checkout.
    pub fn of(repo: &'a Repo) -> Self {
        Self::at(repo, repo.root())
    }

    /// Another directory.
    pub fn at(repo: &'a Repo, directory: &Path) -> Self {
        Self { repo, directory: directory.to_owned(), variables: Vec::new() }
    }

    /// Sets a variable for every command.
    pub fn with(mut self, name: &str, value: impl AsRef<Path>) -> Self {
        self.variables.push((name.to_owned(), value.as_ref().to_str().unwrap().to_owned()));
        self
    }

    fn order(&self, args: &[&str]) -> Order<'a> {
        let order = self.repo.order(args).within(&self.directory);
        self.variables.iter().fold(order, |order, (name, value)| order.env(name, value))
    }

    /// Asserts that a command is refused as [`Door::tells`] says, and that nothing at all is left of it.
    pub fn refuses(&self, args: &[&str], exit: i32, code: &str, words: &[&str]) {
        let before = look(self.repo, &self.directory);
        self.tells(args, exit, code, words);
        before.assert_untouched(self.repo, &self.directory);
    }

    /// Asserts that a command is refused, for people and as JSON, with this exit status, this code and these words.
    pub fn tells(&self, args: &[&str], exit: i32, code: &str, words: &[&str]) {
        let run = self.order(args).run();
        let _ = run.code(exit);
        assert_eq!(run.stdout, "", "a refusal is no report: {run}");
        assert!(run.stderr.starts_with("error: "), "{run}");
        assert!(code == "usage" || run.stderr.contains("\nnext: "), "no word of what to do next: {run}");
        words.iter().for_each(|word| assert!(run.stderr.contains(word), "no `{word}` in {run}"));
        self.tells_as_json(args, exit, code, words);
    }

    /// Asserts the JSON of a refusal alone.
    pub fn tells_as_json(&self, args: &[&str], exit: i32, code: &str, words: &[&str]) {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let run = self.order(&args).run();
        let _ = run.code(exit);
        envelope(&run, exit, code);
        words.iter().for_each(|word| assert!(run.stdout.contains(&escaped(word)), "no `{word}` in {run}"));
    }

    /// Asserts that a command succeeds and changes nothing; returns its JSON.
    pub fn only_shows(&self, args: &[&str]) -> Value {
        let before = look(self.repo, &self.directory);
        let shown = self.shows(args);
        before.assert_untouched(self.repo, &self.directory);
        shown
    }

    /// Asserts that a command succeeds; returns its JSON.
    pub fn shows(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let run = self.order(&args).run();
        let _ = run.success();
        run.json()
    }
}

/// A word as it stands within JSON.
fn escaped(word: &str) -> String {
    serde_json::to_string(word).unwrap().trim_matches('"').to_owned()
}

/// Asserts that stdout holds exactly one failure and stderr nothing.
fn envelope(run: &Run<'_>, exit: i32, code: &str) {
    assert_eq!(run.stdout.matches('\n').count(), 1, "not one line: {run}");
    assert_eq!(run.stderr, "", "the object is all there is to say: {run}");
    let told = run.json();
    let kind = KINDS.iter().find(|(status, _)| *status == exit).unwrap().1;
    assert_eq!((&told["ok"], &told["error_code"], &told["kind"]), (&false.into(), &code.into(), &kind.into()), "{run}");
    for name in ["message", "next_safe_action"] {
        assert!(!told[name].as_str().unwrap().is_empty(), "{name} is empty: {run}");
    }
    assert!(told["blocked_by"].is_array(), "{run}");
    let known = ["ok", "error_code", "kind", "message", "blocked_by", "next_safe_action", "diagnose_command", "report"];
    let other: Vec<&String> = told.as_object().unwrap().keys().filter(|key| !known.contains(&key.as_str())).collect();
    assert!(other.is_empty(), "fields that no page tells of: {other:?} in {run}");
}

/// Writes a shell script beside the repository, to stand in for bd or pi; `$real` is the program that it stands for.
pub fn stand_in(repo: &Repo, name: &str, real: &Path, script: &str) -> PathBuf {
    let path = repo.base().join(name);
    fs::write(&path, format!("#!/bin/sh\nreal='{}'\nbase='{}'\n{script}", real.display(), repo.base().display()))
        .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The real program of a test.
pub fn real(variable: &str, name: &str) -> PathBuf {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join(".tools/bin").join(name);
    std::env::var_os(variable).map_or(installed, PathBuf::from)
}

//! The commands that only read, through the built program: what is printed where, and the exit status.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

/// A directory with a home of its own; nothing of the user's settings reaches it.
struct Place {
    folder: TempDir,
}

/// What a run of sp gave.
#[must_use]
struct Ran {
    text: String,
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

impl Place {
    /// Makes an empty directory that is no repository.
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(place.root()).unwrap();
        place
    }

    /// Makes a repository with one commit; its path holds blanks, quotes, an accent and a line feed.
    fn repository() -> Self {
        let place = Self::new();
        place.git(&["init", "-q", "-b", "main"]);
        place.git(&["commit", "-q", "--allow-empty", "-m", "base"]);
        place
    }

    /// Makes a repository with a database: a job that is done, and one whose process is gone.
    fn recorded() -> Self {
        let place = Self::repository();
        let file = place.root().join(".specialists/db/observability.db");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let database = Connection::open(file).unwrap();
        database.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
        let schema = [
            include_str!("../src/storage/migrations/012_existing.sql"),
            include_str!("../src/storage/migrations/013_chains.sql"),
            "INSERT INTO schema_version VALUES (13, 1);
             INSERT INTO specialist_jobs (job_id, specialist, status, status_json, updated_at_ms, epoch, started_at_ms,
               completed_at_ms, bead_id, model, input_tokens, output_tokens, cost_usd)
             VALUES ('0aaaaaaa', 'executor', 'done', '{}', 61000, 1, 1000, 61000, 'proj-a3f2', 'acme/big', 1500, 20, 0.5);
             INSERT INTO specialist_results VALUES ('0aaaaaaa', 'all
done' || char(27), 61000);
             INSERT INTO specialist_events (job_id, seq, specialist, t, type, event_json) VALUES
               ('0aaaaaaa', 1, 'executor', 1000, 'run_start', '{\"seq\":1,\"t\":1000,\"type\":\"run_start\"}'),
               ('0aaaaaaa', 2, 'executor', 61000, 'run_complete',
                '{\"seq\":2,\"t\":61000,\"type\":\"run_complete\",\"status\":\"COMPLETE\",\"elapsed_s\":60}');
             INSERT INTO specialist_jobs (job_id, specialist, status, status_json, updated_at_ms, epoch, started_at_ms,
               bead_id, pid, start_ticks)
             VALUES ('0bbbbbbb', 'reviewer', 'running', '{}', 91000, 1, 71000, 'proj-a3f2', 1, 999999999);",
        ];
        schema.iter().for_each(|statements| database.execute_batch(statements).unwrap());
        place
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("it's a \"r\u{e9}po\"\nx")
    }

    fn git(&self, args: &[&str]) {
        let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
        let mut command = Command::new("git");
        command.args(identity).args(args).current_dir(self.root()).envs(self.variables()).env_remove("GIT_DIR");
        assert!(command.status().unwrap().success(), "git {args:?}");
    }

    fn variables(&self) -> BTreeMap<&'static str, PathBuf> {
        let nowhere = PathBuf::from("/dev/null");
        BTreeMap::from([("HOME", self.folder.path().join("home")), ("GIT_CONFIG_GLOBAL", nowhere)])
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sp"));
        command.args(args).current_dir(self.root()).env_clear().envs(self.variables());
        command.env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::null());
        command
    }

    fn sp(&self, args: &[&str]) -> Ran {
        self.ran(self.command(args).output().unwrap())
    }

    fn sp_in(&self, directory: &Path, args: &[&str]) -> Ran {
        self.ran(self.command(args).current_dir(directory).output().unwrap())
    }

    fn ran(&self, output: Output) -> Ran {
        let redact = |bytes: &[u8]| {
            let root = self.root().canonicalize().unwrap();
            String::from_utf8(bytes.to_vec()).unwrap().replace(root.to_str().unwrap(), "ROOT")
        };
        let (stdout, stderr, code) = (redact(&output.stdout), redact(&output.stderr), output.status.code());
        let text = format!("{stdout}---\n{stderr}--- {}", code.map_or("signal".to_owned(), |code| code.to_string()));
        Ran { text, stdout, stderr, code }
    }
}

impl Ran {
    /// Returns the one object on stdout; stderr must be empty.
    fn object(&self) -> Value {
        assert_eq!(self.stderr, "", "{}", self.text);
        assert_eq!(self.stdout.lines().count(), 1, "{}", self.text);
        serde_json::from_str(&self.stdout).unwrap()
    }
}

#[test]
fn version_and_help_need_no_repository() {
    let place = Place::new();
    let version = place.sp(&["--version"]);
    assert_eq!((version.stdout.as_str(), version.code), (concat!("sp ", env!("CARGO_PKG_VERSION"), "\n"), Some(0)));
    for args in [&["--help"][..], &["ps", "--help"], &["help", "chain", "graph"], &["--json", "--help"]] {
        let help = place.sp(args);
        assert!(help.code == Some(0) && help.stdout.contains("Usage: sp") && help.stderr.is_empty(), "{}", help.text);
    }
}

#[test]
fn outside_of_a_repository_it_is_said_what_is_missing() {
    let place = Place::new();
    insta::assert_snapshot!(place.sp(&["ps"]).text, @"
    ---
    error: open the repository at ROOT: not a git repository
    next: change into a git repository, or make one with `git init` and a first commit
    --- 6
    ");
    for args in
        [&["ps", "--json"][..], &["chain", "list", "--json"], &["feed", "x", "--json"], &["result", "x", "--json"]]
    {
        let failure = place.sp(args).object();
        assert_eq!(
            (&failure["ok"], &failure["error_code"]),
            (&Value::Bool(false), &"not_a_repository".into()),
            "{args:?}"
        );
    }
}

#[test]
fn formulas_can_be_looked_at_anywhere() {
    let place = Place::new();
    for args in [
        &["formula", "list"][..],
        &["formula", "show", "code-standard"],
        &["formula", "validate", "code-standard"],
        &["chain", "graph", "code-standard", "--format", "mermaid"],
    ] {
        let shown = place.sp(args);
        assert!(shown.code == Some(0) && shown.stderr.is_empty() && !shown.stdout.is_empty(), "{}", shown.text);
    }
}

#[test]
fn a_repository_where_nothing_was_recorded_lists_nothing_and_stays_as_it_is() {
    let place = Place::repository();
    insta::assert_snapshot!(place.sp(&["ps"]).text, @"
    ---
    no jobs run or wait; `sp ps --all` shows those that ended
    --- 0
    ");
    insta::assert_snapshot!(place.sp(&["chain", "list", "--all"]).text, @"
    ---
    no chains
    --- 0
    ");
    insta::assert_snapshot!(place.sp(&["ps", "--all", "--json"]).text, @r#"
    {"ok":true,"jobs":[]}
    ---
    --- 0
    "#);
    insta::assert_snapshot!(place.sp(&["chain", "list", "--json"]).text, @r#"
    {"ok":true,"chains":[]}
    ---
    --- 0
    "#);
    assert!(!place.root().join(".specialists").exists());
}

#[test]
fn what_does_not_exist_is_not_found() {
    for place in [Place::repository(), Place::recorded()] {
        for (args, code) in [
            (&["ps", "zzz"][..], "no_such_subject"),
            (&["ps", "--chain", "zzz"], "no_such_chain"),
            (&["feed", "zzz"], "no_such_subject"),
            (&["feed", "zzz", "-f"], "no_such_subject"),
            (&["result", "zzz"], "no_such_job"),
            (&["result", "../../etc/passwd"], "no_such_job"),
            (&["chain", "graph", "zzz"], "no_such_graph"),
            (&["formula", "show", "zzz"], "formula_not_found"),
            (&["formula", "validate", "zzz"], "formula_not_found"),
        ] {
            let text = place.sp(args);
            assert!(
                text.code == Some(4) && text.stdout.is_empty() && text.stderr.contains("\nnext: "),
                "{}",
                text.text
            );
            let failure = place.sp(&[args, &["--json"]].concat());
            assert_eq!((failure.code, &failure.object()["error_code"]), (Some(4), &code.into()), "{args:?}");
        }
    }
    insta::assert_snapshot!(Place::repository().sp(&["chain", "graph", "code-standart"]).text, @"
    ---
    error: find `code-standart`: no chain, contract bead or formula; did you mean code-standard?
    next: see what there is: `sp formula list`, `sp chain list --all`
    --- 4
    ");
}

#[test]
fn a_wrong_command_line_is_a_usage_error_also_as_json() {
    let place = Place::repository();
    for args in [
        &["pss"][..],
        &["ps", "--al"],
        &["feed"],
        &["chain"],
        &["chain", "graph", "x", "--format", "png"],
        &["chain", "graph", "x", "--var", "novalue"],
        &["ps", "-C", "absent"],
        &["formula", "validate", "./not-a-formula.json"],
    ] {
        let text = place.sp(args);
        assert!(text.code == Some(2) && text.stdout.is_empty() && !text.stderr.is_empty(), "{}", text.text);
        let json = place.sp(&[&["--json"], args].concat());
        let failure = json.object();
        assert_eq!(
            (json.code, &failure["kind"], &failure["ok"]),
            (Some(2), &"usage".into(), &Value::Bool(false)),
            "{args:?}"
        );
    }
    insta::assert_snapshot!(place.sp(&["ps", "--al", "--json"]).text, @r#"
    {"ok":false,"error_code":"usage","kind":"usage","message":"read the command line: unexpected argument '--al' found; tip: a similar argument exists: '--all'","blocked_by":[],"next_safe_action":"see `sp --help`, or `--help` after the command"}
    ---
    --- 2
    "#);
}

#[test]
fn every_place_of_a_repository_shows_the_same_jobs() {
    let place = Place::recorded();
    fs::create_dir_all(place.root().join("deep/er")).unwrap();
    let tree = place.folder.path().join("linked tree");
    place.git(&["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    let here = place.sp(&["ps", "--all", "--json"]);
    assert_eq!(here.object()["jobs"].as_array().unwrap().len(), 2);
    // Elapsed time of what runs is the only thing that moves, and a dead job stands still.
    for directory in [place.root().join("deep/er"), tree, place.root().join(".git")] {
        assert_eq!(place.sp_in(&directory, &["ps", "--all", "--json"]).text, here.text, "{}", directory.display());
    }
    let root = place.root();
    assert_eq!(place.sp_in(Path::new("/"), &["-C", root.to_str().unwrap(), "ps", "--all", "--json"]).text, here.text);
}

#[test]
fn a_job_whose_process_is_gone_is_dead_and_its_row_is_left_alone() {
    let place = Place::recorded();
    insta::assert_snapshot!(place.sp(&["ps"]).text, @"
    JOB       SPECIALIST  STATUS  WORK       ROUND  ELAPSED  TOKENS  COST  MODEL
    0bbbbbbb  reviewer    dead    proj-a3f2  1      20s      -       -     -
    ---
    --- 0
    ");
    insta::assert_snapshot!(place.sp(&["feed", "0b", "-f"]).text, @"
    ---
    its process is gone; nobody goes on with it
    --- 0
    ");
    insta::assert_snapshot!(place.sp(&["result", "0b"]).text, @"
    ---
    error: read the result of job 0bbbbbbb: it is dead
    next: see how far it came: `sp feed 0bbbbbbb`
    blocked by: 0bbbbbbb
    see: sp ps 0bbbbbbb
    --- 3
    ");
    let database = Connection::open(place.root().join(".specialists/db/observability.db")).unwrap();
    let stored: String = database
        .query_row("SELECT status FROM specialist_jobs WHERE job_id = '0bbbbbbb'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(stored, "running");
}

#[test]
fn a_job_that_is_done_is_shown_followed_to_its_end_and_answers() {
    let place = Place::recorded();
    insta::assert_snapshot!(place.sp(&["ps", "--all"]).text, @"
    JOB       SPECIALIST  STATUS  WORK       ROUND  ELAPSED  TOKENS  COST   MODEL
    0bbbbbbb  reviewer    dead    proj-a3f2  1      20s      -       -      -
    0aaaaaaa  executor    done    proj-a3f2  1      1m00s    1.5k    $0.50  acme/big
    ---
    --- 0
    ");
    insta::assert_snapshot!(place.sp(&["feed", "0aaaaaaa", "-f"]).text, @"
    00:00:01  executor             start
    00:01:01  executor             end        COMPLETE after 1m00s
    ---
    --- 0
    ");
    insta::assert_snapshot!(place.sp(&["feed", "0a", "--json"]).text, @r#"
    {"source":"job","job_id":"0aaaaaaa","specialist":"executor","seq":1,"t":1000,"type":"run_start"}
    {"source":"job","job_id":"0aaaaaaa","specialist":"executor","seq":2,"t":61000,"type":"run_complete","status":"COMPLETE","elapsed_s":60}
    ---
    --- 0
    "#);
    assert_eq!(place.sp(&["result", "0aaaaaaa"]).stdout, "all\ndone\u{1b}\n");
    assert_eq!(place.sp(&["result", "0aaaaaaa", "--json"]).object()["output"], "all\ndone\u{1b}");
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let place = Place::recorded();
    for args in [&["ps", "--all"][..], &["ps", "--json"], &["feed", "0a", "-f"], &["result", "0a"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place.command(args).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let ran = place.ran(output);
        assert!(ran.code == Some(0) && ran.stderr.is_empty(), "{args:?}: {}", ran.text);
    }
}

#[test]
fn stdout_that_takes_nothing_is_a_failure_and_said() {
    let place = Place::recorded();
    for args in [&["ps", "--all"][..], &["ps", "--json"], &["feed", "0a"], &["result", "0a"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = place.command(args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(11), "{args:?}");
    }
}

#[test]
fn a_broken_formula_is_told_with_its_place() {
    let place = Place::repository();
    let formulas = place.root().join(".beads/formulas");
    fs::create_dir_all(&formulas).unwrap();
    fs::write(formulas.join("mine.formula.toml"), "formula = 'mine'\n[[steps]]\nid = 'executor'\ntitle = 'x\n")
        .unwrap();
    let by_name = place.sp(&["formula", "validate", "mine"]);
    insta::assert_snapshot!(by_name.text, @"
    ---
    error: parse ROOT/.beads/formulas/mine.formula.toml, line 4, column 11: invalid literal string, expected `'`
    next: correct ROOT/.beads/formulas/mine.formula.toml, then `sp formula validate` it
    --- 2
    ");
    assert_eq!(place.sp(&["formula", "validate", ".beads/formulas/mine.formula.toml"]).code, Some(2));
    fs::write(formulas.join("mine.formula.toml"), "formula = 'mine'\nextends = ['code-standard']\n").unwrap();
    let valid = place.sp(&["formula", "validate", ".beads/formulas/mine.formula.toml", "--json"]).object();
    assert_eq!((&valid["ok"], &valid["formula"], &valid["steps"]), (&true.into(), &"mine".into(), &6.into()));
}

#[test]
fn a_broken_configuration_is_told_with_its_place_and_stops_no_listing() {
    let place = Place::recorded();
    fs::write(place.root().join(".specialists/config.toml"), "[tools]\nbt = \"/opt/bd\"\n").unwrap();
    assert_eq!(place.sp(&["ps"]).code, Some(0));
    let ran = place.sp(&["doctor", "--json"]);
    let report = ran.object();
    assert_eq!((ran.code, &report["ok"], &report["error_code"]), (Some(6), &false.into(), &"not_usable".into()));
    let checks = report["report"]["checks"].as_array().unwrap();
    let found =
        |name: &str| checks.iter().find(|check| check["name"] == name).unwrap_or(&Value::Null)["found"].to_string();
    assert!(found("config").contains("config.toml, line 2, column 1: `tools.bt` sets nothing"), "{}", found("config"));
    assert!(found("database").contains("schema 13"), "{}", found("database"));
}

#[test]
fn the_doctor_tells_what_is_missing_and_where_it_looked() {
    let place = Place::repository();
    let output = place.command(&["doctor"]).env("SP_BD", "/nowhere/bd").env("SP_PI", "pi-of-nobody").output().unwrap();
    let ran = place.ran(output);
    assert_eq!(ran.code, Some(6));
    for line in [
        "FAIL  bd           run `bd version`: there is no executable `/nowhere/bd`",
        "FAIL  pi           start a pi session: there is no executable `pi-of-nobody`",
    ] {
        assert!(ran.stdout.contains(line), "{}", ran.text);
    }
    assert!(ran.stdout.contains("ok    git  ") && ran.stdout.contains("ok    repository   "), "{}", ran.text);
    assert!(ran.stderr.starts_with("error: check what sp needs: ") && ran.stderr.contains("\nnext: "), "{}", ran.text);
}

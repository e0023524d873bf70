//! The shipped rehearsals do on the demo repository what they claim.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::script::Round;
use super::{Script, load};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn shipped(name: &str) -> Script {
    load(&root().join("config/rehearsals").join(name)).unwrap().0
}

fn rounds<'a>(script: &'a Script, role: &str) -> &'a [Round] {
    script.entries().find(|(name, _)| *name == role).map(|(_, rounds)| rounds).unwrap()
}

/// The demo repository, worked on as pi's tools would.
struct Repo {
    _temp: tempfile::TempDir,
    dir: PathBuf,
}

impl Repo {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("it's a répo");
        let made = Command::new("sh").arg(root().join("scripts/demo-repo.sh")).arg(&dir).output().unwrap();
        assert!(made.status.success() && made.stdout.is_empty() && made.stderr.is_empty(), "{made:?}");
        Self { _temp: temp, dir }
    }

    fn shell(&self, command: &str) -> Output {
        Command::new("sh").args(["-c", command]).current_dir(&self.dir).output().unwrap()
    }

    fn tests_pass(&self) -> bool {
        self.shell("./test.sh").status.success()
    }

    fn perform(&self, round: &Round) {
        for call in round.turns.iter().flat_map(|turn| &turn.tools) {
            let arguments: Value = serde_json::from_str(&call.arguments.unfold()).unwrap();
            let text = |field: &str| arguments[field].as_str().unwrap();
            match call.name {
                "read" => drop(fs::read_to_string(self.dir.join(text("path"))).unwrap()),
                "write" => fs::write(self.dir.join(text("path")), text("content")).unwrap(),
                "edit" => self.edit(text("path"), arguments["edits"].as_array().unwrap()),
                "bash" => drop(self.shell(text("command"))),
                other => panic!("a shipped rehearsal uses {other}"),
            }
        }
    }

    fn edit(&self, path: &str, edits: &[Value]) {
        let path = self.dir.join(path);
        let mut text = fs::read_to_string(&path).unwrap();
        for edit in edits {
            let (old, new) = (edit["oldText"].as_str().unwrap(), edit["newText"].as_str().unwrap());
            assert_eq!(text.matches(old).count(), 1, "{old:?} in {}", path.display());
            text = text.replace(old, new);
        }
        fs::write(path, text).unwrap();
    }
}

#[test]
fn the_demo_repository_has_one_commit_a_clean_tree_and_a_failing_test() {
    let repo = Repo::new();
    assert_eq!(repo.shell("git rev-list --count HEAD && git status --porcelain").stdout, b"1\n");
    assert!(!repo.tests_pass());
}

#[test]
fn a_directory_with_something_in_it_is_not_touched() {
    let repo = Repo::new();
    let again = Command::new("sh").arg(root().join("scripts/demo-repo.sh")).arg(&repo.dir).output().unwrap();
    assert!(!again.status.success());
    assert_eq!(repo.shell("git status --porcelain").stdout, b"");
}

#[test]
fn each_shipped_executor_ends_with_tests_that_pass() {
    for name in ["code-standard-demo.json", "fix-loop.json", "single-chain.json"] {
        let (repo, script) = (Repo::new(), shipped(name));
        rounds(&script, "executor").iter().for_each(|round| repo.perform(round));
        assert!(repo.tests_pass(), "{name}");
        assert_eq!(repo.shell("git diff --name-only").stdout, b"src/pager.sh\n", "{name}");
    }
}

#[test]
fn the_regression_test_fails_on_the_old_code_and_on_the_first_fix_of_the_loop() {
    let script = shipped("fix-loop.json");
    let write_test = &rounds(&script, "test-engineer")[0];
    let [first, second] = rounds(&script, "executor") else { panic!("the loop has two rounds") };

    let repo = Repo::new();
    repo.perform(write_test);
    assert!(!repo.shell("sh test/last_page_test.sh").status.success(), "on the old code");
    repo.perform(first);
    assert!(!repo.shell("sh test/last_page_test.sh").status.success(), "on the first fix");
    repo.perform(second);
    assert!(repo.tests_pass(), "on the second fix");
    let changed = repo.shell("git status --porcelain -uall").stdout;
    assert_eq!(String::from_utf8(changed).unwrap(), " M src/pager.sh\n?? test/last_page_test.sh\n");
}

#[test]
fn commands_of_the_shipped_test_runners_succeed_once_all_is_written() {
    for name in ["code-standard-demo.json", "fix-loop.json"] {
        let (repo, script) = (Repo::new(), shipped(name));
        rounds(&script, "executor").iter().for_each(|round| repo.perform(round));
        repo.perform(&rounds(&script, "test-engineer")[0]);
        for call in rounds(&script, "test-runner")[0].turns.iter().flat_map(|turn| &turn.tools) {
            let arguments: Value = serde_json::from_str(&call.arguments.unfold()).unwrap();
            let ran = repo.shell(arguments["command"].as_str().unwrap());
            assert!(ran.status.success(), "{name}: {ran:?}");
        }
    }
}

#[test]
fn the_last_answer_of_each_shipped_round_satisfies_its_role_s_schema() {
    for name in ["code-standard-demo.json", "fix-loop.json", "single-chain.json"] {
        for (role, rounds) in shipped(name).entries() {
            let schema = root().join("config/schemas").join(format!("{role}.schema.json"));
            let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
            let schema = jsonschema::validator_for(&schema).unwrap();
            for round in rounds {
                let text = round.turns.last().unwrap().text.unfold();
                let answer = &text[text.find("{\n").or(text.find('{')).unwrap()..];
                let answer: Value = serde_json::from_str(answer).unwrap();
                let errors: Vec<String> = schema.iter_errors(&answer).map(|error| error.to_string()).collect();
                assert!(errors.is_empty(), "{name}, {role}: {errors:?}");
            }
        }
    }
}

//! What bd itself makes of the same formulas (bd 1.3.0, named by `SP_BD`). Where the two differ, the difference is a test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use serde_json::Value;
use tempfile::TempDir;

use super::search_path;
use crate::chain::formula::{FormulaError, Resolved, ResolvedStep, load, resolve_named};

/// A real workspace with a directory of formulas beside it.
struct Bd {
    root: TempDir,
}

impl Bd {
    /// Makes the workspace and copies the fixtures and the shipped formulas in.
    fn new() -> Self {
        let bd = Self { root: tempfile::tempdir().unwrap() };
        for directory in ["home", "project", "formulas"] {
            fs::create_dir(bd.root.path().join(directory)).unwrap();
        }
        let git = Command::new("git").arg("init").arg("-q").current_dir(bd.project()).status().unwrap();
        assert!(git.success());
        let init = "init --prefix t --stealth --skip-hooks --skip-agents --quiet --non-interactive";
        let made = bd.run(&init.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        for directory in [package.join("formulas"), package.join("tests/fixtures/formulas")] {
            for entry in fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), bd.formulas().join(entry.file_name())).unwrap();
            }
        }
        bd
    }

    fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    fn formulas(&self) -> PathBuf {
        self.root.path().join("formulas")
    }

    fn run(&self, args: &[String]) -> Output {
        let bd = env::var_os("SP_BD")
            .expect("SP_BD must name a bd 1.3 program (`make tools` installs one in .tools/bin/bd)");
        Command::new(bd)
            .args(args)
            .current_dir(self.project())
            .env("HOME", self.root.path().join("home"))
            .env("BD_DISABLE_METRICS", "1")
            .env("BD_NON_INTERACTIVE", "1")
            .env_remove("BEADS_DIR")
            .env_remove("BEADS_DB")
            .env_remove("GT_ROOT")
            .output()
            .unwrap()
    }

    /// Returns what `bd cook` resolves, or what it says against it.
    fn cook(&self, name: &str, vars: &[(&str, &str)]) -> Result<Value, String> {
        let file = ["toml", "json"].map(|format| self.formulas().join(format!("{name}.formula.{format}")));
        let file = file.iter().find(|file| file.exists()).unwrap();
        let mut args: Vec<String> =
            ["cook", file.to_str().unwrap(), "--json", "--mode", "runtime"].map(str::to_owned).into();
        args.extend(["--search-path".to_owned(), self.formulas().display().to_string()]);
        args.extend(vars.iter().flat_map(|(name, value)| ["--var".to_owned(), format!("{name}={value}")]));
        let output = self.run(&args);
        if output.status.success() {
            Ok(serde_json::from_slice(&output.stdout).unwrap())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    fn resolve(&self, name: &str, vars: &[(&str, &str)]) -> Result<Resolved, FormulaError> {
        let given: BTreeMap<String, String> =
            vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        resolve_named(name, &given, &search_path([self.formulas()]))
    }
}

fn texts(step: &Value, keys: &[&str]) -> BTreeSet<String> {
    let lists = keys.iter().filter_map(|key| step[*key].as_array()).flatten();
    lists.map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// What bd fills in must be the same; what it leaves must be left still, or the difference is gone and this test is old.
fn assert_same_step(formula: &str, ours: &ResolvedStep, bds: &Value) {
    let text = |key: &str| bds[key].as_str().unwrap_or_default().to_owned();
    let of = format!("{formula}, step {}", ours.id);
    assert_eq!(
        (&ours.title, &ours.description, &ours.notes),
        (&text("title"), &text("description"), &text("notes")),
        "{of}"
    );
    assert_eq!(ours.issue_type.clone().unwrap_or_default(), text("type"), "{of}");
    assert_eq!(ours.priority.map(u64::from), bds["priority"].as_u64(), "{of}");
    let filled = |left: &str| {
        left.replace("{{env}}", "production").replace("{{feature}}", "search").replace("{{scrutiny}}", "medium")
    };
    let labels: BTreeSet<String> = ours.labels.iter().cloned().collect();
    assert_eq!(labels, texts(bds, &["labels"]).iter().map(|label| filled(label)).collect(), "{of}");
    assert_eq!(ours.assignee.clone().unwrap_or_default(), filled(&text("assignee")), "{of}");
    let metadata = bds["metadata"].as_object().cloned().unwrap_or_default();
    let metadata: Value = serde_json::from_str(&filled(&Value::from(metadata).to_string())).unwrap();
    assert_eq!(serde_json::to_value(&ours.metadata).unwrap(), metadata, "{of}");
}

#[test]
fn sp_resolves_formulas_as_bd_cook_does() {
    let bd = Bd::new();
    for (name, vars) in [
        ("code-standard", &[][..]),
        ("code-standard", &[("scope", "src/**"), ("root_title", "Fix {{scope}}")]),
        ("ship", &[("feature", "search"), ("env", "production")]),
        ("release", &[]),
        ("release", &[("version", "2 {{x}}"), ("tag", "v2")]),
        ("release-base", &[]),
    ] {
        let (ours, bds) = (bd.resolve(name, vars).unwrap(), bd.cook(name, vars).unwrap());
        assert_eq!(ours.description, bds["description"].as_str().unwrap_or_default(), "{name}");
        let steps = bds["steps"].as_array().unwrap();
        let ids: Vec<&str> = steps.iter().map(|step| step["id"].as_str().unwrap()).collect();
        assert_eq!(ours.steps.iter().map(|step| step.id.as_str()).collect::<Vec<_>>(), ids, "{name}");
        for (ours, bds) in ours.steps.iter().zip(steps) {
            assert_same_step(name, ours, bds);
            let needs: BTreeSet<String> = ours.needs.iter().cloned().collect();
            assert_eq!(needs, texts(bds, &["needs", "depends_on"]), "{name}, step {}", ours.id);
        }
        let declared: BTreeSet<String> = load(name, &search_path([bd.formulas()])).unwrap().vars.into_keys().collect();
        assert_eq!(declared, bds["vars"].as_object().unwrap().keys().cloned().collect(), "{name}");
    }
    let left = bd.cook("ship", &[("feature", "search")]).unwrap()["steps"][0].to_string();
    assert!(
        left.contains("env:{{env}}") && left.contains("team/{{env}}"),
        "bd fills in labels or assignee now: {left}"
    );
}

#[test]
fn sp_applies_the_conditions_that_bd_cook_leaves_to_the_pour() {
    let bd = Bd::new();
    for (vars, kept, end_needs) in [
        (&[][..], &["code", "quick", "bare", "end"][..], &["code", "quick", "bare"][..]),
        (&[("docs", "yes"), ("level", "high")], &["code", "docs", "audit", "end"], &["audit", "code"]),
    ] {
        let (ours, bds) = (bd.resolve("optional", vars).unwrap(), bd.cook("optional", vars).unwrap());
        assert_eq!(bds["steps"].as_array().unwrap().len(), 6, "bd cook applies conditions now");
        assert_eq!(ours.steps.iter().map(|step| step.id.as_str()).collect::<Vec<_>>(), kept);
        let needs: BTreeSet<&str> = ours.steps.last().unwrap().needs.iter().map(String::as_str).collect();
        assert_eq!(needs, end_needs.iter().copied().collect());
        // The pour drops the same steps, and with them the needs that sp bridges.
        let mut args: Vec<String> = ["mol", "pour", "optional", "--json"].map(str::to_owned).into();
        args.extend(vars.iter().flat_map(|(name, value)| ["--var".to_owned(), format!("{name}={value}")]));
        let installed = bd.project().join(".beads/formulas");
        fs::create_dir_all(&installed).unwrap();
        fs::copy(bd.formulas().join("optional.formula.json"), installed.join("optional.formula.json")).unwrap();
        let poured: Value = serde_json::from_slice(&bd.run(&args).stdout).unwrap();
        let ids: BTreeSet<&str> =
            poured["id_mapping"].as_object().unwrap().keys().filter_map(|key| key.strip_prefix("optional.")).collect();
        assert_eq!(ids, kept.iter().copied().collect());
    }
}

/// (name, body, variables, whether bd refuses it too)
type Case = (&'static str, String, &'static [(&'static str, &'static str)], bool);

#[test]
fn sp_refuses_what_bd_cook_refuses_and_more() {
    let bd = Bd::new();
    let write = |name: &str, body: &str| {
        let file = bd.formulas().join(format!("{name}.formula.json"));
        fs::write(file, format!(r#"{{"formula":"{name}","version":1,"type":"workflow",{body}}}"#)).unwrap();
    };
    let one = |field: &str| format!(r#""steps":[{{"id":"a","title":"A",{field}}}]"#);
    let cases: Vec<Case> = vec![
        ("syntax", "oops".to_owned(), &[], true),
        ("required", r#""vars":{"v":{"required":true}},"steps":[]"#.to_owned(), &[], true),
        ("empty", r#""vars":{"v":{"required":true}},"steps":[]"#.to_owned(), &[("v", "")], true),
        ("enum", r#""vars":{"v":{"default":"a","enum":["a","b"]}},"steps":[]"#.to_owned(), &[("v", "c")], true),
        ("pattern", r#""vars":{"v":{"default":"1","pattern":"^[0-9]$"}},"steps":[]"#.to_owned(), &[("v", "x")], true),
        ("undeclared", one(r#""description":"{{nobody}}""#), &[], true),
        ("valueless", r#""vars":{"v":{}},"steps":[{"id":"a","title":"{{v}}"}]"#.to_owned(), &[], true),
        ("both", r#""vars":{"v":{"required":true,"default":"x"}},"steps":[]"#.to_owned(), &[("v", "x")], true),
        ("twice", r#""steps":[{"id":"a","title":"A"},{"id":"a","title":"B"}]"#.to_owned(), &[], true),
        ("untitled", r#""steps":[{"id":"a"}]"#.to_owned(), &[], true),
        ("nameless", r#""steps":[{"title":"A"}]"#.to_owned(), &[], true),
        ("priority", one(r#""priority":5"#), &[], true),
        ("circle", r#""extends":["circle"],"steps":[]"#.to_owned(), &[], true),
        ("orphan", r#""extends":["nobody"],"steps":[]"#.to_owned(), &[], true),
        ("same", r#""extends":["same-a","same-b"],"steps":[]"#.to_owned(), &[], true),
        // From here on bd takes it, or drops it silently, and sp does not.
        ("extra-var", r#""steps":[{"id":"a","title":"A"}]"#.to_owned(), &[("nobody", "x")], false),
        ("typo", one(r#""need":["b"]"#), &[], false),
        ("key-twice", r#""description":"a","description":"b","steps":[]"#.to_owned(), &[], false),
        ("looped", one(r#""loop":{"count":2,"body":[{"id":"b","title":"B"}]}"#), &[], false),
        ("gated", one(r#""gate":{"type":"human"}"#), &[], false),
        ("parented", one(r#""children":[{"id":"b","title":"B"}]"#), &[], false),
        ("waiting", one(r#""waits_for":"all-children""#), &[], false),
        ("label", one(r#""labels":["x:{{nobody}}"]"#), &[], false),
        (
            "condition",
            r#""vars":{"v":{"default":"1"}},"steps":[{"id":"a","title":"A","condition":"{{v}} > 0"}]"#.to_owned(),
            &[],
            false,
        ),
        (
            "typed",
            r#""vars":{"v":{"default":"1","type":"int"}},"steps":[{"id":"a","title":"A"}]"#.to_owned(),
            &[("v", "x")],
            false,
        ),
    ];
    for (name, body) in [("same-a", one("\"notes\":\"\"")), ("same-b", one("\"notes\":\"\""))] {
        write(name, &body);
    }
    for (name, body, vars, refused) in cases {
        write(name, &body);
        assert_eq!(bd.cook(name, vars).is_err(), refused, "bd on {name}: {:?}", bd.cook(name, vars));
        assert!(bd.resolve(name, vars).is_err(), "sp on {name}");
    }
}

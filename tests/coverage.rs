//! Holds docs/coverage.tsv and the pages to the truth: what they name as proof exists.
//!
//! Columns: `id` of the requirement, `state`, `shown` (names of tests, or commands in backticks, separated by `;`), `note`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A word in backticks on a page with this many underscores is the name of a test: codes and columns are shorter.
const TEST_UNDERSCORES: usize = 5;

struct Row {
    line: usize,
    id: String,
    state: String,
    shown: Vec<String>,
    note: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("docs/coverage.tsv")).unwrap();
    let mut lines = text.lines().enumerate();
    assert_eq!(lines.next().map(|(_, line)| line), Some("id\tstate\tshown\tnote"));
    lines
        .map(|(at, line)| {
            let cells: Vec<&str> = line.split('\t').collect();
            let [id, state, shown, note] = cells[..] else {
                panic!("line {}: four columns, not {}", at + 1, cells.len())
            };
            let shown = shown.split(';').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
            Row { line: at + 1, id: id.into(), state: state.into(), shown, note: note.into() }
        })
        .collect()
}

fn files(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

/// Every test of the sources: functions under a `#[test]` or `#[tokio::test…]` attribute.
fn tests() -> BTreeSet<String> {
    let mut sources = Vec::new();
    for directory in ["src", "tests"] {
        files(&root().join(directory), "rs", &mut sources);
    }
    let mut names = BTreeSet::new();
    for source in sources {
        let mut is_test = false;
        for line in fs::read_to_string(source).unwrap().lines().map(str::trim) {
            if line.contains("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            }
            let Some((before, after)) = line.split_once("fn ") else { continue };
            let is_item = ["", "async ", "#[test] "].contains(&before);
            if is_test && is_item {
                names.extend(after.split('(').next().map(|name| name.trim().to_owned()));
                is_test = false;
            }
        }
    }
    names
}

fn is_command(shown: &str) -> bool {
    shown.len() > 2 && shown.starts_with('`') && shown.ends_with('`')
}

#[test]
fn each_requirement_stands_once_with_a_state_and_what_shows_it() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in rows() {
        let mut say = |what: String| wrong.push(format!("line {}, {}: {what}", row.line, row.id));
        let is_id = row.id.split_once('-').is_some_and(|(document, number)| {
            document.starts_with('R')
                && document.len() == 2
                && number.len() >= 3
                && number.chars().all(|digit| digit.is_ascii_digit())
        });
        if !is_id {
            say("is no id of a requirement".to_owned());
        }
        if let Some(first) = seen.insert(row.id.clone(), row.line) {
            say(format!("stands on line {first} already"));
        }
        match row.state.as_str() {
            "done" if row.shown.is_empty() => say("is done and nothing shows it".to_owned()),
            "partial" | "declined" if row.note.trim().is_empty() => say(format!("is {} without a word why", row.state)),
            "done" | "partial" | "declined" => {}
            other => say(format!("has the state `{other}`")),
        }
    }
    assert!(wrong.is_empty(), "docs/coverage.tsv:\n{}", wrong.join("\n"));
}

#[test]
fn every_row_and_every_page_names_tests_that_exist() {
    let tests = tests();
    let mut wrong = Vec::new();
    for row in rows() {
        for name in row.shown.iter().filter(|shown| !is_command(shown) && !tests.contains(*shown)) {
            wrong.push(format!("docs/coverage.tsv, line {}, {}: no test {name}", row.line, row.id));
        }
    }
    let mut pages = Vec::new();
    files(&root().join("docs"), "md", &mut pages);
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let is_name = |word: &&str| {
            word.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
        };
        let names = text.split('`').skip(1).step_by(2).filter(is_name);
        for name in names.filter(|name| name.matches('_').count() >= TEST_UNDERSCORES && !tests.contains(*name)) {
            wrong.push(format!("{}: no test {name}", page.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

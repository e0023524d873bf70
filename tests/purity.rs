//! Holds the rooms to docs/architecture.md: who may import whom, what the pure rooms never touch, how long a file may be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms with decisions in them: no clock, no environment, no I/O.
const PURE: [&str; 5] = ["chain", "job", "policy", "specialist", "nearest"];

/// What no pure room may name, as the beginning of a path.
const IMPURE: [&str; 22] = [
    "tokio",
    "tokio_util",
    "ractor",
    "rusqlite",
    "rustix",
    "procfs",
    "tempfile",
    "axum",
    "async_process",
    "ulid::Ulid::generate",
    "std::process",
    "std::fs",
    "std::env",
    "std::net",
    "std::thread",
    "std::os",
    "std::time::SystemTime",
    "std::time::Instant",
    "crate::ports::Clock",
    "crate::ports::SystemClock",
    "crate::ports::Child",
    "crate::ports::Spawned",
];

/// Traits whose calls reach the world; their data types are plain.
const WORLDLY_PORTS: [&str; 4] = ["Agent", "ExecBackend", "Tracker", "Workspace"];

/// All that a pure room may take from the room of pi: what a session says.
const PI_DATA: [&str; 10] = [
    "PiEvent",
    "StopReason",
    "AssistantEnd",
    "BlockKind",
    "BlockPhase",
    "Role",
    "Usage",
    "ModelRef",
    "SessionTask",
    "ShellCall",
];

/// Requests that only the Store hands to the writer, and the writer itself. The command line reads.
const WRITES: [&str; 15] = [
    "AppendChainEvents",
    "AppendJobEvents",
    "JobFiles",
    "OpenChain",
    "Pending",
    "RecordFinding",
    "ReleaseOwnership",
    "SettleJob",
    "StagedSettlement",
    "TakeOwnership",
    "UpsertJob",
    "Write",
    "Writer",
    "ChainPatch",
    "Ownership",
];

const LONGEST_FILE: usize = 600;

/// One source file of a room.
struct Source {
    file: PathBuf,
    room: String,
    /// Paths that its code names outside of tests, such as `crate::ports::Bead`.
    paths: BTreeSet<String>,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Every file under src, with the paths that its code names; test modules count only for `text`.
fn sources() -> Vec<Source> {
    let src = root().join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    files.sort();
    let texts: Vec<(PathBuf, String)> =
        files.into_iter().map(|file| (file.clone(), fs::read_to_string(&file).unwrap())).collect();
    let test_only: Vec<PathBuf> = texts.iter().flat_map(|(file, text)| test_modules(file, text)).collect();
    texts
        .into_iter()
        .map(|(file, text)| {
            let module = module_of(file.strip_prefix(&src).unwrap());
            let is_test = test_only.iter().any(|test| file.with_extension("") == *test || file.starts_with(test));
            let paths = if is_test { BTreeSet::new() } else { named_paths(&code(&text), &module) };
            Source { room: module.first().cloned().unwrap_or_default(), file, paths, text }
        })
        .collect()
}

/// The modules that a file declares for tests alone, as paths without extension.
fn test_modules(file: &Path, text: &str) -> Vec<PathBuf> {
    let home = if file.ends_with("mod.rs") || file.ends_with("lib.rs") {
        file.parent().unwrap().to_owned()
    } else {
        file.with_extension("")
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]").filter_map(|pair| {
        pair[1].trim_start_matches("pub(crate) ").strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'))
    });
    declared.map(|name| home.join(name)).collect()
}

/// `chain/graph/mod.rs` is `[chain, graph]`, `chain/pour.rs` is `[chain, pour]`, `lib.rs` is `[]`.
fn module_of(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
        parts.pop();
    }
    parts
}

/// The text without comments, string contents and what follows the first inline test module (they stand last).
fn code(text: &str) -> String {
    let mut kept = String::new();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let begins_tests = line.trim() == "#[cfg(test)]"
            && lines.get(at + 1).is_some_and(|next| next.trim_start().starts_with("mod ") && next.ends_with('{'));
        if begins_tests {
            break;
        }
        let line = line.trim_start();
        if line.starts_with("//") {
            continue;
        }
        kept.push_str(&without_strings(line));
        kept.push('\n');
    }
    kept
}

fn without_strings(line: &str) -> String {
    let mut out = String::new();
    let (mut inside, mut escaped) = (false, false);
    for letter in line.chars() {
        match (inside, escaped, letter) {
            (true, true, _) => escaped = false,
            (true, false, '\\') => escaped = true,
            (_, false, '"') => {
                inside = !inside;
                out.push('"');
            }
            (true, false, _) => {}
            (false, ..) => out.push(letter),
        }
    }
    out
}

/// Every path of the code in full: `use` lists opened up, `self` and `super` resolved.
fn named_paths(code: &str, module: &[String]) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut rest = code;
    while let Some(at) = rest.find(|letter: char| letter.is_alphabetic() || letter == '_') {
        rest = &rest[at..];
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        if let Some(after) = after.strip_prefix("::") {
            rest = open_up(word, after, module, &mut paths);
        }
    }
    paths
}

/// Adds the paths that begin with `prefix::`; returns what follows them.
fn open_up<'a>(prefix: &str, after: &'a str, module: &[String], paths: &mut BTreeSet<String>) -> &'a str {
    if let Some(list) = after.strip_prefix('{') {
        let mut rest = list;
        loop {
            rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == ',');
            if let Some(after) = rest.strip_prefix('}') {
                return after;
            }
            let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
            if end == 0 {
                return rest; // a macro's braces, no list
            }
            let (word, after) = rest.split_at(end);
            if word == "as" {
                let name = after.trim_start();
                rest = name.trim_start_matches(|letter: char| letter.is_alphanumeric() || letter == '_');
                continue;
            }
            let path = if word == "self" { prefix.to_owned() } else { format!("{prefix}::{word}") };
            rest = match after.strip_prefix("::") {
                Some(deeper) => open_up(&path, deeper, module, paths),
                None => {
                    paths.insert(resolved(&path, module));
                    after
                }
            };
        }
    }
    let end = after.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(after.len());
    let (word, rest) = after.split_at(end);
    let path = if word.is_empty() { prefix.to_owned() } else { format!("{prefix}::{word}") };
    match rest.strip_prefix("::") {
        Some(deeper) if !word.is_empty() => open_up(&path, deeper, module, paths),
        _ => {
            paths.insert(resolved(&path, module));
            rest
        }
    }
}

fn resolved(path: &str, module: &[String]) -> String {
    let mut home = module.to_vec();
    let mut parts = path.split("::").peekable();
    match parts.peek() {
        Some(&"self") => drop(parts.next()),
        Some(&"super") => {
            while parts.next_if_eq(&"super").is_some() {
                home.pop();
            }
        }
        _ => return path.to_owned(),
    }
    let full: Vec<String> = home.into_iter().chain(parts.map(str::to_owned)).collect();
    format!("crate::{}", full.join("::"))
}

/// The room that a path leads to: `crate::ports::Bead` is `ports`. What `lib.rs` re-exports is in no room.
fn room_of(path: &str) -> Option<&str> {
    let room = path.strip_prefix("crate::")?.split("::").next()?;
    room.starts_with(|letter: char| letter.is_lowercase()).then_some(room)
}

fn begins_with(path: &str, beginning: &str) -> bool {
    path.strip_prefix(beginning).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The table of rooms in docs/architecture.md: room → rooms that it may import.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let table = page.split("| room | holds | may import |").nth(1).expect("the table of rooms");
    let names = |cell: &str| -> BTreeSet<String> {
        cell.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches('/').to_owned()).collect()
    };
    table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            let room = names(cells[1]).into_iter().next().expect("a room a row");
            (room, names(cells[3]))
        })
        .collect()
}

#[test]
fn rooms_import_only_what_the_architecture_page_says() {
    let table = documented();
    let mut wrong = Vec::new();
    for source in sources() {
        if source.room.is_empty() || source.room == "bin" {
            continue; // lib.rs names every room; a binary names the library
        }
        let Some(allowed) = table.get(&source.room) else {
            wrong.push(format!("room {} has no row in docs/architecture.md", source.room));
            continue;
        };
        for path in &source.paths {
            if let Some(room) = room_of(path)
                && room != source.room
                && !allowed.contains(room)
            {
                wrong.push(format!("{} imports {path}", source.file.display()));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_rooms_touch_no_clock_no_environment_and_no_io() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| PURE.contains(&source.room.as_str())) {
        for path in &source.paths {
            let worldly = path
                .strip_prefix("crate::ports::")
                .is_some_and(|name| WORLDLY_PORTS.contains(&name.split("::").next().unwrap_or_default()));
            let live = path
                .strip_prefix("crate::pi::")
                .is_some_and(|name| !PI_DATA.contains(&name.split("::").next().unwrap_or_default()));
            if worldly || live || IMPURE.iter().any(|impure| begins_with(path, impure)) {
                wrong.push(format!("{} names {path}", source.file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn adapters_know_nothing_of_storage_and_the_command_line_writes_nothing() {
    let mut wrong = Vec::new();
    for source in sources() {
        let adapter = ["pi", "beads", "git", "exec", "rehearsal"].contains(&source.room.as_str());
        for path in &source.paths {
            let stores = begins_with(path, "crate::storage") || begins_with(path, "rusqlite");
            let writes = begins_with(path, "rusqlite")
                || path
                    .strip_prefix("crate::storage::")
                    .is_some_and(|name| WRITES.contains(&name.split("::").next().unwrap_or_default()));
            if adapter && stores || source.room == "cli" && writes {
                wrong.push(format!("{} names {path}", source.file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_is_too_long_and_none_is_left_half_done() {
    let unfinished = ["todo", "unimplemented"].map(|name| format!("{name}!("));
    for source in sources() {
        let (file, lines) = (source.file.display(), source.text.lines().count());
        assert!(lines <= LONGEST_FILE, "{file} has {lines} lines");
        for mark in &unfinished {
            assert!(!source.text.contains(mark.as_str()), "{file} holds {mark}");
        }
    }
}

#[test]
fn paths_are_found_however_they_are_written() {
    let module = ["chain", "machine", "decide"].map(str::to_owned);
    let text = r#"
        use std::{collections::BTreeMap, fs::{self, File}, time::Instant as Now};
        use super::super::shape::Shape;
        //! crate::storage is only mentioned
        fn now() -> u64 { crate::ports::SystemClock.now_ms(); log("tokio::time"); std::env::var("X") }
        #[cfg(test)]
        mod tests {
            use tokio::time;
        }
    "#;
    let found = named_paths(&code(text), &module);
    let expected = [
        "std::collections::BTreeMap",
        "std::fs",
        "std::fs::File",
        "std::time::Instant",
        "crate::chain::shape::Shape",
        "crate::ports::SystemClock",
        "std::env::var",
    ];
    assert_eq!(found, expected.map(str::to_owned).into());
}

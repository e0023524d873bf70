//! Looks at each thing that `sp doctor` tells about. Nothing is changed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Check;
use crate::beads::{Bd, BdConfig, locate};
use crate::cli::context::{Context, variable};
use crate::cli::standing::{Alive, Machine, Owners};
use crate::config::{Config, Flags};
use crate::exec::{Marked, find_marked};
use crate::failure::Failure;
use crate::git::Git;
use crate::ids::JobId;
use crate::pi::{self, PiInfo, SUPPORTED, SearchToolFault};
use crate::ports::{RepoFacts, Tracker, TrackerError, Workspace, WorkspaceError};
use crate::storage::{JobFilter, JobScope, Layout, Reader, SCHEMA_VERSION, StoreError, UPGRADABLE_SCHEMA};

/// A workspace that is larger than this is slow to open and worth compacting; in bytes.
const LARGE_WORKSPACE: u64 = 20 << 20;

/// Looks at everything, the needed things first.
pub fn all(cx: &Context) -> Result<Vec<Check>, Failure> {
    let root = cx.place().map(|place| place.root.clone());
    let (config, configured) = configuration(cx);
    let mut checks = vec![git()];
    let (repository, tracker, agent) = cx.block_on(async {
        let repository = Git::open(cx.directory()).await;
        let repository = match repository {
            Ok(git) => git.facts().await,
            Err(error) => Err(error),
        };
        (repository, bd(&config, root.as_deref().ok()).await, pi(&config).await)
    })?;
    checks.push(repository_check(repository));
    checks.extend(tracker);
    checks.extend(agent);
    checks.push(node());
    checks.push(configured);
    if let Ok(root) = &root {
        let layout = Layout::new(root);
        let reader = Reader::open(&layout.database());
        let alive = Machine::look()?;
        checks.extend(left_behind(reader.as_ref().ok(), &alive, || find_marked(None, Some(root)))?);
        checks.push(database(&layout, reader.err()));
    }
    Ok(checks)
}

fn git() -> Check {
    match answer(Path::new("git"), &["version"]) {
        Some(version) => Check::ok("git", version.trim_start_matches("git version ").to_owned()),
        None => Check::fail("git", WorkspaceError::Missing { verb: "version" }),
    }
}

fn repository_check(facts: Result<RepoFacts, WorkspaceError>) -> Check {
    match facts {
        Ok(facts) => {
            let head: String = facts.head.chars().take(10).collect();
            let branch = facts.branch.as_deref().unwrap_or("no branch");
            let found = format!("{} ({branch} at {head})", facts.root.display());
            match facts.dirty {
                0 => Check::ok("repository", found),
                files => Check::note(
                    "repository",
                    format!("{found}; {files} uncommitted files, which no worktree will hold"),
                ),
            }
        }
        Err(error) => Check::fail("repository", error),
    }
}

async fn bd(config: &Option<Config>, root: Option<&Path>) -> Vec<Check> {
    let named = config.as_ref().and_then(|config| config.tools.bd.clone());
    let program = match locate::program(named.as_deref(), variable("PATH").as_deref()) {
        Ok(program) => program,
        Err(error) => return vec![Check::fail("bd", error)],
    };
    let repository = root.unwrap_or(Path::new("/")).to_owned();
    let beads_dir = repository.join(".beads");
    let lock_file = Layout::new(&repository).bd_lock();
    let bd = Bd::new(BdConfig { program: program.clone(), repository, beads_dir: beads_dir.clone(), lock_file });
    let origin = origin(config, "tools.bd");
    // Outside of a repository, and without a workspace, the version is all there is to know.
    let version = match bd.version().await {
        Ok(version) => version,
        Err(error) => return vec![Check::fail("bd", error)],
    };
    let mut checks = vec![Check::ok("bd", format!("{version} ({}{origin})", program.display()))];
    let Some(root) = root else { return checks };
    match locate::workspace(root) {
        Err(error) => checks.push(Check::fail("workspace", error)),
        Ok(_) => match bd.probe().await {
            Ok(info) => checks.push(workspace(&beads_dir, &info.project_id, &info.prefix)),
            Err(error @ TrackerError::Unsupported { .. }) => checks = vec![Check::fail("bd", error)],
            Err(error) => checks.push(Check::fail("workspace", error)),
        },
    }
    checks
}

fn workspace(beads_dir: &Path, project: &str, prefix: &str) -> Check {
    let size = size_of(beads_dir);
    let found = format!("{} (prefix {prefix}, project {project}, {:.1} MB)", beads_dir.display(), mega(size));
    if size > LARGE_WORKSPACE {
        // Without --skip-decay it would delete old closed beads.
        return Check::warn("workspace", found, "compact it while nothing runs: `bd gc --skip-decay`");
    }
    Check::ok("workspace", found)
}

#[expect(clippy::cast_precision_loss, reason = "one decimal of a size is shown")]
fn mega(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Returns the bytes of all files below a directory; what can't be looked at counts nothing.
fn size_of(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => size_of(&entry.path()),
        Ok(facts) => facts.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

async fn pi(config: &Option<Config>) -> Vec<Check> {
    let named = config.as_ref().and_then(|config| config.tools.pi.clone());
    let path = variable("PATH");
    let program = match pi::locate(named.as_deref(), path.as_deref()) {
        Ok(program) => program,
        Err(error) => return vec![Check::fail("pi", error)],
    };
    let origin = origin(config, "tools.pi");
    let probed = pi::probe(&program).await.and_then(PiInfo::require_supported);
    let mut checks = vec![match probed {
        Ok(info) => Check::ok("pi", format!("{} ({}{origin}; supported {SUPPORTED})", info.version, program.display())),
        Err(error) => Check::fail("pi", error),
    }];
    checks.extend(search_tools(pi::missing_search_tools(agent_dir().as_deref(), path.as_deref()).await));
    checks
}

/// Where pi keeps its own programs.
fn agent_dir() -> Option<PathBuf> {
    let named = variable("PI_CODING_AGENT_DIR").map(PathBuf::from);
    named.or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".pi/agent")))
}

fn search_tools(faults: Vec<SearchToolFault>) -> Vec<Check> {
    if faults.is_empty() {
        return vec![Check::ok("search", "rg and fd, for pi's grep and find")];
    }
    let check = |fault: SearchToolFault| match fault {
        SearchToolFault::Missing { tool } => {
            let package = if tool == "rg" { "ripgrep" } else { "fd-find" };
            Check::warn(
                "search",
                format!("no {tool}: pi's {} tool will fail", if tool == "rg" { "grep" } else { "find" }),
                format!("install {tool}, such as `apt-get install {package}` or `cargo install {package}`"),
            )
        }
        SearchToolFault::TooOld { tool, found, needed } => Check::warn(
            "search",
            format!("{tool} {found}: pi's find tool needs {needed} or newer and fails without saying so"),
            format!("install a newer {tool}, such as `cargo install fd-find`"),
        ),
    };
    faults.into_iter().map(check).collect()
}

fn node() -> Check {
    match answer(Path::new("node"), &["--version"]) {
        Some(version) => Check::ok("node", version),
        None => Check::note("node", "not on PATH; only pi needs it, and may have its own"),
    }
}

fn configuration(cx: &Context) -> (Option<Config>, Check) {
    match cx.config(Flags::default()) {
        Ok(config) => {
            let files: Vec<String> = config.files().iter().map(|file| file.display().to_string()).collect();
            let found = if files.is_empty() { "no files; all is as it comes".to_owned() } else { files.join(", ") };
            (Some(config), Check::ok("config", found))
        }
        Err(failure) => (None, Check::fail("config", failure)),
    }
}

fn origin(config: &Option<Config>, key: &str) -> String {
    config.as_ref().and_then(|config| config.origin(key)).map(|by| format!(", set by {by}")).unwrap_or_default()
}

fn database(layout: &Layout, error: Option<StoreError>) -> Check {
    let path = layout.database();
    let size = mega(path.metadata().map_or(0, |facts| facts.len()));
    match error {
        None => Check::ok("database", format!("{} (schema {SCHEMA_VERSION}, {size:.1} MB)", path.display())),
        Some(StoreError::NotThere { .. }) => Check::note("database", "none yet; the first chain makes it"),
        Some(error @ StoreError::OlderSchema { found, .. }) if found >= UPGRADABLE_SCHEMA => {
            let failure = Failure::from(error);
            Check::warn("database", failure.message, failure.next_safe_action)
        }
        Some(error) => Check::fail("database", error),
    }
}

/// Looks for what processes that are gone have left: ownership, and programs that nobody waits for.
fn left_behind(
    reader: Option<&Reader>,
    alive: &dyn Alive,
    marked: impl FnOnce() -> Result<Vec<Marked>, crate::ports::ExecError>,
) -> Result<Vec<Check>, Failure> {
    let Some(reader) = reader else { return Ok(Vec::new()) };
    let owners = Owners::read(reader, alive)?;
    let stale: Vec<String> = owners.stale().map(|row| row.resource.clone()).collect();
    let live = reader.jobs(&JobFilter { scope: JobScope::Live, ..JobFilter::default() })?;
    let running: BTreeMap<&JobId, bool> = live.iter().map(|job| (&job.job, owners.goes_on(job))).collect();
    let orphans: Vec<String> = marked()?
        .into_iter()
        .filter(|process| !running.get(&process.job).copied().unwrap_or(false))
        .map(|process| format!("{} of job {}", process.pid, process.job))
        .collect();
    let mut checks = Vec::new();
    if stale.is_empty() {
        checks.push(Check::ok("owners", "none is stale"));
    } else {
        let found = format!("held by processes that are gone: {}", stale.join(", "));
        checks.push(Check::warn(
            "owners",
            found,
            "go on with the chain, which takes them over: `sp chain resume <chain>`",
        ));
    }
    if orphans.is_empty() {
        checks.push(Check::ok("processes", "none is orphaned"));
    } else {
        let found = format!("still run and nobody waits for them: {}", orphans.join(", "));
        checks.push(Check::warn(
            "processes",
            found,
            "go on with their chain, which ends them: `sp chain resume <chain>`",
        ));
    }
    Ok(checks)
}

/// Runs a program that answers with one line; `None` when it isn't there or fails.
fn answer(program: &Path, args: &[impl AsRef<OsStr>]) -> Option<String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next()?.trim().to_owned();
    output.status.success().then_some(line)
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;
    use crate::cli::fixture::{OnlyPids, Recorded};

    fn marked(pid: u32, job: &str) -> Marked {
        Marked { pid, started: 7, job: JobId::new(job) }
    }

    #[test]
    fn programs_of_jobs_that_do_not_run_are_orphans_and_owners_that_are_gone_are_stale() {
        let recorded = Recorded::chain_in_its_second_step();
        let reader = recorded.reader();
        let told = |pids: &'static [u32], programs: Vec<Marked>| {
            let checks = left_behind(Some(&reader), &OnlyPids(pids), || Ok(programs)).unwrap();
            checks.into_iter().filter(|check| check.level == Level::Warn).map(|check| check.found).collect::<Vec<_>>()
        };
        assert_eq!(told(&[10, 20], vec![marked(20, "0bbbbbbb")]), Vec::<String>::new());
        assert_eq!(
            told(&[10, 20, 30], vec![marked(20, "0bbbbbbb"), marked(30, "0aaaaaaa")]),
            ["still run and nobody waits for them: 30 of job 0aaaaaaa"]
        );
        assert_eq!(
            told(&[20], vec![marked(20, "0bbbbbbb")]),
            [
                "held by processes that are gone: chain:proj-mol-1",
                "still run and nobody waits for them: 20 of job 0bbbbbbb"
            ]
        );
    }

    #[test]
    fn a_large_workspace_is_worth_compacting_without_deleting_beads() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("deep")).unwrap();
        let file = fs::File::create(directory.path().join("deep/data")).unwrap();
        assert_eq!(workspace(directory.path(), "id", "proj").level, Level::Ok);
        file.set_len(LARGE_WORKSPACE + 1).unwrap();
        let check = workspace(directory.path(), "id", "proj");
        assert_eq!(
            (check.level, check.next.as_deref()),
            (Level::Warn, Some("compact it while nothing runs: `bd gc --skip-decay`"))
        );
    }
}

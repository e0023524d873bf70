//! Which pi is installed, whether sp can drive it, and what pi itself lacks.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::stderr::StderrTail;
use crate::exec::LocalExec;
use crate::ports::{AgentError, ExecBackend, ExecError, Program};

/// The versions of pi that sp drives.
pub const SUPPORTED: &str = ">=1.6.0, <2";

/// How long a program may take to say its version. A cold start of pi on a loaded machine takes some seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// More than any version text.
const MOST_OUTPUT: u64 = 64 * 1024;

/// The first fd with `--no-require-git`, which pi passes; an older one fails without pi noticing (pi-rpc §1.11).
const OLDEST_FD: Version = Version(8, 7, 0);

/// An installed pi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PiInfo {
    /// The program.
    pub program: PathBuf,
    /// Its version, such as `1.6.0`.
    pub version: String,
    /// Whether it is within [`SUPPORTED`].
    pub supported: bool,
}

impl PiInfo {
    /// Returns the same, or the error that says what is needed instead.
    pub fn require_supported(self) -> Result<Self, AgentError> {
        if self.supported {
            return Ok(self);
        }
        let program = self.program.display().to_string();
        Err(AgentError::Unsupported { program, found: self.version, needed: SUPPORTED })
    }
}

/// A program that pi's `grep` or `find` needs and does not have. Offline pi can't fetch it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchToolFault {
    /// It is not there.
    Missing {
        /// `rg` or `fd`.
        tool: &'static str,
    },
    /// It is there and too old.
    TooOld {
        /// `fd`.
        tool: &'static str,
        /// Its version.
        found: String,
        /// The oldest that works.
        needed: String,
    },
}

/// Finds pi: `explicit` (from the configuration or `SP_PI`; a path, or a name), else `pi`, names being looked up in
/// `env_path` (the value of `PATH`). An explicit pi that is missing is an error, never replaced by another.
pub fn locate(explicit: Option<&Path>, env_path: Option<&OsStr>) -> Result<PathBuf, AgentError> {
    let wanted = explicit.unwrap_or(Path::new("pi"));
    let found = if wanted.components().count() > 1 || wanted.is_absolute() {
        // Absolute, since pi is started in another directory.
        std::path::absolute(wanted).ok().filter(|path| is_program(path))
    } else {
        on_path(wanted, env_path)
    };
    found.ok_or_else(|| AgentError::Missing { program: wanted.display().to_string() })
}

/// Asks a pi for its version.
pub async fn probe(program: &Path) -> Result<PiInfo, AgentError> {
    let version = ask_version(program).await?;
    let supported = (Version(1, 6, 0)..Version(2, 0, 0)).contains(&version);
    Ok(PiInfo { program: program.to_owned(), version: version.to_string(), supported })
}

/// Returns what pi's `grep` and `find` lack. Looks where pi does: first `<agent_dir>/bin`, then `env_path`.
pub async fn missing_search_tools(agent_dir: Option<&Path>, env_path: Option<&OsStr>) -> Vec<SearchToolFault> {
    let find = |name: &str| {
        let own = agent_dir.map(|directory| directory.join("bin").join(name)).filter(|path| is_program(path));
        own.or_else(|| on_path(Path::new(name), env_path))
    };
    let mut faults = Vec::new();
    if find("rg").is_none() {
        faults.push(SearchToolFault::Missing { tool: "rg" });
    }
    match find("fd").or_else(|| on_path(Path::new("fdfind"), env_path)) {
        None => faults.push(SearchToolFault::Missing { tool: "fd" }),
        // One that does not say its version is left to pi: it may be newer than this code.
        Some(fd) => match ask_version(&fd).await {
            Ok(found) if found < OLDEST_FD => faults.push(SearchToolFault::TooOld {
                tool: "fd",
                found: found.to_string(),
                needed: OLDEST_FD.to_string(),
            }),
            Ok(_) | Err(_) => {}
        },
    }
    faults
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32, u32);

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Returns the first `<n>.<n>.<n>` that is a word of the text or begins one; a suffix such as `-beta.1` is dropped.
fn version_in(text: &str) -> Option<Version> {
    text.split_whitespace().find_map(|word| {
        let mut parts = word.trim_start_matches('v').splitn(3, '.');
        let (major, minor, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let patch = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some(Version(major.parse().ok()?, minor.parse().ok()?, patch.parse().ok()?))
    })
}

/// Runs `<program> --version`. Some versions of pi answer on stderr.
async fn ask_version(program: &Path) -> Result<Version, AgentError> {
    let name = program.display().to_string();
    let unanswered = |reason: String| AgentError::Unanswered { program: name.clone(), reason };
    // Not sp's directory, which may be gone.
    let cwd = PathBuf::from("/");
    let command = Program { path: program.to_owned(), args: vec!["--version".into()], cwd, ..Program::default() };
    let asked = async {
        let spawned = LocalExec.spawn(command).await.map_err(|error| match error {
            ExecError::Missing { program } => AgentError::Missing { program },
            other => AgentError::Spawn(other),
        })?;
        drop(spawned.stdin);
        let (mut out, err) = (String::new(), StderrTail::default());
        let mut stdout = spawned.stdout.take(MOST_OUTPUT);
        let (read, followed) = tokio::join!(stdout.read_to_string(&mut out), err.follow(spawned.stderr));
        read.and(followed).map_err(|error| unanswered(error.to_string()))?;
        let end = spawned.child.wait().await.map_err(AgentError::Spawn)?;
        let err = err.text();
        version_in(&out).or_else(|| version_in(&err)).filter(|_| end.is_success()).ok_or_else(|| {
            unanswered(
                telling_line(&err).or_else(|| telling_line(&out)).unwrap_or("no version in its answer").to_owned(),
            )
        })
    };
    // At the deadline the handle is dropped, and the program with it.
    tokio::time::timeout(PATIENCE, asked)
        .await
        .unwrap_or_else(|_| Err(unanswered(format!("no answer within {} s", PATIENCE.as_secs()))))
}

/// Returns the line that says what went wrong: node prints its own version after it.
fn telling_line(text: &str) -> Option<&str> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.clone().find(|line| line.contains("Error")).or_else(|| lines.next_back())?;
    Some(line.char_indices().nth(200).map_or(line, |(end, _)| &line[..end]))
}

fn on_path(name: &Path, env_path: Option<&OsStr>) -> Option<PathBuf> {
    // An empty entry means the current directory to a shell; here it means nothing.
    let directories = env::split_paths(env_path?).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests;

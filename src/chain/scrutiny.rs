//! How hard a chain is looked at: the level that was asked for, and the one that its scope calls for.
//!
//! The scope of a contract is text, so a scope is judged by the paths it names. A wide pattern such as `src/**` names
//! no surface; the changed paths of the finished diff are judged by the same function. Design: docs/design/contract.md.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

use crate::nearest::advice;

/// A level of scrutiny; a later one asks for all that an earlier one asks, and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scrutiny {
    /// No diff to look at.
    None,
    /// Trivial, low risk.
    Low,
    /// The usual.
    Medium,
    /// Sensitive or hard to undo.
    High,
    /// A mistake would open a door.
    Critical,
}

/// All levels, lowest first.
const LEVELS: [(&str, Scrutiny); 5] = [
    ("none", Scrutiny::None),
    ("low", Scrutiny::Low),
    ("medium", Scrutiny::Medium),
    ("high", Scrutiny::High),
    ("critical", Scrutiny::Critical),
];

impl Scrutiny {
    /// Returns the word for this level.
    pub fn as_str(self) -> &'static str {
        LEVELS[self as usize].0
    }
}

impl fmt::Display for Scrutiny {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A word that is no level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read scrutiny `{found}`: {}", advice(.found, &LEVELS.map(|(word, _)| word)))]
pub struct UnknownScrutiny {
    /// The word.
    pub found: String,
}

impl FromStr for Scrutiny {
    type Err = UnknownScrutiny;

    fn from_str(text: &str) -> Result<Self, UnknownScrutiny> {
        let wanted = text.trim();
        LEVELS
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(wanted))
            .map(|(_, level)| *level)
            .ok_or_else(|| UnknownScrutiny { found: wanted.to_owned() })
    }
}

/// Who stated a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The command line.
    Flag,
    /// The contract.
    Contract,
    /// A variable of the formula.
    Formula,
    /// Nobody: medium.
    Default,
}

/// Returns the level that counts as stated, and who stated it: flag over contract over formula over `medium`.
pub fn stated(flag: Option<Scrutiny>, contract: Option<Scrutiny>, formula: Option<Scrutiny>) -> (Scrutiny, Origin) {
    [(flag, Origin::Flag), (contract, Origin::Contract), (formula, Origin::Formula)]
        .into_iter()
        .find_map(|(level, origin)| level.map(|level| (level, origin)))
        .unwrap_or((Scrutiny::Medium, Origin::Default))
}

/// Part of a repository where a mistake costs more than elsewhere.
struct Surface {
    name: &'static str,
    floor: Scrutiny,
    /// Globs; a path is touched when it or a directory above it matches. `*` stays within one component, case does
    /// not count.
    globs: &'static [&'static str],
}

/// The floors. Source: the auto-escalation table of the existing system, with the surfaces its lists add (secrets,
/// agent configuration, CI). `hooks` is anchored at the top or in a dot directory: `src/hooks` is where React lives.
const SURFACES: &[Surface] = &[
    Surface {
        name: "permissions and hooks",
        floor: Scrutiny::Critical,
        globs: &[
            "{permissions,src/permissions}",
            "hooks",
            ".*/hooks",
            ".githooks",
            ".husky",
            ".pre-commit-config.yaml",
        ],
    },
    Surface {
        name: "CI workflows",
        floor: Scrutiny::Critical,
        globs: &[".github", "**/.gitlab-ci.yml", ".circleci", "**/Jenkinsfile"],
    },
    Surface {
        name: "authentication and secrets",
        floor: Scrutiny::High,
        globs: &[
            "**/{auth,auth.*,auth-*,auth_*,oauth*}",
            "**/{credential,token,secret}*",
            "**/{crypto,crypto.*}",
            "**/{.env,.env.*}",
        ],
    },
    Surface { name: "specialists", floor: Scrutiny::High, globs: &["config/specialists", ".specialists/user"] },
    Surface { name: "agent configuration", floor: Scrutiny::High, globs: &["**/.mcp.json", ".claude", ".pi"] },
    Surface { name: "core of the runner", floor: Scrutiny::High, globs: &["**/runner.ts", "**/schema.ts"] },
    Surface {
        name: "migrations and schemas",
        floor: Scrutiny::High,
        globs: &["**/migrations", "**/schema.{sql,prisma}"],
    },
    Surface {
        name: "lockfiles",
        floor: Scrutiny::Medium,
        globs: &[
            "**/{Cargo,yarn,poetry,uv,Gemfile,composer,flake,bun}.lock",
            "**/{package-lock.json,npm-shrinkwrap.json,pnpm-lock.yaml,bun.lockb,go.sum,Pipfile.lock}",
        ],
    },
];

/// Why a level was raised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    /// Name of the surface.
    pub surface: String,
    /// The path that touches it, as the scope says it.
    pub path: String,
    /// The glob that it matched.
    pub glob: String,
    /// Level before.
    pub from: Scrutiny,
    /// Level after.
    pub to: Scrutiny,
}

/// Stated and effective scrutiny of a chain; effective is never below stated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assessment {
    /// What was asked for.
    pub stated: Scrutiny,
    /// Who asked.
    pub origin: Origin,
    /// What counts.
    pub effective: Scrutiny,
    /// What raised it, one entry per surface that did, in rising order of `to`.
    pub escalations: Vec<Escalation>,
}

/// Raises a stated level to the floors of the surfaces that the paths touch.
///
/// `paths` are entries of a scope (see [`path_words`]) or changed paths of a diff.
pub fn assess<P: AsRef<str>>((stated, origin): (Scrutiny, Origin), paths: &[P]) -> Assessment {
    let words: Vec<String> = paths.iter().flat_map(|path| path_words(path.as_ref())).collect();
    let mut hits: Vec<Hit> =
        SURFACES.iter().zip(MATCHERS.iter()).filter_map(|(surface, matchers)| hit(surface, matchers, &words)).collect();
    hits.sort_by_key(|hit| hit.surface.floor);
    let escalations: Vec<Escalation> = hits
        .into_iter()
        .filter(|hit| hit.surface.floor > stated)
        .map(|hit| Escalation {
            surface: hit.surface.name.to_owned(),
            path: hit.path.to_owned(),
            glob: hit.glob.to_owned(),
            from: stated,
            to: hit.surface.floor,
        })
        .collect();
    let effective = escalations.last().map_or(stated, |last| last.to);
    Assessment { stated, origin, effective, escalations }
}

/// The globs of each surface, compiled once.
static MATCHERS: LazyLock<Vec<Vec<GlobMatcher>>> =
    LazyLock::new(|| SURFACES.iter().map(|surface| surface.globs.iter().map(|glob| matcher(glob)).collect()).collect());

/// Returns the first path and glob of a surface that meet.
fn hit<'a>(surface: &'static Surface, matchers: &[GlobMatcher], words: &'a [String]) -> Option<Hit<'a>> {
    words.iter().find_map(|word| {
        let at = matchers.iter().position(|matcher| with_parents(word).any(|path| matcher.is_match(path)))?;
        Some(Hit { surface, path: word, glob: surface.globs[at] })
    })
}

struct Hit<'a> {
    surface: &'static Surface,
    path: &'a str,
    glob: &'static str,
}

/// The path and each directory above it.
fn with_parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).chain([path])
}

fn matcher(glob: &str) -> GlobMatcher {
    GlobBuilder::new(glob)
        .literal_separator(true)
        .case_insensitive(true)
        .build()
        .expect("the globs of SURFACES are constants, all compiled by a test")
        .compile_matcher()
}

/// Returns the paths that one entry of a scope names, normalised: no backticks, no `./`, no `..` within.
///
/// An entry of one word is a path. In a sentence only words with a `/` or a `.` inside count, so that "the token
/// bucket" is no surface.
pub fn path_words(entry: &str) -> Vec<String> {
    let words: Vec<&str> = entry
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '"'))
        .map(|word| word.trim_matches(|c: char| matches!(c, '`' | '\'' | ':')).trim_end_matches('.'))
        .filter(|word| !word.is_empty())
        .collect();
    let alone = words.len() == 1;
    words.iter().filter(|word| alone || word.contains(['/', '.'])).map(|word| normalised(word)).collect()
}

/// Resolves `.` and `..` by text and drops a leading and a trailing `/`.
fn normalised(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
#[path = "scrutiny/tests.rs"]
mod tests;

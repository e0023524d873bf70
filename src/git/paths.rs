//! Which changed paths belong to a writer's work. Pure; paths are raw bytes, relative to the worktree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::ports::{CommitRequest, WorkspaceError};

/// Directories at the top of the tree that belong to tools; never committed, never a change. Source: R0-146.
const NOISE: [&[u8]; 5] = [b".specialists", b".beads", b".worktrees", b".xtrm", b".wolf"];

/// Lines that sp adds to the repository's exclude file.
pub(super) const EXCLUDED: [&str; 3] = [".specialists/", ".worktrees/", "*.gate.lock*"];

/// Returns whether a path belongs to sp, bd or a gate's lock, and so is nobody's work.
pub(super) fn is_noise(path: &[u8]) -> bool {
    let top = path.split(|&byte| byte == b'/').next().unwrap_or(path);
    NOISE.contains(&top)
        || path.split(|&byte| byte == b'/').any(|part| memchr::memmem::find(part, b".gate.lock").is_some())
}

/// The paths that a writer may change.
pub(super) struct Allowed(Option<GlobSet>);

impl Allowed {
    /// Reads the globs of a request; none at all allow everything.
    pub(super) fn of(request: &CommitRequest) -> Result<Self, WorkspaceError> {
        if request.allowed.is_empty() {
            return Ok(Self(None));
        }
        let mut globs = GlobSetBuilder::new();
        for glob in &request.allowed {
            globs.add(GlobBuilder::new(glob).literal_separator(true).build().map_err(not_a_glob)?);
        }
        Ok(Self(Some(globs.build().map_err(not_a_glob)?)))
    }

    /// Returns whether the writer may change this path. Noise is not asked about: it is filtered before.
    pub(super) fn permits(&self, path: &[u8]) -> bool {
        self.0.as_ref().is_none_or(|globs| globs.is_match(Path::new(OsStr::from_bytes(path))))
    }
}

fn not_a_glob(error: globset::Error) -> WorkspaceError {
    WorkspaceError::Failed { verb: "commit", reason: format!("allowed paths: {error}") }
}

/// Returns paths as text, sorted, each once. Bytes that are no UTF-8 are shown as `U+FFFD`.
pub(super) fn as_text<'a>(paths: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut texts: Vec<_> = paths.into_iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    texts.sort();
    texts.dedup();
    texts
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn only_the_files_of_tools_are_noise() {
        for (path, expected) in [
            (".beads/issues.jsonl", true),
            (".beads", true),
            (".specialists/jobs/a/status.json", true),
            (".worktrees/x/y", true),
            ("src/x.gate.lock", true),
            ("src/x.gate.lock.d/y", true),
            (".beadsy/a", false),
            ("docs/.beads/a", false),
            ("src/gate.rs", false),
            ("Cargo.lock", false),
        ] {
            assert_eq!(is_noise(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn globs_stop_at_slashes_and_no_globs_allow_all() {
        for (globs, path, expected) in [
            (&["tests/**"][..], "tests/a/b.rs", true),
            (&["tests/**"], "src/tests/a.rs", false),
            (&["**/*_test.go", "tests/**"], "pkg/x_test.go", true),
            (&["**/*_test.go"], "x_test.go", true),
            (&["*.md"], "docs/a.md", false),
            (&["tests/**"], "tests/with space/é\n.rs", true),
            (&[], "anything", true),
        ] {
            let request = CommitRequest {
                tree: PathBuf::new(),
                branch: String::new(),
                message: String::new(),
                before: String::new(),
                allowed: globs.iter().map(|&glob| glob.to_owned()).collect(),
                rescue_ref: String::new(),
            };
            assert_eq!(Allowed::of(&request).unwrap().permits(path.as_bytes()), expected, "{globs:?} {path}");
        }
    }
}

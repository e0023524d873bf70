//! The write boundary: an extension of pi that keeps `edit` and `write` inside the worktree (spec 000 §7).
//!
//! A session whose extension can't be put in place does not start: an unconfined one could edit the user's checkout.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::private_files::{own_directory, put};
use crate::ports::AgentError;

/// The extension with a placeholder, in quotes, for the boundary.
const EXTENSION: &str = include_str!("boundary/extension.mjs");
const PLACEHOLDER: &str = "\"@BOUNDARY@\"";

/// Directory below the temporary one that holds the extensions of all sessions.
const DIRECTORY: &str = "specialists-pi-extensions";

/// A boundary in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Installed {
    /// The extension file, for pi's `-e`.
    pub(super) extension: PathBuf,
    /// The directory that writes are confined to, without links.
    pub(super) boundary: PathBuf,
}

/// Puts the extension for `boundary` below `temporary`, or else into `job_dir`.
///
/// The file's name holds the hash of the resolved boundary, so sessions of one worktree share it.
pub(super) fn install(boundary: &Path, temporary: &Path, job_dir: &Path) -> Result<Installed, AgentError> {
    let refused = |source| AgentError::NoBoundary { boundary: boundary.to_owned(), source };
    let resolved = fs::canonicalize(boundary).map_err(refused)?;
    let text = script(&resolved).map_err(refused)?;
    let name = file_name(&resolved);
    let shared = temporary.join(DIRECTORY);
    let extension = own_directory(&shared)
        .and_then(|()| place(&shared, &name, &text))
        .or_else(|error| {
            unwritten(&shared, &error, "it goes to the job's directory");
            place(job_dir, &name, &text).inspect_err(|error| unwritten(job_dir, error, "no session is started"))
        })
        .map_err(refused)?;
    Ok(Installed { extension, boundary: resolved })
}

/// Warns in the words that the specification has (000 §7).
fn unwritten(directory: &Path, error: &io::Error, then: &str) {
    let directory = directory.display();
    tracing::warn!("[session] Failed to write worktree boundary extension: {error} (in {directory}; {then})");
}

fn place(directory: &Path, name: &str, text: &str) -> io::Result<PathBuf> {
    let path = fs::canonicalize(directory)?.join(name);
    put(&path, text.as_bytes())?;
    Ok(path)
}

fn script(boundary: &Path) -> io::Result<String> {
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
    let path = boundary.to_str().ok_or_else(|| invalid("its path is not UTF-8"))?;
    if boundary.parent().is_none() {
        return Err(invalid("the root of the file system is no boundary"));
    }
    let literal = serde_json::to_string(path)?;
    Ok(EXTENSION.replace(PLACEHOLDER, &literal))
}

/// `worktree-boundary-<first 16 hex digits of the SHA-256 of the path>.mjs`
fn file_name(boundary: &Path) -> String {
    let digest = Sha256::digest(boundary.as_os_str().as_encoded_bytes());
    let hash: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("worktree-boundary-{hash}.mjs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_hash_of_the_path() {
        // printf %s /srv/repo/.worktrees/x | sha256sum | cut -c1-16
        assert_eq!(file_name(Path::new("/srv/repo/.worktrees/x")), "worktree-boundary-848666a76b59b9aa.mjs");
    }

    #[test]
    fn the_boundary_is_a_literal_of_the_script_whatever_its_name() {
        let text = script(Path::new("/a \"b\"\\\n${c}\u{2028}")).unwrap();
        assert!(text.contains("const BOUNDARY = \"/a \\\"b\\\"\\\\\\n${c}\u{2028}\";"), "{text}");
        assert!(!text.contains("@BOUNDARY@"));
        assert!(script(Path::new("/")).is_err());
    }

    #[test]
    fn it_goes_to_the_temporary_directory_then_to_the_job_s_then_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in ["worktree", "tmp", "job"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(at("file"), "").unwrap();
        let name = file_name(&fs::canonicalize(at("worktree")).unwrap());

        let installed = install(&at("worktree"), &at("tmp"), &at("job")).unwrap();
        assert!(installed.extension.ends_with(Path::new("tmp").join(DIRECTORY).join(&name)), "{installed:?}");
        assert_eq!(install(&at("worktree"), &at("tmp"), &at("job")).unwrap(), installed);
        let installed = install(&at("worktree"), &at("file"), &at("job")).unwrap();
        assert!(installed.extension.ends_with(Path::new("job").join(&name)), "{installed:?}");
        let error = install(&at("worktree"), &at("file"), &at("no-job")).unwrap_err();
        assert!(matches!(error, AgentError::NoBoundary { .. }), "{error:?}");
        let error = install(&at("no-worktree"), &at("tmp"), &at("job")).unwrap_err();
        assert!(matches!(error, AgentError::NoBoundary { .. }), "{error:?}");
    }
}

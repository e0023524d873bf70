//! Where bd and its workspace are. bd falls back silently when `BEADS_DIR` names a missing directory, so we look first.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::ports::TrackerError;

/// The file whose absence makes bd open a fresh, empty database with exit 0 (beads.md §13.1).
const METADATA: &str = "metadata.json";

/// Returns the workspace of a repository: `.beads` of its main checkout, complete enough for bd to use it.
///
/// # Errors
/// `NoWorkspace` when there is no such directory, `Damaged` when its `metadata.json` is gone.
pub(crate) fn workspace(repository: &Path) -> Result<PathBuf, TrackerError> {
    let beads_dir = repository.join(".beads");
    check(&beads_dir, repository)?;
    Ok(beads_dir)
}

/// Checks that a `.beads` directory can be handed to bd.
pub(super) fn check(beads_dir: &Path, repository: &Path) -> Result<(), TrackerError> {
    if !beads_dir.is_dir() {
        return Err(TrackerError::NoWorkspace { repository: repository.to_owned() });
    }
    if !beads_dir.join(METADATA).is_file() {
        return Err(TrackerError::Damaged { beads_dir: beads_dir.to_owned(), missing: METADATA });
    }
    Ok(())
}

/// Returns the bd to run: the named one, else the first `bd` in `path` (the value of `PATH`).
///
/// A named program without a slash is looked up like a command; with one it is taken as it stands.
///
/// # Errors
/// `Missing` when there is no such executable file.
pub(crate) fn program(named: Option<&Path>, path: Option<&OsStr>) -> Result<PathBuf, TrackerError> {
    let wanted = named.unwrap_or(Path::new("bd"));
    let found = if wanted.components().count() > 1 {
        Some(wanted.to_owned()).filter(|file| is_executable(file))
    } else {
        path.into_iter()
            .flat_map(std::env::split_paths)
            .filter(|folder| !folder.as_os_str().is_empty())
            .map(|folder| folder.join(wanted))
            .find(|file| is_executable(file))
    };
    found.ok_or_else(|| TrackerError::Missing { verb: "version", program: wanted.display().to_string() })
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn executable(file: &Path) {
        fs::write(file, "#!/bin/sh\n").unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_workspace_without_metadata_is_damaged_and_a_missing_one_is_none() {
        let repository = tempfile::tempdir().unwrap();
        assert!(matches!(workspace(repository.path()), Err(TrackerError::NoWorkspace { .. })));
        fs::create_dir(repository.path().join(".beads")).unwrap();
        assert!(matches!(workspace(repository.path()), Err(TrackerError::Damaged { .. })));
        fs::write(repository.path().join(".beads/metadata.json"), "{}").unwrap();
        assert_eq!(workspace(repository.path()).unwrap(), repository.path().join(".beads"));
    }

    #[test]
    fn a_named_program_wins_over_path_and_only_executable_files_count() {
        let [first, second] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        fs::write(first.path().join("bd"), "not executable").unwrap();
        executable(&second.path().join("bd"));
        executable(&second.path().join("bd-next"));
        let path = std::env::join_paths([first.path(), second.path()]).unwrap();
        let find = |named: Option<&Path>| program(named, Some(&path));

        assert_eq!(find(None).unwrap(), second.path().join("bd"));
        assert_eq!(find(Some(Path::new("bd-next"))).unwrap(), second.path().join("bd-next"));
        let named = second.path().join("bd-next");
        assert_eq!(find(Some(&named)).unwrap(), named);
        assert!(matches!(find(Some(&first.path().join("bd"))), Err(TrackerError::Missing { .. })));
        assert!(matches!(program(None, None), Err(TrackerError::Missing { .. })));
    }
}

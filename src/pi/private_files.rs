//! Files that pi executes or trusts: in directories of our own, written whole or not at all.

use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use rustix::process::geteuid;

/// Write permission for the group or for all.
const OTHERS_MAY_WRITE: u32 = 0o022;

/// Makes `directory` for us alone, or accepts it if it is ours and no one else may write there.
///
/// The parent may be a shared one such as /tmp, where another user could have made the directory, or a link, first.
pub(super) fn own_directory(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let found = fs::symlink_metadata(directory)?;
    if !found.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is a link or a file, not a directory"));
    }
    trusted(&found)
}

/// Puts `content` at `path`, unless it stands there already. Replaces whatever is there, links included, in one step.
pub(super) fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or_else(|| io::Error::other("a path without a directory"))?;
    if holds(path, content) {
        return Ok(());
    }
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(content)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn holds(path: &Path, content: &[u8]) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && trusted(&found).is_ok())
        && fs::read(path).is_ok_and(|found| found == content)
}

fn trusted(found: &Metadata) -> io::Result<()> {
    if found.uid() != geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if found.mode() & OTHERS_MAY_WRITE != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may write there"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_directory_that_others_control_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        own_directory(&at("new")).unwrap();
        own_directory(&at("new")).unwrap();
        assert_eq!(fs::metadata(at("new")).unwrap().mode() & 0o777, 0o700);

        symlink(at("new"), at("link")).unwrap();
        fs::write(at("file"), "").unwrap();
        fs::create_dir(at("open")).unwrap();
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o777)).unwrap();
        for name in ["link", "file", "open", "absent/below"] {
            assert!(own_directory(&at(name)).is_err(), "{name} was accepted");
        }
    }

    #[test]
    fn a_file_is_replaced_whole_and_only_if_it_differs() {
        let root = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (root.path().join("file"), root.path().join("elsewhere"));
        let inode = || fs::symlink_metadata(&path).unwrap().ino();
        put(&path, b"one").unwrap();
        let first = inode();
        put(&path, b"one").unwrap();
        assert_eq!(inode(), first, "an equal file was written again");
        put(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");

        fs::write(&elsewhere, "three").unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&elsewhere, &path).unwrap();
        put(&path, b"three").unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file(), "a link was left in place");
        put(&path, b"four").unwrap();
        assert_eq!(fs::read(&elsewhere).unwrap(), b"three", "a link was written through");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2, "a temporary file is left");
    }
}

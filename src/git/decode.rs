//! Reads what git prints under `-z`. Pure; a record that is not understood is an error, never left out.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::ports::{DiffStat, WorkspaceError};

/// What is to be done with one changed path to bring an index up to the worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Present, with other content or mode.
    Modified,
    /// Gone from the worktree.
    Deleted,
    /// Present and not in the index.
    Untracked,
    /// A directory that is a repository of its own.
    Nested,
}

/// One entry of `git worktree list`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Listed {
    pub(super) path: PathBuf,
    /// Short name of the branch checked out there.
    pub(super) branch: Option<String>,
    pub(super) locked: bool,
}

/// One side of a changed path: its mode, such as `100644`, and object; mode `000000` means absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) mode: String,
    pub(super) object: String,
}

impl Entry {
    pub(super) fn is_absent(&self) -> bool {
        self.mode == "000000"
    }

    /// Returns whether the entry names a commit of another repository.
    pub(super) fn is_gitlink(&self) -> bool {
        self.mode == "160000"
    }
}

/// One path that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) path: Vec<u8>,
    pub(super) from: Entry,
    pub(super) to: Entry,
}

/// Reads `git status --porcelain=v2 -z`, as it answers for an index that equals HEAD and without rename search.
pub(super) fn status(bytes: &[u8]) -> Result<Vec<(Vec<u8>, Change)>, WorkspaceError> {
    let mut changes = Vec::new();
    for record in records(bytes) {
        let garbled = || garbled("status", record);
        let (change, fields) = match record.first() {
            Some(b'1') => (Change::Modified, 8),
            Some(b'u') => (Change::Modified, 10),
            Some(b'?') => (Change::Untracked, 1),
            Some(b'#' | b'!') => continue,
            _ => return Err(garbled()),
        };
        let path = record.splitn(fields + 1, |&byte| byte == b' ').nth(fields).ok_or_else(garbled)?;
        match (change, path.strip_suffix(b"/")) {
            (Change::Modified, _) if record.get(3) == Some(&b'D') => changes.push((path.to_vec(), Change::Deleted)),
            // Under --untracked-files=all only a repository of its own is listed as a directory.
            (Change::Untracked, Some(_)) => changes.push((path.to_vec(), Change::Nested)),
            _ => changes.push((path.to_vec(), change)),
        }
    }
    Ok(changes)
}

/// Reads `git worktree list --porcelain -z`.
pub(super) fn worktrees(bytes: &[u8]) -> Result<Vec<Listed>, WorkspaceError> {
    let mut list: Vec<Listed> = Vec::new();
    for line in records(bytes) {
        let (key, value) = match line.iter().position(|&byte| byte == b' ') {
            Some(blank) => (&line[..blank], &line[blank + 1..]),
            None => (line, &b""[..]),
        };
        if key == b"worktree" {
            list.push(Listed { path: PathBuf::from(OsString::from_vec(value.to_vec())), ..Listed::default() });
            continue;
        }
        let entry = list.last_mut().ok_or_else(|| garbled("worktree", line))?;
        match key {
            b"branch" => {
                let name = value.strip_prefix(b"refs/heads/").unwrap_or(value);
                entry.branch = Some(String::from_utf8_lossy(name).into_owned());
            }
            b"locked" => entry.locked = true,
            _ => {} // HEAD, bare, detached, prunable, and what a later git adds
        }
    }
    Ok(list)
}

/// Reads `git diff-tree -r --raw -z --no-renames --no-abbrev`.
pub(super) fn differences(bytes: &[u8]) -> Result<Vec<Difference>, WorkspaceError> {
    let mut list = Vec::new();
    let mut fields = records(bytes);
    while let Some(head) = fields.next() {
        let garbled = || garbled("diff-tree", head);
        let text = std::str::from_utf8(head).map_err(|_| garbled())?;
        let parts: Vec<_> = text.strip_prefix(':').ok_or_else(garbled)?.split(' ').collect();
        let &[from_mode, to_mode, from, to, _] = &parts[..] else { return Err(garbled()) };
        let entry = |mode: &str, object: &str| Entry { mode: mode.to_owned(), object: object.to_owned() };
        let path = fields.next().ok_or_else(garbled)?.to_vec();
        list.push(Difference { path, from: entry(from_mode, from), to: entry(to_mode, to) });
    }
    Ok(list)
}

/// Reads `git diff-tree -r --numstat -z`; binary files count as files without lines.
pub(super) fn numstat(bytes: &[u8]) -> Result<DiffStat, WorkspaceError> {
    let mut stat = DiffStat::default();
    let mut fields = records(bytes);
    while let Some(head) = fields.next() {
        let garbled = || garbled("diff-tree", head);
        let count = |text: Option<&[u8]>| match text {
            Some(b"-") => Ok(0),
            Some(digits) => std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).ok_or_else(garbled),
            None => Err(garbled()),
        };
        let mut parts = head.splitn(3, |&byte| byte == b'\t');
        let (added, removed): (u32, u32) = (count(parts.next())?, count(parts.next())?);
        stat.files += 1;
        stat.added = stat.added.saturating_add(added);
        stat.removed = stat.removed.saturating_add(removed);
        if parts.next().ok_or_else(garbled)?.is_empty() {
            // A rename: the old and the new name follow.
            fields.next().and_then(|_| fields.next()).ok_or_else(garbled)?;
        }
    }
    Ok(stat)
}

/// Returns the paths that `git ls-files -v -z` marks so that git does not look at them: (assumed unchanged, left out
/// of a sparse checkout).
pub(super) fn hidden(bytes: &[u8]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut assumed, mut skipped) = (Vec::new(), Vec::new());
    for record in records(bytes) {
        let [tag, b' ', path @ ..] = record else { continue };
        if tag.is_ascii_lowercase() {
            assumed.push(path.to_vec());
        }
        if tag.eq_ignore_ascii_case(&b's') {
            skipped.push(path.to_vec());
        }
    }
    (assumed, skipped)
}

/// Returns the non-empty records of a NUL-separated text.
pub(super) fn records(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == 0).filter(|record| !record.is_empty())
}

fn garbled(verb: &'static str, record: &[u8]) -> WorkspaceError {
    WorkspaceError::Failed { verb, reason: format!("answer not understood: {}", record.escape_ascii()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_keeps_blanks_and_line_feeds_of_names() {
        let zero = "0".repeat(40);
        let text = format!(
            "# branch.oid {zero}\0\
             1 .M N... 100644 100644 100644 {zero} {zero}  src/a b\n\0\
             1 .D N... 100644 100644 000000 {zero} {zero} gone\0\
             u UU N... 100644 100644 100644 100644 {zero} {zero} {zero} both\0\
             ? new \"é\"\0? vendor/inner/\0"
        );
        let expected: Vec<(&[u8], Change)> = vec![
            (b" src/a b\n", Change::Modified),
            (b"gone", Change::Deleted),
            (b"both", Change::Modified),
            ("new \"é\"".as_bytes(), Change::Untracked),
            (b"vendor/inner/", Change::Nested),
        ];
        let expected: Vec<_> = expected.into_iter().map(|(path, change)| (path.to_vec(), change)).collect();
        assert_eq!(status(text.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert!(status(b"X what\0").is_err());
        assert!(status(b"1 .M N...\0").is_err());
        assert!(worktrees(b"HEAD 1234\0").is_err());
        assert!(differences(b":100644 100644 a b M\0").is_err());
        assert!(differences(b"100644\0a\0").is_err());
        assert!(numstat(b"x\t1\ta\0").is_err());
        assert!(numstat(b"1\t1\t\0old\0").is_err());
    }

    #[test]
    fn a_worktree_list_keeps_odd_paths_and_branches() {
        let text =
            b"worktree /r\0HEAD 1\0branch refs/heads/main\0\0worktree /r/w \nx\0HEAD 2\0detached\0locked why\0\0";
        let list = worktrees(text).unwrap();
        assert_eq!(list[0], Listed { path: "/r".into(), branch: Some("main".into()), locked: false });
        assert_eq!(list[1], Listed { path: "/r/w \nx".into(), branch: None, locked: true });
    }

    #[test]
    fn a_numstat_counts_renames_and_binaries() {
        let stat = numstat(b"3\t1\ta b\0-\t-\tpic.png\x002\t0\t\0old\tname\0new\0").unwrap();
        assert_eq!(stat, DiffStat { files: 3, added: 5, removed: 1 });
        assert_eq!(numstat(b"").unwrap(), DiffStat::default());
    }

    #[test]
    fn marks_that_hide_a_file_are_seen() {
        let (assumed, skipped) = hidden(b"H a\0h b\0S c d\0s e\0");
        assert_eq!(assumed, [b"b".to_vec(), b"e".to_vec()]);
        assert_eq!(skipped, [b"c d".to_vec(), b"e".to_vec()]);
    }
}

//! Which repository a directory lies in, found by reading files: one call of git costs more than all else of `sp ps`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::git::Git;
use crate::ports::WorkspaceError;

/// Where one stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory that all worktrees share: the main checkout.
    pub root: PathBuf,
    /// Top of the checkout one stands in; the root, or a linked worktree.
    pub checkout: PathBuf,
}

/// Finds the repository of a directory, which must be absolute and free of symbolic links.
///
/// The usual layout (a `.git` directory, or a linked worktree of one) is read; whatever is rarer is asked of git.
/// Like git, it does not go up into a directory of `GIT_CEILING_DIRECTORIES`.
///
/// # Errors
/// `NotARepository`, `Bare`; with a rare layout also what git says.
pub fn find(directory: &Path) -> Result<Place, WorkspaceError> {
    find_below(directory, &std::env::var_os("GIT_CEILING_DIRECTORIES").map_or_else(Vec::new, |list| ceilings(&list)))
}

fn find_below(directory: &Path, ceilings: &[PathBuf]) -> Result<Place, WorkspaceError> {
    let mut at = Some(directory);
    while let Some(here) = at {
        match usual(here) {
            Found::Place(place) => return Ok(place),
            Found::Rare => return ask_git(directory, here),
            Found::Nothing => at = here.parent().filter(|above| !ceilings.iter().any(|ceiling| ceiling == above)),
        }
    }
    Err(WorkspaceError::NotARepository { path: directory.to_owned() })
}

/// Reads a list of ceilings as git does: absolute paths, links followed up to an empty entry and left alone after it.
fn ceilings(list: &OsStr) -> Vec<PathBuf> {
    let mut follows = true;
    let mut read = Vec::new();
    for path in std::env::split_paths(list) {
        if path.as_os_str().is_empty() {
            follows = false;
        } else if path.is_absolute() {
            let real = if follows { path.canonicalize().ok() } else { None };
            read.push(real.unwrap_or_else(|| path.components().collect()));
        }
    }
    read
}

enum Found {
    Place(Place),
    /// A repository, but not one that is understood here.
    Rare,
    Nothing,
}

/// Looks whether a directory is the top of a checkout.
fn usual(here: &Path) -> Found {
    let dot_git = here.join(".git");
    let Ok(facts) = fs::metadata(&dot_git) else {
        // A bare repository, or the inside of a `.git`.
        return if is_git_dir(here) { Found::Rare } else { Found::Nothing };
    };
    if facts.is_dir() {
        // An empty `.git` is none, and one that lies elsewhere is git's to judge.
        return match dot_git.canonicalize() {
            Ok(real) if is_git_dir(&real) && real == dot_git => {
                Found::Place(Place { root: here.to_owned(), checkout: here.to_owned() })
            }
            Ok(real) if is_git_dir(&real) => Found::Rare,
            Ok(_) | Err(_) => Found::Nothing,
        };
    }
    match linked(here, &dot_git) {
        Some(root) => Found::Place(Place { root, checkout: here.to_owned() }),
        None => Found::Rare,
    }
}

/// Returns the main checkout of a linked worktree: its `.git` file names a directory whose `commondir` leads to a `.git`.
fn linked(here: &Path, dot_git: &Path) -> Option<PathBuf> {
    let git_dir = here.join(path_in(&fs::read(dot_git).ok()?, b"gitdir: ")?);
    let common = git_dir.join(path_in(&fs::read(git_dir.join("commondir")).ok()?, b"")?).canonicalize().ok()?;
    let named_usually = common.file_name() == Some(OsStr::new(".git")) && is_git_dir(&common);
    common.parent().filter(|_| named_usually).map(Path::to_owned)
}

/// Returns the path in a one-line file of git.
fn path_in(content: &[u8], prefix: &[u8]) -> Option<PathBuf> {
    let path = content.strip_prefix(prefix)?;
    let path = path.strip_suffix(b"\n").unwrap_or(path);
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}

fn is_git_dir(directory: &Path) -> bool {
    directory.join("HEAD").symlink_metadata().is_ok()
        && directory.join("objects").is_dir()
        && directory.join("refs").is_dir()
}

fn ask_git(directory: &Path, here: &Path) -> Result<Place, WorkspaceError> {
    let io = |source| WorkspaceError::Io { verb: "rev-parse", source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(io)?;
    let root = runtime.block_on(Git::open(directory))?.root().to_owned();
    let checkout = if here.join(".git").exists() { here.to_owned() } else { root.clone() };
    Ok(Place { root, checkout })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(directory: &Path, args: &[&str]) {
        let mut command = Command::new("git");
        command.arg("-C").arg(directory).args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b.c",
            "-c",
            "protocol.file.allow=always",
        ]);
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            command.env_remove(name);
        }
        let done =
            command.args(args).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    #[test]
    fn every_layout_gives_the_root_that_git_gives() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let at = |name: &str| home.join(name);
        let main = at("m\u{e9} \"in\"\nx");
        fs::create_dir(&main).unwrap();
        git(&main, &["init", "-q", "-b", "main"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "base"]);
        git(&main, &["worktree", "add", "-q", "-b", "side", at("side").to_str().unwrap()]);
        git(&main, &["worktree", "add", "-q", "-b", "inner", main.join(".worktrees/a b").to_str().unwrap()]);
        fs::create_dir_all(main.join("deep/er")).unwrap();
        git(&home, &["clone", "-q", "--bare", main.to_str().unwrap(), at("bare.git").to_str().unwrap()]);
        git(&at("bare.git"), &["worktree", "add", "-q", "-b", "of-bare", at("of-bare").to_str().unwrap()]);
        git(
            &home,
            &["init", "-q", "--separate-git-dir", at("elsewhere").to_str().unwrap(), at("separate").to_str().unwrap()],
        );
        git(&main, &["submodule", "--quiet", "add", main.to_str().unwrap(), "module"]);
        std::os::unix::fs::symlink(main.join(".git"), at("linked-git")).unwrap();
        fs::create_dir_all(at("plain/.git")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for directory in [
            main.clone(),
            main.join("deep/er"),
            main.join(".git"),
            main.join(".worktrees/a b"),
            main.join("module"),
            at("side"),
            at("bare.git"),
            at("of-bare"),
            at("separate"),
            at("plain"),
            home.clone(),
        ] {
            let ours = find(&directory).map(|place| place.root).map_err(|error| error.to_string());
            let gits = runtime
                .block_on(Git::open(&directory))
                .map(|git| git.root().to_owned())
                .map_err(|error| error.to_string());
            assert_eq!(ours, gits, "{}", directory.display());
        }
        assert_eq!(find(&main.join("deep")).unwrap().checkout, main);
        assert_eq!(find(&at("side")).unwrap(), Place { root: main, checkout: at("side") });
    }

    #[test]
    fn a_ceiling_stops_the_search_where_it_stops_git() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        git(&home, &["init", "-q"]);
        fs::create_dir_all(home.join("a/b")).unwrap();
        std::os::unix::fs::symlink(home.join("a"), home.join("link")).unwrap();
        let (at, link) = (|name: &str| home.join(name), format!("{}", home.join("link").display()));
        for (case, start, list) in [
            ("none", at("a/b"), String::new()),
            ("the ceiling itself holds it", at("a/b"), at("").display().to_string()),
            ("a ceiling between", at("a/b"), at("a").display().to_string()),
            ("a trailing slash", at("a/b"), format!("{}/", at("a").display())),
            ("one that is where we start", at("a"), at("a").display().to_string()),
            ("one below", at("a"), at("a/b").display().to_string()),
            ("a relative one", at("a/b"), "a".to_owned()),
            ("the second of two", at("a/b"), format!("/no/such:{}", at("a").display())),
            ("a link, followed", at("a/b"), link.clone()),
            ("a link after an empty entry", at("a/b"), format!(":{link}")),
        ] {
            let mut command = Command::new("git");
            for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
                command.env_remove(name);
            }
            let command = command.arg("-C").arg(&start).args(["rev-parse", "--git-dir"]);
            let gits = command.env("GIT_CEILING_DIRECTORIES", &list).output().unwrap().status.success();
            let ours = find_below(&start, &ceilings(OsStr::new(&list))).is_ok();
            assert_eq!(ours, gits, "{case}: {list}");
        }
    }
}

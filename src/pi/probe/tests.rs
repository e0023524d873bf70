use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// A directory of programs; each is a line of shell.
struct Programs(tempfile::TempDir);

impl Programs {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Adds `directory/name`, an executable script.
    fn with(self, name: &str, script: &str) -> Self {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Written by a child: a writable descriptor of ours, inherited by another test's child in the making, would
        // make the program busy.
        let written = std::process::Command::new("sh")
            .args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 755 \"$0\""])
            .args([path.as_os_str(), OsStr::new(script)])
            .status();
        assert!(written.unwrap().success());
        self
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn path(&self, directories: &[&str]) -> std::ffi::OsString {
        env::join_paths(directories.iter().map(|directory| self.at(directory))).unwrap()
    }
}

#[test]
fn an_explicit_pi_is_never_replaced_by_another() {
    let programs = Programs::new().with("a/pi", "").with("b/pi", "").with("b/mypi", "").with("c/pi", "");
    fs::set_permissions(programs.at("c/pi"), fs::Permissions::from_mode(0o644)).unwrap();
    let path = programs.path(&["none", "c", "b", "a"]);
    let missing = |wanted: &Path, path: Option<&OsStr>| matches!(locate(Some(wanted), path), Err(AgentError::Missing { program }) if program == wanted.to_str().unwrap());
    assert_eq!(locate(None, Some(&path)).unwrap(), programs.at("b/pi"));
    assert_eq!(locate(Some(Path::new("mypi")), Some(&path)).unwrap(), programs.at("b/mypi"));
    assert_eq!(locate(Some(&programs.at("a/pi")), Some(&path)).unwrap(), programs.at("a/pi"));
    assert!(missing(&programs.at("c/pi"), Some(&path)));
    assert!(missing(Path::new("otherpi"), Some(&path)));
    assert!(missing(Path::new("pi"), None));
}

#[test]
fn versions_are_found_in_any_greeting() {
    for (text, expected) in [
        ("1.6.0\n", Some(Version(1, 6, 0))),
        ("fd 8.6.0", Some(Version(8, 6, 0))),
        ("pi v2.0.0-beta.1 (linux)", Some(Version(2, 0, 0))),
        ("1.6", None),
        ("node 20", None),
        ("", None),
    ] {
        assert_eq!(version_in(text), expected, "{text:?}");
    }
}

#[tokio::test]
async fn only_the_supported_range_is_supported() {
    for (script, version, supported) in [
        ("echo 1.6.0", "1.6.0", true),
        ("echo 1.5.9", "1.5.9", false),
        ("echo 1.99.0 >&2", "1.99.0", true),
        ("echo 2.0.0", "2.0.0", false),
        ("echo 0.73.1 >&2", "0.73.1", false),
    ] {
        let programs = Programs::new().with("pi", script);
        let info = probe(&programs.at("pi")).await.unwrap();
        assert_eq!((info.version.as_str(), info.supported), (version, supported), "{script}");
        assert_eq!(info.require_supported().is_ok(), supported);
    }
}

#[tokio::test]
async fn a_pi_that_does_not_answer_says_why() {
    let programs = Programs::new()
        .with("old-node", "echo 1.6.0; printf 'SyntaxError: enableCompileCache\\n\\nNode.js v20\\n' >&2; exit 1")
        .with("mute", "cat");
    for (name, wanted) in [("old-node", "SyntaxError: enableCompileCache"), ("mute", "no version in its answer")] {
        let error = probe(&programs.at(name)).await.unwrap_err();
        let AgentError::Unanswered { reason, .. } = &error else { panic!("{error:?}") };
        assert_eq!(reason, wanted);
    }
    let error = probe(&programs.at("absent")).await.unwrap_err();
    assert!(matches!(error, AgentError::Missing { .. }), "{error:?}");
}

#[tokio::test]
async fn what_pi_lacks_for_its_searches_is_named() {
    let programs = Programs::new()
        .with("old/rg", "echo ripgrep 13.0.0")
        .with("old/fdfind", "echo fdfind 8.6.0")
        .with("agent/bin/fd", "echo fd 10.2.0");
    let (old, none) = (programs.path(&["old"]), programs.path(&["none"]));
    let too_old = SearchToolFault::TooOld { tool: "fd", found: "8.6.0".into(), needed: "8.7.0".into() };
    assert_eq!(missing_search_tools(None, Some(&old)).await, [too_old]);
    assert_eq!(missing_search_tools(Some(&programs.at("agent")), Some(&old)).await, []);
    assert_eq!(
        missing_search_tools(None, Some(&none)).await,
        [SearchToolFault::Missing { tool: "rg" }, SearchToolFault::Missing { tool: "fd" }]
    );
}

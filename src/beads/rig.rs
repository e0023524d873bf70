//! A throw-away repository with a workspace of the real bd, for the tests of this room. Needs `SP_BD`, or bd where
//! `make tools` puts it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{Bd, BdConfig, locate};
use crate::ids::BeadId;
use crate::ports::{Tracker, TrackerError};

/// A hermetic repository with a bd workspace; its path holds a space, a quote and an accent.
pub(super) struct Project {
    _folder: TempDir,
    pub(super) root: PathBuf,
    program: PathBuf,
    pub(super) bd: Bd,
}

fn program() -> PathBuf {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join(".tools/bin/bd");
    let named = std::env::var_os("SP_BD").map_or(installed, PathBuf::from);
    locate::program(Some(&named), None)
        .unwrap_or_else(|_| panic!("no bd at {}: run `make tools`, or set SP_BD to a bd 1.3", named.display()))
}

impl Project {
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [root, home] = ["it's a projét", "home"].map(|name| folder.path().join(name));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&home).unwrap();
        let program = program();
        let bd = Bd::new(BdConfig {
            program: program.clone(),
            repository: root.clone(),
            beads_dir: root.join(".beads"),
            lock_file: root.join(".specialists/bd.lock"),
        });
        let project = Self { _folder: folder, bd: bd.with_variable("HOME", &home), root, program };
        project.git(&["init", "-q", "."]);
        project.git(&["config", "user.name", "Dev One"]);
        project.git(&["config", "user.email", "dev1@example.test"]);
        project.git(&["commit", "-q", "--allow-empty", "-m", "init"]);
        assert!(matches!(locate::workspace(&project.root), Err(TrackerError::NoWorkspace { .. })));
        assert!(matches!(project.bd.probe().await, Err(TrackerError::NoWorkspace { .. })));
        let quiet = ["--stealth", "--skip-hooks", "--skip-agents", "--quiet", "--non-interactive", "--init-if-missing"];
        project.plain(&[&["init", "--prefix", "proj"], quiet.as_slice()].concat());
        fs::write(project.root.join(".git/info/exclude"), ".beads/\n*.gate.lock*\n.specialists/\n.worktrees/\n")
            .unwrap();
        project.plain(&["gc", "--skip-decay", "--json"]);
        project
    }

    pub(super) fn git(&self, arguments: &[&str]) -> String {
        self.command(Path::new("git"), arguments)
    }

    /// Runs bd as a person would.
    pub(super) fn plain(&self, arguments: &[&str]) -> String {
        self.command(&self.program, arguments)
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> String {
        let home = self.root.with_file_name("home");
        let output = Command::new(program)
            .args(arguments)
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .envs([("HOME", home.as_os_str()), ("BD_DISABLE_METRICS", OsStr::new("1"))])
            .envs([("BD_DISABLE_EVENT_FLUSH", "1"), ("BD_NON_INTERACTIVE", "1")])
            .env_remove("BEADS_DIR")
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) async fn state(&self, bead: &BeadId) -> (String, Option<String>) {
        let found = self.bd.show(bead).await.unwrap().unwrap_or_else(|| panic!("no bead {bead}"));
        (found.status, found.assignee)
    }
}

//! The repository that every test starts from: the demo repository with an empty beads workspace. Made once, copied by
//! each test, since `bd init` costs seconds.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::formulas;

/// Where all files of these tests are.
pub fn place() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e")
}

/// Returns a program that the tests need: the one that the variable names, else the one that `make tools` installs.
pub fn tool(variable: &str, name: &str) -> PathBuf {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join(".tools/bin").join(name);
    let program = std::env::var_os(variable).map_or(installed, PathBuf::from);
    assert!(
        program.is_file(),
        "this test needs a real {name}, and {} is missing: run `make tools`, or name one in {variable}",
        program.display()
    );
    program
}

/// Returns the environment that every program of a test gets, and nothing else.
pub fn environment(base: &Path) -> Vec<(&'static str, PathBuf)> {
    let mut all: Vec<(&'static str, PathBuf)> = vec![
        ("HOME", base.join("home")),
        ("XDG_CONFIG_HOME", base.join("home/.config")),
        ("XDG_DATA_HOME", base.join("home/.local/share")),
        ("XDG_STATE_HOME", base.join("home/.local/state")),
        ("XDG_CACHE_HOME", base.join("home/.cache")),
        ("TMPDIR", base.join("tmp")),
        // Code that node has compiled, for all tests: pi starts in half the time.
        ("NODE_COMPILE_CACHE", place().join("node-compile-cache")),
        ("GIT_CONFIG_GLOBAL", base.join("gitconfig")),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        // The ground may lie within a repository, as target/ does: no test finds that one.
        ("GIT_CEILING_DIRECTORIES", base.to_owned()),
        ("SP_BD", tool("SP_BD", "bd")),
        ("SP_PI", tool("SP_PI", "pi")),
        ("LANG", "C.UTF-8".into()),
        ("TZ", "UTC".into()),
        ("TERM", "dumb".into()),
        ("BD_NON_INTERACTIVE", "1".into()),
        ("BD_DISABLE_METRICS", "1".into()),
        ("BD_DISABLE_EVENT_FLUSH", "1".into()),
        ("BD_BACKUP_ENABLED", "false".into()),
        ("BD_NO_HOOKS", "1".into()),
        ("NO_COLOR", "1".into()),
        // A bd lives for a fraction of a second: a third of its work would be collecting garbage.
        ("GOGC", "400".into()),
    ];
    // The programs must be found, and coverage of the sp that runs must land where it is gathered.
    for kept in ["PATH", "LLVM_PROFILE_FILE"] {
        all.extend(std::env::var_os(kept).map(|value| (kept, PathBuf::from(value))));
    }
    all
}

/// Makes the directories that [`environment`] names.
fn directories(base: &Path) {
    for name in ["home/.config", "tmp"] {
        fs::create_dir_all(base.join(name)).unwrap();
    }
    fs::write(base.join("gitconfig"), "[user]\n\tname = Demo\n\temail = demo@example.invalid\n").unwrap();
}

/// Runs a program to its end and returns its output; anything but success is a failure of the test.
pub fn must(command: &mut Command) -> String {
    let told = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("run {told}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{told}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Copies the template to a new directory `base`, which holds the repository `pager`.
pub fn copy_to(base: &Path) {
    directories(base);
    must(Command::new("cp").arg("-a").arg(template().join("pager")).arg(base));
}

/// Returns the template, made by whoever needs it first, in whichever test program.
fn template() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let ready = place().join(format!("template-{}", fingerprint()));
        fs::create_dir_all(place()).unwrap();
        let lock = File::create(place().join("template.lock")).unwrap();
        lock.lock().unwrap();
        if !ready.exists() {
            let draft = tempfile::tempdir_in(place()).unwrap();
            make(draft.path());
            fs::rename(draft.keep(), &ready).unwrap();
        }
        ready
    })
}

/// Changes with everything that the template is made from.
fn fingerprint() -> String {
    let bd = fs::metadata(tool("SP_BD", "bd")).unwrap();
    let script = fs::read(demo_script()).unwrap();
    let made = format!("{} {:?}", bd.len(), bd.modified().unwrap());
    let mut hash = Sha256::new();
    for part in [&script[..], made.as_bytes(), include_bytes!("template.rs"), include_bytes!("formulas.rs")] {
        hash.update(part);
    }
    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

fn demo_script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/demo-repo.sh")
}

fn make(base: &Path) {
    directories(base);
    let repo = base.join("pager");
    let hermetic = |program: &Path| {
        let mut command = Command::new(program);
        command.env_clear().envs(environment(base));
        command
    };
    must(hermetic(&demo_script()).arg(&repo));
    let bd = |args: &[&str]| must(hermetic(&tool("SP_BD", "bd")).args(args).current_dir(&repo));
    let init = "init --prefix pager --stealth --skip-hooks --skip-agents --quiet --non-interactive --init-if-missing";
    bd(&init.split(' ').collect::<Vec<_>>());
    bd(&["gc", "--skip-decay", "--json"]);
    let directory = repo.join(".beads/formulas");
    fs::create_dir_all(&directory).unwrap();
    for (name, formula) in formulas::small() {
        fs::write(directory.join(format!("{name}.formula.json")), format!("{formula:#}\n")).unwrap();
    }
}

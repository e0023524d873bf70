//! Starts pi for one session: its arguments, its environment, its files (pi-rpc §3).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::boundary::{self, Installed};
use super::private_files::put;
use crate::exec::{JOB_VARIABLE, ROOT_VARIABLE};
use crate::ports::{Agent, AgentError, ExecBackend, ExecError, Launch, ModelSource, Program, Spawned, Tool};

/// Provider id of the rehearsal server in pi's configuration.
const REHEARSAL: &str = "rehearsal";

/// Variables of sp's own surroundings that would mislead the agent or its tools: git's, when sp runs inside a hook,
/// and pi's, when an agent runs sp. `BEADS_DIR` stays: it says where the tracker is.
const UNSET: [&str; 14] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "PI_CODING_AGENT",
    "AI_AGENT",
    "PI_SESSION_ID",
    "PI_SESSION_FILE",
    "PI_PROVIDER",
    "PI_MODEL",
    "PI_REASONING_LEVEL",
];

/// pi as the agent of sp.
#[derive(Clone)]
pub struct PiAgent {
    /// Where pi runs.
    pub exec: Arc<dyn ExecBackend>,
    /// pi, as `locate` found it.
    pub program: PathBuf,
}

#[async_trait]
impl Agent for PiAgent {
    async fn check(&self) -> Result<(), AgentError> {
        super::probe(&self.program).await?.require_supported().map(drop)
    }

    async fn launch(&self, launch: &Launch) -> Result<Spawned, AgentError> {
        let (wanted, pi) = (launch.clone(), self.program.clone());
        // Files are written and links resolved: not on a worker of the runtime.
        let prepared = tokio::task::spawn_blocking(move || prepare(&wanted, pi, &std::env::temp_dir())).await;
        let program = prepared
            .map_err(|gone| AgentError::Prepare { path: launch.job_dir.clone(), source: io::Error::other(gone) })??;
        self.exec.spawn(program).await.map_err(|error| match error {
            ExecError::Missing { program } => AgentError::Missing { program },
            other => AgentError::Spawn(other),
        })
    }
}

/// Writes what the session needs and returns the program to start.
fn prepare(launch: &Launch, pi: PathBuf, temporary: &Path) -> Result<Program, AgentError> {
    // pi takes the name of a file that is missing for the text itself.
    fs::metadata(&launch.system_prompt_file).map_err(unprepared(&launch.system_prompt_file))?;
    same_directory(launch)?;
    let boundary = match &launch.boundary {
        Some(boundary) => Some(boundary::install(boundary, temporary, &launch.job_dir)?),
        None if launch.tools.iter().any(|tool| matches!(tool, Tool::Edit | Tool::Write)) => {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "a session that edits was given no boundary");
            return Err(AgentError::NoBoundary { boundary: launch.cwd.clone(), source });
        }
        None => None,
    };
    if let ModelSource::Rehearsal { base_url, model, agent_dir } = &launch.model {
        write_agent_dir(agent_dir, base_url, model_id(model))?;
    }
    let mut env = environment(launch, boundary.as_ref());
    env.extend(own_temporary(temporary, &launch.job_dir)?.map(|own| ("TMPDIR".into(), own.into())));
    Ok(Program {
        path: pi,
        args: arguments(launch, boundary.as_ref()),
        cwd: launch.cwd.clone(),
        env,
        unset: UNSET.map(OsString::from).to_vec(),
    })
}

fn arguments(launch: &Launch, boundary: Option<&Installed>) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    let mut add = |words: &[&OsStr]| args.extend(words.iter().map(|word| word.to_os_string()));
    add(&["--mode".as_ref(), "rpc".as_ref(), "--session".as_ref(), launch.session_file.as_ref()]);
    add(&["--no-extensions".as_ref()]);
    if let Some(boundary) = boundary {
        add(&["-e".as_ref(), boundary.extension.as_ref()]);
    }
    for flag in ["--no-skills", "--no-prompt-templates", "--no-themes", "--no-context-files", "--no-approve"] {
        add(&[flag.as_ref()]);
    }
    match &launch.model {
        ModelSource::User { model: Some(model) } => add(&["--model".as_ref(), model.as_ref()]),
        ModelSource::User { model: None } => {}
        ModelSource::Rehearsal { model, .. } => {
            add(&["--model".as_ref(), format!("{REHEARSAL}/{}", model_id(model)).as_ref()]);
        }
    }
    if let Some(level) = &launch.thinking {
        add(&["--thinking".as_ref(), level.as_ref()]);
    }
    add(&["--append-system-prompt".as_ref(), launch.system_prompt_file.as_ref()]);
    let tools: Vec<&str> = launch.tools.iter().map(|tool| tool.name()).collect();
    add(&["--tools".as_ref(), tools.join(",").as_ref()]);
    args
}

fn environment(launch: &Launch, boundary: Option<&Installed>) -> BTreeMap<OsString, OsString> {
    let mut env = BTreeMap::new();
    let mut set = |name: &str, value: &OsStr| drop(env.insert(OsString::from(name), value.to_os_string()));
    set(JOB_VARIABLE, launch.job.as_str().as_ref());
    set(ROOT_VARIABLE, launch.root.as_ref());
    // Shells and some programs believe it.
    set("PWD", launch.cwd.as_ref());
    if let Some(boundary) = boundary {
        set("WORKTREE_BOUNDARY", boundary.boundary.as_ref());
        set("SPECIALISTS_WORKTREE_BOUNDARY", boundary.boundary.as_ref());
    }
    if let ModelSource::Rehearsal { agent_dir, .. } = &launch.model {
        set("PI_CODING_AGENT_DIR", agent_dir.as_ref());
        set("PI_OFFLINE", "1".as_ref());
        // pi honours proxies for the loopback too.
        for name in ["NO_PROXY", "no_proxy"] {
            let mut direct = std::env::var_os(name).filter(|list| !list.is_empty()).unwrap_or_default();
            if !direct.is_empty() {
                direct.push(",");
            }
            direct.push("127.0.0.1,localhost");
            set(name, &direct);
        }
    }
    env
}

/// Makes a temporary directory for the session where the usual one takes no files. node may hang at its start without one
/// (it makes a directory below /proc for ever), and much of what an agent runs wants one.
fn own_temporary(temporary: &Path, job_dir: &Path) -> Result<Option<PathBuf>, AgentError> {
    if tempfile::tempfile_in(temporary).is_ok() {
        return Ok(None);
    }
    let own = job_dir.join("tmp");
    fs::create_dir_all(&own).map_err(unprepared(&own))?;
    Ok(Some(own))
}

/// Refuses to continue a session of another directory: pi works where the session file says, not where it is started.
fn same_directory(launch: &Launch) -> Result<(), AgentError> {
    #[derive(Deserialize)]
    struct Head {
        cwd: PathBuf,
    }
    let file = match fs::File::open(&launch.session_file) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(unprepared(&launch.session_file)(source)),
    };
    let mut first = Vec::new();
    BufReader::new(file).read_until(b'\n', &mut first).map_err(unprepared(&launch.session_file))?;
    // A file that is no session is pi's to refuse: it names the fault better.
    let Ok(Head { cwd: stored }) = serde_json::from_slice(&first) else { return Ok(()) };
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if real(&stored) == real(&launch.cwd) {
        return Ok(());
    }
    let (file, wanted) = (launch.session_file.clone(), launch.cwd.clone());
    Err(AgentError::OtherDirectory { file, stored, wanted })
}

/// Writes the configuration of a pi that knows the rehearsal server and nothing else.
fn write_agent_dir(agent_dir: &Path, base_url: &str, model: &str) -> Result<(), AgentError> {
    fs::create_dir_all(agent_dir).map_err(unprepared(agent_dir))?;
    let models = json!({ "providers": { REHEARSAL: {
        "baseUrl": base_url,
        "api": "openai-completions",
        "apiKey": "rehearsal-needs-no-key",
        "models": [{
            "id": model,
            "name": format!("{model} (rehearsal)"),
            "reasoning": true,
            "contextWindow": 128_000,
            "maxTokens": 16_384,
            // Not free, so that a rehearsal shows cost where a real run would.
            "cost": { "input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 1 },
        }],
    } } });
    // Short pauses: the errors of a rehearsal are scripted, nobody needs to recover. `provider` would retry unseen.
    let settings = json!({ "retry": {
        "enabled": true, "maxRetries": 3, "baseDelayMs": 50, "provider": { "maxRetries": 0 },
    } });
    for (name, content) in [("models.json", models), ("settings.json", settings)] {
        let path = agent_dir.join(name);
        put(&path, format!("{content:#}\n").as_bytes()).map_err(unprepared(&path))?;
    }
    Ok(())
}

/// Returns the id of a rehearsal model within its provider: `rehearsal/executor` is `executor`.
fn model_id(model: &str) -> &str {
    model.strip_prefix(REHEARSAL).and_then(|rest| rest.strip_prefix('/')).unwrap_or(model)
}

fn unprepared(path: &Path) -> impl Fn(io::Error) -> AgentError {
    let path = path.to_owned();
    move |source| AgentError::Prepare { path: path.clone(), source }
}

#[cfg(test)]
mod tests;

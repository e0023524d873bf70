use super::*;
use crate::ids::JobId;

/// A directory with all that a launch names.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for directory in ["worktree", "job", "tmp"] {
            fs::create_dir(place.at(directory)).unwrap();
        }
        fs::write(place.at("job/system.md"), "You are careful.").unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn launch(&self, model: ModelSource) -> Launch {
        Launch {
            job: JobId::new("abcd1234"),
            root: self.at("root"),
            cwd: self.at("worktree"),
            session_file: self.at("job/session.jsonl"),
            system_prompt_file: self.at("job/system.md"),
            tools: vec![Tool::Read, Tool::Bash],
            boundary: None,
            job_dir: self.at("job"),
            model,
            thinking: None,
        }
    }

    fn prepare(&self, launch: &Launch) -> Result<Program, AgentError> {
        prepare(launch, "/opt/pi".into(), &self.at("tmp"))
    }

    /// The program's arguments with this place written as `~`.
    fn args(&self, program: &Program) -> String {
        let args: Vec<&str> = program.args.iter().map(|arg| arg.to_str().unwrap()).collect();
        args.join(" ").replace(self.0.path().to_str().unwrap(), "~")
    }
}

fn user(model: Option<&str>) -> ModelSource {
    ModelSource::User { model: model.map(str::to_owned) }
}

fn env<'a>(program: &'a Program, name: &str) -> Option<&'a OsStr> {
    program.env.get(OsStr::new(name)).map(OsString::as_os_str)
}

#[test]
fn a_reader_gets_its_tools_and_nothing_of_the_user_s_extensions() {
    let place = Place::new();
    let program = place.prepare(&place.launch(user(None))).unwrap();
    assert_eq!(
        place.args(&program),
        "--mode rpc --session ~/job/session.jsonl --no-extensions --no-skills --no-prompt-templates --no-themes \
         --no-context-files --no-approve --append-system-prompt ~/job/system.md --tools read,bash"
    );
    assert_eq!((program.path.to_str(), &program.cwd), (Some("/opt/pi"), &place.at("worktree")));
    assert_eq!(env(&program, "SP_JOB_ID"), Some(OsStr::new("abcd1234")));
    assert_eq!(env(&program, "SP_ROOT"), Some(place.at("root").as_os_str()));
    assert_eq!(env(&program, "PWD"), Some(place.at("worktree").as_os_str()));
    for name in ["PI_CODING_AGENT_DIR", "PI_OFFLINE", "WORKTREE_BOUNDARY"] {
        assert_eq!(env(&program, name), None, "{name}");
    }
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "PI_SESSION_FILE"] {
        assert!(program.unset.contains(&name.into()), "{name}");
    }
    assert!(!program.unset.contains(&"BEADS_DIR".into()) && !program.unset.contains(&"PI_CODING_AGENT_DIR".into()));
}

#[test]
fn a_reader_of_a_worktree_is_confined_too() {
    let place = Place::new();
    let launch = Launch { boundary: Some(place.at("worktree")), ..place.launch(user(None)) };
    let program = place.prepare(&launch).unwrap();
    let args = place.args(&program);
    assert!(args.contains("--no-extensions -e ~/tmp/specialists-pi-extensions/worktree-boundary-"), "{args}");
    assert!(args.ends_with("--tools read,bash"), "{args}");
    assert!(env(&program, "WORKTREE_BOUNDARY").is_some());
}

#[test]
fn a_writer_is_confined_and_never_starts_unconfined() {
    let place = Place::new();
    let mut launch = place.launch(user(Some("anthropic/claude")));
    launch.tools.push(Tool::Write);
    launch.thinking = Some("high".into());
    assert!(matches!(place.prepare(&launch), Err(AgentError::NoBoundary { .. })));

    launch.boundary = Some(place.at("worktree"));
    let program = place.prepare(&launch).unwrap();
    let args = place.args(&program);
    assert!(args.contains("--no-extensions -e ~/tmp/specialists-pi-extensions/worktree-boundary-"), "{args}");
    assert!(args.contains("--model anthropic/claude --thinking high --append-system-prompt"), "{args}");
    assert!(args.ends_with("--tools read,bash,write"), "{args}");
    let resolved = fs::canonicalize(place.at("worktree")).unwrap();
    for name in ["WORKTREE_BOUNDARY", "SPECIALISTS_WORKTREE_BOUNDARY"] {
        assert_eq!(env(&program, name), Some(resolved.as_os_str()), "{name}");
    }
}

#[test]
fn without_a_temporary_directory_boundary_and_temporary_files_go_to_the_jobs() {
    let place = Place::new();
    let launch = Launch { boundary: Some(place.at("worktree")), ..place.launch(user(None)) };
    assert_eq!(env(&place.prepare(&launch).unwrap(), "TMPDIR"), None, "a usable one is left as it is");
    for unusable in ["/proc", "/no/such/directory"] {
        let program = prepare(&launch, "/opt/pi".into(), Path::new(unusable)).unwrap();
        assert!(place.args(&program).contains("-e ~/job/worktree-boundary-"), "{unusable}: {}", place.args(&program));
        assert_eq!(env(&program, "TMPDIR"), Some(place.at("job/tmp").as_os_str()), "{unusable}");
        assert!(place.at("job/tmp").is_dir());
    }
}

#[test]
fn a_rehearsal_has_an_agent_directory_of_its_own() {
    let place = Place::new();
    let launch = place.launch(ModelSource::Rehearsal {
        base_url: "http://127.0.0.1:4711/executor/1/v1".into(),
        model: "rehearsal/executor".into(),
        agent_dir: place.at("job/agent"),
    });
    let program = place.prepare(&launch).unwrap();
    assert!(place.args(&program).contains("--model rehearsal/executor --append"), "{}", place.args(&program));
    assert_eq!(env(&program, "PI_CODING_AGENT_DIR"), Some(place.at("job/agent").as_os_str()));
    assert_eq!(env(&program, "PI_OFFLINE"), Some(OsStr::new("1")));
    assert!(env(&program, "NO_PROXY").unwrap().to_str().unwrap().ends_with("127.0.0.1,localhost"));
    assert_eq!(env(&program, "HOME"), None);

    let read = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(place.at("job/agent").join(name)).unwrap()).unwrap()
    };
    let provider = &read("models.json")["providers"]["rehearsal"];
    assert_eq!(provider["baseUrl"], "http://127.0.0.1:4711/executor/1/v1");
    assert_eq!(provider["models"][0]["id"], "executor");
    assert_eq!(provider["models"][0]["cost"]["cacheRead"], 0.1);
    assert_eq!(read("settings.json")["retry"]["provider"]["maxRetries"], 0);
}

#[test]
fn a_missing_prompt_file_is_not_sent_as_the_prompt() {
    let place = Place::new();
    fs::remove_file(place.at("job/system.md")).unwrap();
    let error = place.prepare(&place.launch(user(None))).unwrap_err();
    assert!(matches!(&error, AgentError::Prepare { path, .. } if path.ends_with("system.md")), "{error:?}");
}

#[test]
fn a_session_is_continued_only_where_it_was_made() {
    let place = Place::new();
    let launch = place.launch(user(None));
    let session = |cwd: &Path| {
        let head = json!({ "type": "session", "version": 3, "id": "s", "cwd": cwd });
        fs::write(place.at("job/session.jsonl"), format!("{head}\n{{\"type\":\"message\"}}\n")).unwrap();
    };
    session(&place.at("worktree"));
    place.prepare(&launch).unwrap();
    session(&place.at("elsewhere"));
    let error = place.prepare(&launch).unwrap_err();
    assert!(matches!(error, AgentError::OtherDirectory { .. }), "{error:?}");
    fs::write(place.at("job/session.jsonl"), "").unwrap();
    place.prepare(&launch).unwrap();
}

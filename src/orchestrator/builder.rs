//! Building a system: the real adapters by default, others where they are handed in.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ractor::{Actor, ActorRef};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use super::error::OrchestratorError;
use crate::actors::{Coordinator, Doors, Notice, Parts, Root, RootMsg, Watchers, Workshop};
use crate::beads::{Bd, BdConfig, locate as beads};
use crate::chain::formula::SearchPath;
use crate::exec::{LocalExec, is_alive, this_process};
use crate::formulas::{search_path, standard_dirs};
use crate::git::Git;
use crate::pi;
use crate::ports::{Agent, Clock, ExecBackend, SystemClock, Tracker, Workspace};
use crate::specialist::Roster;
use crate::storage::{Layout, ProcessIdentity};

/// Notices kept for a watcher that is behind; one that falls further behind reads the database.
const NOTICES: usize = 4096;

/// Systems of one process, so that their actors have names of their own.
static SYSTEMS: AtomicU32 = AtomicU32::new(1);

/// Builds an [`Orchestrator`].
pub struct OrchestratorBuilder {
    directory: PathBuf,
    bd: Option<PathBuf>,
    pi: Option<PathBuf>,
    tracker: Option<Arc<dyn Tracker>>,
    agent: Option<Arc<dyn Agent>>,
    workspace: Option<Arc<dyn Workspace>>,
    clock: Arc<dyn Clock>,
    exec: Arc<dyn ExecBackend>,
    root: Option<PathBuf>,
}

impl OrchestratorBuilder {
    /// Uses this bd instead of the one on `PATH`.
    #[must_use]
    pub fn bd(mut self, program: Option<PathBuf>) -> Self {
        self.bd = program;
        self
    }

    /// Uses this pi instead of the one on `PATH`.
    #[must_use]
    pub fn pi(mut self, program: Option<PathBuf>) -> Self {
        self.pi = program;
        self
    }

    /// Uses this tracker instead of bd.
    #[must_use]
    pub fn tracker(mut self, tracker: Arc<dyn Tracker>) -> Self {
        self.tracker = Some(tracker);
        self
    }

    /// Uses this agent instead of pi.
    #[must_use]
    pub fn agent(mut self, agent: Arc<dyn Agent>) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Uses this repository instead of git; `root` is where the system keeps its files.
    #[must_use]
    pub fn workspace(mut self, workspace: Arc<dyn Workspace>, root: PathBuf) -> Self {
        self.workspace = Some(workspace);
        self.root = Some(root);
        self
    }

    /// Uses this wall clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Starts programs through this backend.
    #[must_use]
    pub fn exec(mut self, exec: Arc<dyn ExecBackend>) -> Self {
        self.exec = exec;
        self
    }

    /// Finds repository, bd and pi, and starts the actors. Creates `.specialists/db` where it is missing.
    pub async fn build(self) -> Result<Orchestrator, OrchestratorError> {
        let ground = self.ground().await?;
        ground.start().await
    }

    /// Finds repository, bd and pi without starting or creating anything.
    pub(super) async fn ground(self) -> Result<Ground, OrchestratorError> {
        let (workspace, root): (Arc<dyn Workspace>, PathBuf) = match (self.workspace, self.root) {
            (Some(workspace), Some(root)) => (workspace, root),
            _ => {
                let git = Git::open(&self.directory).await?;
                let root = git.root().to_owned();
                (Arc::new(git), root)
            }
        };
        let layout = Layout::new(&root);
        let tracker: Arc<dyn Tracker> = match self.tracker {
            Some(tracker) => tracker,
            None => {
                workspace.facts().await?;
                let program = beads::program(self.bd.as_deref(), env::var_os("PATH").as_deref())?;
                let beads_dir = beads::workspace(&root)?;
                let lock_file = layout.bd_lock();
                Arc::new(Bd::new(BdConfig { program, repository: root.clone(), beads_dir, lock_file }))
            }
        };
        let agent: Arc<dyn Agent> = match self.agent {
            Some(agent) => agent,
            None => {
                let program = pi::locate(self.pi.as_deref(), env::var_os("PATH").as_deref())?;
                Arc::new(pi::PiAgent { exec: self.exec, program })
            }
        };
        let me = this_process()?;
        Ok(Ground {
            formulas: Arc::new(formulas(&root, &self.directory)),
            roster: Arc::new(Roster::shipped()),
            me: ProcessIdentity { boot_id: me.boot_id, pid: me.pid, start_ticks: me.started },
            root,
            layout,
            workspace,
            tracker,
            agent,
            clock: self.clock,
        })
    }
}

/// The formulas of a repository: bd's directories, then the built-in ones.
pub(crate) fn formulas(root: &Path, checkout: &Path) -> SearchPath {
    let (home, gt_root) = (env::var_os("HOME").map(PathBuf::from), env::var_os("GT_ROOT").map(PathBuf::from));
    search_path(standard_dirs(&root.join(".beads"), checkout, home.as_deref(), gt_root.as_deref()))
}

/// Whether the process of an ownership row still runs.
pub(crate) fn owner_is_alive(owner: &ProcessIdentity) -> bool {
    match this_process() {
        Ok(me) => me.boot_id == owner.boot_id && is_alive(owner.pid, owner.start_ticks),
        // Taking over from one that lives does more harm than waiting.
        Err(_) => true,
    }
}

/// Everything a system stands on, before it is started.
pub(super) struct Ground {
    pub root: PathBuf,
    pub layout: Layout,
    pub workspace: Arc<dyn Workspace>,
    pub tracker: Arc<dyn Tracker>,
    pub agent: Arc<dyn Agent>,
    pub clock: Arc<dyn Clock>,
    pub formulas: Arc<SearchPath>,
    pub roster: Arc<Roster>,
    pub me: ProcessIdentity,
}

impl Ground {
    async fn start(self) -> Result<Orchestrator, OrchestratorError> {
        let doors = Doors::new(&format!("sp-{}", SYSTEMS.fetch_add(1, Ordering::Relaxed)));
        let (watchers, _): (Watchers, _) = broadcast::channel(NOTICES);
        let workshop = Arc::new(Workshop {
            root: self.root.clone(),
            layout: self.layout.clone(),
            workspace: Arc::clone(&self.workspace),
            roster: Arc::clone(&self.roster),
            clock: Arc::clone(&self.clock),
        });
        let coordinator = Coordinator {
            store: doors.store.clone(),
            tracker: doors.tracker.door().clone(),
            workspaces: doors.workspaces.clone(),
            jobs: doors.jobs.clone(),
            layout: self.layout.clone(),
            clock: Arc::clone(&self.clock),
            me: self.me.clone(),
            watchers: watchers.clone(),
        };
        let parts = Parts {
            doors: doors.clone(),
            tracker: Arc::clone(&self.tracker),
            agent: Arc::clone(&self.agent),
            workspace: Arc::clone(&self.workspace),
            clock: Arc::clone(&self.clock),
            layout: self.layout.clone(),
            workshop,
            me: self.me.clone(),
            is_alive: owner_is_alive,
            coordinator,
        };
        let name = format!("{}/root", doors.system);
        let (actor, joined) = Actor::spawn(Some(name), Root, parts)
            .await
            .map_err(|error| OrchestratorError::System { reason: error.to_string() })?;
        Ok(Orchestrator { ground: self, doors, watchers, actor, joined })
    }
}

/// A running system on one repository.
///
/// Dropping it without [`Orchestrator::close`] leaves the actors to the runtime's end; nothing durable is lost by that.
pub struct Orchestrator {
    pub(super) ground: Ground,
    pub(super) doors: Doors,
    pub(super) watchers: Watchers,
    actor: ActorRef<RootMsg>,
    joined: JoinHandle<()>,
}

impl Orchestrator {
    /// Begins to build a system on the repository of a directory.
    pub fn builder(directory: impl Into<PathBuf>) -> OrchestratorBuilder {
        OrchestratorBuilder {
            directory: directory.into(),
            bd: None,
            pi: None,
            tracker: None,
            agent: None,
            workspace: None,
            clock: Arc::new(SystemClock),
            exec: Arc::new(LocalExec),
            root: None,
        }
    }

    /// Returns the root of the main checkout.
    pub fn root(&self) -> &Path {
        &self.ground.root
    }

    /// Returns a stream of what happens to all chains of this process from now on.
    pub fn watch(&self) -> broadcast::Receiver<Notice> {
        self.watchers.subscribe()
    }

    /// Ends the actors. Chains that still run are left as a crash would leave them: resumable.
    pub async fn close(self) {
        self.actor.stop_children_and_wait(None, None).await;
        self.actor.stop(None);
        drop(self.joined.await);
    }
}

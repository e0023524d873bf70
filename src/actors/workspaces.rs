//! Workspaces: branches, worktrees and commits, one thing at a time in each worktree.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::Mutex;

use super::prepare::before;
use super::tracker::{TrackerHandle, WAITS, may_pass};
use crate::chain::machine::{ChainInput, ChainState, Work};
use crate::chain::shape::{Shape, Step, Writer};
use crate::chain::test_paths::TEST_PATHS;
use crate::failure::Explain;
use crate::git::{NameError, branch_for, rescue_ref, worktree_for};
use crate::ids::{BeadId, JobId, StepId};
use crate::messages::{CoordinatorMsg, WorkspacesMsg};
use crate::ports::{CommitRequest, Workspace};
use crate::storage::Layout;

/// The actor's configuration.
#[derive(Clone)]
pub struct Workspaces {
    /// The repository.
    pub workspace: Arc<dyn Workspace>,
    /// Makes the worktrees (`bd worktree create` is the only way, R0-055).
    pub tracker: TrackerHandle,
    /// Root of the main checkout.
    pub root: PathBuf,
    /// Files of jobs.
    pub layout: Layout,
}

/// One lock a worktree, and one a contract bead while its worktree is made.
#[derive(Default)]
pub struct Locks(HashMap<String, Arc<Mutex<()>>>);

impl Actor for Workspaces {
    type Msg = WorkspacesMsg;
    type State = Locks;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<WorkspacesMsg>, (): ()) -> Result<Locks, ActorProcessingErr> {
        Ok(Locks::default())
    }

    async fn handle(
        &self,
        me: ActorRef<WorkspacesMsg>,
        mail: WorkspacesMsg,
        locks: &mut Locks,
    ) -> Result<(), ActorProcessingErr> {
        let this = self.clone();
        match mail {
            WorkspacesMsg::PrepareTree { chain, reply_to } => {
                let lock = Arc::clone(locks.0.entry(chain.bead.to_string()).or_default());
                run(me, async move {
                    let _turn = lock.lock().await;
                    let input = match this.prepare(&chain, &reply_to).await {
                        Ok(input) => input,
                        Err((code, detail)) => ChainInput::ChainRefused { code, detail },
                    };
                    drop(reply_to.cast(CoordinatorMsg::Input(Box::new(input))));
                });
            }
            // What it owed is asked for again once it is restarted.
            WorkspacesMsg::Broken(why) => return Err(why.into()),
            WorkspacesMsg::SettleWork { chain, step, epoch, job, reply_to } => {
                let tree = chain.tree.as_ref().map(|tree| tree.path.clone()).unwrap_or_default();
                let lock = Arc::clone(locks.0.entry(tree).or_default());
                run(me, async move {
                    let _turn = lock.lock().await;
                    let input = match this.settle(&chain, &step, &job).await {
                        Ok(work) => ChainInput::WorkSettled { step, epoch, work },
                        Err((code, detail)) => ChainInput::StepRefused { step, code, detail },
                    };
                    drop(reply_to.cast(CoordinatorMsg::Input(Box::new(input))));
                });
            }
        }
        Ok(())
    }
}

/// Works on an effect beside the actor, which fails with it when it panics: else its chain would wait for ever.
fn run(me: ActorRef<WorkspacesMsg>, work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(gone) = tokio::spawn(work).await {
            drop(me.cast(WorkspacesMsg::Broken(gone.to_string())));
        }
    });
}

type Refused = (String, String);

fn refused(error: impl Explain) -> Refused {
    let (_, code, next) = error.explain();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(why) = cause {
        text = format!("{text}: {why}");
        cause = why.source();
    }
    (code.to_owned(), format!("{text} ({next})"))
}

impl Workspaces {
    /// Makes the branch and the worktree of a chain, or finds them.
    async fn prepare(&self, chain: &ChainState, told: &ActorRef<CoordinatorMsg>) -> Result<ChainInput, Refused> {
        let (branch, path) = home(&self.root, &chain.bead, &chain.shape).map_err(refused)?;
        self.workspace.exclude_own_paths().await.map_err(refused)?;
        // A branch that was removed meanwhile comes back where the chain last knew it, never at the base again.
        let at = chain.tree.as_ref().map_or(&chain.base, |tree| &tree.head);
        self.workspace.make_branch(&branch, at).await.map_err(refused)?;
        let found = self.workspace.worktree_of(&branch).await.map_err(refused)?;
        let reused = found.is_some();
        match found {
            Some(found) if found == path => {}
            Some(found) => {
                let detail =
                    format!("branch {branch} is checked out at {}, not at {}", found.display(), path.display());
                return Err(("branch_elsewhere".to_owned(), detail));
            }
            None => self.create(&path, &branch, told).await?,
        }
        let state = self.workspace.state(&path).await.map_err(refused)?;
        let path = path.to_string_lossy().into_owned();
        Ok(ChainInput::TreeReady { path, branch, head: state.head, reused })
    }

    /// Has the tracker make the worktree, with the patience that its other calls have.
    async fn create(&self, path: &Path, branch: &str, told: &ActorRef<CoordinatorMsg>) -> Result<(), Refused> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .map_err(|error| ("worktree_parent".to_owned(), format!("make {}: {error}", parent.display())))?;
        }
        if path.as_os_str().as_bytes().contains(&b'\n') {
            // bd reads what git says of its own place by lines, so it finds no repository there (R0-055 knows no other
            // way than bd's). It would write nothing into the worktree either.
            tracing::warn!(path = ?path, "bd can't work in a path with a line break; git makes the worktree");
            return self.workspace.add_worktree(path, branch).await.map_err(refused);
        }
        let mut waits = WAITS.into_iter();
        loop {
            let Err(error) = self.tracker.create_worktree(path, branch).await else { return Ok(()) };
            // A call that failed may have gone through unseen.
            if self.workspace.worktree_of(branch).await.map_err(refused)?.as_deref() == Some(path) {
                return Ok(());
            }
            let Some(wait) = waits.next().filter(|_| may_pass(&error)) else { return Err(refused(error)) };
            drop(told.cast(CoordinatorMsg::Waiting { on: "tracker", why: error.to_string() }));
            tokio::time::sleep(wait).await;
        }
    }

    /// Commits a writer's turn, or puts back what a reader changed.
    async fn settle(&self, chain: &ChainState, step: &StepId, job: &JobId) -> Result<Work, Refused> {
        let unknown = || ("no_such_step".to_owned(), step.to_string());
        let shape = chain.shape.step(step).ok_or_else(unknown)?;
        let tree = chain.tree.as_ref().ok_or_else(|| ("no_worktree".to_owned(), step.to_string()))?;
        let state = chain.steps.get(step).ok_or_else(unknown)?;
        let path = PathBuf::from(&tree.path);
        let rescue_ref = rescue_ref(job).map_err(refused)?;
        if shape.writer.is_some() {
            let request = CommitRequest {
                tree: path,
                branch: tree.branch.clone(),
                message: message(chain, shape, state.round),
                before: state.before.clone().unwrap_or_else(|| tree.head.clone()),
                allowed: allowed(shape),
                rescue_ref,
            };
            return self.workspace.commit(&request).await.map(Work::Committed).map_err(refused);
        }
        if state.shared {
            // Another writer worked here meanwhile: what changed can't be laid at this reader's door.
            return Ok(Work::Compared(None));
        }
        self.compare(&path, job, &rescue_ref).await.map(Work::Compared)
    }

    async fn compare(
        &self,
        tree: &Path,
        job: &JobId,
        rescue_ref: &str,
    ) -> Result<Option<crate::ports::Restored>, Refused> {
        let dir = self.layout.job(job).map_err(refused)?;
        let then = before(&dir).map_err(|error| ("job_file".to_owned(), format!("read how the tree was: {error}")))?;
        let now = self.workspace.state(tree).await.map_err(refused)?;
        let tracked = |state: &crate::ports::TreeState| -> Vec<String> {
            state.changes.iter().filter(|change| !change.untracked).map(|change| change.path.clone()).collect()
        };
        // New untracked files (coverage, caches) are no change of the work under judgement.
        if now.head == then.head && now.branch == then.branch && tracked(&now) == tracked(&then) {
            return Ok(None);
        }
        self.workspace.restore(tree, &then, rescue_ref).await.map_err(refused)
    }
}

/// Returns the branch and the worktree of a chain: named after its bead and its first writer (spec 002).
pub(crate) fn home(root: &Path, bead: &BeadId, shape: &Shape) -> Result<(String, PathBuf), NameError> {
    let role = shape.lead_role();
    Ok((branch_for(bead, role)?, worktree_for(root, bead, role)?))
}

fn allowed(step: &Step) -> Vec<String> {
    match step.writer {
        Some(Writer::Secondary) => TEST_PATHS.iter().map(|glob| (*glob).to_owned()).collect(),
        Some(Writer::Primary) | None => Vec::new(),
    }
}

/// The message of a writer's commit (spec 002, "Auto-checkpoint behavior").
fn message(chain: &ChainState, step: &Step, round: u32) -> String {
    format!("checkpoint({}): {} turn {round}\n\nChain {}, step {}.\n", step.role, chain.bead, chain.chain, step.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::doubles::{Heard, Script, StubAgent, System, recorder};
    use crate::chain::machine::fold;
    use crate::ports::WorkspaceError;

    #[tokio::test(start_paused = true)]
    async fn a_panic_in_the_port_is_the_actors_own() {
        let system = System::without_actors(StubAgent::plays([Script::default()])).await;
        let (above, mut words) = recorder::<WorkspacesMsg>(None).await;
        let workspaces = Workspaces {
            workspace: system.workspace.clone(),
            tracker: TrackerHandle::new(system.site.door("tracker")),
            root: system.site.root.path().to_owned(),
            layout: system.site.layout.clone(),
        };
        system.start_tracker().await;
        let (workspaces, _) = Actor::spawn_linked(None, workspaces, (), above.get_cell()).await.unwrap();
        system.open("proj-mol-1", "proj-x", &[]).await;
        let chain = Arc::new(fold(&system.log("proj-mol-1")).unwrap());
        system.workspace.panics.store(1, std::sync::atomic::Ordering::Relaxed);
        let (reply_to, _answers) = recorder(None).await;
        workspaces.cast(WorkspacesMsg::PrepareTree { chain, reply_to }).unwrap();
        assert!(matches!(words.recv().await, Some(Heard::Failed(_))), "whoever supervises it is told");
    }

    #[test]
    fn an_error_is_told_with_its_code_its_causes_and_the_next_step() {
        let (code, text) = refused(WorkspaceError::NoWorktree { path: "/gone".into() });
        assert!(!code.is_empty() && text.contains("/gone") && text.ends_with(')'), "{code} {text}");
    }
}

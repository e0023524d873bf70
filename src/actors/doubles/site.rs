//! A repository for a test: a directory, the real Store in it, and a clock. All on paused time.
//!
//! The writer of the Store has a thread of its own, and the paused clock would run on to the next timer while it
//! writes. So each write goes through a gate that holds the clock (by a blocking task) until it is on disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::actors::job::JobTools;
use crate::actors::prepare::Prepared;
use crate::actors::store::{Store, StoreHandle};
use crate::chain::shape::Class;
use crate::ids::JobId;
use crate::messages::{Door, StoreMsg};
use crate::ports::{Agent, Clock, Launch, ModelSource};
use crate::specialist::Contract;
use crate::storage::{JobRow, Layout, Pending, ProcessIdentity, Reader, ReleaseOwnership, Resource};

/// A repository.
pub(in crate::actors) struct Site {
    pub(in crate::actors) root: TempDir,
    pub(in crate::actors) layout: Layout,
    pub(in crate::actors) store: StoreHandle,
    pub(in crate::actors) clock: Arc<dyn Clock>,
    /// Prefix of the names of its actors.
    pub(in crate::actors) system: String,
    /// So many of the next writes fail.
    pub(in crate::actors) refused_writes: Arc<AtomicUsize>,
}

/// This process, as the owner of resources.
pub(in crate::actors) fn process(pid: u32) -> ProcessIdentity {
    ProcessIdentity { boot_id: "boot".into(), pid, start_ticks: 77 }
}

impl Site {
    /// Makes the directory and starts the Store.
    pub(in crate::actors) async fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let system = format!("test{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::new(root.path());
        let clock: Arc<dyn Clock> = Arc::new(Since(Instant::now()));
        let real = Store { database: layout.database(), clock: Arc::clone(&clock) };
        let (real, _) = Actor::spawn(None, real, ()).await.unwrap();
        let refused_writes = Arc::<AtomicUsize>::default();
        let gate = Gate { real, refused: Arc::clone(&refused_writes) };
        Actor::spawn(Some(format!("{system}/store")), gate, ()).await.unwrap();
        let store = StoreHandle::new(Door::new(format!("{system}/store")));
        Self { root, layout, store, clock, system, refused_writes }
    }

    /// Returns the door of an actor of this system.
    pub(in crate::actors) fn door<M: ractor::Message>(&self, name: &str) -> Door<M> {
        Door::new(format!("{}/{name}", self.system))
    }

    /// Returns a reader of the database.
    pub(in crate::actors) fn reader(&self) -> Reader {
        Reader::open(&self.layout.database()).unwrap()
    }

    /// Returns what jobs share.
    pub(in crate::actors) fn tools(&self, agent: Arc<dyn Agent>) -> JobTools {
        JobTools {
            agent,
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            me: process(1),
            is_alive: |_| true,
        }
    }

    /// Returns a prepared activation of the job `0a1b2c3d`.
    pub(in crate::actors) fn prepared(&self, role: &str) -> Prepared {
        let job = JobId::from("0a1b2c3d");
        let dir = self.layout.job(&job).unwrap();
        Prepared {
            launch: Launch {
                job: job.clone(),
                root: self.root.path().to_owned(),
                cwd: self.root.path().join("tree"),
                session_file: dir.session(),
                system_prompt_file: dir.system(),
                tools: Vec::new(),
                boundary: None,
                job_dir: dir.path().to_owned(),
                model: ModelSource::User { model: None },
                thinking: None,
            },
            first: "the whole task".into(),
            further: "the next round".into(),
            go_on: "go on".into(),
            task: None,
            unstored: Vec::new(),
            continued: false,
            contract: Contract::shipped(role).unwrap(),
            class: Class::Step,
            row: JobRow::starting(job, role, self.clock.now_ms()),
            dir,
            stall: Duration::from_secs(300),
            warn: Duration::from_secs(60),
            timeout: None,
            writes: false,
            last_try: false,
        }
    }

    /// Returns the directory that stands for a worktree, made.
    pub(in crate::actors) fn tree(&self) -> PathBuf {
        let tree = self.root.path().join("tree");
        std::fs::create_dir_all(&tree).unwrap();
        tree
    }
}

/// A wall clock that goes with tokio's.
struct Since(Instant);

impl Clock for Since {
    fn now_ms(&self) -> i64 {
        1_700_000_000_000 + i64::try_from(self.0.elapsed().as_millis()).unwrap()
    }
}

struct Gate {
    real: ActorRef<StoreMsg>,
    refused: Arc<AtomicUsize>,
}

impl Actor for Gate {
    type Msg = StoreMsg;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<StoreMsg>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(&self, _: ActorRef<StoreMsg>, mail: StoreMsg, (): &mut ()) -> Result<(), ActorProcessingErr> {
        let refused = self.refused.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if refused.is_ok() {
            // A write that is dropped answers `Closed`.
            return Ok(());
        }
        // Writes are answered in their order: with this one, the one before it.
        let (done, answered) = mpsc::channel();
        let none = Resource::Chain("none".into());
        let mark = ReleaseOwnership { resource: none, me: process(0), epoch: 0 };
        self.real.cast(mail)?;
        let answer = move |_| {
            let _ = done.send(());
        };
        self.real.cast(StoreMsg::Write(Pending::new(mark, answer)))?;
        tokio::task::spawn_blocking(move || answered.recv());
        Ok(())
    }
}

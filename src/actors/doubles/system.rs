//! Everything of a running system but the Orchestrator, on doubles of all ports.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorRef};
use tokio::sync::broadcast;

use super::site::process;
use super::{Site, StubAgent, StubTracker, StubWorkspace};
use crate::actors::coordinator::{Coordinator, CoordinatorArgs, event_body};
use crate::actors::jobs::{Jobs, JobsArgs};
use crate::actors::notice::{Notice, NoticeKind};
use crate::actors::prepare::Workshop;
use crate::actors::settings::Settings;
use crate::actors::tracker::{TrackerActor, TrackerHandle};
use crate::actors::workspaces::Workspaces;
use crate::chain::machine::{ChainEvent, Limits, Opening, Scrutinies};
use crate::chain::shape::{Class, Shape, Step, Writer};
use crate::ids::{BeadId, ChainId, StepId};
use crate::messages::{CoordinatorMsg, JobsMsg, TrackerMsg};
use crate::ports::{Tracker, Workspace};
use crate::specialist::{Roster, Tier};
use crate::storage::{
    AppendChainEvents, ChainPatch, ChainRow, ChainStatus, OpenChain, Ownership, Resource, TakeOwnership,
};

/// The system.
pub(in crate::actors) struct System {
    pub(in crate::actors) site: Site,
    pub(in crate::actors) agent: Arc<StubAgent>,
    pub(in crate::actors) tracker: Arc<StubTracker>,
    pub(in crate::actors) workspace: Arc<StubWorkspace>,
    pub(in crate::actors) watchers: broadcast::Sender<Notice>,
}

impl System {
    /// Starts all actors.
    pub(in crate::actors) async fn start(agent: Arc<StubAgent>) -> Self {
        let this = Self::without_actors(agent).await;
        this.start_tracker().await;
        let tracker = TrackerHandle::new(this.site.door("tracker"));
        let (root, layout) = (this.site.root.path().to_owned(), this.site.layout.clone());
        let workspace: Arc<dyn Workspace> = Arc::<StubWorkspace>::clone(&this.workspace);
        let workspaces = Workspaces { workspace, tracker, root, layout };
        Actor::spawn(Some(this.site.door::<JobsMsg>("workspaces").name().to_owned()), workspaces, ()).await.unwrap();
        this.start_jobs().await;
        this
    }

    /// Makes the site and the doubles alone.
    pub(in crate::actors) async fn without_actors(agent: Arc<StubAgent>) -> Self {
        let (watchers, _) = broadcast::channel(4096);
        let tracker = StubTracker::with_root("proj-x");
        Self { site: Site::new().await, agent, tracker, workspace: Arc::default(), watchers }
    }

    /// Starts the Tracker.
    pub(in crate::actors) async fn start_tracker(&self) -> ActorRef<TrackerMsg> {
        let tracker: Arc<dyn Tracker> = Arc::<StubTracker>::clone(&self.tracker);
        let name = self.site.door::<TrackerMsg>("tracker").name().to_owned();
        Actor::spawn(Some(name), TrackerActor { tracker }, ()).await.unwrap().0
    }

    /// Starts Jobs.
    pub(in crate::actors) async fn start_jobs(&self) -> ActorRef<JobsMsg> {
        let door = self.site.door::<JobsMsg>("jobs");
        let args = JobsArgs { workshop: Arc::new(self.workshop()), tools: self.site.tools(self.agent.clone()) };
        Actor::spawn(Some(door.name().to_owned()), Jobs { door: door.clone() }, args).await.unwrap().0
    }

    fn workshop(&self) -> Workshop {
        Workshop {
            root: self.site.root.path().to_owned(),
            layout: self.site.layout.clone(),
            workspace: Arc::<StubWorkspace>::clone(&self.workspace),
            roster: Arc::new(Roster::shipped()),
            clock: Arc::clone(&self.site.clock),
        }
    }

    /// Records a new chain on a bead, with events that it has behind it.
    pub(in crate::actors) async fn open(&self, chain: &str, bead: &str, behind: &[ChainEvent]) -> CoordinatorArgs {
        let opening = opening(chain, bead);
        let row = ChainRow {
            chain: opening.chain.clone(),
            bead: opening.bead.clone(),
            formula: "code-small".into(),
            status: ChainStatus::Composing,
            shape_json: "{}".into(),
            request_json: "{}".into(),
            base_ref: None,
            base_sha: None,
            branch: None,
            worktree_path: None,
            created_at_ms: self.site.clock.now_ms(),
            updated_at_ms: self.site.clock.now_ms(),
            report_json: None,
        };
        let incarnation = self.site.store.write(OpenChain { row, owner: process(1) }).await.unwrap();
        let mut events = vec![ChainEvent::Opened(Box::new(opening))];
        events.extend_from_slice(behind);
        let append = AppendChainEvents {
            chain: chain.into(),
            epoch: incarnation,
            first_seq: 1,
            bodies: events.iter().map(event_body).collect(),
            at_ms: self.site.clock.now_ms(),
            patch: ChainPatch::default(),
        };
        self.site.store.write(append).await.unwrap();
        CoordinatorArgs {
            chain: chain.into(),
            incarnation,
            root: Arc::new(self.tracker.bead(bead)),
            settings: Arc::new(Settings::default()),
            ended: tokio::sync::watch::channel(None).0,
            orders: Vec::new(),
        }
    }

    /// Takes a chain over as another process would once this one is dead.
    pub(in crate::actors) async fn take_over(&self, args: &CoordinatorArgs, pid: u32) -> CoordinatorArgs {
        let resource = Resource::Chain(args.chain.clone());
        let take = TakeOwnership { resource, me: process(pid), at_ms: 1, is_alive: Box::new(|_| false) };
        match self.site.store.write(take).await.unwrap() {
            Ownership::Owned { epoch } => CoordinatorArgs { incarnation: epoch, ..args.clone() },
            Ownership::HeldBy(row) => panic!("held by {row:?}"),
        }
    }

    /// Takes a free chain as the next run of this process does.
    pub(in crate::actors) async fn open_again(&self, chain: &str) -> CoordinatorArgs {
        let row = self.site.reader().chain(&chain.into()).unwrap().expect("it was opened");
        let args = CoordinatorArgs {
            chain: chain.into(),
            incarnation: 0,
            root: Arc::new(self.tracker.bead(row.bead.as_str())),
            settings: Arc::new(Settings::default()),
            ended: tokio::sync::watch::channel(None).0,
            orders: Vec::new(),
        };
        self.take_over(&args, 1).await
    }

    /// Starts a coordinator.
    pub(in crate::actors) async fn run(&self, args: CoordinatorArgs) -> ActorRef<CoordinatorMsg> {
        Actor::spawn(None, self.coordinator(), args).await.unwrap().0
    }

    /// Returns what coordinators are made of.
    pub(in crate::actors) fn coordinator(&self) -> Coordinator {
        Coordinator {
            store: self.site.store.clone(),
            tracker: self.site.door("tracker"),
            workspaces: self.site.door("workspaces"),
            jobs: self.site.door("jobs"),
            layout: self.site.layout.clone(),
            clock: Arc::clone(&self.site.clock),
            me: process(1),
            watchers: self.watchers.clone(),
        }
    }

    /// Returns the stored log of a chain.
    pub(in crate::actors) fn log(&self, chain: &str) -> Vec<ChainEvent> {
        let rows = self.site.reader().chain_events(&chain.into(), 0).unwrap();
        rows.iter().map(|row| serde_json::from_str(&row.body).unwrap()).collect()
    }
}

/// Collects the notices of one chain until it is at rest or given up.
pub(in crate::actors) async fn notices(watch: &mut broadcast::Receiver<Notice>, chain: &str) -> Vec<NoticeKind> {
    let mut kinds = Vec::new();
    loop {
        let notice = next(watch).await.unwrap_or_else(|| panic!("{chain} never ends: {kinds:#?}"));
        if notice.chain == ChainId::from(chain) {
            let is_last = matches!(notice.kind, NoticeKind::AtRest { .. } | NoticeKind::Failed { .. });
            kinds.push(notice.kind);
            if is_last {
                return kinds;
            }
        }
    }
}

/// Waits for a notice.
pub(in crate::actors) async fn until(watch: &mut broadcast::Receiver<Notice>, wanted: impl Fn(&NoticeKind) -> bool) {
    while !wanted(&next(watch).await.expect("the notice comes").kind) {}
}

/// The next notice within a day of virtual time.
async fn next(watch: &mut broadcast::Receiver<Notice>) -> Option<Notice> {
    tokio::time::timeout(Duration::from_secs(86_400), watch.recv()).await.ok().map(|notice| notice.expect("not behind"))
}

fn opening(chain: &str, bead: &str) -> Opening {
    Opening {
        chain: chain.into(),
        bead: BeadId::from(bead),
        shape: Shape {
            formula: "code-small".into(),
            vars: BTreeMap::new(),
            steps: vec![
                step("executor", &[], Some(Writer::Primary), Class::Step),
                step("reviewer", &["executor"], None, Class::Gate),
            ],
        },
        limits: Limits::default(),
        scrutiny: Scrutinies { stated: "medium".into(), effective: "medium".into() },
        base: "c0".into(),
        incarnation: 1,
        rehearsal: false,
    }
}

fn step(id: &str, needs: &[&str], writer: Option<Writer>, class: Class) -> Step {
    Step {
        id: id.into(),
        title: id.to_owned(),
        description: format!("Be the {id}."),
        notes: String::new(),
        role: id.to_owned(),
        tier: if writer.is_some() { Tier::High } else { Tier::ReadOnly },
        class,
        writer,
        mandatory: class == Class::Gate,
        advisor: false,
        needs: needs.iter().map(|need| StepId::from(*need)).collect(),
        relations: Vec::new(),
        labels: Vec::new(),
        metadata: BTreeMap::new(),
        priority: 2,
    }
}

/// The events of a chain whose worktree is ready.
pub(in crate::actors) fn tree_ready(tree: &Path) -> Vec<ChainEvent> {
    let path = tree.to_string_lossy().into_owned();
    vec![
        ChainEvent::Poured,
        ChainEvent::RootHeld,
        ChainEvent::TreeReady { path, branch: "feature/x".into(), head: "c0".into(), reused: false },
    ]
}

//! The root of the tree: one-for-one, with restart intensity.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::time::Instant;

use super::chains::{Chains, ChainsMsg};
use super::coordinator::Coordinator;
use super::job::JobTools;
use super::jobs::{Jobs, JobsArgs};
use super::policy::{Policy, PolicyMsg};
use super::prepare::Workshop;
use super::store::{Store, StoreHandle};
use super::tracker::{TrackerActor, TrackerHandle};
use super::workspaces::Workspaces;
use crate::messages::{Door, JobsMsg, StoreMsg, WorkspacesMsg};
use crate::ports::{Agent, Clock, Tracker, Workspace};
use crate::storage::{Layout, ProcessIdentity};

/// Restarts within the window before the system is given up.
const INTENSITY: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);

/// The doors of one system.
#[derive(Clone)]
pub struct Doors {
    /// Prefix of all names.
    pub system: String,
    /// The single writer.
    pub store: StoreHandle,
    /// bd.
    pub tracker: TrackerHandle,
    /// Worktrees.
    pub workspaces: Door<WorkspacesMsg>,
    /// Policy.
    pub policy: Door<PolicyMsg>,
    /// Coordinators.
    pub chains: Door<ChainsMsg>,
    /// Activations.
    pub jobs: Door<JobsMsg>,
    store_door: Door<StoreMsg>,
}

impl Doors {
    /// Names the doors of a system.
    pub fn new(system: &str) -> Self {
        let name = |room: &str| format!("{system}/{room}");
        let store_door = Door::new(name("store"));
        Self {
            system: system.to_owned(),
            store: StoreHandle::new(store_door.clone()),
            tracker: TrackerHandle::new(Door::new(name("tracker"))),
            workspaces: Door::new(name("workspaces")),
            policy: Door::new(name("policy")),
            chains: Door::new(name("chains")),
            jobs: Door::new(name("jobs")),
            store_door,
        }
    }
}

/// What a system is made of.
#[derive(Clone)]
pub struct Parts {
    /// Its doors.
    pub doors: Doors,
    /// bd.
    pub tracker: Arc<dyn Tracker>,
    /// pi.
    pub agent: Arc<dyn Agent>,
    /// git.
    pub workspace: Arc<dyn Workspace>,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Files.
    pub layout: Layout,
    /// Where activations are prepared.
    pub workshop: Arc<Workshop>,
    /// This process.
    pub me: ProcessIdentity,
    /// Tells whether an owner still runs.
    pub is_alive: fn(&ProcessIdentity) -> bool,
    /// What coordinators are made of.
    pub coordinator: Coordinator,
}

/// To the root.
pub enum RootMsg {}

/// The root.
pub struct Root;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Room {
    Store,
    Tracker,
    Workspaces,
    Policy,
    Jobs,
    Chains,
}

const ROOMS: [Room; 6] = [Room::Store, Room::Tracker, Room::Workspaces, Room::Policy, Room::Jobs, Room::Chains];

/// The children, and when some were restarted.
pub struct Tree {
    parts: Parts,
    children: Vec<(Room, ActorCell)>,
    restarts: VecDeque<Instant>,
}

impl Actor for Root {
    type Msg = RootMsg;
    type State = Tree;
    type Arguments = Parts;

    async fn pre_start(&self, me: ActorRef<RootMsg>, parts: Parts) -> Result<Tree, ActorProcessingErr> {
        let mut tree = Tree { parts, children: Vec::new(), restarts: VecDeque::new() };
        for room in ROOMS {
            let child = spawn(&tree.parts, room, &me).await?;
            tree.children.push((room, child));
        }
        Ok(tree)
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<RootMsg>,
        event: SupervisionEvent,
        tree: &mut Tree,
    ) -> Result<(), ActorProcessingErr> {
        let SupervisionEvent::ActorFailed(who, error) = event else { return Ok(()) };
        let Some(at) = tree.children.iter().position(|(_, child)| child.get_id() == who.get_id()) else {
            return Ok(());
        };
        let room = tree.children[at].0;
        tracing::error!(?room, %error, "an actor failed and is restarted");
        let now = Instant::now();
        tree.restarts.push_back(now);
        while tree.restarts.front().is_some_and(|then| now.duration_since(*then) > WINDOW) {
            tree.restarts.pop_front();
        }
        if tree.restarts.len() > INTENSITY {
            return Err(format!("{room:?} failed too often: {error}").into());
        }
        tree.children[at].1 = spawn(&tree.parts, room, &me).await?;
        // What the dead actor owed is asked for again.
        tree.parts.doors.chains.send(ChainsMsg::Reask);
        Ok(())
    }
}

async fn spawn(parts: &Parts, room: Room, root: &ActorRef<RootMsg>) -> Result<ActorCell, ActorProcessingErr> {
    let (doors, above) = (&parts.doors, root.get_cell());
    let cell = match room {
        Room::Store => {
            let store = Store { database: parts.layout.database(), clock: Arc::clone(&parts.clock) };
            Actor::spawn_linked(Some(doors.store_door.name().to_owned()), store, (), above).await?.0.get_cell()
        }
        Room::Tracker => {
            let name = doors.tracker.door().name().to_owned();
            let tracker = TrackerActor { tracker: Arc::clone(&parts.tracker) };
            Actor::spawn_linked(Some(name), tracker, (), above).await?.0.get_cell()
        }
        Room::Workspaces => {
            let workspaces = Workspaces {
                workspace: Arc::clone(&parts.workspace),
                tracker: doors.tracker.clone(),
                root: parts.workshop.root.clone(),
                layout: parts.layout.clone(),
            };
            Actor::spawn_linked(Some(doors.workspaces.name().to_owned()), workspaces, (), above).await?.0.get_cell()
        }
        Room::Policy => {
            let policy = Policy { store: doors.store.clone(), clock: Arc::clone(&parts.clock) };
            Actor::spawn_linked(Some(doors.policy.name().to_owned()), policy, (), above).await?.0.get_cell()
        }
        Room::Jobs => {
            let tools = JobTools {
                agent: Arc::clone(&parts.agent),
                store: doors.store.clone(),
                clock: Arc::clone(&parts.clock),
                me: parts.me.clone(),
                is_alive: parts.is_alive,
            };
            let args = JobsArgs { workshop: Arc::clone(&parts.workshop), tools };
            let jobs = Jobs { door: doors.jobs.clone() };
            Actor::spawn_linked(Some(doors.jobs.name().to_owned()), jobs, args, above).await?.0.get_cell()
        }
        Room::Chains => {
            let chains = Chains { coordinator: parts.coordinator.clone(), system: doors.system.clone() };
            Actor::spawn_linked(Some(doors.chains.name().to_owned()), chains, (), above).await?.0.get_cell()
        }
    };
    Ok(cell)
}

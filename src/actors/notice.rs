//! What a watcher of a chain is told, as it happens. Facts are in the database; a slow watcher misses only notices.

use serde::Serialize;
use tokio::sync::broadcast;

use crate::chain::machine::ChainEvent;
use crate::ids::ChainId;
use crate::storage::ChainStatus;

/// Something that a watcher of a chain may want to know.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoticeKind {
    /// A fact was stored.
    Event {
        /// Place in the chain's log, from 1.
        seq: u64,
        /// The fact.
        event: Box<ChainEvent>,
    },
    /// The chain waits for something to work again.
    Waiting {
        /// For what: `tracker` or `store`.
        on: &'static str,
        /// Why.
        why: String,
    },
    /// Nothing more will happen until somebody asks for it.
    AtRest {
        /// Where the chain stands.
        status: ChainStatus,
    },
    /// The chain can't go on in this process.
    Failed {
        /// Why.
        why: String,
        /// Whether another process has taken the chain over.
        taken_over: bool,
    },
}

/// A notice about one chain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Notice {
    /// The chain.
    pub chain: ChainId,
    /// Wall clock, ms since 1970 UTC.
    pub at_ms: i64,
    /// What.
    #[serde(flatten)]
    pub kind: NoticeKind,
}

/// Those who watch.
pub type Watchers = broadcast::Sender<Notice>;

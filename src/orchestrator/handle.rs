//! A chain that runs in this process.

use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};

use crate::actors::{ChainsMsg, Notice, NoticeKind};
use crate::ids::ChainId;
use crate::messages::{Door, Operator};
use crate::storage::ChainStatus;

/// How a run in this process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The chain rests: ready, blocked, stopped or over. Its report tells all.
    AtRest(ChainStatus),
    /// This process can't go on with it.
    Failed {
        /// Why.
        why: String,
        /// Whether another process has taken it over.
        taken_over: bool,
    },
}

/// A chain that runs in this process.
pub struct ChainHandle {
    pub(super) chain: ChainId,
    pub(super) notices: broadcast::Receiver<Notice>,
    pub(super) chains: Door<ChainsMsg>,
    pub(super) ended: watch::Receiver<Option<NoticeKind>>,
    pub(super) remarks: Vec<String>,
}

impl std::fmt::Debug for ChainHandle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "ChainHandle({})", self.chain)
    }
}

impl ChainHandle {
    /// Returns the chain.
    pub fn chain(&self) -> &ChainId {
        &self.chain
    }

    /// Returns what policy remarked before the chain began, such as uncommitted changes that its worktree lacks.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Waits for the next notice about this chain; `None` when the system is gone.
    ///
    /// A watcher that is too slow misses notices, never facts: those are in the database.
    pub async fn next(&mut self) -> Option<Notice> {
        loop {
            match self.notices.recv().await {
                Ok(notice) if notice.chain == self.chain => return Some(notice),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Returns the next notice about this chain if it is there already.
    pub fn try_next(&mut self) -> Option<Notice> {
        loop {
            match self.notices.try_recv() {
                Ok(notice) if notice.chain == self.chain => return Some(notice),
                Ok(_) | Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }

    /// Returns something that waits for the chain's rest beside this handle.
    pub fn waiter(&self) -> Waiter {
        Waiter { ended: self.ended.clone() }
    }

    /// Waits until the chain rests.
    pub async fn wait(&mut self) -> Ending {
        self.waiter().wait().await
    }

    /// Asks the chain to stop; it ends its jobs, stays resumable and comes to rest.
    pub fn cancel(&self, why: impl Into<String>) {
        let order = Operator::Stop { why: why.into() };
        self.chains.send(ChainsMsg::Order { chain: self.chain.clone(), order });
    }
}

/// Waits for a chain's rest.
#[derive(Debug, Clone)]
pub struct Waiter {
    ended: watch::Receiver<Option<NoticeKind>>,
}

impl Waiter {
    /// Waits until the chain rests.
    pub async fn wait(&mut self) -> Ending {
        let gone = || Ending::Failed { why: "the system is gone".to_owned(), taken_over: false };
        match self.ended.wait_for(Option::is_some).await {
            Ok(kind) => kind.as_ref().and_then(ending).unwrap_or_else(gone),
            Err(_) => gone(),
        }
    }
}

/// Returns how a run ended, if this notice says so.
fn ending(kind: &NoticeKind) -> Option<Ending> {
    match kind {
        NoticeKind::AtRest { status } => Some(Ending::AtRest(*status)),
        NoticeKind::Failed { why, taken_over } => Some(Ending::Failed { why: why.clone(), taken_over: *taken_over }),
        NoticeKind::Event { .. } | NoticeKind::Waiting { .. } => None,
    }
}

//! The Store: hands writes to the one thread that owns the database, and opens it again when that thread has failed.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;

use crate::messages::{Door, StoreMsg};
use crate::ports::Clock;
use crate::storage::{Pending, StoreError, Write, Writer};

/// How long a full line of the writer is left to drain before the next try.
const DRAIN: Duration = Duration::from_millis(5);

/// The Store's configuration.
pub struct Store {
    /// The database.
    pub database: PathBuf,
    /// Dates an upgrade of the schema.
    pub clock: Arc<dyn Clock>,
}

/// The writer, and what did not fit in its line.
pub struct StoreState {
    /// Opened with the first write, so that a run that is refused leaves no file behind.
    writer: Option<Writer>,
    waiting: VecDeque<Pending>,
}

impl StoreState {
    /// Hands over as much as fits, in order.
    fn drain(&mut self) {
        let Some(writer) = &self.writer else { return };
        while let Some(pending) = self.waiting.pop_front() {
            if let Err(pending) = writer.submit(pending) {
                self.waiting.push_front(pending);
                return;
            }
        }
    }
}

impl Actor for Store {
    type Msg = StoreMsg;
    type State = StoreState;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<StoreMsg>, (): ()) -> Result<StoreState, ActorProcessingErr> {
        Ok(StoreState { writer: None, waiting: VecDeque::new() })
    }

    async fn handle(
        &self,
        me: ActorRef<StoreMsg>,
        mail: StoreMsg,
        state: &mut StoreState,
    ) -> Result<(), ActorProcessingErr> {
        if let StoreMsg::Write(pending) = mail {
            state.waiting.push_back(pending);
        }
        if !state.waiting.is_empty() && !state.writer.as_ref().is_some_and(Writer::is_serving) {
            self.open(state).await;
        }
        state.drain();
        if !state.waiting.is_empty() {
            me.send_after(DRAIN, || StoreMsg::Retry);
        }
        Ok(())
    }
}

impl Store {
    /// Opens the database, also again after its thread has failed. What waits is told when it can't be opened.
    async fn open(&self, state: &mut StoreState) {
        state.writer = None;
        let (path, now_ms) = (self.database.clone(), self.clock.now_ms());
        match tokio::task::spawn_blocking(move || Writer::start(&path, now_ms)).await {
            Ok(Ok(writer)) => state.writer = Some(writer),
            Ok(Err(error)) => state.waiting.drain(..).for_each(|pending| pending.refuse(error.clone())),
            // The runtime is going down: what is dropped answers `Closed`.
            Err(_) => state.waiting.clear(),
        }
    }
}

/// The Store's typed door.
#[derive(Debug, Clone)]
pub struct StoreHandle {
    door: Door<StoreMsg>,
}

impl StoreHandle {
    /// Names the Store of a system.
    pub fn new(door: Door<StoreMsg>) -> Self {
        Self { door }
    }

    /// Writes and waits until it is on disk. What fails is not known to be on disk.
    pub async fn write<W: Write>(&self, write: W) -> Result<W::Answer, StoreError> {
        let (ack, answer) = oneshot::channel();
        let pending = Pending::new(write, move |result| drop(ack.send(result)));
        // A Store that is gone drops the write, which answers `Closed`.
        self.door.send(StoreMsg::Write(pending));
        answer.await.unwrap_or(Err(StoreError::Closed))
    }
}

#[cfg(test)]
mod tests;

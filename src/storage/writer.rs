//! The single writer of a process: one thread that owns the connection and shares commits among whoever waits.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::connection;
use super::error::{StoreError, not_written};

/// Writes that may wait in line; more are handed back.
const QUEUE: usize = 4096;
/// Writes that share one commit at most.
const BATCH: usize = 512;

/// Something to write. Implemented by the requests of this room alone, so that no SQL lives outside.
pub trait Write: Send + 'static {
    /// What the writer answers once it is on disk.
    type Answer: Send + 'static;

    /// Does it within a transaction that other writes may share. An error undoes this write alone.
    fn apply(&self, tx: &Transaction<'_>) -> Result<Self::Answer, StoreError>;
}

/// A write and the one who waits for its answer.
///
/// The answer is given exactly once: after the commit, or with the reason why there was none. A pending write that is
/// dropped answers [`StoreError::Closed`].
pub struct Pending(Box<dyn Ask>);

impl Pending {
    /// Binds a write to its acknowledgement, which runs on the writer's thread and must not block.
    pub fn new<W: Write>(write: W, ack: impl FnOnce(Result<W::Answer, StoreError>) + Send + 'static) -> Self {
        Self(Box::new(Asked { write, answer: None, ack: Some(Box::new(ack)) }))
    }
}

impl Pending {
    /// Answers with the reason why it was not written.
    pub fn refuse(self, why: StoreError) {
        self.0.answer(Err(why));
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Pending")
    }
}

trait Ask: Send {
    /// Applies the write and keeps its answer; `Err` has the reason why it must be undone.
    fn apply(&mut self, tx: &Transaction<'_>) -> Result<(), StoreError>;

    /// Gives the kept answer, or the reason why nothing was committed.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

type Ack<T> = Box<dyn FnOnce(Result<T, StoreError>) + Send>;

struct Asked<W: Write> {
    write: W,
    answer: Option<Result<W::Answer, StoreError>>,
    ack: Option<Ack<W::Answer>>,
}

impl<W: Write> Ask for Asked<W> {
    fn apply(&mut self, tx: &Transaction<'_>) -> Result<(), StoreError> {
        let answer = self.write.apply(tx);
        let undo = answer.as_ref().err().cloned();
        self.answer = Some(answer);
        undo.map_or(Ok(()), Err)
    }

    fn answer(mut self: Box<Self>, committed: Result<(), StoreError>) {
        let answer = match committed {
            Ok(()) => self.answer.take().unwrap_or(Err(StoreError::Closed)),
            Err(error) => Err(error),
        };
        if let Some(ack) = self.ack.take() {
            ack(answer);
        }
    }
}

impl<W: Write> Drop for Asked<W> {
    fn drop(&mut self) {
        if let Some(ack) = self.ack.take() {
            ack(Err(StoreError::Closed));
        }
    }
}

/// The handle of the writer. Dropping it commits what waits in line, then ends the thread.
#[derive(Debug)]
pub struct Writer {
    line: Option<SyncSender<Pending>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Opens the database, creating or upgrading it, and starts the thread. `now_ms` dates an upgrade.
    pub fn start(path: &Path, now_ms: i64) -> Result<Self, StoreError> {
        Self::on(connection::open_writer(path, now_ms)?)
    }

    fn on(connection: Connection) -> Result<Self, StoreError> {
        let (line, queue) = sync_channel(QUEUE);
        let thread = thread::Builder::new()
            .name("sp-store".to_owned())
            .spawn(move || serve(connection, &queue))
            .map_err(|source| StoreError::Thread { source: Arc::new(source) })?;
        Ok(Self { line: Some(line), thread: Some(thread) })
    }

    /// Returns whether the thread still serves; after a fault in it nothing more is written through this handle.
    pub fn is_serving(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Puts a write in line without waiting. Hands it back when the line is full: keep it and try again.
    pub fn submit(&self, pending: Pending) -> Result<(), Pending> {
        match self.line.as_ref().map(|line| line.try_send(pending)) {
            Some(Err(TrySendError::Full(pending))) => Err(pending),
            // The thread has ended: dropping the write answers `Closed`.
            Some(Err(TrySendError::Disconnected(_))) | Some(Ok(())) | None => Ok(()),
        }
    }

    /// Writes and waits until it is on disk. Blocks: not for an async worker.
    #[cfg(test)]
    pub fn call<W: Write>(&self, write: W) -> Result<W::Answer, StoreError> {
        let (ack, answer) = std::sync::mpsc::channel();
        let pending = Pending::new(write, move |result| drop(ack.send(result)));
        let line = self.line.as_ref().ok_or(StoreError::Closed)?;
        line.send(pending).map_err(|_| StoreError::Closed)?;
        answer.recv().unwrap_or(Err(StoreError::Closed))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.line.take());
        let Some(thread) = self.thread.take() else { return };
        // An acknowledgement may hold the last handle; the thread can't wait for itself.
        if thread.thread().id() != thread::current().id() {
            drop(thread.join());
        }
    }
}

fn serve(mut connection: Connection, queue: &Receiver<Pending>) {
    while let Ok(first) = queue.recv() {
        let mut batch = vec![first];
        batch.extend(queue.try_iter().take(BATCH - 1));
        let committed = commit(&mut connection, &mut batch);
        for Pending(ask) in batch {
            ask.answer(committed.clone());
        }
    }
}

/// Applies a batch in one transaction. `Err` means that nothing of it is known to be on disk.
fn commit(connection: &mut Connection, batch: &mut [Pending]) -> Result<(), StoreError> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(not_written)?;
    for Pending(ask) in batch {
        apply_alone(&tx, ask.as_mut())?;
    }
    tx.commit().map_err(not_written)
}

/// Applies one write so that its failure undoes nothing else. `Err` when the disk failed: then all must be undone.
fn apply_alone(tx: &Transaction<'_>, ask: &mut dyn Ask) -> Result<(), StoreError> {
    mark(tx, "SAVEPOINT one")?;
    if let Err(error) = ask.apply(tx) {
        if let Some(source) = error.disk_fault() {
            return Err(StoreError::NotWritten { source });
        }
        mark(tx, "ROLLBACK TO one")?;
    }
    mark(tx, "RELEASE one")
}

fn mark(tx: &Transaction<'_>, sql: &str) -> Result<(), StoreError> {
    tx.prepare_cached(sql).and_then(|mut statement| statement.execute([])).map(|_| ()).map_err(not_written)
}

#[cfg(test)]
mod tests;

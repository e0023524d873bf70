//! Mailbox of the Store: the single writer.

use crate::storage::Pending;

/// To the Store.
#[derive(Debug)]
pub enum StoreMsg {
    /// From anyone: write this and answer once it is on disk.
    Write(Pending),
    /// From itself: try again what did not fit in the writer's line.
    Retry,
}

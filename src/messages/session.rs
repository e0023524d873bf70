//! Mailbox of a Session: the live pi process and its stream.

use super::{Credit, SessionEnd};
use crate::pi::Line;

/// To a Session.
#[derive(Debug)]
pub enum SessionMsg {
    /// From its reader: lines of pi.
    Lines(Vec<Line>, Credit),
    /// From its reader: a line that is no line of the protocol.
    Garbled(String),
    /// From its Job: say this to the agent. Answered by events; a refusal by `SessionFailed`.
    Prompt(String),
    /// From its Job: read the state and then the last text; answered by `TextRead`.
    ReadText,
    /// From its Job: abort the running turn. Held until pi has begun it (pi-rpc §5.4).
    Abort,
    /// From its Job: end by end of file; by signal if that takes too long.
    Close,
    /// From its Job: end by signal.
    Kill,
    /// From itself: a command was not answered in time.
    Overdue {
        /// Id of the command.
        id: u64,
    },
    /// From itself: the time to end by itself is over.
    Insist,
    /// From its waiter: the process is gone and its stdout is read to the end.
    Gone(SessionEnd),
}

//! Mailbox of a Session: the live pi process and its stream.
//!
//! What can be done with one (spec 001 §7.2), and where:
//!
//! | operation | here |
//! |---|---|
//! | start | the Job launches the agent and spawns the Session; [`JobMsg::SessionReady`](super::JobMsg::SessionReady) says that it is up, and what it is |
//! | prompt, no end of file | [`SessionMsg::Prompt`] |
//! | wait until done | events go to the Job as they come; its machine knows `agent_settled` as the end of the turn |
//! | wait with a limit | the Job's own `TimedOut`, and the StallWatchdog's `Silent` |
//! | last output, state | [`SessionMsg::ReadText`] asks for both; state alone is asked once, at the start |
//! | close | [`SessionMsg::Close`]: end of file, then [`SessionMsg::Gone`] |
//! | kill | [`SessionMsg::Kill`], as often as one likes |

use super::{Credit, SessionEnd};
use crate::pi::Line;
use crate::storage::SessionMeta;

/// A session that answered its first `get_state`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionUp {
    /// What it is.
    pub meta: SessionMeta,
    /// Messages that it holds.
    pub messages: u64,
    /// Tokens that the model's context holds; 0 when the agent doesn't know.
    pub context_window: u64,
}

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

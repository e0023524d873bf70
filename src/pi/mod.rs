//! The agent adapter: pi in RPC mode. Holds the only types of pi's protocol.

mod boundary;
mod framing;
mod launch;
mod private_files;
mod probe;
mod rpc;
mod session_file;
mod stderr;

pub use framing::{DEFAULT_LINE_CAP, Frame, NdjsonReader};
pub use launch::PiAgent;
pub use probe::{PiInfo, SUPPORTED, SearchToolFault, locate, missing_search_tools, probe};
#[cfg(test)]
pub use rpc::Usage;
pub use rpc::{
    AssistantEnd, BlockKind, BlockPhase, Command, Encoder, Line, PiEvent, Response, Role, SessionState, StopReason,
    decode, decode_head, repeats,
};
pub use session_file::{SessionTask, ShellCall, shell_calls};
pub use stderr::StderrTail;

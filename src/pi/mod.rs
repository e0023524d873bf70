//! The agent adapter: pi in RPC mode. Holds the only types of pi's protocol (docs of pi 1.6: `--mode rpc`).

mod framing;
mod rpc;
mod stderr;

pub use framing::{Batch, DEFAULT_LINE_CAP, Frame, NdjsonReader};
pub use rpc::{
    AssistantEnd, BlockKind, BlockPhase, CodecError, Command, Encoded, Encoder, Line, ModelRef, PiEvent, Response,
    Role, SessionState, SessionStats, StopReason, Usage, decode,
};
pub use stderr::StderrTail;

//! Commands to pi and lines from pi, reduced to what sp acts on.

mod command;
mod decode;
mod event;
mod message;
mod response;
mod text;

pub use command::{Command, Encoder};
pub use decode::{Line, decode, decode_head, repeats};
pub use event::{BlockKind, BlockPhase, PiEvent};
pub use message::{AssistantEnd, Role, StopReason, Usage};
pub use response::{Response, SessionState};

//! The scripted model: a loopback server that pi talks to. Format and behaviour: docs/rehearsal.md.

mod answer;
#[cfg(test)]
mod demo_tests;
mod error;
mod faults;
mod file;
mod request;
mod script;
mod server;

pub use error::{LedgerError, ScriptError, ServeError};
pub use faults::{FaultLedger, FileLedger};
pub use file::load;
pub use script::{Fault, FaultKind, Finish, NoTurn, Round, Script, Text, ToolCall, Turn, Usage};
pub use server::{Rehearsal, Serving};

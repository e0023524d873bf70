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

pub use error::{ScriptError, ServeError};
pub use faults::FileLedger;
pub use file::load;
pub use script::Script;
pub use server::{Rehearsal, Serving};

//! Starts local programs in process groups of their own, and finds what escaped from them.

mod identity;
mod local;
mod orphans;

pub use identity::{is_alive, this_process};
pub use local::LocalExec;
pub use orphans::{JOB_VARIABLE, Marked, ROOT_VARIABLE, end_marked, find_marked};

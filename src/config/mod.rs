//! Layered configuration: the user's file, the repository's file, environment, flags; each over the one before.

mod check;
mod error;
mod keys;
mod layers;
mod settings;

pub use layers::{Flags, Places};
pub use settings::{Config, Models};

//! Where the models of one chain are.

use std::time::Duration;

use crate::config::Models;
use crate::rehearsal::Serving;

/// Where a chain's models are.
#[derive(Debug, Default)]
pub struct Settings {
    /// Model for all roles, over what their files say.
    pub model: Option<String>,
    /// Models by role, from the configuration.
    pub models: Models,
    /// Silence that counts as a stall, over what the specialists' files say.
    pub stall: Option<Duration>,
    /// The scripted model, in a rehearsal; it serves as long as somebody holds it.
    pub rehearsal: Option<Serving>,
}

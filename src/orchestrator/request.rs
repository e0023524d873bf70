//! What is asked of the orchestrator, and what of it is kept with the chain.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::handle::ChainHandle;
use crate::chain::contract::ContractView;
use crate::chain::machine::{ChainEvent, Opening};
use crate::chain::scrutiny::Scrutiny;
use crate::config::Models;
use crate::ids::{BeadId, ChainId, StepId};
use crate::policy::Modes;

/// A chain to run.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Name of the formula.
    pub formula: String,
    /// Bead that holds the contract.
    pub bead: BeadId,
    /// Values of the formula's variables.
    pub vars: BTreeMap<String, String>,
    /// Scrutiny stated by the operator, over what the contract says.
    pub scrutiny: Option<Scrutiny>,
    /// Revision that the work is based on; HEAD of the main checkout by default.
    pub base: Option<String>,
    /// Model for all roles, `provider/model`.
    pub model: Option<String>,
    /// Models by role, from the configuration.
    pub models: Models,
    /// Fix rounds that gates may open.
    pub fix_loops: u32,
    /// Silence of a session that counts as a stall, in seconds, over what the specialists' files say.
    pub stall_seconds: Option<u32>,
    /// Script of a rehearsal.
    pub rehearse: Option<PathBuf>,
    /// How policy weighs its findings.
    pub policy: Modes,
}

impl RunRequest {
    /// Asks for a formula on a bead, with defaults for the rest.
    pub fn new(formula: impl Into<String>, bead: impl Into<String>) -> Self {
        Self {
            formula: formula.into(),
            bead: BeadId::new(bead),
            vars: BTreeMap::new(),
            scrutiny: None,
            base: None,
            model: None,
            models: Models::default(),
            stall_seconds: None,
            fix_loops: crate::chain::machine::Limits::default().fix_loops,
            rehearse: None,
            policy: Modes::default(),
        }
    }
}

/// What to do with a chain that rests.
#[derive(Debug, Clone, Default)]
pub struct ResumeRequest {
    /// A note for the step that works first.
    pub note: Option<String>,
    /// Step that works first; the blocked one by default.
    pub from: Option<StepId>,
    /// Blocked steps that the operator passes by hand.
    pub accept: Vec<StepId>,
    /// Script of the rehearsal; must be the one that the chain was started with.
    pub rehearse: Option<PathBuf>,
}

/// What came of asking for a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Started {
    /// The chain runs in this process.
    Running(ChainHandle),
    /// Another live process runs it: watch it through the database.
    Elsewhere {
        /// The chain.
        chain: ChainId,
        /// Its process.
        pid: u32,
    },
    /// Nothing is to be done: the chain rests, waits for people or for its merge.
    Resting {
        /// The chain.
        chain: ChainId,
    },
}

/// What is kept of a request, so that any later process can go on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    pub opening: Opening,
    /// What follows the opening at once: what bd knows of a chain whose log was lost.
    #[serde(default)]
    pub recovered: Vec<ChainEvent>,
    pub model: Option<String>,
    #[serde(default)]
    pub models: Models,
    #[serde(default)]
    pub stall_seconds: Option<u32>,
    pub rehearsal: bool,
    /// The contract as it was understood.
    #[serde(default)]
    pub contract: Option<ContractView>,
    /// Paths of the contract's scope, for collisions with other chains.
    pub scope: Vec<String>,
    /// Identity of the beads workspace.
    pub project_id: String,
}

/// Reads what a chain may touch of the text that is kept of its request. The rest, which holds the whole shape, is
/// skipped: this is done for every live chain when one more begins.
pub(super) fn kept_scope(text: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Scope {
        scope: Vec<String>,
    }
    serde_json::from_str::<Scope>(text).map(|kept| kept.scope).unwrap_or_default()
}

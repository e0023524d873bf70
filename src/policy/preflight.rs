//! What policy is asked about: plain data, gathered by the caller.

use crate::chain::contract::{Contract, ContractError};
use crate::chain::scrutiny::Assessment;
use crate::ids::{BeadId, ChainId};
use crate::ports::Bead;

use super::mode::Modes;

/// A request to run a formula on a bead, and what is known of the world.
#[derive(Debug, Clone, PartialEq)]
pub struct Preflight {
    /// The bead as the request names it.
    pub bead: BeadId,
    /// What bd says of it; `None` when there is no such bead.
    pub root: Option<RootFacts>,
    /// Formula of the request.
    pub formula: String,
    /// Chain that this request continues (attach, adopt, resume), if any.
    pub chain: Option<ChainId>,
    /// Live chains of this workspace.
    pub live_chains: Vec<LiveChain>,
    /// Changed or untracked paths of the main checkout.
    pub dirty_paths: usize,
    /// Mode of each kind of finding.
    pub modes: Modes,
}

/// What is known of the root bead.
#[derive(Debug, Clone, PartialEq)]
pub struct RootFacts {
    /// The bead, as [`crate::ports::Tracker::show`] gives it, with open blockers and open children.
    pub bead: Bead,
    /// Its contract, parsed from the description.
    pub contract: Result<Contract, ContractError>,
    /// Stated and effective scrutiny.
    pub scrutiny: Assessment,
}

/// A chain that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveChain {
    /// The chain.
    pub chain: ChainId,
    /// Its formula.
    pub formula: String,
    /// Its root bead.
    pub bead: BeadId,
    /// Paths of its contract's scope, normalised (see `named_paths` of the scope).
    pub scope: Vec<String>,
}

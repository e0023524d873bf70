//! A durable remark of policy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::ids::BeadId;

/// Version of the rules. A change of what a finding means is a new version, and so a new fingerprint.
pub const POLICY_VERSION: &str = "1";

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// The bead's description has no section we know.
    ContractMissing,
    /// A required section of the contract is missing.
    ContractSectionMissing,
    /// The contract has a part that its schema does not know.
    ContractUnknownPart,
    /// The contract's type does not fit the bead's type.
    ContractTypeMismatch,
    /// The contract is longer than what a prompt holds.
    ContractOversized,
    /// No entry of the validation section is a command.
    ValidationWithoutCommand,
    /// The scope names a path outside of the repository.
    ScopeOutsideRepository,
    /// Another live chain works on the same paths.
    ScopeCollision,
    /// A sensitive surface raises the scrutiny.
    ScrutinyEscalated,
    /// The bead is in progress, but nobody holds it.
    BeadWithoutHolder,
    /// The main checkout has uncommitted changes; they are not in the worktree.
    MainCheckoutDirty,
}

impl FindingKind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::ContractMissing,
        Self::ContractSectionMissing,
        Self::ContractUnknownPart,
        Self::ContractTypeMismatch,
        Self::ContractOversized,
        Self::ValidationWithoutCommand,
        Self::ScopeOutsideRepository,
        Self::ScopeCollision,
        Self::ScrutinyEscalated,
        Self::BeadWithoutHolder,
        Self::MainCheckoutDirty,
    ];

    /// Returns the stable code; under `enforce` it is the `error_code` too.
    pub fn code(self) -> &'static str {
        match self {
            Self::ContractMissing => "contract_missing",
            Self::ContractSectionMissing => "contract_section_missing",
            Self::ContractUnknownPart => "contract_unknown_part",
            Self::ContractTypeMismatch => "contract_type_mismatch",
            Self::ContractOversized => "contract_oversized",
            Self::ValidationWithoutCommand => "validation_without_command",
            Self::ScopeOutsideRepository => "scope_outside_repository",
            Self::ScopeCollision => "scope_collision",
            Self::ScrutinyEscalated => "scrutiny_escalated",
            Self::BeadWithoutHolder => "bead_without_holder",
            Self::MainCheckoutDirty => "main_checkout_dirty",
        }
    }
}

/// What the mode made of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// Recorded, not shown.
    Recorded,
    /// Recorded and shown.
    Shown,
    /// Recorded; the request is refused for it.
    Refused,
}

/// A durable remark of policy. The same remark on the same subject keeps its fingerprint. Source: spec 003 §0.3.3.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// SHA-256 over policy version, kind, bead and subject, 64 hex digits. Evidence is not part of it.
    pub fingerprint: String,
    /// [`POLICY_VERSION`] it was made under.
    pub policy_version: String,
    /// What it is about.
    pub kind: FindingKind,
    /// The root bead.
    pub bead: BeadId,
    /// What tells it apart from others of its kind on the bead: a section, a path, a chain. Empty when there is one.
    pub subject: String,
    /// One sentence for people.
    pub message: String,
    /// What to do about it.
    pub advice: String,
    /// Figures that change from one look to the next.
    pub evidence: BTreeMap<String, String>,
    /// Ids that it has to do with.
    pub blocked_by: Vec<String>,
    /// What the mode made of it.
    pub disposition: Disposition,
}

/// Returns the stable identity of a finding.
pub(super) fn fingerprint(kind: FindingKind, bead: &BeadId, subject: &str) -> String {
    // NUL can be in none of the parts but the subject, which comes last: no two findings share a text.
    let text = format!("{POLICY_VERSION}\0{}\0{bead}\0{subject}", kind.code());
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

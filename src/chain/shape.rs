//! The shape of a chain: its steps and how they depend on each other, resolved from a formula and never changed after.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::StepId;
use crate::specialist::Tier;

/// What a step is for: it does work, or it decides whether work is good enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Does work.
    Step,
    /// Its verdict decides.
    Gate,
}

/// Which writer of a chain a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Writer {
    /// Owns the production change.
    Primary,
    /// May change test paths only (`position:secondary-writer`).
    Secondary,
}

/// The other end of a semantic relation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The contract bead.
    Root,
    /// A step of the same chain.
    Step(StepId),
}

/// A semantic relation from an `edge:<kind>-><target>` label, such as `validates`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Relation {
    /// Kind: validates, informs, implements, discovered-from, parent-child.
    pub kind: String,
    /// The other end.
    pub target: Target,
}

/// One step of a shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Id within the chain.
    pub id: StepId,
    /// Title, substituted.
    pub title: String,
    /// The step's mandate, substituted.
    pub description: String,
    /// Notes, substituted.
    #[serde(default)]
    pub notes: String,
    /// Name of the specialist that works it.
    pub role: String,
    /// Permission tier of that specialist.
    pub tier: Tier,
    /// Step or gate.
    pub class: Class,
    /// Set when the step may change the worktree.
    #[serde(default)]
    pub writer: Option<Writer>,
    /// Whether a person must accept explicitly to pass it by hand (`gate:mandatory`, `gate:final`).
    #[serde(default)]
    pub mandatory: bool,
    /// Advice only (`advisor:*` or `phase:advisor`).
    #[serde(default)]
    pub advisor: bool,
    /// Steps that must be closed before bd calls this one ready; the root is dropped.
    pub needs: BTreeSet<StepId>,
    /// Semantic relations.
    #[serde(default)]
    pub relations: Vec<Relation>,
    /// All labels, substituted.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Metadata of the formula, substituted.
    #[serde(default)]
    pub metadata: BTreeMap<String, Value>,
    /// bd priority 0–4.
    pub priority: u8,
}

/// A chain's resolved steps in a stable topological order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Name of the formula.
    pub formula: String,
    /// Variables after defaults.
    pub vars: BTreeMap<String, String>,
    /// Steps; each comes after all it needs.
    pub steps: Vec<Step>,
}

impl Shape {
    /// Returns the role that the chain's branch and worktree are named after: that of its first writer.
    pub fn lead_role(&self) -> &str {
        let lead = self.steps.iter().find(|step| step.writer.is_some()).or(self.steps.first());
        lead.map_or("chain", |step| step.role.as_str())
    }

    /// Returns the step with this id.
    pub fn step(&self, id: &StepId) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == *id)
    }

    /// Returns the steps that depend on `id`, directly or not, in order; `id` itself is not among them.
    pub fn descendants(&self, id: &StepId) -> Vec<&Step> {
        let mut found = BTreeSet::from([id]);
        let mut steps = Vec::new();
        for step in &self.steps {
            if step.needs.iter().any(|need| found.contains(need)) {
                found.insert(&step.id);
                steps.push(step);
            }
        }
        steps
    }

    /// Returns the steps that `id` depends on, directly or not, in order.
    pub fn ancestors(&self, id: &StepId) -> Vec<&Step> {
        let mut wanted: BTreeSet<&StepId> = self.step(id).map(|step| step.needs.iter().collect()).unwrap_or_default();
        let mut steps = Vec::new();
        for step in self.steps.iter().rev() {
            if wanted.contains(&step.id) {
                wanted.extend(&step.needs);
                steps.push(step);
            }
        }
        steps.reverse();
        steps
    }
}

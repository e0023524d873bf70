//! Why a resolved formula makes no shape.

use crate::failure::{Explain, FailureKind};
use crate::nearest::hint;

/// Why steps could not be compiled into a shape. Nothing has been created when one of these is raised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// No step is left to run.
    #[error("compile formula {formula}: no step to run")]
    Empty {
        /// Formula.
        formula: String,
    },
    /// A step that can't be poured as it is written.
    #[error("compile {origin}, step {step}, field {field}: {problem}")]
    BadStep {
        /// File that the step stands in.
        origin: String,
        /// Step.
        step: String,
        /// Field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// More than one step stands for the contract.
    #[error("compile formula {formula}: {first} and {second} both stand for the root contract")]
    TwoRoots {
        /// Formula.
        formula: String,
        /// The first.
        first: String,
        /// The second.
        second: String,
    },
    /// No role label, and the id names no specialist.
    #[error("compile {origin}, step {step}: no label role:<specialist>, and no specialist is called {step}{}", hint(.nearest))]
    NoRole {
        /// File that the step stands in.
        origin: String,
        /// Step.
        step: String,
        /// Specialists that resemble the id.
        nearest: Vec<String>,
    },
    /// The role is not a specialist that we have.
    #[error("compile {origin}, step {step}: no specialist is called {role}{}", hint(.nearest))]
    UnknownSpecialist {
        /// File that the step stands in.
        origin: String,
        /// Step.
        step: String,
        /// Its role.
        role: String,
        /// Specialists that resemble it.
        nearest: Vec<String>,
    },
    /// `needs` of a step that does not exist.
    #[error("compile {origin}, step {step}: needs {need}, which is no step{}", hint(.nearest))]
    DanglingNeed {
        /// File that the step stands in.
        origin: String,
        /// Step.
        step: String,
        /// What it needs.
        need: String,
        /// Steps that resemble it.
        nearest: Vec<String>,
    },
    /// A step that needs itself.
    #[error("compile {origin}, step {step}: it needs itself")]
    SelfNeed {
        /// File that the step stands in.
        origin: String,
        /// Step.
        step: String,
    },
    /// `edge:` label whose other end does not exist, or is the step itself.
    #[error("compile {origin}, step {step}: label edge:{kind}->{target} leads to no other step{}", hint(.nearest))]
    DanglingRelation {
        /// File that the step stands in.
        origin: String,
        /// Step.
        step: String,
        /// Kind of the relation.
        kind: String,
        /// The other end.
        target: String,
        /// Steps that resemble it.
        nearest: Vec<String>,
    },
    /// Steps that wait for each other.
    #[error("compile formula {formula}: {} is a circle: none could ever start", .steps.join(" -> "))]
    Cycle {
        /// Formula.
        formula: String,
        /// Each step is needed by the one after it; the last is the first again.
        steps: Vec<String>,
    },
    /// Two writers with no path between them.
    #[error("compile formula {formula}: writers {first} and {second} could run at once in one worktree")]
    WritersAtOnce {
        /// Formula.
        formula: String,
        /// The first.
        first: String,
        /// The second.
        second: String,
    },
    /// A gate that may change what it judges.
    #[error(
        "compile formula {formula}: gate {gate} is worked by {role}, which may write: a gate must not change what it judges"
    )]
    GateWrites {
        /// Formula.
        formula: String,
        /// Step.
        gate: String,
        /// Its role.
        role: String,
    },
    /// More than one final gate.
    #[error("compile formula {formula}: {first} and {second} are both labelled gate:final")]
    TwoFinalGates {
        /// Formula.
        formula: String,
        /// The first.
        first: String,
        /// The second.
        second: String,
    },
    /// A writer or gate that does not come before the final gate, or a step that comes after it.
    #[error("compile formula {formula}: final gate {gate} does not come last: {step} does not come before it")]
    FinalGateNotLast {
        /// Formula.
        formula: String,
        /// The final gate.
        gate: String,
        /// The step that is in its way.
        step: String,
    },
    /// A gate with no writer before it, in a formula that has writers.
    #[error("compile formula {formula}: gate {gate} comes after no writer, so there is nothing for it to judge")]
    GateBeforeWriters {
        /// Formula.
        formula: String,
        /// The gate.
        gate: String,
    },
    /// A writer with no gate after it, in a formula that has gates.
    #[error("compile formula {formula}: no gate comes after writer {writer}")]
    UngatedWriter {
        /// Formula.
        formula: String,
        /// The writer.
        writer: String,
    },
    /// Gates in another order than the production pipeline's.
    #[error("compile formula {formula}: {later} must come after {earlier} (order: {})", .order.join(", "))]
    GatesReordered {
        /// Formula.
        formula: String,
        /// The step that must come first.
        earlier: String,
        /// The step that must come second.
        later: String,
        /// Roles in their order.
        order: Vec<&'static str>,
    },
    /// A production formula without one of its steps.
    #[error("compile formula {formula}: it is or extends {production} and has no step with role:{role}{label}")]
    GateMissing {
        /// Formula.
        formula: String,
        /// The production formula that binds it.
        production: String,
        /// The role that is missing.
        role: &'static str,
        /// The gate label it must carry, such as ` and gate:final`, or nothing.
        label: &'static str,
    },
}

impl Explain for ShapeError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        let show = |formula: &str| format!("see its steps and edges: `sp formula show {formula}`");
        let file = |origin: &str| format!("correct {origin}, then `sp formula validate` it");
        match self {
            Self::Empty { formula } => (FailureKind::Usage, "shape_empty", show(formula)),
            Self::BadStep { origin, .. } => (FailureKind::Usage, "step_bad", file(origin)),
            Self::TwoRoots { formula, .. } => (FailureKind::Usage, "two_roots", show(formula)),
            Self::NoRole { origin, .. } => (FailureKind::Usage, "step_without_role", file(origin)),
            Self::UnknownSpecialist { role, .. } => (
                FailureKind::NotFound,
                "specialist_not_found",
                format!("correct the label role:{role}, or add a specialist of that name"),
            ),
            Self::DanglingNeed { origin, .. } => (FailureKind::Usage, "need_dangling", file(origin)),
            Self::SelfNeed { origin, .. } => (FailureKind::Usage, "need_self", file(origin)),
            Self::DanglingRelation { origin, .. } => (FailureKind::Usage, "relation_dangling", file(origin)),
            Self::Cycle { .. } => (FailureKind::Usage, "shape_cycle", "remove one `needs` of the circle".to_owned()),
            Self::WritersAtOnce { first, second, .. } => (
                FailureKind::Usage,
                "writers_at_once",
                format!("let one of them need the other, such as {second} needs {first}"),
            ),
            Self::GateWrites { gate, .. } => (
                FailureKind::Usage,
                "gate_writes",
                format!("give {gate} a specialist of tier READ_ONLY or LOW, or take its gate label away"),
            ),
            Self::TwoFinalGates { formula, .. } => (FailureKind::Usage, "two_final_gates", show(formula)),
            Self::FinalGateNotLast { gate, .. } => (
                FailureKind::Usage,
                "final_gate_not_last",
                format!("let {gate} need every writer and gate, and no step need {gate}"),
            ),
            Self::GateBeforeWriters { formula, .. } => (FailureKind::Usage, "gate_before_writers", show(formula)),
            Self::UngatedWriter { formula, .. } => (FailureKind::Usage, "writer_ungated", show(formula)),
            Self::GatesReordered { formula, .. } => (FailureKind::Usage, "gates_reordered", show(formula)),
            Self::GateMissing { .. } => (
                FailureKind::Usage,
                "gate_missing",
                "bring the step back, or write a formula of another name that extends nothing".to_owned(),
            ),
        }
    }
}

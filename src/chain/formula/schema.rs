//! bd's formula schema (bd 1.3.0, `bd formula schema --json`), as far as sp runs it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::condition::Condition;

/// A formula as written, or with its parents merged in.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    /// Its `formula` field. bd finds formulas by file name, so the two may differ.
    pub name: String,
    /// File, or `built-in NAME`.
    pub origin: String,
    /// Every name it goes by: field and file name, and those of all it extends.
    pub lineage: BTreeSet<String>,
    /// What it is for; may hold `{{name}}`.
    pub description: String,
    /// At least 1; bd takes any and sp has no use for it.
    pub version: u32,
    /// Parents, in order; empty once merged.
    pub extends: Vec<String>,
    /// Declared variables.
    pub vars: BTreeMap<String, Var>,
    /// Steps in the order of the file.
    pub steps: Vec<FormulaStep>,
    /// A word for other tools, opaque to bd and to sp.
    pub intent: String,
}

/// A declared variable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Var {
    /// What it is for.
    pub description: String,
    /// Value when none is given. `None` means that one must be given as soon as the variable is used.
    pub default: Option<String>,
    /// Must be given, and not empty.
    pub required: bool,
    /// The values allowed; empty means any.
    pub allowed: Vec<String>,
    /// Regular expression that must match somewhere in the value.
    pub pattern: Option<String>,
    /// Type of the value.
    pub kind: VarKind,
}

/// Type of a variable's value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VarKind {
    /// Any text.
    #[default]
    Text,
    /// A decimal integer of 64 bits.
    Int,
    /// `true` or `false`.
    Bool,
}

/// A step as written.
#[derive(Debug, Clone, PartialEq)]
pub struct FormulaStep {
    /// Id within the formula.
    pub id: String,
    /// Title; may hold `{{name}}`.
    pub title: String,
    /// Text of the step; may hold `{{name}}`.
    pub description: String,
    /// Notes; may hold `{{name}}`.
    pub notes: String,
    /// bd's issue type (`type`).
    pub issue_type: Option<String>,
    /// bd's priority, 0–4.
    pub priority: Option<u8>,
    /// Labels; may hold `{{name}}`.
    pub labels: Vec<String>,
    /// Metadata; texts in it may hold `{{name}}`.
    pub metadata: BTreeMap<String, Value>,
    /// `needs` and `depends_on` together, each id once, in order.
    pub needs: Vec<String>,
    /// Assignee; may hold `{{name}}`.
    pub assignee: Option<String>,
    /// When false for the values given, the step is dropped.
    pub condition: Option<Condition>,
    /// File that the step stands in.
    pub origin: String,
}

//! Remarks that weigh what their mode says.

use std::collections::BTreeMap;

use crate::chain::context::CONTRACT_LIMIT;
use crate::chain::contract::{Contract, ContractKind, Form, missing};
use crate::failure::FailureKind;
use crate::policy::finding::FindingKind;
use crate::policy::overlap::overlap;
use crate::policy::preflight::{Preflight, RootFacts};
use crate::policy::refusal::Refusal;

/// A finding before its mode is known.
pub(super) struct Remark {
    pub(super) kind: FindingKind,
    pub(super) subject: String,
    pub(super) message: String,
    pub(super) advice: String,
    pub(super) evidence: BTreeMap<String, String>,
    pub(super) blocked_by: Vec<String>,
}

impl Remark {
    fn new(
        kind: FindingKind,
        subject: impl Into<String>,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let (subject, message, advice) = (subject.into(), message.into(), advice.into());
        Self { kind, subject, message, advice, evidence: BTreeMap::new(), blocked_by: Vec::new() }
    }

    fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.evidence.insert(name.to_owned(), value.to_string());
        self
    }

    /// The refusal that `enforce` makes of it.
    pub(super) fn refusal(&self, preflight: &Preflight) -> Refusal {
        let bead = &preflight.bead;
        let contested = self.kind == FindingKind::ScopeCollision;
        Refusal {
            error_code: self.kind.code(),
            kind: if contested { FailureKind::Contested } else { FailureKind::Refused },
            message: format!("run {} on bead {bead}: {} (policy enforces this)", preflight.formula, self.message),
            blocked_by: self.blocked_by.clone(),
            next_safe_action: self.advice.clone(),
            diagnose_command: match self.kind {
                FindingKind::MainCheckoutDirty => "git status --short".to_owned(),
                FindingKind::ScopeCollision => format!("sp chain show {}", self.subject),
                _ => format!("bd show {bead}"),
            },
        }
    }
}

pub(super) fn remarks(preflight: &Preflight) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if let Some(root) = &preflight.root {
        if let Ok(contract) = &root.contract {
            sections(contract, &mut remarks);
            form(root, contract, &mut remarks);
            scope(preflight, contract, &mut remarks);
        }
        scrutiny(root, &mut remarks);
        if root.bead.status == "in_progress" && root.bead.assignee.as_deref().unwrap_or_default().is_empty() {
            remarks.push(Remark::new(
                FindingKind::BeadWithoutHolder,
                "",
                "the bead is in progress, but nobody holds it",
                "make sure that nobody works on it, then set it to open",
            ));
        }
    }
    if preflight.dirty_paths > 0 {
        let message = "the main checkout has uncommitted changes; they are not in the chain's worktree";
        let advice = "commit what the chain needs";
        remarks.push(
            Remark::new(FindingKind::MainCheckoutDirty, "", message, advice).with("paths", preflight.dirty_paths),
        );
    }
    remarks
}

fn sections(contract: &Contract, remarks: &mut Vec<Remark>) {
    let advice = "write Problem, Scope, Non-goals, Validation and Acceptance into the bead's description";
    if contract.form == Form::None {
        let message = "the bead has no contract: its description has none of the known sections";
        remarks.push(Remark::new(FindingKind::ContractMissing, "", message, advice));
        return;
    }
    for section in missing(contract) {
        let message = format!("the contract has no {section} section");
        remarks.push(Remark::new(FindingKind::ContractSectionMissing, section.as_str(), message, advice));
    }
    for part in &contract.unknown {
        let message = format!("the contract has a part that is not in its schema: {}", part.name);
        let advice = "move it into one of the known sections";
        remarks.push(Remark::new(FindingKind::ContractUnknownPart, &part.name, message, advice));
    }
    if !contract.validation.is_empty() && !contract.validation.iter().any(|entry| is_command(entry)) {
        let message = "no entry of the contract's validation is a command";
        let advice = "name at least one command that shows whether the work is right";
        remarks.push(Remark::new(FindingKind::ValidationWithoutCommand, "", message, advice));
    }
}

fn form(root: &RootFacts, contract: &Contract, remarks: &mut Vec<Remark>) {
    if let Some(kind) = contract.kind
        && !fits(kind, &root.bead.issue_type)
    {
        let message = format!("the contract says {}, the bead is a {}", kind.as_str(), root.bead.issue_type);
        let advice = format!("make the bead a {}, or mend the contract's type", kind.bead_type());
        remarks.push(Remark::new(FindingKind::ContractTypeMismatch, "", message, advice));
    }
    if contract.raw.len() > CONTRACT_LIMIT {
        let message = format!("the contract is longer than the {CONTRACT_LIMIT} bytes that a prompt holds");
        let advice = "shorten it, and point to files for the rest";
        remarks
            .push(Remark::new(FindingKind::ContractOversized, "", message, advice).with("bytes", contract.raw.len()));
    }
}

/// Research and documents are also filed as chores; any other type has to be the one of the mapping.
fn fits(kind: ContractKind, bead_type: &str) -> bool {
    let chore = matches!(kind, ContractKind::Research | ContractKind::Docs | ContractKind::Refactor);
    bead_type.is_empty() || bead_type == kind.bead_type() || (chore && bead_type == "chore")
}

fn scope(preflight: &Preflight, contract: &Contract, remarks: &mut Vec<Remark>) {
    let paths = contract.scope.named_paths();
    for path in paths.iter().filter(|path| *path == ".." || path.starts_with("../") || path.starts_with('~')) {
        let message = format!("the scope names a path outside of the repository: {path}");
        let advice = "keep the scope inside the repository: a writer can't change anything else";
        remarks.push(Remark::new(FindingKind::ScopeOutsideRepository, path, message, advice));
    }
    for live in &preflight.live_chains {
        if live.bead == preflight.bead || Some(&live.chain) == preflight.chain.as_ref() {
            continue;
        }
        if let Some((ours, theirs)) = overlap(&paths, &live.scope) {
            let message = format!("chain {} on bead {} works on the same paths", live.chain, live.bead);
            let advice = format!("let chain {} finish first, or narrow one of the scopes", live.chain);
            let mut remark = Remark::new(FindingKind::ScopeCollision, live.chain.as_str(), message, advice)
                .with("ours", ours)
                .with("theirs", theirs);
            remark.blocked_by.push(live.chain.to_string());
            remarks.push(remark);
        }
    }
}

fn scrutiny(root: &RootFacts, remarks: &mut Vec<Remark>) {
    for raised in &root.scrutiny.escalations {
        let message =
            format!("{} ({}) raises the scrutiny from {} to {}", raised.path, raised.surface, raised.from, raised.to);
        let advice = format!("say so yourself: `--scrutiny {}`", root.scrutiny.effective);
        remarks.push(
            Remark::new(FindingKind::ScrutinyEscalated, &raised.surface, message, advice)
                .with("path", &raised.path)
                .with("glob", &raised.glob)
                .with("from", raised.from)
                .with("to", raised.to),
        );
    }
}

/// First words that begin a command line; anything with a code span or a slash counts too.
const PROGRAMS: &[&str] = &[
    "bash", "bun", "bundle", "cargo", "cmake", "composer", "ctest", "deno", "docker", "dotnet", "git", "go", "gradle",
    "jest", "just", "make", "mvn", "mypy", "node", "npm", "npx", "php", "pip", "pnpm", "poetry", "pytest", "python",
    "python3", "rake", "rspec", "ruby", "ruff", "sbt", "sh", "swift", "tox", "tsc", "uv", "vitest", "yarn", "zig",
];

fn is_command(entry: &str) -> bool {
    let first = entry.split_whitespace().next().unwrap_or_default();
    entry.matches('`').count() >= 2 || first == "$" || first.starts_with("./") || PROGRAMS.contains(&first)
}

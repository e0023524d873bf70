//! The parts of a step's user turn, from what is known of its chain.
//!
//! Everything here goes into the user turn, never into the system prompt, so that a role's system prompt is the same
//! for every bead. Texts of others (beads, results, diffs, AGENTS.md) stand between fences, as data.

mod budget;
mod texts;

use crate::ports::DiffStat;

use super::envelope::{EnvelopeClass, EnvelopeFacts, StepStatus, envelope};
use super::excerpt::{Keep, excerpt, shares};
use super::fence::{defanged, fenced};

/// Most bytes of upstream results and diff in one prompt, headers included.
pub const INLINE_LIMIT: usize = 12_000;
/// Most bytes of the root contract.
pub const CONTRACT_LIMIT: usize = 65_536;
/// Most bytes of a round's findings.
pub const FINDINGS_LIMIT: usize = 12_000;
/// Most bytes of the project's AGENTS.md, and of an operator's note.
pub const AGENTS_LIMIT: usize = 16_384;

/// What a step may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    ReadOnly,
    /// Anything in the worktree.
    Write,
    /// Only paths that match one of these globs.
    WriteOnly(Vec<String>),
}

/// The result of an upstream step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handoff {
    /// Its role.
    pub role: String,
    /// Its bead; tells which entry of `facts.upstream` it belongs to.
    pub bead: crate::ids::BeadId,
    /// The job that made it.
    pub job: crate::ids::JobId,
    /// Its verdict, if it is a gate.
    pub verdict: Option<String>,
    /// Whether a person passed the step in spite of what the job came to.
    pub accepted: bool,
    /// The whole result.
    pub result: String,
    /// A file that holds it, readable by the role.
    pub file: String,
}

/// The change so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffText {
    /// Commit it starts from.
    pub base: String,
    /// Commit it ends at.
    pub head: String,
    /// Its size.
    pub stat: DiffStat,
    /// The whole unified diff.
    pub text: String,
    /// A file that holds it, readable by the role.
    pub file: String,
}

/// What sends the writer back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundFinding {
    /// Role of the gate.
    pub role: String,
    /// Its job.
    pub job: crate::ids::JobId,
    /// Its verdict.
    pub verdict: String,
    /// What it found.
    pub text: String,
    /// A file that holds the whole result.
    pub file: Option<String>,
}

/// All that a prompt is made of. Texts are whole; cutting happens here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptInput {
    /// Where the step stands.
    pub facts: EnvelopeFacts,
    /// What it may change.
    pub access: Access,
    /// Whether the role may run commands; one that may not is never told to.
    pub shell: bool,
    /// Title of the root bead.
    pub root_title: String,
    /// Description of the root bead: the contract, as it stands there.
    pub contract: String,
    /// The step's mandate, from the formula.
    pub mandate: String,
    /// Notes of the step, from the formula; may be empty.
    pub step_notes: String,
    /// Round of the fix loop, from 1.
    pub round: u32,
    /// What sends this step back; empty in round 1.
    pub findings: Vec<RoundFinding>,
    /// What the operator says.
    pub operator_note: Option<String>,
    /// Results of upstream steps, in the order of the shape.
    pub upstream: Vec<Handoff>,
    /// The change so far, if there is one.
    pub diff: Option<DiffText>,
    /// Text of the project's AGENTS.md; left out for steps that change nothing.
    pub agents_md: Option<String>,
}

/// The values of a task template's variables, one field each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptParts {
    /// `$chain_context`: the envelope.
    pub chain_context: String,
    /// `$contract`: the root contract.
    pub contract: String,
    /// `$step_contract`: mandate, who reads the handoff, which gates follow.
    pub step_contract: String,
    /// `$upstream`: results of the steps before, as far as the budget goes.
    pub upstream: String,
    /// `$diff`: the change so far, as far as the budget goes.
    pub diff: String,
    /// `$notes`: notes of the formula and the operator, AGENTS.md for writers.
    pub notes: String,
    /// `$worktree_boundary`: where, and what may be changed.
    pub worktree_boundary: String,
    /// `$findings`: what this round is to mend.
    pub findings: String,
    /// Whether nothing was cut or left out. The envelope says the same.
    pub complete: bool,
}

/// Composes the parts of a step's prompt. The same input gives the same bytes.
pub fn compose(input: &PromptInput) -> PromptParts {
    let mut cut = Cut(false);
    let inline = budget::inline(input);
    let contract = texts::contract(input, &mut cut);
    let notes = texts::notes(input, &mut cut);
    let findings = texts::findings(input, &mut cut);

    let mut facts = input.facts.clone();
    facts.upstream_complete &= inline.upstream_complete;
    facts.preload_complete &= facts.upstream_complete && inline.diff_complete && !cut.0;
    facts.preload_depth = inline.depth;
    PromptParts {
        chain_context: envelope(&facts),
        contract,
        step_contract: texts::step_contract(input),
        upstream: inline.upstream,
        diff: inline.diff,
        notes,
        worktree_boundary: texts::boundary(&facts.worktree, &input.access),
        findings,
        complete: facts.preload_complete,
    }
}

/// Returns the turn that opens a further round in a session that already holds the first prompt.
///
/// It carries a fresh envelope; contract and mandate stand further up in the session.
pub fn round_text(parts: &PromptParts, round: u32) -> String {
    let opening = format!(
        "Round {round}. Your step is open again. The root contract and your mandate above still hold; where the chain \
         stands is new:"
    );
    let closing =
        "Deal with every finding, or say why one does not hold. Then give your result again, in the same form.";
    let sections: Vec<&str> = [
        &opening,
        parts.chain_context.as_str(),
        &parts.worktree_boundary,
        &parts.findings,
        &parts.notes,
        &parts.upstream,
        &parts.diff,
        closing,
    ]
    .into_iter()
    .map(|section| section.trim_end())
    .filter(|section| !section.is_empty())
    .collect();
    sections.join("\n\n") + "\n"
}

/// Returns the turn that lets an interrupted session go on. It holds no envelope: the session has one already.
pub fn resume_text(mandate: &str) -> String {
    format!(
        "Your session was interrupted and goes on now. Look at the worktree before you repeat anything: what you did \
         before is still there. Then finish your step and give your result in the form asked for above. Your mandate, \
         once more:\n\n{}",
        fenced("mandate", &defanged(mandate))
    )
}

/// Remembers whether anything was cut.
struct Cut(bool);

impl Cut {
    fn take(&mut self, text: &str, limit: usize, keep: Keep) -> String {
        let (text, cut) = excerpt(&defanged(text), limit, keep);
        self.0 |= cut;
        text
    }
}

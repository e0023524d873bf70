//! What a settled activation means: the verdict of its answer, held against what became of the worktree.

use super::input::Work;
use super::state::{Blocked, ChainState};
use crate::chain::shape::{Step, Writer};
use crate::chain::verdict::{BlockReason, ReworkTarget, Verdict};
use crate::ids::StepId;
use crate::ports::Commit;

/// What to do with a step whose activation is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ruling {
    /// It passed, on this commit.
    Pass { commit: String },
    /// A writer must work again.
    Rework { to: StepId, findings: String },
    /// The answer is void; the step must run again.
    Void { code: &'static str, detail: String },
    /// People must decide.
    Block(Blocked),
}

/// Returns what to do, and the commit that HEAD stands at.
pub(super) fn judge(chain: &ChainState, step: &Step, verdict: &Verdict, work: &Work) -> (Ruling, String) {
    let head = chain.tree.as_ref().map_or_else(|| chain.base.clone(), |tree| tree.head.clone());
    match work {
        Work::Committed(commit) => committed(chain, step, verdict, commit, head),
        Work::Compared(Some(restored)) => {
            let detail = format!(
                "{} changed {} though it may only read; the change is saved under {} and undone",
                step.role,
                restored.paths.join(", "),
                restored.rescue_ref
            );
            (Ruling::Void { code: "reader_changed_tree", detail }, head)
        }
        Work::Compared(None) => {
            let judged = chain.steps.get(&step.id).and_then(|state| state.commit.clone()).unwrap_or_default();
            // R3-0054: a verdict counts for the newest diff only.
            if judged != chain.upstream_commit(&step.id) {
                let detail = format!("judged {judged}, newest is {}", chain.upstream_commit(&step.id));
                return (Ruling::Void { code: "stale_verdict", detail }, head);
            }
            (rule(chain, step, verdict, judged), head)
        }
    }
}

fn committed(chain: &ChainState, step: &Step, verdict: &Verdict, commit: &Commit, head: String) -> (Ruling, String) {
    match commit {
        Commit::HookRefused { output } => (block("hook_refused", output), head),
        Commit::OffBranch { found } => {
            let branch = chain.tree.as_ref().map_or("", |tree| tree.branch.as_str());
            (block("off_branch", &format!("HEAD of the worktree is at {found}, not on {branch}")), head)
        }
        Commit::Made { head: made, refused, .. } => (
            refused_paths(chain, step, refused).unwrap_or_else(|| rule(chain, step, verdict, made.clone())),
            made.clone(),
        ),
        Commit::Nothing { refused } => {
            let ruling = refused_paths(chain, step, refused).unwrap_or_else(|| match (step.writer, verdict) {
                (Some(Writer::Primary), Verdict::Passed { .. }) => {
                    block(BlockReason::EmptyDiff.code(), &format!("{} reports success, but nothing changed", step.role))
                }
                // In a later round what it wrote before may be enough.
                (Some(Writer::Secondary), Verdict::Passed { .. }) if !has_own_commit(chain, step) => {
                    block(BlockReason::EmptyDiff.code(), &format!("{} reports tests, but nothing changed", step.role))
                }
                (_, verdict) => rule(chain, step, verdict, head.clone()),
            });
            (ruling, head)
        }
    }
}

fn has_own_commit(chain: &ChainState, step: &Step) -> bool {
    chain.steps.get(&step.id).is_some_and(|state| state.commit.is_some())
}

/// A secondary writer that needed production paths: the primary writer's turn.
fn refused_paths(chain: &ChainState, step: &Step, refused: &[String]) -> Option<Ruling> {
    if refused.is_empty() || step.writer != Some(Writer::Secondary) {
        return None;
    }
    let findings = format!(
        "{} may change test paths only, but changed {}. Its change is saved and undone. Make the production change \
         that it needed, if the contract asks for it.",
        step.role,
        refused.join(", ")
    );
    Some(rework(chain, step, ReworkTarget::PrimaryWriter, findings))
}

fn rule(chain: &ChainState, step: &Step, verdict: &Verdict, commit: String) -> Ruling {
    match verdict {
        Verdict::Passed { .. } => Ruling::Pass { commit },
        Verdict::Rework { target, findings } => rework(chain, step, *target, findings.clone()),
        Verdict::Blocked { reason, detail } => block(reason.code(), detail),
        // The job gave the extra turn already.
        Verdict::Again { why } => block(BlockReason::Incomplete.code(), why),
    }
}

fn rework(chain: &ChainState, step: &Step, target: ReworkTarget, findings: String) -> Ruling {
    let rank = match target {
        ReworkTarget::PrimaryWriter => Writer::Primary,
        ReworkTarget::SecondaryWriter => Writer::Secondary,
    };
    // A formula without test-engineer: its one writer owns the tests as well.
    match chain.writer_above(&step.id, rank).or_else(|| chain.writer_above(&step.id, Writer::Primary)) {
        Some(_) if chain.loops_used >= chain.limits.fix_loops => block(
            "fix_loops_exhausted",
            &format!("after {} fix rounds {} still finds: {findings}", chain.loops_used, step.role),
        ),
        Some(to) => Ruling::Rework { to: to.clone(), findings },
        None => block("no_writer_to_fix", &findings),
    }
}

fn block(code: &str, detail: &str) -> Ruling {
    Ruling::Block(Blocked { code: code.to_owned(), detail: detail.to_owned() })
}

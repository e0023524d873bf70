//! Upstream results and diff within [`INLINE_LIMIT`]: what is small comes whole, the rest gets equal shares, and what
//! has no room at all is left out, the farthest first.

use std::collections::BTreeSet;

use super::super::fence::overhead;
use super::*;

/// A text that gets less than this is no use to anybody.
const LEAST: usize = 240;

/// Upstream and diff as they stand in the prompt.
pub(super) struct Inline {
    pub(super) upstream: String,
    pub(super) upstream_complete: bool,
    pub(super) diff: String,
    pub(super) diff_complete: bool,
    pub(super) depth: u32,
}

struct Item {
    distance: u32,
    header: String,
    fence: &'static str,
    text: String,
    keep: Keep,
}

impl Item {
    fn fixed(&self) -> usize {
        self.header.len() + overhead(self.fence)
    }

    fn least(&self) -> usize {
        self.fixed() + self.text.len().min(LEAST)
    }

    fn render(&self, share: usize) -> (String, bool) {
        let (text, cut) = excerpt(&self.text, share, self.keep);
        (format!("{}{}", self.header, fenced(self.fence, &text)), cut)
    }
}

const NOTHING_BEFORE: &str = "Nothing comes before this step.\n";
const NO_DIFF: &str = "There is no change yet.\n";
const LEFT_OUT: &str = "Results of other upstream steps are not shown here. Their beads and jobs are in the chain \
    context, their files in the directory of the job.\n";
const DIFF_LEFT_OUT: &str = "The change is not shown here: it is in the file diff.patch of the job's directory.\n";

pub(super) fn inline(input: &PromptInput) -> Inline {
    let mut handoffs: Vec<Item> = input.upstream.iter().map(|handoff| handoff_item(input, handoff)).collect();
    let mut diff = input.diff.as_ref().map(diff_item);
    // The two notices always have their room, so that leaving something out can't break the budget.
    let room = INLINE_LIMIT - LEFT_OUT.len().max(NOTHING_BEFORE.len()) - DIFF_LEFT_OUT.len().max(NO_DIFF.len());
    let mut diff_complete = true;
    if diff.as_ref().is_some_and(|diff| diff.least() > room) {
        diff = None;
        diff_complete = false;
    }
    let mut upstream_complete = every_result_is_here(input);
    while least(&handoffs, diff.as_ref()) > room {
        let Some(farthest) = (0..handoffs.len()).max_by_key(|&at| (handoffs[at].distance, handoffs.len() - at)) else {
            break;
        };
        handoffs.remove(farthest);
        upstream_complete = false;
    }

    let fixed = handoffs.iter().chain(&diff).map(Item::fixed).sum::<usize>();
    let room = room.saturating_sub(fixed);
    let needs: Vec<usize> = handoffs.iter().map(|item| item.text.len()).collect();
    let diff_need = diff.as_ref().map_or(0, |diff| diff.text.len());
    // The diff may have half, and what the results don't need.
    let diff_share = diff_need.min((room / 2).max(room.saturating_sub(needs.iter().sum())));
    let mut upstream = String::new();
    for (item, share) in handoffs.iter().zip(shares(&needs, room - diff_share)) {
        let (text, cut) = item.render(share);
        upstream.push_str(&text);
        upstream_complete &= !cut;
    }
    if input.upstream.len() > handoffs.len() || !every_result_is_here(input) {
        upstream.push_str(LEFT_OUT);
    } else if input.facts.upstream.is_empty() {
        upstream.push_str(NOTHING_BEFORE);
    }
    let diff = match (&diff, diff_complete) {
        (Some(item), _) => {
            let (text, cut) = item.render(diff_share);
            diff_complete = !cut;
            text
        }
        (None, true) => NO_DIFF.to_owned(),
        (None, false) => DIFF_LEFT_OUT.to_owned(),
    };
    let depth = handoffs.iter().map(|item| item.distance).max().unwrap_or(0);
    Inline { upstream, upstream_complete, diff, diff_complete, depth }
}

fn least(handoffs: &[Item], diff: Option<&Item>) -> usize {
    handoffs.iter().chain(diff).map(Item::least).sum()
}

/// Every finished step has to be handed in; one that a person closed before it had a job has nothing to hand in, which
/// is no complete context either.
fn every_result_is_here(input: &PromptInput) -> bool {
    let here: BTreeSet<_> = input.upstream.iter().map(|handoff| &handoff.bead).collect();
    input
        .facts
        .upstream
        .iter()
        .filter(|step| step.status == StepStatus::Completed)
        .all(|step| here.contains(&step.bead))
}

fn handoff_item(input: &PromptInput, handoff: &Handoff) -> Item {
    let distance =
        input.facts.upstream.iter().find(|step| step.bead == handoff.bead).map_or(u32::MAX, |step| step.distance);
    let verdict =
        handoff.verdict.as_deref().map(|verdict| format!(", verdict {}", texts::word(verdict))).unwrap_or_default();
    let accepted = if handoff.accepted { "; the operator accepted the step all the same" } else { "" };
    let header = format!(
        "Result of {} (bead {}, job {}{verdict}{accepted}); whole in the file {:?}:\n",
        texts::word(&handoff.role),
        handoff.bead,
        handoff.job,
        handoff.file
    );
    let distance = if distance == u32::MAX { 0 } else { distance };
    Item { distance, header: defanged(&header), fence: "result", text: defanged(&handoff.result), keep: Keep::Ends }
}

fn diff_item(diff: &DiffText) -> Item {
    let DiffStat { files, added, removed } = diff.stat;
    let header = format!(
        "Change from {} to {}: {files} file(s), +{added} −{removed} lines; whole in the file {:?}:\n",
        diff.base, diff.head, diff.file
    );
    Item { distance: 0, header: defanged(&header), fence: "diff", text: defanged(&diff.text), keep: Keep::Head }
}

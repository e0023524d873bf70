//! The `<chain-context>` of a step: where it stands in its chain. Source: spec 003 §6.2.
//!
//! Made from the stored shape and progress alone, so that the same facts give the same bytes. It points to evidence and
//! never holds any: what it lists is bounded.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::chain::scrutiny::Scrutiny;
use crate::ids::{BeadId, ChainId, JobId};

/// Most steps listed on either side; of more, the nearest are listed and `complete` says false.
pub(super) const LISTED: usize = 32;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// All values, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the word of this value.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
    };
}

words! {
    /// What the step is for.
    EnvelopeClass {
        /// Does work.
        Step = "step",
        /// Its verdict decides.
        Gate = "gate",
        /// Gives advice.
        Advisor = "advisor",
    }
}
words! {
    /// Where the step stands. A chain may have several first and several final steps; an only step is final.
    Position {
        /// Nothing comes before it.
        First = "first",
        /// Between others.
        Middle = "middle",
        /// Nothing comes after it.
        Final = "final",
    }
}
words! {
    /// How far a step is.
    StepStatus {
        /// Closed.
        Completed = "completed",
        /// Ended without a usable result, or blocked.
        Failed = "failed",
        /// A job exists and waits: for people, or to be started.
        Waiting = "waiting",
        /// A job works on it.
        Running = "running",
        /// Nothing has begun.
        Pending = "pending",
    }
}

/// A step that comes before the current one, directly or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamStep {
    /// Its role.
    pub role: String,
    /// Its bead.
    pub bead: BeadId,
    /// Its newest job; `None` when a person closed it.
    pub job: Option<JobId>,
    /// How far it is.
    pub status: StepStatus,
    /// Number of `needs` between it and the current step, from 1. Not part of the XML.
    pub distance: u32,
}

/// Any other step of the chain that is not completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingStep {
    /// Its role.
    pub role: String,
    /// Its bead.
    pub bead: BeadId,
    /// How far it is.
    pub status: StepStatus,
    /// What it is for. Not part of the XML.
    pub class: EnvelopeClass,
    /// Whether it needs the current step directly, and so reads its handoff. Not part of the XML.
    pub consumes: bool,
}

/// Everything that an envelope says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvelopeFacts {
    /// The chain.
    pub chain: ChainId,
    /// Its formula.
    pub template: String,
    /// The contract bead.
    pub root_bead: BeadId,
    /// Bead of the current step.
    pub step_bead: BeadId,
    /// Role of the current step.
    pub role: String,
    /// Class of the current step.
    pub class: EnvelopeClass,
    /// Where it stands.
    pub position: Position,
    /// Scrutiny that was asked for.
    pub stated: Scrutiny,
    /// Scrutiny that counts.
    pub effective: Scrutiny,
    /// Steps before it, in the order of the shape.
    pub upstream: Vec<UpstreamStep>,
    /// Whether every upstream step is listed and its result is in the prompt whole.
    pub upstream_complete: bool,
    /// Steps that are neither before it nor completed, in the order of the shape.
    pub pending: Vec<PendingStep>,
    /// Levels of upstream whose results are in the prompt, at least in part.
    pub preload_depth: u32,
    /// Whether nothing at all was cut or left out of the prompt.
    pub preload_complete: bool,
    /// The worktree.
    pub worktree: String,
}

/// Renders the envelope, valid by `config/schemas/chain-context.xsd`, without a newline at the end.
pub fn envelope(facts: &EnvelopeFacts) -> String {
    let mut out = String::from("<chain-context version=\"1\">\n");
    for (name, value) in [
        ("chain-id", facts.chain.as_str()),
        ("chain-template", &facts.template),
        ("root-bead-id", facts.root_bead.as_str()),
        ("current-step-bead-id", facts.step_bead.as_str()),
        ("current-role", &facts.role),
        ("current-class", facts.class.as_str()),
        ("position", facts.position.as_str()),
    ] {
        line(&mut out, &format!("<{name}>{}</{name}>", escaped(value)));
    }
    line(&mut out, &format!("<scrutiny stated=\"{}\" effective=\"{}\" />", facts.stated, facts.effective));
    let upstream = facts.upstream.iter().map(|step| {
        let job = step.job.as_ref().map(|job| format!(" job-id=\"{}\"", escaped(job.as_str()))).unwrap_or_default();
        element(&step.role, &step.bead, &job, step.status)
    });
    list(&mut out, "upstream", &format!(" complete=\"{}\"", facts.upstream_complete), upstream.collect());
    let pending = facts.pending.iter().map(|step| element(&step.role, &step.bead, "", step.status));
    list(&mut out, "pending", "", pending.collect());
    let (depth, complete) = (facts.preload_depth, facts.preload_complete);
    line(&mut out, &format!("<preloaded-context depth=\"{depth}\" complete=\"{complete}\" />"));
    line(&mut out, &format!("<worktree-path>{}</worktree-path>", escaped(&facts.worktree)));
    out.push_str("</chain-context>");
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str("  ");
    out.push_str(text);
    out.push('\n');
}

fn element(role: &str, bead: &BeadId, job: &str, status: StepStatus) -> String {
    let (role, bead, status) = (escaped(role), escaped(bead.as_str()), status.as_str());
    format!("<step role=\"{role}\" bead-id=\"{bead}\"{job} status=\"{status}\" />")
}

fn list(out: &mut String, name: &str, attributes: &str, steps: Vec<String>) {
    if steps.is_empty() {
        return line(out, &format!("<{name}{attributes} />"));
    }
    line(out, &format!("<{name}{attributes}>"));
    steps.iter().for_each(|step| line(out, &format!("  {step}")));
    line(out, &format!("</{name}>"));
}

/// Escapes text for an element or an attribute. What XML can't hold at all becomes U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // A reader would turn these into spaces or newlines of its own.
            '\t' | '\n' | '\r' => drop(write!(out, "&#{};", u32::from(c))),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

//! What a stub of pi does: few words, played by `agent`.

use std::collections::VecDeque;
use std::time::Duration;

use super::lines::{beginning, block_end, called, calling, delta, ending};

/// One thing that the stub does within a turn.
#[derive(Debug, Clone)]
pub(in crate::actors) enum Act {
    /// Writes a line.
    Line(String),
    /// Writes bytes as they are.
    Bytes(Vec<u8>),
    /// Sleeps, in virtual time.
    Rest(Duration),
    /// Writes so many deltas of one block.
    Flood(usize),
    /// Waits until sp answers a dialog.
    Answered,
    /// From here on this is the last text that the agent said.
    Said(String),
    /// Exits.
    Exit(i32),
}

/// What one process of the stub does.
#[derive(Debug, Clone, Default)]
pub(in crate::actors) struct Script {
    /// What each prompt is answered with, in order; nothing once they are used up.
    pub(in crate::actors) turns: VecDeque<Vec<Act>>,
    /// Written before anything is read.
    pub(in crate::actors) first: Vec<Act>,
    /// Commands that are never answered.
    pub(in crate::actors) silent: Vec<&'static str>,
    /// A command that is refused, and pi's text.
    pub(in crate::actors) refuses: Option<(&'static str, &'static str)>,
    /// Answers the next two commands after a turn in reverse order.
    pub(in crate::actors) reversed: bool,
    /// TERM does nothing.
    pub(in crate::actors) ignores_term: bool,
    /// End of file does nothing.
    pub(in crate::actors) ignores_eof: bool,
    /// Reads nothing at all.
    pub(in crate::actors) deaf: bool,
    /// Panics when it is asked to end, as a broken port would.
    pub(in crate::actors) panics_on_term: bool,
    /// What it complains.
    pub(in crate::actors) complaint: &'static str,
    /// Messages that the session holds at the start.
    pub(in crate::actors) messages: usize,
    /// The last text of the model that it holds at the start.
    pub(in crate::actors) text: Option<&'static str>,
}

impl Script {
    /// Plays one turn a prompt.
    pub(in crate::actors) fn turns<const N: usize>(turns: [Vec<Act>; N]) -> Self {
        Self { turns: turns.into(), ..Self::default() }
    }

    /// Answers each prompt in turn with a text.
    pub(in crate::actors) fn says<const N: usize>(texts: [&str; N]) -> Self {
        Self::turns(texts.map(Act::says))
    }
}

impl Act {
    /// A whole turn that says a text and settles.
    pub(in crate::actors) fn says(text: &str) -> Vec<Self> {
        let mut acts = Self::begins();
        acts.extend(Self::ends(text));
        acts
    }

    /// A turn up to the open text block.
    pub(in crate::actors) fn begins() -> Vec<Self> {
        beginning().into_iter().map(Self::Line).collect()
    }

    /// A turn from its open text block to its end.
    pub(in crate::actors) fn ends(text: &str) -> Vec<Self> {
        let mut acts = vec![Self::Line(delta(text)), Self::Line(block_end(text)), Self::Said(text.to_owned())];
        acts.extend(ending(text, "stop", None).into_iter().map(Self::Line));
        acts
    }

    /// A turn of a run that uses a tool for so long.
    pub(in crate::actors) fn uses(tool: &str, time: Duration) -> Vec<Self> {
        let mut acts: Vec<Self> = calling(tool).into_iter().map(Self::Line).collect();
        acts.push(Self::Rest(time));
        acts.extend(called(tool).into_iter().map(Self::Line));
        acts
    }

    /// A turn whose model gives an error.
    pub(in crate::actors) fn errs(text: &str) -> Vec<Self> {
        let mut acts = Self::begins();
        acts.extend(ending("", "error", Some(text)).into_iter().map(Self::Line));
        acts
    }

    /// A turn that works for so long before it says a text.
    pub(in crate::actors) fn works(time: Duration, text: &str) -> Vec<Self> {
        let mut acts = Self::begins();
        acts.push(Self::Rest(time));
        acts.extend(Self::ends(text));
        acts
    }
}

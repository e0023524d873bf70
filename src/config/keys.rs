//! What may be set, and what a value must be. docs/cli.md shows the same; a test compares the two.

use crate::policy::{FindingKind, Mode};

/// What a value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text that is not empty.
    Text,
    /// A program: a name for `PATH`, or a path.
    Program,
    /// A policy mode.
    Mode,
    /// A whole number from 0.
    Count,
}

impl Kind {
    /// Returns what such a value looks like, for messages.
    pub(super) fn wanted(self) -> &'static str {
        match self {
            Self::Text => "a text that is not empty",
            Self::Program => "a program: a name on PATH, or a path",
            Self::Mode => "one of \"off\", \"shadow\", \"warn\", \"enforce\"",
            Self::Count => "a whole number from 0 to 4294967295",
        }
    }

    /// Returns whether a text is such a value; numbers are written as digits.
    pub(super) fn admits(self, text: &str) -> bool {
        match self {
            Self::Text | Self::Program => !text.trim().is_empty(),
            Self::Mode => text.parse::<Mode>().is_ok(),
            Self::Count => text.parse::<u32>().is_ok(),
        }
    }
}

/// (variable, section, key, what it must be). A variable that is empty counts as not set.
pub(super) const ENVIRONMENT: [(&str, &str, &str, Kind); 6] = [
    ("SP_BD", "tools", "bd", Kind::Program),
    ("SP_PI", "tools", "pi", Kind::Program),
    ("SP_MODEL", "models", "default", Kind::Text),
    ("SP_POLICY_MODE", "policy", "mode", Kind::Mode),
    ("SP_MAX_FIX_LOOPS", "chain", "max_fix_loops", Kind::Count),
    ("SP_STALL_SECONDS", "chain", "stall_seconds", Kind::Count),
];

/// The names of the sections.
pub(super) const SECTIONS: [&str; 4] = ["tools", "models", "policy", "chain"];

/// Returns the keys of a section, each with what it must be. `roles` are the specialists there are.
pub(super) fn keys<'a>(section: &str, roles: &[&'a str]) -> Vec<(&'a str, Kind)> {
    match section {
        "tools" => vec![("bd", Kind::Program), ("pi", Kind::Program)],
        "models" => [("default", Kind::Text)].into_iter().chain(roles.iter().map(|role| (*role, Kind::Text))).collect(),
        "policy" => [("mode", Kind::Mode)]
            .into_iter()
            .chain(FindingKind::ALL.into_iter().map(|kind| (kind.code(), Kind::Mode)))
            .collect(),
        "chain" => vec![("max_fix_loops", Kind::Count), ("stall_seconds", Kind::Count)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_sets_a_key_that_a_file_may_set_too() {
        for (name, section, key, kind) in ENVIRONMENT {
            assert!(keys(section, &[]).contains(&(key, kind)), "{name}");
        }
    }

    #[test]
    fn the_guide_names_every_section_key_and_variable() {
        let guide = include_str!("../../docs/cli.md");
        for (section, key) in
            SECTIONS.iter().flat_map(|section| keys(section, &[]).into_iter().map(|(key, _)| (*section, key)))
        {
            assert!(guide.contains(&format!("[{section}]")) && guide.contains(&format!("`{key}`")), "{section}.{key}");
        }
        for (name, ..) in ENVIRONMENT {
            assert!(guide.contains(&format!("`{name}`")), "{name}");
        }
    }
}

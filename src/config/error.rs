//! Why the configuration can't be used.

use std::io;
use std::path::PathBuf;

use crate::failure::{Explain, FailureKind};

/// Why the configuration can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is there and can't be read.
    #[error("read the configuration {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// Not TOML.
    #[error("read the configuration {path}, line {line}, column {column}: {problem}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What the parser said.
        problem: String,
    },
    /// A section or key that sets nothing.
    #[error("read the configuration {path}, line {line}, column {column}: `{key}` sets nothing; {advice}")]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// Section and key, dotted.
        key: String,
        /// What could have been meant.
        advice: String,
    },
    /// A value that its key can't take.
    #[error("read the configuration {path}, line {line}, column {column}: `{key}` is {found}, wanted is {wanted}")]
    BadValue {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// Section and key, dotted.
        key: String,
        /// What stands there.
        found: String,
        /// What could stand there.
        wanted: &'static str,
    },
    /// A variable of the environment that its key can't take.
    #[error("read the variable {name}: it is {found}, wanted is {wanted}")]
    BadVariable {
        /// The variable.
        name: &'static str,
        /// Its value.
        found: String,
        /// What it could be.
        wanted: &'static str,
    },
    /// Layers that were each in order gave no configuration together.
    #[error("put the layers of the configuration together")]
    Layers(#[source] Box<figment::Error>),
}

impl Explain for ConfigError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        let correct = |path: &PathBuf| format!("correct {}; docs/cli.md lists what can be set", path.display());
        match self {
            Self::Unreadable { path, .. } => {
                (FailureKind::Usage, "config_unreadable", format!("make {} readable as UTF-8 text", path.display()))
            }
            Self::Syntax { path, .. } => (FailureKind::Usage, "config_syntax", correct(path)),
            Self::UnknownKey { path, .. } => (FailureKind::Usage, "config_unknown_key", correct(path)),
            Self::BadValue { path, .. } => (FailureKind::Usage, "config_bad_value", correct(path)),
            Self::BadVariable { name, .. } => {
                (FailureKind::Usage, "config_bad_variable", format!("correct or unset {name}"))
            }
            Self::Layers(_) => (
                FailureKind::Internal,
                "config_layers",
                "please report this with the configuration files that `sp doctor` names".to_owned(),
            ),
        }
    }

    fn diagnose_command(&self) -> Option<String> {
        Some("sp doctor".to_owned())
    }
}

//! What is set, all layers taken together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use figment::{Figment, Source};
use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use crate::policy::{Mode, Modes};

/// What is set, all layers taken together. `None` leaves it to who asks.
#[derive(Debug, Clone)]
pub struct Config {
    /// Section `[tools]`.
    pub tools: Tools,
    /// Section `[models]`.
    pub models: Models,
    /// Section `[policy]`.
    pub policy: Modes,
    /// Section `[chain]`.
    pub chain: ChainSettings,
    files: Vec<PathBuf>,
    figment: Figment,
}

/// The programs to drive. A name is looked up on `PATH`; a path is absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Tools {
    /// bd.
    pub bd: Option<PathBuf>,
    /// pi.
    pub pi: Option<PathBuf>,
}

/// Models, as `provider/model`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Models(pub(crate) BTreeMap<String, String>);

impl Models {
    /// Returns the model of a role, given the one that the specialist's file names.
    ///
    /// The role's own setting goes over the file, the default under it. A `--model` of the command line goes over all.
    pub fn of<'a>(&'a self, role: &str, in_file: Option<&'a str>) -> Option<&'a str> {
        self.0.get(role).map(String::as_str).or(in_file).or_else(|| self.0.get("default").map(String::as_str))
    }
}

/// Bounds of a chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct ChainSettings {
    /// Fix rounds that gates may open before people are asked.
    pub max_fix_loops: Option<u32>,
    /// Silence after which a session counts as stalled, in seconds; 0: never. Over what the specialist's file says.
    pub stall_seconds: Option<u32>,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    tools: Tools,
    #[serde(default)]
    models: Models,
    #[serde(default)]
    policy: BTreeMap<String, String>,
    #[serde(default)]
    chain: ChainSettings,
}

impl Config {
    /// Takes the merged layers, each of which was checked.
    pub(super) fn extract(figment: &Figment, files: Vec<PathBuf>) -> Result<Self, ConfigError> {
        let layers = |error: figment::Error| ConfigError::Layers(Box::new(error));
        let mut raw: Raw = figment.extract().map_err(layers)?;
        let mode = |word: &str| word.parse::<Mode>().map_err(|error| layers(error.to_string().into()));
        let mut policy = match raw.policy.remove("mode") {
            Some(word) => Modes::all(mode(&word)?),
            None => Modes::default(),
        };
        for (code, word) in &raw.policy {
            policy.set(code, mode(word)?).map_err(|error| layers(error.to_string().into()))?;
        }
        Ok(Self { tools: raw.tools, models: raw.models, policy, chain: raw.chain, files, figment: figment.clone() })
    }

    /// Returns the files that were read, the weaker first.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns who set a dotted key, such as `tools.bd`: a file, a variable or a flag.
    pub fn origin(&self, key: &str) -> Option<String> {
        let metadata = self.figment.find_metadata(key)?;
        let file = metadata.source.as_ref().and_then(Source::file_path).map(Path::display);
        Some(file.map_or_else(|| metadata.name.to_string(), |file| file.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roles_setting_goes_over_its_file_and_the_default_under_it() {
        let models = |rows: &[(&str, &str)]| {
            Models(rows.iter().map(|(role, model)| ((*role).to_owned(), (*model).to_owned())).collect())
        };
        let all = models(&[("default", "d/d"), ("reviewer", "r/r")]);
        for (role, in_file, expected) in [
            ("reviewer", None, Some("r/r")),
            ("reviewer", Some("f/f"), Some("r/r")),
            ("executor", Some("f/f"), Some("f/f")),
            ("executor", None, Some("d/d")),
        ] {
            assert_eq!(all.of(role, in_file), expected, "{role} {in_file:?}");
        }
        assert_eq!(models(&[]).of("executor", None), None);
    }
}

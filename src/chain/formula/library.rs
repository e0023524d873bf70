//! Where formulas come from: an ordered list of layers, the first hit wins. Reading is done by the layers, not here.

use super::error::FormulaError;
use crate::nearest::nearest;

/// How a formula's text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `NAME.formula.json`
    Json,
    /// `NAME.formula.toml`
    Toml,
}

impl Format {
    /// Both, in bd's order of preference.
    pub const ALL: [Self; 2] = [Self::Toml, Self::Json];

    /// Returns the end of a file name in this format.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Json => ".formula.json",
            Self::Toml => ".formula.toml",
        }
    }

    /// Splits a file name into formula name and format; `None` for any other file.
    pub fn of_file_name(file_name: &str) -> Option<(&str, Self)> {
        Self::ALL.into_iter().find_map(|format| {
            let name = file_name.strip_suffix(format.suffix())?;
            is_formula_name(name).then_some((name, format))
        })
    }
}

/// The text of a formula and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// File, or `built-in NAME`.
    pub origin: String,
    /// The whole text.
    pub text: String,
    /// How it is written.
    pub format: Format,
}

/// A formula that a source offers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Name, from the file name.
    pub name: String,
    /// File, or `built-in NAME`.
    pub origin: String,
}

/// Gives formulas by name. One layer, or all of them.
pub trait FormulaSource: Send + Sync {
    /// Returns the text of a formula; `None` when this source has none of that name.
    ///
    /// # Errors
    /// `Unreadable` when it is there and can't be read: a broken layer must not uncover the one below. `BadName`.
    fn load(&self, name: &str) -> Result<Option<SourceText>, FormulaError>;

    /// Returns what the source offers, sorted by name, each name once.
    ///
    /// # Errors
    /// `Unreadable` when it can't be listed.
    fn list(&self) -> Result<Vec<Listed>, FormulaError>;
}

/// An ordered search path.
pub struct SearchPath {
    layers: Vec<Box<dyn FormulaSource>>,
}

impl SearchPath {
    /// Makes a search path; the first layer that has a name wins.
    pub fn new(layers: Vec<Box<dyn FormulaSource>>) -> Self {
        Self { layers }
    }
}

impl FormulaSource for SearchPath {
    fn load(&self, name: &str) -> Result<Option<SourceText>, FormulaError> {
        check_name(name)?;
        for layer in &self.layers {
            if let Some(found) = layer.load(name)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn list(&self) -> Result<Vec<Listed>, FormulaError> {
        let mut all: Vec<Listed> = Vec::new();
        for layer in &self.layers {
            let shown: Vec<Listed> = layer.list()?;
            let new =
                shown.into_iter().filter(|listed| all.iter().all(|seen| seen.name != listed.name)).collect::<Vec<_>>();
            all.extend(new);
        }
        all.sort();
        Ok(all)
    }
}

/// Chooses the file of formula `name` in a directory listing: TOML before JSON.
pub fn choose<'a>(name: &str, file_names: impl IntoIterator<Item = &'a str>) -> Option<(&'a str, Format)> {
    file_names
        .into_iter()
        .filter_map(|file| {
            Format::of_file_name(file).filter(|(stem, _)| *stem == name).map(|(_, format)| (file, format))
        })
        .min_by_key(|(_, format)| Format::ALL.iter().position(|each| each == format))
}

/// Refuses a name that could lead out of a formula directory.
///
/// # Errors
/// `BadName`.
pub fn check_name(name: &str) -> Result<(), FormulaError> {
    if is_formula_name(name) { Ok(()) } else { Err(FormulaError::BadName { name: name.to_owned() }) }
}

/// Returns the text of a formula, or `NotFound` with the nearest names.
pub(super) fn find(
    source: &dyn FormulaSource,
    name: &str,
    wanted_by: Option<&str>,
) -> Result<SourceText, FormulaError> {
    check_name(name)?;
    if let Some(found) = source.load(name)? {
        return Ok(found);
    }
    // A layer that can't be listed has no say in a hint.
    let listed = source.list().unwrap_or_default();
    Err(FormulaError::NotFound {
        name: name.to_owned(),
        wanted_by: wanted_by.map(str::to_owned),
        nearest: nearest(name, listed.iter().map(|listed| listed.name.as_str())),
    })
}

fn is_formula_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|each| each.is_ascii_alphanumeric() || "-_.".contains(each))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Format, FormulaSource, Listed, SearchPath, SourceText, choose, find};
    use crate::chain::formula::FormulaError;
    use crate::failure::Failure;

    struct Layer(BTreeMap<&'static str, &'static str>);

    impl FormulaSource for Layer {
        fn load(&self, name: &str) -> Result<Option<SourceText>, FormulaError> {
            Ok(self.0.get(name).map(|origin| SourceText {
                origin: (*origin).to_owned(),
                text: String::new(),
                format: Format::Json,
            }))
        }

        fn list(&self) -> Result<Vec<Listed>, FormulaError> {
            Ok(self
                .0
                .iter()
                .map(|(name, origin)| Listed { name: (*name).to_owned(), origin: (*origin).to_owned() })
                .collect())
        }
    }

    fn path() -> SearchPath {
        let layer = |rows: &[(&'static str, &'static str)]| {
            Box::new(Layer(rows.iter().copied().collect())) as Box<dyn FormulaSource>
        };
        SearchPath::new(vec![
            layer(&[("ship", "repo/ship")]),
            layer(&[("ship", "user/ship"), ("docs", "user/docs")]),
            layer(&[("code-standard", "built-in code-standard")]),
        ])
    }

    #[test]
    fn the_first_layer_that_has_a_name_wins_and_hides_the_others() {
        assert_eq!(find(&path(), "ship", None).unwrap().origin, "repo/ship");
        assert_eq!(find(&path(), "docs", None).unwrap().origin, "user/docs");
        let listed: Vec<String> = path().list().unwrap().into_iter().map(|listed| listed.origin).collect();
        assert_eq!(listed, ["built-in code-standard", "user/docs", "repo/ship"]);
    }

    #[test]
    fn toml_is_preferred_and_other_files_are_not_formulas() {
        let files = ["a.formula.json", "a.formula.toml", "b.formula.json", "c.json", ".formula.json", "README.md"];
        assert_eq!(choose("a", files), Some(("a.formula.toml", Format::Toml)));
        assert_eq!(choose("b", files), Some(("b.formula.json", Format::Json)));
        assert_eq!(choose("c", files), None);
        assert_eq!(choose("", files), None);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_and_a_path_is_refused_unread() {
        let failure = Failure::from(find(&path(), "code-standart", None).unwrap_err());
        assert_eq!((failure.exit, failure.error_code), (4, "formula_not_found"));
        assert_eq!(failure.message, "find formula code-standart: not in the search path; did you mean code-standard?");
        for name in ["../ship", "a/b", "", ".hidden", "a\\b", "a b", "ship\0", "/etc/passwd", "-x"] {
            assert!(matches!(find(&path(), name, None), Err(FormulaError::BadName { .. })), "{name:?}");
        }
    }
}

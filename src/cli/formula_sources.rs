//! Where formulas are found from here, and values that stand in for those a formula still wants.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::context::{Context, variable};
use super::error::CliError;
use crate::chain::formula::{
    Format, Formula, FormulaError, FormulaSource, Listed, SearchPath, SourceText, VarKind, resolve,
};
use crate::chain::graph::compile;
use crate::chain::shape::Shape;
use crate::failure::Failure;
use crate::formulas::{search_path, standard_dirs};
use crate::specialist::{Roster, Tier};

/// Returns the search path as seen from the directory one works in; outside of a repository it is shorter.
pub fn sources(cx: &Context) -> SearchPath {
    search_path(directories(cx))
}

fn directories(cx: &Context) -> Vec<PathBuf> {
    let (home, gt_root) = (variable("HOME").map(PathBuf::from), variable("GT_ROOT").map(PathBuf::from));
    let (beads, checkout) = match cx.place() {
        Ok(place) => (place.root.join(".beads"), place.checkout.clone()),
        Err(_) => (cx.directory().join(".beads"), cx.directory().to_owned()),
    };
    standard_dirs(&beads, &checkout, home.as_deref(), gt_root.as_deref())
}

/// One file that is asked for by its path; what it extends comes from the search path.
pub struct OneFile {
    name: String,
    format: Format,
    path: PathBuf,
    others: SearchPath,
}

impl OneFile {
    /// Takes a path from the command line, relative to the directory one works in.
    ///
    /// # Errors
    /// `NotAFormulaFile`.
    pub fn new(given: &str, cx: &Context) -> Result<Self, CliError> {
        let path = cx.directory().join(given);
        let file = path.file_name().and_then(|name| name.to_str()).and_then(Format::of_file_name);
        let (name, format) = file.ok_or_else(|| CliError::NotAFormulaFile { path: given.to_owned() })?;
        let beside = path.parent().map(Path::to_owned);
        let others = search_path(beside.into_iter().chain(directories(cx)));
        Ok(Self { name: name.to_owned(), format, others, path })
    }

    /// Returns the name that the file gives its formula.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl FormulaSource for OneFile {
    fn load(&self, name: &str) -> Result<Option<SourceText>, FormulaError> {
        if name != self.name {
            return self.others.load(name);
        }
        let origin = self.path.display().to_string();
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(SourceText { origin, text, format: self.format })),
            Err(source) => Err(FormulaError::Unreadable { origin, source: Box::new(source) }),
        }
    }

    fn list(&self) -> Result<Vec<Listed>, FormulaError> {
        self.others.list()
    }
}

/// Returns whether a word on the command line is meant as a path.
pub fn is_path(word: &str) -> bool {
    word.contains('/') || Format::of_file_name(word).is_some()
}

/// Parses the `NAME=VALUE` of a `--var`.
pub fn variable_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("wanted is NAME=VALUE")?;
    if name.is_empty() { Err("the name is empty".to_owned()) } else { Ok((name.to_owned(), value.to_owned())) }
}

/// Compiles a formula to look at. A required variable without a value gets one that stands in for it.
///
/// # Errors
/// What the formula says; `MissingVars` where no value could be made up (a variable with a pattern).
pub fn compiled(formula: &Formula, given: &BTreeMap<String, String>, roster: &Roster) -> Result<Shape, Failure> {
    let mut values = given.clone();
    for (name, var) in formula.vars.iter().filter(|(_, var)| var.default.is_none() && var.pattern.is_none()) {
        let stand_in = match (var.allowed.first(), var.kind) {
            (Some(first), _) => first.clone(),
            (None, VarKind::Text) => name.clone(),
            (None, VarKind::Int) => "1".to_owned(),
            (None, VarKind::Bool) => "true".to_owned(),
        };
        values.entry(name.clone()).or_insert(stand_in);
    }
    Ok(compile(&resolve(formula, &values)?, &tiers(roster))?)
}

fn tiers(roster: &Roster) -> BTreeMap<String, Tier> {
    let tier = |name: &str| roster.get(name).ok().map(|specialist| (name.to_owned(), specialist.tier()));
    roster.names().filter_map(tier).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::formula::parse;

    fn formula(text: &str) -> Formula {
        parse(&SourceText { origin: "t".into(), text: text.into(), format: Format::Toml }).unwrap()
    }

    #[test]
    fn a_variable_without_value_is_stood_in_for_unless_it_has_a_pattern() {
        let steps = "[[steps]]\nid='executor'\ntitle='{{area}} {{count}} {{fast}} {{level}}'\n";
        let text = format!(
            "formula='f'\n[vars.area]\nrequired=true\n[vars.count]\ntype='int'\n[vars.fast]\ntype='bool'\n\
             [vars.level]\nrequired=true\nenum=['low','high']\n{steps}"
        );
        let shape = compiled(&formula(&text), &BTreeMap::new(), &Roster::shipped()).unwrap();
        assert_eq!(shape.steps[0].title, "area 1 true low");
        let given = BTreeMap::from([("area".to_owned(), "docs".to_owned())]);
        assert_eq!(compiled(&formula(&text), &given, &Roster::shipped()).unwrap().steps[0].title, "docs 1 true low");

        let text = "formula='f'\n[vars.id]\nrequired=true\npattern='^p-'\n[[steps]]\nid='executor'\ntitle='{{id}}'\n";
        let failure = compiled(&formula(text), &BTreeMap::new(), &Roster::shipped()).unwrap_err();
        assert_eq!(failure.error_code, "var_missing");
    }

    #[test]
    fn a_word_with_a_slash_or_a_formulas_suffix_is_a_path() {
        for (word, expected) in [
            ("code-standard", false),
            ("./x", true),
            ("a.formula.json", true),
            ("b.formula.toml", true),
            ("a.json", false),
        ] {
            assert_eq!(is_path(word), expected, "{word}");
        }
        assert_eq!(variable_value("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(variable_value("ab").is_err() && variable_value("=b").is_err());
    }
}

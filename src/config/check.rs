//! Checks the text of a configuration file, while line and column are still known.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::keys::{Kind, SECTIONS, keys};
use crate::nearest::advice;

/// Checks syntax, sections, keys and values of one file; the first fault in the order of the text is told.
///
/// # Errors
/// `Syntax`, `UnknownKey`, `BadValue`, each with line and column.
pub(super) fn check(path: &Path, text: &str, roles: &[&str]) -> Result<(), ConfigError> {
    let file = File { path, text };
    let root = DeTable::parse(text).map_err(|error| file.syntax(&error))?;
    let mut faults: Vec<(usize, ConfigError)> = Vec::new();
    for (section, value) in root.get_ref() {
        let name: &str = section.get_ref();
        if !SECTIONS.contains(&name) {
            faults.push(file.unknown(section, name.to_owned(), advice(name, &SECTIONS)));
            continue;
        }
        let DeValue::Table(table) = value.get_ref() else {
            let found = kind_of(value.get_ref());
            faults.push(file.bad(value, name.to_owned(), found, "a table of settings"));
            continue;
        };
        let known = keys(name, roles);
        for (key, value) in table {
            let dotted = format!("{name}.{}", key.get_ref());
            match known.iter().find(|(known, _)| *known == key.get_ref().as_ref()) {
                None => {
                    let names: Vec<&str> = known.iter().map(|(known, _)| *known).collect();
                    faults.push(file.unknown(key, dotted, advice(key.get_ref(), &names)));
                }
                Some((_, kind)) => faults
                    .extend(refused(*kind, value.get_ref()).map(|found| file.bad(value, dotted, found, kind.wanted()))),
            }
        }
    }
    let first = faults.into_iter().min_by_key(|(at, _)| *at);
    first.map_or(Ok(()), |(_, fault)| Err(fault))
}

/// Returns what stands there when it is no such value.
fn refused(kind: Kind, value: &DeValue<'_>) -> Option<String> {
    let admitted = match (kind, value) {
        (Kind::Count, DeValue::Integer(number)) => u32::from_str_radix(number.as_str(), number.radix()).is_ok(),
        (Kind::Text | Kind::Program | Kind::Mode, DeValue::String(text)) => kind.admits(text),
        _ => false,
    };
    (!admitted).then(|| kind_of(value))
}

/// Returns a value as a message names it.
fn kind_of(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    /// Returns line and column of a byte, both from 1; columns count characters.
    fn place(&self, at: usize) -> (usize, usize) {
        let before = &self.text[..self.text.floor_char_boundary(at)];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        (line, before[start..].chars().count() + 1)
    }

    fn syntax(&self, error: &toml::de::Error) -> ConfigError {
        let (line, column) = self.place(error.span().map_or(0, |span| span.start));
        ConfigError::Syntax { path: self.path.to_owned(), line, column, problem: error.message().to_owned() }
    }

    fn unknown<T>(&self, at: &Spanned<T>, key: String, advice: String) -> (usize, ConfigError) {
        let (line, column) = self.place(at.span().start);
        (at.span().start, ConfigError::UnknownKey { path: self.path.to_owned(), line, column, key, advice })
    }

    fn bad<T>(&self, at: &Spanned<T>, key: String, found: String, wanted: &'static str) -> (usize, ConfigError) {
        let (line, column) = self.place(at.span().start);
        (at.span().start, ConfigError::BadValue { path: self.path.to_owned(), line, column, key, found, wanted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_with_line_column_key_and_the_nearest_name() {
        for (text, expected) in [
            ("[tools]\nbd = \"/opt/bd\"\n", ""),
            ("[policy]\nmode = \"ENFORCE\"\nscope_collision = \"off\"\n[models]\nreviewer = \"a/b\"\n", ""),
            ("chain.max_fix_loops = 0x3\n", ""),
            ("", ""),
            ("[tools]\nbt = \"x\"\n", "line 2, column 1: `tools.bt` sets nothing; known are: bd, pi"),
            ("[tool]\nbd = \"x\"\n", "line 1, column 2: `tool` sets nothing; did you mean `tools`?"),
            (
                "[tools]\nbd = 3\n",
                "line 2, column 6: `tools.bd` is the number 3, wanted is a program: a name on PATH, or a path",
            ),
            (
                "[tools]\npi = \" \"\n",
                "line 2, column 6: `tools.pi` is \" \", wanted is a program: a name on PATH, or a path",
            ),
            ("[chain]\nstall_seconds = -1\n", "`chain.stall_seconds` is the number -1, wanted is a whole number"),
            ("[chain]\nstall_seconds = \"5\"\n", "`chain.stall_seconds` is \"5\", wanted is a whole number"),
            ("[chain]\nmax_fix_loops = 5000000000\n", "is the number 5000000000, wanted is a whole number"),
            ("[policy]\nmode = \"strict\"\n", "wanted is one of \"off\", \"shadow\", \"warn\", \"enforce\""),
            (
                "[policy]\nscope_colision = \"off\"\n",
                "`policy.scope_colision` sets nothing; did you mean `scope_collision`?",
            ),
            ("[models]\nreviwer = \"a/b\"\n", "`models.reviwer` sets nothing; did you mean `reviewer`?"),
            ("models = \"a/b\"\n", "line 1, column 10: `models` is \"a/b\", wanted is a table of settings"),
            ("[tools]\n# é\nbd = \"é\n", "line 3, column"),
            ("[tools\n", "line 1, column"),
            ("[tools]\nbd = \"a\"\nbd = \"b\"\n", "line 3, column 1: duplicate key"),
            ("zoo = 1\n[tools]\nbd = 3\n", "line 1, column 1: `zoo`"),
        ] {
            let found = check(Path::new("c.toml"), text, &["reviewer", "executor"]);
            let told = found.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(told.contains(expected) && told.is_empty() == expected.is_empty(), "{text:?}: {told}");
        }
    }
}

//! Formula directories, in bd's order.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::embedded::EmbeddedSource;
use crate::chain::formula::{Format, FormulaError, FormulaSource, Listed, SearchPath, SourceText, check_name, choose};

/// A formula is text that people write; in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// One directory of formulas. A directory that is not there holds none.
#[derive(Debug, Clone)]
pub struct DirSource {
    directory: PathBuf,
}

impl DirSource {
    /// Makes a source of `directory`; nothing is read yet.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Returns the file names in the directory, sorted; those that are not UTF-8 name no formula.
    fn file_names(&self) -> Result<Vec<String>, FormulaError> {
        let unreadable = |error| unreadable(&self.directory, error);
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(unreadable(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry.map_err(unreadable)?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    fn origin(&self, file_name: &str) -> String {
        self.directory.join(file_name).display().to_string()
    }
}

impl FormulaSource for DirSource {
    fn load(&self, name: &str) -> Result<Option<SourceText>, FormulaError> {
        check_name(name)?;
        let names = self.file_names()?;
        let Some((file_name, format)) = choose(name, names.iter().map(String::as_str)) else { return Ok(None) };
        let path = self.directory.join(file_name);
        let text = read(&path).map_err(|error| unreadable(&path, error))?;
        Ok(Some(SourceText { origin: self.origin(file_name), text, format }))
    }

    fn list(&self) -> Result<Vec<Listed>, FormulaError> {
        let files = self.file_names()?;
        let names = files.iter().filter_map(|file| Format::of_file_name(file));
        let mut listed: Vec<Listed> = names
            .filter_map(|(name, _)| choose(name, files.iter().map(String::as_str)).map(|(file, _)| (name, file)))
            .map(|(name, file)| Listed { name: name.to_owned(), origin: self.origin(file) })
            .collect();
        listed.sort();
        listed.dedup();
        Ok(listed)
    }
}

/// Reads a regular file of at most [`LARGEST_FILE`] bytes; opening a pipe would wait for a writer for ever.
fn read(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST_FILE {
        return Err(io::Error::other(format!("larger than {LARGEST_FILE} bytes")));
    }
    Ok(text)
}

fn unreadable(path: &Path, error: io::Error) -> FormulaError {
    FormulaError::Unreadable { origin: path.display().to_string(), source: Box::new(error) }
}

/// Returns bd's formula directories in its order, each once: workspace, checkout, user, `$GT_ROOT`.
///
/// `beads_dir` is the resolved `.beads` directory, `checkout` the root of the checkout one stands in.
pub fn standard_dirs(beads_dir: &Path, checkout: &Path, home: Option<&Path>, gt_root: Option<&Path>) -> Vec<PathBuf> {
    let below = |root: &Path| root.join(".beads").join("formulas");
    let all = [Some(beads_dir.join("formulas")), Some(below(checkout)), home.map(below), gt_root.map(below)];
    let mut dirs: Vec<PathBuf> = Vec::new();
    for dir in all.into_iter().flatten() {
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    dirs
}

/// Returns the search path of these directories with the built-in formulas behind them.
pub fn search_path(directories: impl IntoIterator<Item = PathBuf>) -> SearchPath {
    let layer = |directory| Box::new(DirSource::new(directory)) as Box<dyn FormulaSource>;
    let mut layers: Vec<Box<dyn FormulaSource>> = directories.into_iter().map(layer).collect();
    layers.push(Box::new(EmbeddedSource));
    SearchPath::new(layers)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{LARGEST_FILE, search_path, standard_dirs};
    use crate::chain::formula::{FormulaError, FormulaSource, resolve_named};

    fn write(directory: &Path, file: &str, bytes: &[u8]) {
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join(file), bytes).unwrap();
    }

    #[test]
    fn a_file_hides_those_of_later_directories_and_the_built_in_one() {
        let root = tempfile::tempdir().unwrap();
        let (first, second) = (root.path().join("a b\n\u{e9}"), root.path().join("second"));
        write(&first, "ship.formula.json", b"{\"formula\":\"ship\"}");
        write(&first, "ship.formula.toml", b"formula = 'ship'");
        write(&second, "ship.formula.toml", b"broken");
        write(&second, "code-standard.formula.json", b"{}");
        let path = search_path([first.clone(), root.path().join("absent"), second.clone()]);
        assert_eq!(path.load("ship").unwrap().unwrap().origin, first.join("ship.formula.toml").display().to_string());
        let listed: Vec<String> = path.list().unwrap().into_iter().map(|listed| listed.origin).collect();
        assert_eq!(
            listed,
            [second.join("code-standard.formula.json"), first.join("ship.formula.toml")]
                .map(|path| path.display().to_string())
        );
        assert_eq!(search_path([]).load("code-standard").unwrap().unwrap().origin, "built-in code-standard");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_and_uncovers_nothing() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "latin.formula.json", b"{\"formula\":\"caf\xe9\"}");
        write(root.path(), "large.formula.json", &vec![b' '; LARGEST_FILE as usize + 1]);
        fs::create_dir(root.path().join("code-standard.formula.json")).unwrap();
        let path = search_path([root.path().to_owned()]);
        for name in ["latin", "large", "code-standard"] {
            assert!(matches!(path.load(name), Err(FormulaError::Unreadable { .. })), "{name}");
        }
    }

    #[test]
    fn a_formula_of_a_directory_extends_a_built_in_one() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "mine.formula.toml", b"formula = 'mine'\nextends = ['code-standard']\n");
        let resolved = resolve_named("mine", &Default::default(), &search_path([root.path().to_owned()])).unwrap();
        assert_eq!(resolved.steps.len(), 7);
        assert!(resolved.lineage.contains("code-standard"));
    }

    #[test]
    fn the_directories_are_bds_and_none_stands_twice() {
        let dirs = standard_dirs(Path::new("/r/.beads"), Path::new("/r"), Some(Path::new("/h")), None);
        assert_eq!(dirs, ["/r/.beads/formulas", "/h/.beads/formulas"].map(PathBuf::from));
        let dirs = standard_dirs(Path::new("/r/.beads"), Path::new("/w"), None, Some(Path::new("/g")));
        assert_eq!(dirs, ["/r/.beads/formulas", "/w/.beads/formulas", "/g/.beads/formulas"].map(PathBuf::from));
    }
}

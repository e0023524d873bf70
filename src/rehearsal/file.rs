//! Reading a script from disk.

use std::fs;
use std::path::Path;

use super::error::ScriptError;
use super::script::Script;

/// Reads and checks a script. Returns it with the text it came from, which is what a chain keeps a copy of.
pub fn load(path: &Path) -> Result<(Script, String), ScriptError> {
    let text = fs::read_to_string(path).map_err(|source| ScriptError::Unreadable { file: path.to_owned(), source })?;
    let script = Script::parse(&path.to_string_lossy(), &text)?;
    Ok((script, text))
}

//! What every command is given: where it stands, how it prints, and what it may open.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};

use super::error::CliError;
use super::output::Printer;
use super::place::{Place, find};
use crate::config::{Config, Flags, Places};
use crate::failure::Failure;
use crate::ports::{Clock, SystemClock, WorkspaceError};
use crate::specialist::Roster;
use crate::storage::{Layout, Reader, StoreError};

/// What every command is given. Nothing is opened before a command asks for it.
pub struct Context {
    /// Prints.
    pub printer: Printer,
    directory: PathBuf,
    place: OnceCell<Place>,
}

impl Context {
    /// Takes the directory of `-C`, or that of the process.
    ///
    /// # Errors
    /// `NoDirectory`.
    pub fn new(printer: Printer, directory: Option<PathBuf>) -> Result<Self, Failure> {
        let given = directory.unwrap_or_else(|| PathBuf::from("."));
        let found = given.canonicalize().ok().filter(|path| path.is_dir());
        let directory = found.ok_or(CliError::NoDirectory { path: given })?;
        Ok(Self { printer, directory, place: OnceCell::new() })
    }

    /// Returns the directory that sp works in, absolute.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the repository that the directory lies in.
    ///
    /// # Errors
    /// As [`find`].
    pub fn place(&self) -> Result<&Place, WorkspaceError> {
        match self.place.get() {
            Some(place) => Ok(place),
            None => {
                let found = find(&self.directory)?;
                Ok(self.place.get_or_init(|| found))
            }
        }
    }

    /// Opens the database for reading; `None` when nothing was recorded in this repository yet.
    ///
    /// # Errors
    /// What the repository or the database says.
    pub fn reader(&self) -> Result<Option<Reader>, Failure> {
        match Reader::open(&self.layout()?.database()) {
            Ok(reader) => Ok(Some(reader)),
            Err(StoreError::NotThere { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns where the repository's own files of sp are.
    ///
    /// # Errors
    /// What the repository says.
    pub fn layout(&self) -> Result<Layout, WorkspaceError> {
        Ok(Layout::new(&self.place()?.root))
    }

    /// Reads the configuration; outside of a repository that of the user alone.
    ///
    /// # Errors
    /// As [`Places::load`].
    pub fn config(&self, flags: Flags) -> Result<Config, Failure> {
        let roster = Roster::shipped();
        let roles: Vec<&str> = roster.names().collect();
        let root = self.place().ok().map(|place| place.root.as_path());
        let places = Places { root, directory: &self.directory, variable: &variable };
        Ok(places.load(&roles, flags)?)
    }

    /// Returns the wall clock, ms since 1970 UTC.
    pub fn now_ms(&self) -> i64 {
        SystemClock.now_ms()
    }

    /// Runs calls of other programs to their end, on this thread. Only for commands that need them.
    ///
    /// # Errors
    /// `Runtime`; what the work says.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        Ok(tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(CliError::Runtime)?
            .block_on(work))
    }
}

/// Looks a variable of the environment up.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

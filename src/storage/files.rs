//! The files of a job: mirrors of its rows for `cat`, `jq` and `tail -f`, and enough to write the rows again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

use super::error::StoreError;
use super::job_events::JobEventRow;
use super::jobs::JobRow;
use super::paths::JobDir;

/// When a written file must survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Whenever the system gets to it; for what is written again and again.
    Lazy,
    /// Before the call returns.
    Synced,
}

/// The files of one job, open for writing. One incarnation of the job holds it at a time.
#[derive(Debug)]
pub struct JobFiles {
    dir: JobDir,
    events: File,
}

impl JobFiles {
    /// Makes the job's directory where it is missing and opens its timeline for appending.
    pub fn open(dir: JobDir) -> Result<Self, StoreError> {
        fs::create_dir_all(dir.path()).map_err(failed("create", dir.path()))?;
        let path = dir.events();
        let events = open_log(&path).map_err(failed("open", &path))?;
        Ok(Self { dir, events })
    }

    /// Returns where the files are.
    pub fn dir(&self) -> &JobDir {
        &self.dir
    }

    /// Replaces status.json; a reader sees the old or the new one, never a part.
    pub fn write_status(&self, job: &JobRow, durability: Durability) -> Result<(), StoreError> {
        let mut text = job.to_json();
        text.push('\n');
        replace(&self.dir.status(), text.as_bytes(), durability)
    }

    /// Appends to events.jsonl in one write.
    pub fn append_events(&mut self, events: &[JobEventRow]) -> Result<(), StoreError> {
        let mut lines = String::new();
        for event in events {
            // A line feed in JSON stands between tokens only: within strings it is escaped.
            lines.extend(event.json.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }));
            lines.push('\n');
        }
        self.events.write_all(lines.as_bytes()).map_err(failed("append to", &self.dir.events()))
    }

    /// Brings the timeline to disk.
    pub fn sync_events(&self) -> Result<(), StoreError> {
        self.events.sync_data().map_err(failed("sync", &self.dir.events()))
    }

    /// Writes result.txt and brings it to disk.
    pub fn write_result(&self, text: &str) -> Result<(), StoreError> {
        replace(&self.dir.result(), text.as_bytes(), Durability::Synced)
    }
}

/// A job's timeline as its file has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobLog {
    /// The whole events, in file order.
    pub events: Vec<JobEventRow>,
    /// Lines that are no event: cut off by a crash, or foreign.
    pub broken: usize,
}

impl JobDir {
    /// Reads status.json; `None` when there is none.
    pub fn read_status(&self) -> Result<Option<JobRow>, StoreError> {
        let path = self.status();
        let Some(bytes) = read(&path)? else { return Ok(None) };
        let garbled = |source| StoreError::Garbled { path, source: Arc::new(source) };
        serde_json::from_slice(&bytes).map(Some).map_err(garbled)
    }

    /// Reads events.jsonl; empty when there is none. A line cut off by a crash is counted, not an error.
    pub fn read_events(&self) -> Result<JobLog, StoreError> {
        let bytes = read(&self.events())?.unwrap_or_default();
        let mut log = JobLog::default();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match str::from_utf8(line).ok().and_then(JobEventRow::from_line) {
                Some(event) => log.events.push(event),
                None => log.broken += 1,
            }
        }
        Ok(log)
    }

    /// Reads result.txt; `None` when there is none.
    pub fn read_result(&self) -> Result<Option<String>, StoreError> {
        Ok(read(&self.result())?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// Opens a log for appending. A last line without its end gets one, so that the next event starts a line of its own.
fn open_log(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    if file.seek(SeekFrom::End(0))? > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

/// Writes a file beside `path` and renames it over.
fn replace(path: &Path, bytes: &[u8], durability: Durability) -> Result<(), StoreError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", process::id()));
    let temporary = path.with_file_name(name);
    let write = || -> io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        if durability == Durability::Synced {
            file.sync_all()?;
        }
        fs::rename(&temporary, path)?;
        match path.parent() {
            // The rename itself is an entry of the directory.
            Some(parent) if durability == Durability::Synced => File::open(parent)?.sync_all(),
            Some(_) | None => Ok(()),
        }
    };
    write().map_err(failed("write", path))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

fn failed(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path: PathBuf = path.to_owned();
    move |source| StoreError::File { verb, path, source: Arc::new(source) }
}

#[cfg(test)]
mod tests;

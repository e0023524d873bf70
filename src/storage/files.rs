//! The files of a job: mirrors of its rows for `cat`, `jq` and `tail -f`, and enough to write the rows again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::StoreError;
use super::job_events::JobEventRow;
use super::jobs::JobRow;
use super::paths::JobDir;

/// Kind of the event that ends a timeline.
const RUN_COMPLETE: &str = "run_complete";

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
    last_seq: u64,
}

impl JobFiles {
    /// Makes the job's directory where it is missing and opens its timeline for appending.
    pub fn open(dir: JobDir) -> Result<Self, StoreError> {
        fs::create_dir_all(dir.path()).map_err(failed("create", dir.path()))?;
        let last_seq = dir.read_events()?.events.iter().map(|event| event.seq).max().unwrap_or(0);
        let path = dir.events();
        let events = open_log(&path).map_err(failed("open", &path))?;
        Ok(Self { dir, events, last_seq })
    }

    /// Replaces status.json; a reader sees the old or the new one, never a part.
    pub fn write_status(&self, job: &JobRow, durability: Durability) -> Result<(), StoreError> {
        let mut text = job.to_json();
        text.push('\n');
        stage(&self.dir.status(), text.as_bytes(), durability)?.publish()
    }

    /// Appends to events.jsonl in one write; what the file has already is left out.
    pub fn append_events(&mut self, events: &[JobEventRow]) -> Result<(), StoreError> {
        let mut lines = String::new();
        let mut last_seq = self.last_seq;
        for event in events.iter().filter(|event| event.seq > self.last_seq) {
            // A line feed in JSON stands between tokens only: within strings it is escaped.
            lines.extend(event.json.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }));
            lines.push('\n');
            last_seq = last_seq.max(event.seq);
        }
        self.events.write_all(lines.as_bytes()).map_err(failed("append to", &self.dir.events()))?;
        self.last_seq = last_seq;
        Ok(())
    }

    /// Brings the file and the rows of a timeline together after a crash; returns the rows that the database lacks.
    ///
    /// The file is written first, so it may be ahead; after a power cut it may be behind, since it is not synced.
    pub fn mend(&mut self, stored: &[JobEventRow]) -> Result<Vec<JobEventRow>, StoreError> {
        let newest = stored.last().map_or(0, |event| event.seq);
        let mut ahead = self.dir.read_events()?.events;
        ahead.retain(|event| event.seq > newest);
        // An end that the database does not know did not happen: there may be another one yet.
        if ahead.last().is_some_and(|event| event.kind == RUN_COMPLETE) {
            ahead.pop();
            self.cut_last_line()?;
        }
        self.append_events(stored)?;
        self.last_seq = ahead.last().map_or(newest, |event| event.seq);
        Ok(ahead)
    }

    fn cut_last_line(&mut self) -> Result<(), StoreError> {
        let path = self.dir.events();
        let bytes = read(&path)?.unwrap_or_default();
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let start = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |feed| feed + 1);
        self.events.set_len(start as u64).map_err(failed("shorten", &path))
    }

    /// Returns the number of the newest event in the file; 0 when it is empty.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Brings the timeline to disk.
    pub fn sync_events(&self) -> Result<(), StoreError> {
        self.events.sync_data().map_err(failed("sync", &self.dir.events()))
    }

    /// Brings a result to disk under another name; it is not result.txt yet.
    pub(super) fn stage_result(&self, text: &str) -> Result<Staged, StoreError> {
        stage(&self.dir.result(), text.as_bytes(), Durability::Synced)
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
    #[cfg(test)]
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
    #[cfg(test)]
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

/// A file that is written and waits for its name. Dropped without it, it is removed.
#[derive(Debug)]
pub(super) struct Staged {
    temporary: PathBuf,
    path: PathBuf,
    durability: Durability,
}

impl Staged {
    /// Gives the file its name, in the place of what had it.
    pub(super) fn publish(&self) -> Result<(), StoreError> {
        let rename = || {
            fs::rename(&self.temporary, &self.path)?;
            match self.path.parent() {
                // The name is an entry of the directory.
                Some(parent) if self.durability == Durability::Synced => File::open(parent)?.sync_all(),
                Some(_) | None => Ok(()),
            }
        };
        rename().map_err(failed("write", &self.path))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Gone when it was published.
        drop(fs::remove_file(&self.temporary));
    }
}

/// Writes a file beside `path`.
fn stage(path: &Path, bytes: &[u8], durability: Durability) -> Result<Staged, StoreError> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // Two incarnations of a job, in one process or in two, never write the same file.
    name.push(format!(".{}.{}.tmp", process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
    let staged = Staged { temporary: path.with_file_name(name), path: path.to_owned(), durability };
    let write = || {
        let mut file = File::create(&staged.temporary)?;
        file.write_all(bytes)?;
        if durability == Durability::Synced { file.sync_all() } else { Ok(()) }
    };
    write().map_err(failed("write", path))?;
    Ok(staged)
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

//! Where everything lives under `.specialists/` of the repository's common root.

use std::path::{Path, PathBuf};

use super::error::StoreError;
use crate::ids::{ChainId, JobId};

/// The directory `.specialists` of one repository. All its worktrees share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    base: PathBuf,
}

impl Layout {
    /// Names the layout below a repository's common root (the parent of its common git directory). Touches nothing.
    pub fn new(root: &Path) -> Self {
        Self { base: root.join(".specialists") }
    }

    /// Returns the directory that holds all of sp's own files.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Returns the database; the existing system uses the same path.
    pub fn database(&self) -> PathBuf {
        self.base.join("db/observability.db")
    }

    /// Returns the lock file around every call of bd.
    pub fn bd_lock(&self) -> PathBuf {
        self.base.join("bd.lock")
    }

    /// Returns the directory that holds one directory a job.
    pub fn jobs(&self) -> PathBuf {
        self.base.join("jobs")
    }

    /// Returns the directory of a job; refuses text that could lead elsewhere.
    pub fn job(&self, job: &JobId) -> Result<JobDir, StoreError> {
        check("job", job.as_str())?;
        Ok(JobDir { dir: self.jobs().join(job.as_str()) })
    }

    /// Returns the directory of a chain; refuses text that could lead elsewhere.
    pub fn chain(&self, chain: &ChainId) -> Result<ChainDir, StoreError> {
        check("chain", chain.as_str())?;
        Ok(ChainDir { dir: self.base.join("chains").join(chain.as_str()) })
    }
}

/// Refuses what is no plain file name: ids reach us from command lines and from the database.
fn check(what: &'static str, text: &str) -> Result<(), StoreError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let starts_plain = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if starts_plain && text.len() <= 128 && text.bytes().all(plain) {
        Ok(())
    } else {
        Err(StoreError::BadId { what, text: text.to_owned() })
    }
}

/// The files of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobDir {
    dir: PathBuf,
}

impl JobDir {
    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Returns the mirror of the job's row.
    pub fn status(&self) -> PathBuf {
        self.dir.join("status.json")
    }

    /// Returns the mirror of the job's timeline, one JSON object a line.
    pub fn events(&self) -> PathBuf {
        self.dir.join("events.jsonl")
    }

    /// Returns the final answer.
    pub fn result(&self) -> PathBuf {
        self.dir.join("result.txt")
    }

    /// Returns pi's session file.
    pub fn session(&self) -> PathBuf {
        self.dir.join("session.jsonl")
    }

    /// Returns the first user turn.
    pub fn prompt(&self) -> PathBuf {
        self.dir.join("prompt.md")
    }

    /// Returns the text appended to the system prompt.
    pub fn system(&self) -> PathBuf {
        self.dir.join("system.md")
    }

    /// Returns the whole diff that the job is to look at.
    pub fn diff(&self) -> PathBuf {
        self.dir.join("diff.patch")
    }

    /// Returns the directory of results that steps before this one gave.
    pub fn upstream(&self) -> PathBuf {
        self.dir.join("upstream")
    }

    /// Returns the agent directory of a rehearsed job.
    pub fn agent_dir(&self) -> PathBuf {
        self.dir.join("agent")
    }
}

/// The files of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainDir {
    dir: PathBuf,
}

impl ChainDir {
    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Returns the chain's copy of its rehearsal script.
    pub fn rehearsal(&self) -> PathBuf {
        self.dir.join("rehearsal.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_never_leads_out_of_its_directory() {
        let layout = Layout::new(Path::new("/repo"));
        let too_long = "a".repeat(129);
        for text in ["", ".", "..", "../x", "a/b", "/etc", ".hidden", "-f", "a\0b", "a b", "é", too_long.as_str()] {
            assert!(matches!(layout.job(&JobId::new(text)), Err(StoreError::BadId { what: "job", .. })), "{text:?}");
            assert!(
                matches!(layout.chain(&ChainId::new(text)), Err(StoreError::BadId { what: "chain", .. })),
                "{text:?}"
            );
        }
        for text in ["0a1b2c3d", "my-proj_2-mol-0a1b2c3d", "bd-a3f8.1"] {
            assert!(layout.job(&JobId::new(text)).is_ok() && layout.chain(&ChainId::new(text)).is_ok(), "{text}");
        }
    }

    #[test]
    fn the_database_lies_where_the_existing_system_has_it() {
        let layout = Layout::new(Path::new("/repo"));
        assert_eq!(layout.database(), Path::new("/repo/.specialists/db/observability.db"));
        let job = layout.job(&JobId::new("0a1b2c3d")).unwrap();
        assert_eq!(job.status(), Path::new("/repo/.specialists/jobs/0a1b2c3d/status.json"));
    }
}

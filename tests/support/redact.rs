//! Takes out of a text what differs from run to run, so that the rest can be compared whole.

use std::sync::LazyLock;

use regex::Regex;

use super::repo::Repo;

/// Pattern and replacement, in order.
static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"\bpager-mol-[0-9a-z]{8}\b", "[CHAIN]"),
        (r"\bpager-[0-9a-z]{3,4}\b", "[BEAD]"),
        (r"\b[0-9a-f]{40}\b", "[COMMIT]"),
        (r"\b(?:[0-9a-f]{12}|[0-9a-f]{10})\b", "[COMMIT]"),
        (r"\b\d\d:\d\d:\d\d\b", "[CLOCK]"),
        (r"\bprocess \d+", "process [PID]"),
        (r" *\b(?:\d+h )?(?:\d+m )?\d+(?:\.\d+)?(?:ms|s)\b", " [TIME]"),
    ]
    .map(|(pattern, word)| (Regex::new(pattern).unwrap(), word))
    .into()
});

/// Returns a text without ids, times and paths.
pub fn redact(repo: &Repo, text: &str) -> String {
    let mut text = text.replace(repo.root().to_str().unwrap(), "[REPO]");
    text = text.replace(repo.base().to_str().unwrap(), "[BASE]");
    for job in repo.column("SELECT job_id || ' ' || chain_step || '.' || round FROM specialist_jobs") {
        let (id, name) = job.split_once(' ').unwrap();
        text = text.replace(id, &format!("[JOB {name}]"));
    }
    for (pattern, word) in PATTERNS.iter() {
        text = pattern.replace_all(&text, *word).into_owned();
    }
    text
}

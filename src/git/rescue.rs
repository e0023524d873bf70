//! Rescue refs: what is undone in a tree is kept there first, as a commit with the whole tree.
//!
//! The first parents are the commits that would otherwise be reachable from nowhere; the last is what the ref held
//! before, so that a ref that is used twice forgets nothing.

use super::checkout::{Checkout, text};
use super::run::Mode;
use crate::ports::WorkspaceError;

/// Who the rescue commits are by; they are sp's book-keeping, not the user's work.
const IDENTITY: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "sp"),
    ("GIT_AUTHOR_EMAIL", "sp@localhost"),
    ("GIT_COMMITTER_NAME", "sp"),
    ("GIT_COMMITTER_EMAIL", "sp@localhost"),
];

/// A place to save to.
pub(super) struct Rescue<'a> {
    /// Full name of the ref.
    pub(super) name: &'a str,
    /// What the save belongs to; the same request after a crash has the same key.
    pub(super) key: String,
}

/// A rescue commit, read back.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Saved {
    commit: String,
    tree: String,
    parents: Vec<String>,
    key: Option<String>,
    previous: Option<String>,
}

impl Rescue<'_> {
    /// Saves a tree and the commits it came from, and reads the ref back. Saving the same again does nothing.
    pub(super) async fn save(
        &self,
        checkout: &Checkout<'_>,
        tree: &str,
        parents: &[&str],
    ) -> Result<(), WorkspaceError> {
        let existing = match checkout.commit_of(self.name).await? {
            Some(commit) => Some(read(checkout, commit).await?),
            None => None,
        };
        if existing.as_ref().is_some_and(|saved| {
            saved.tree == tree
                && saved.key.as_ref() == Some(&self.key)
                && saved.parents.iter().zip(parents).all(|(a, b)| a == b)
        }) {
            return Ok(());
        }
        let previous = existing.map(|saved| saved.commit);
        let mut message = format!("sp rescue\n\nSp-Request: {}\n", self.key);
        if let Some(previous) = &previous {
            message.push_str(&format!("Sp-Previous: {previous}\n"));
        }
        let call = checkout.call(Mode::Write, "commit-tree").args(["-F", "-"]).stdin(message.as_bytes());
        let call = IDENTITY.iter().fold(call, |call, (name, value)| call.env(name, value));
        let call =
            parents.iter().copied().chain(previous.as_deref()).fold(call, |call, parent| call.args(["-p", parent]));
        let commit = text(checkout.run.line(call.arg(tree)).await?);
        // An empty old value means "must not exist yet".
        let old = previous.unwrap_or_default();
        let call = checkout.call(Mode::Write, "update-ref").args(["-m", "sp rescue", self.name, &commit, &old]);
        checkout.run.ok(call).await?;
        if checkout.commit_of(self.name).await?.as_deref() == Some(commit.as_str()) {
            Ok(())
        } else {
            let reason = format!("{} does not hold what was saved; nothing was undone", self.name);
            Err(WorkspaceError::Failed { verb: "update-ref", reason })
        }
    }

    /// Returns the trees saved for this key, newest first.
    pub(super) async fn trees(&self, checkout: &Checkout<'_>) -> Result<Vec<String>, WorkspaceError> {
        let mut trees = Vec::new();
        let mut next = checkout.commit_of(self.name).await?;
        while let Some(commit) = next {
            let saved = read(checkout, commit).await?;
            if saved.key.as_ref() != Some(&self.key) {
                break;
            }
            trees.push(saved.tree);
            next = saved.previous;
        }
        Ok(trees)
    }
}

async fn read(checkout: &Checkout<'_>, commit: String) -> Result<Saved, WorkspaceError> {
    let body = text(checkout.run.ok(checkout.call(Mode::Read, "cat-file").args(["commit", &commit])).await?);
    Ok(decode(commit, &body))
}

/// Reads a commit object; a commit that is not ours has neither key nor previous.
fn decode(commit: String, body: &str) -> Saved {
    let (head, message) = body.split_once("\n\n").unwrap_or((body, ""));
    let all = |text: &str, key: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix(key)).map(str::to_owned).collect()
    };
    let one = |text: &str, key: &str| all(text, key).pop();
    Saved {
        commit,
        tree: one(head, "tree ").unwrap_or_default(),
        parents: all(head, "parent "),
        key: one(message, "Sp-Request: "),
        previous: one(message, "Sp-Previous: "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rescue_commit_is_read_with_its_key_and_its_past() {
        let body =
            "tree t1\nparent p1\nparent p2\nauthor a <a@b> 1 +0000\n\nsp rescue\n\nSp-Request: k\nSp-Previous: p2\n";
        let saved = decode("c".into(), body);
        assert_eq!((saved.tree.as_str(), saved.parents.len()), ("t1", 2));
        assert_eq!((saved.key.as_deref(), saved.previous.as_deref()), (Some("k"), Some("p2")));
        let foreign = decode("c".into(), "tree t\nauthor a\n\ntree lies in the text\nparent too");
        assert_eq!((foreign.tree.as_str(), foreign.parents.len(), foreign.key), ("t", 0, None));
    }
}

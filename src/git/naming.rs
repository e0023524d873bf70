//! Names of branches, worktrees and rescue refs. Pure. Source: spec 002 "Branch naming".

use std::path::{Path, PathBuf};

use crate::failure::{Explain, FailureKind};
use crate::ids::{BeadId, JobId};

/// Bytes that one component of a name may have, so that a file system takes it with git's `.lock` behind it.
const LONGEST: usize = 200;

/// Why an id can't name a branch or a directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name breaks a rule of git or of the file system.
    #[error("name a branch after `{text}`: {rule}")]
    Invalid {
        /// The id.
        text: String,
        /// The rule it breaks.
        rule: &'static str,
    },
}

impl Explain for NameError {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        (FailureKind::Usage, "bad_name", "choose an id of letters, digits, `.`, `-` and `_`".into())
    }
}

/// Returns a specialist's name as part of a branch: lower case, each run of other characters than `a`–`z` and `0`–`9`
/// replaced by one `-`, also at the ends.
pub fn slug(specialist: &str) -> String {
    let mut slug = String::with_capacity(specialist.len());
    for letter in specialist.to_lowercase().chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter);
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug
}

/// Returns the branch of a writer: `feature/<bead>-<slug>`. The bead id itself is not changed; one that git would not
/// take in a branch is an error.
pub fn branch_for(bead: &BeadId, specialist: &str) -> Result<String, NameError> {
    Ok(format!("feature/{}", leaf(bead, specialist)?))
}

/// Returns the directory of a writer's worktree: `<root>/.worktrees/<bead>/<bead>-<slug>`.
pub fn worktree_for(root: &Path, bead: &BeadId, specialist: &str) -> Result<PathBuf, NameError> {
    Ok(root.join(".worktrees").join(bead.as_str()).join(leaf(bead, specialist)?))
}

/// Returns the ref under which a job's undone changes are kept: `refs/sp/rescue/<job>`.
pub fn rescue_ref(job: &JobId) -> Result<String, NameError> {
    check(job.as_str(), job.as_str())?;
    Ok(format!("refs/sp/rescue/{job}"))
}

fn leaf(bead: &BeadId, specialist: &str) -> Result<String, NameError> {
    check(bead.as_str(), bead.as_str())?;
    if specialist.is_empty() {
        return Err(NameError::Invalid { text: specialist.into(), rule: "a specialist has a name" });
    }
    let leaf = format!("{bead}-{}", slug(specialist));
    check(&leaf, bead.as_str())?;
    Ok(leaf)
}

/// Checks one component against `git check-ref-format`, and against leaving its directory.
fn check(component: &str, text: &str) -> Result<(), NameError> {
    const FORBIDDEN: &[char] = &[' ', '~', '^', ':', '?', '*', '[', '\\', '/', '\u{7f}'];
    let rule = if component.is_empty() {
        "it is empty"
    } else if component.len() > LONGEST {
        "it is longer than 200 bytes"
    } else if component.starts_with(['.', '-']) {
        "it begins with `.` or `-`"
    } else if component.ends_with('.') || component.ends_with(".lock") {
        "it ends with `.` or `.lock`"
    } else if component.contains("..") || component.contains("@{") {
        "it holds `..` or `@{`"
    } else if component.chars().any(|letter| letter.is_control() || FORBIDDEN.contains(&letter)) {
        "it holds a blank, a slash, a control character or one of ~^:?*[\\"
    } else {
        return Ok(());
    };
    Err(NameError::Invalid { text: text.into(), rule })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slug_is_lower_case_with_one_dash_for_each_run_of_other_characters() {
        for (name, expected) in [
            ("executor", "executor"),
            ("Test-Engineer", "test-engineer"),
            ("test   engineer", "test-engineer"),
            ("test_-_engineer.v2", "test-engineer-v2"),
            ("(executor)", "-executor-"),
            ("  Reviewer!!", "-reviewer-"),
            ("!!!", "-"),
            ("Prüfer", "pr-fer"),
            ("", ""),
        ] {
            assert_eq!(slug(name), expected, "{name:?}");
        }
    }

    #[test]
    fn branch_and_worktree_follow_the_spec() {
        let bead = BeadId::new("hgpu.3");
        assert_eq!(branch_for(&bead, "executor").unwrap(), "feature/hgpu.3-executor");
        assert_eq!(
            worktree_for(Path::new("/repo"), &bead, "executor").unwrap(),
            Path::new("/repo/.worktrees/hgpu.3/hgpu.3-executor")
        );
        assert_eq!(branch_for(&BeadId::new("Proj_A.lock-b"), "QA").unwrap(), "feature/Proj_A.lock-b-qa");
        assert_eq!(rescue_ref(&JobId::new("0a1b2c3d")).unwrap(), "refs/sp/rescue/0a1b2c3d");
    }

    #[test]
    fn an_id_that_git_or_the_disk_would_not_take_is_an_error() {
        let long = "x".repeat(201);
        for odd in [
            "", ".", "..", "../x", "a/b", "a..b", "-x", ".x", "a b", "a\nb", "a~", "a:b", "a@{b", "x.lock", "x.", &long,
        ] {
            assert!(branch_for(&BeadId::new(odd), "executor").is_err(), "{odd:?}");
            assert!(worktree_for(Path::new("/r"), &BeadId::new(odd), "executor").is_err(), "{odd:?}");
            assert!(rescue_ref(&JobId::new(odd)).is_err(), "{odd:?}");
        }
        assert!(branch_for(&BeadId::new("x"), "").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn every_name_that_is_given_out_is_a_valid_ref(bead in "[a-zA-Z0-9._@{}é~^: /-]{1,12}", role in "[\\PC]{1,10}") {
            if let Ok(branch) = branch_for(&BeadId::new(bead), &role) {
                let status = Command::new("git").args(["check-ref-format", "--branch", &branch]).output().unwrap().status;
                prop_assert!(status.success(), "{branch:?}");
            }
        }
    }
}

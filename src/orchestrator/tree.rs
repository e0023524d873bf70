//! Whether the branch and the directory of a chain are free, before anything of it is created.

use super::builder::Orchestrator;
use super::error::OrchestratorError;
use crate::actors::home;
use crate::chain::shape::Shape;
use crate::ids::BeadId;
use crate::ports::WorkspaceError;
use crate::storage::{Reader, StoreError};

impl Orchestrator {
    /// Refuses a branch that is not this bead's, and a directory that stands where the worktree would. Writes nothing.
    ///
    /// A branch is the bead's when an earlier chain of it is on record with that branch or is being recovered, or when
    /// nothing is on it yet.
    pub(super) async fn refuse_foreign_tree(
        &self,
        bead: &BeadId,
        shape: &Shape,
        base: &str,
        is_recovered: bool,
    ) -> Result<(), OrchestratorError> {
        let (branch, path) = home(&self.ground.root, bead, shape)?;
        self.refuse_odd_parents(bead)?;
        let Some(found) = self.ground.workspace.branch_tip(&branch).await? else {
            for (at, _) in branch.match_indices('/') {
                let taken = branch[..at].to_owned();
                if self.ground.workspace.branch_tip(&taken).await?.is_some() {
                    return Err(OrchestratorError::BranchInTheWay { branch, taken });
                }
            }
            // A dangling link is in the way too.
            return if path.symlink_metadata().is_ok() {
                Err(OrchestratorError::Occupied { bead: bead.clone(), path })
            } else {
                Ok(())
            };
        };
        if found == base {
            return Ok(());
        }
        if !is_recovered && !self.is_on_record(bead, &branch)? {
            return Err(OrchestratorError::BranchTaken { branch, found });
        }
        if !self.ground.workspace.contains(&found, base).await? {
            return Err(WorkspaceError::ForeignBranch { branch, found, expected: base.to_owned() }.into());
        }
        Ok(())
    }

    /// The directories above the worktree are missing or real ones: git would follow a link and name another path.
    fn refuse_odd_parents(&self, bead: &BeadId) -> Result<(), OrchestratorError> {
        let trees = self.ground.root.join(".worktrees");
        for path in [trees.clone(), trees.join(bead.as_str())] {
            if path.symlink_metadata().is_ok_and(|facts| !facts.is_dir()) {
                return Err(OrchestratorError::Occupied { bead: bead.clone(), path });
            }
        }
        Ok(())
    }

    /// Refuses a branch that is checked out elsewhere, and a directory without it. May forget a worktree of sp's own
    /// whose directory is gone.
    pub(super) async fn refuse_other_checkout(&self, bead: &BeadId, shape: &Shape) -> Result<(), OrchestratorError> {
        let (branch, path) = home(&self.ground.root, bead, shape)?;
        match self.ground.workspace.worktree_of(&branch).await? {
            Some(found) if found == path => Ok(()),
            Some(found) => Err(OrchestratorError::CheckedOut { branch, found, wanted: path }),
            None if path.symlink_metadata().is_ok() => Err(OrchestratorError::Occupied { bead: bead.clone(), path }),
            None => Ok(()),
        }
    }

    fn is_on_record(&self, bead: &BeadId, branch: &str) -> Result<bool, OrchestratorError> {
        match Reader::open(&self.ground.layout.database()) {
            Ok(reader) => {
                let chains = reader.chains()?;
                Ok(chains.iter().any(|head| head.bead == *bead && head.branch.as_deref() == Some(branch)))
            }
            Err(StoreError::NotThere { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

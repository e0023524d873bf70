//! The repository adapter: git, by its command line.

mod checkout;
mod commit;
mod decode;
mod lock;
mod naming;
mod paths;
mod repository;
mod rescue;
mod restore;
#[cfg(test)]
mod rig;
mod run;

pub(crate) use naming::{NameError, branch_for, rescue_ref, worktree_for};
pub(crate) use repository::Git;

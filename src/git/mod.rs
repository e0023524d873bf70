//! The repository adapter: git.

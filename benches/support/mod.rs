//! A stubbed surrounding for `sp`, and what is measured in it.

pub(crate) mod agent;
pub(crate) mod answers;
pub(crate) mod measure;
pub(crate) mod meter;
pub(crate) mod rig;
pub(crate) mod table;
pub(crate) mod tracker;
pub(crate) mod wire;
pub(crate) mod workspace;

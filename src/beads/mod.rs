//! The bd adapter: typed calls, tolerant decoding, error classes, one lock a workspace. Contract: bd 1.3.x.

#[cfg(test)]
mod agreement;
mod batch;
mod classify;
mod client;
mod decode;
pub(crate) mod locate;
mod lock;
#[cfg(test)]
mod real;
#[cfg(test)]
mod rig;
mod run;

pub use client::{Bd, BdConfig};

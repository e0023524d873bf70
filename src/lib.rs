//! `sp` runs teams of coding agents as chains of supervised actors.

#![forbid(unsafe_code)]

mod actors;
mod beads;
mod chain;
pub mod cli;
mod exec;
mod failure;
mod formulas;
mod git;
mod ids;
mod job;
mod messages;
mod pi;
mod policy;
pub mod ports;
mod rehearsal;
mod specialist;
mod storage;

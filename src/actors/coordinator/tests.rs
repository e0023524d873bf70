//! The Coordinator: alone between recorders, and in a whole system on stubs.

mod alone;
mod faults;
mod whole;

use std::collections::BTreeSet;

use super::*;
use crate::ids::StepId;

fn ready(steps: &[&str]) -> CoordinatorMsg {
    let steps: BTreeSet<StepId> = steps.iter().map(|step| StepId::from(*step)).collect();
    CoordinatorMsg::Input(Box::new(ChainInput::ReadyListed(steps)))
}

fn claimed(step: &str, epoch: u32) -> CoordinatorMsg {
    let answer = crate::ports::ClaimAnswer::Claimed;
    CoordinatorMsg::Input(Box::new(ChainInput::ClaimAnswered { step: step.into(), epoch, answer }))
}

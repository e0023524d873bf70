use super::context::Context;
use super::output::Exit;
use crate::failure::Failure;
use crate::orchestrator::chain_report;

/// Show a chain: its steps, what they came to, and what to do next
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Chain id, or the bead that holds its contract
    chain: String,
}

/// Runs the command.
pub fn run(args: &ShowArgs, context: &Context) -> Result<Exit, Failure> {
    let root = context.place()?.root.clone();
    let report = context.block_on(chain_report(&root, &args.chain))??;
    context.printer.print(&report)
}

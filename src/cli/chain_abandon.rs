use super::chain_drive::{follow, orchestrator};
use super::chain_progress::Progress;
use super::context::Context;
use super::output::Exit;
use crate::config::Flags;
use crate::failure::Failure;
use crate::orchestrator::{OrchestratorError, Started};

/// Give a chain up: close its molecule, free its bead, keep branch and worktree
#[derive(Debug, clap::Args)]
pub struct AbandonArgs {
    /// Chain id, or the bead that holds its contract
    chain: String,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Runs the command.
pub fn run(args: &AbandonArgs, context: &Context) -> Result<Exit, Failure> {
    let config = context.config(Flags::default())?;
    context.drive(async {
        let orchestrator = orchestrator(context, &config).await?;
        let progress = Progress::begin(context.printer.is_json());
        match orchestrator.abandon(&args.chain, args.reason.clone()).await? {
            Started::Elsewhere { chain, pid } => {
                Err(OrchestratorError::RunsElsewhere { verb: "abandon", chain, pid }.into())
            }
            started => follow(context, orchestrator, &progress, started).await,
        }
    })
}

use std::path::PathBuf;

use super::chain_drive::{follow, orchestrator};
use super::chain_progress::Progress;
use super::context::Context;
use super::output::Exit;
use crate::config::Flags;
use crate::failure::Failure;
use crate::ids::StepId;
use crate::orchestrator::ResumeRequest;

/// Go on with a chain that was stopped, killed or blocked, or publish one that is merged
///
/// A blocked chain needs --note or --accept. A chain that is ready to merge closes its beads once its branch is
/// contained in the base.
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    /// Chain id, or the bead that holds its contract
    chain: String,
    /// What the step that works first is told
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Step that works first, the blocked one by default
    #[arg(long, value_name = "STEP")]
    from: Option<String>,
    /// Blocked step to pass by hand
    #[arg(long, value_name = "STEP")]
    accept: Vec<String>,
    /// Script of the rehearsal, the one that the chain was begun with
    #[arg(long, value_name = "FILE")]
    rehearse: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &ResumeArgs, context: &Context) -> Result<Exit, Failure> {
    let config = context.config(Flags::default())?;
    let request = ResumeRequest {
        note: args.note.clone(),
        from: args.from.as_deref().map(StepId::new),
        accept: args.accept.iter().map(StepId::new).collect(),
        rehearse: args.rehearse.as_ref().map(|file| context.directory().join(file)),
    };
    context.drive(async {
        let orchestrator = orchestrator(context, &config).await?;
        let progress = Progress::begin(context.printer.is_json());
        let started = orchestrator.resume(&args.chain, request).await?;
        follow(context, orchestrator, &progress, started).await
    })
}

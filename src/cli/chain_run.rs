use std::collections::BTreeMap;
use std::path::PathBuf;

use super::chain_drive::{follow, orchestrator};
use super::chain_progress::Progress;
use super::context::Context;
use super::detach;
use super::error::CliError;
use super::output::Exit;
use crate::chain::machine::Limits;
use crate::chain::scrutiny::Scrutiny;
use crate::config::Flags;
use crate::failure::Failure;
use crate::ids::BeadId;
use crate::orchestrator::RunRequest;

/// Run a formula on a bead until its chain is ready to merge
///
/// Prints progress on stderr and one report on stdout at the end. Exit status 0: ready to merge; 7: waits for people;
/// 130: stopped. A second run on the same bead shows the one that runs.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Formula to compile, such as code-standard
    formula: String,
    /// Bead that holds the contract
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    bead: String,
    /// Value of a formula variable
    #[arg(long = "var", value_name = "K=V", value_parser = key_value)]
    vars: Vec<(String, String)>,
    /// How hard to look: none, low, medium, high or critical
    #[arg(long, value_name = "S", value_parser = str::parse::<Scrutiny>)]
    scrutiny: Option<Scrutiny>,
    /// Revision to base the work on, HEAD of the main checkout by default
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Model for all roles, provider/model as pi knows it
    #[arg(long, value_name = "M", conflicts_with = "rehearse")]
    model: Option<String>,
    /// Fix rounds that gates may open before people are asked
    #[arg(long, value_name = "N")]
    max_fix_loops: Option<u32>,
    /// Show what would run and write nothing
    #[arg(long, conflicts_with = "background")]
    dry_run: bool,
    /// Run detached from this terminal and print the chain's id
    #[arg(long)]
    background: bool,
    /// Answer from this script instead of a model
    #[arg(long, value_name = "FILE")]
    rehearse: Option<PathBuf>,
    /// Set by --background for the process that runs
    #[arg(long, hide = true)]
    detached: bool,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not of the form NAME=VALUE")),
    }
}

/// Runs the command.
pub fn run(args: &RunArgs, context: &Context) -> Result<Exit, Failure> {
    if args.background {
        return detach::run(context, &args.bead);
    }
    if args.detached {
        detach::leave_terminal()?;
    }
    let config = context.config(Flags { max_fix_loops: args.max_fix_loops })?;
    let mut vars = BTreeMap::new();
    for (key, value) in &args.vars {
        if vars.insert(key.clone(), value.clone()).is_some() {
            return Err(CliError::Usage { problem: format!("--var {key} is given twice") }.into());
        }
    }
    let request = RunRequest {
        formula: args.formula.clone(),
        bead: BeadId::new(&args.bead),
        vars,
        scrutiny: args.scrutiny,
        base: args.base.clone(),
        model: args.model.clone(),
        models: config.models.clone(),
        fix_loops: config.chain.max_fix_loops.unwrap_or(Limits::default().fix_loops),
        stall_seconds: config.chain.stall_seconds,
        rehearse: args.rehearse.as_ref().map(|file| context.directory().join(file)),
        policy: config.policy.clone(),
    };
    context.drive(async {
        let orchestrator = orchestrator(context, &config).await?;
        if args.dry_run {
            let composition = orchestrator.compose(&request).await?;
            return context.printer.print(&composition);
        }
        let progress = Progress::begin(context.printer.is_json());
        let started = orchestrator.run_chain(request).await?;
        follow(context, orchestrator, &progress, started).await
    })
}

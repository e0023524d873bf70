//! `sp chain …`: the commands about chains.

use super::context::Context;
use super::output::Exit;
use super::{chain_abandon, chain_graph, chain_list, chain_resume, chain_run, chain_show, chain_stop};
use crate::failure::Failure;

/// Run chains and look at them
#[derive(Debug, clap::Subcommand)]
pub enum ChainCommand {
    Run(Box<chain_run::RunArgs>),
    Show(chain_show::ShowArgs),
    /// List chains
    List(chain_list::ListArgs),
    /// Draw the steps of a chain or formula
    Graph(chain_graph::GraphArgs),
    Resume(chain_resume::ResumeArgs),
    Stop(chain_stop::StopArgs),
    Abandon(chain_abandon::AbandonArgs),
}

/// Runs the command.
pub fn run(command: &ChainCommand, cx: &Context) -> Result<Exit, Failure> {
    match command {
        ChainCommand::Run(args) => chain_run::run(args, cx),
        ChainCommand::Show(args) => chain_show::run(args, cx),
        ChainCommand::Resume(args) => chain_resume::run(args, cx),
        ChainCommand::Stop(args) => chain_stop::run(args, cx),
        ChainCommand::Abandon(args) => chain_abandon::run(args, cx),
        ChainCommand::List(args) => chain_list::run(args, cx),
        ChainCommand::Graph(args) => chain_graph::run(args, cx),
    }
}

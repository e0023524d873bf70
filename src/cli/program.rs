//! The program: arguments in, exit status out. Nothing is started before the arguments are understood.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use super::chain::{self, ChainCommand};
use super::context::Context;
use super::error::CliError;
use super::formula::{self, FormulaCommand};
use super::output::{Exit, Format, Printer};
use super::{doctor, feed, ps, result};
use crate::failure::Failure;

/// Run teams of coding agents as chains of supervised actors
#[derive(Debug, Parser)]
#[command(
    name = "sp",
    version,
    arg_required_else_help = true,
    after_help = "\
Start here:
  sp doctor                                    see what is missing on this machine
  sp formula list                              see which chains there are
  sp chain run code-standard --bead proj-a3f2  run one on a bead

Exit status: 0 success, 1 internal, 2 usage, 3 refused, 4 not found, 5 contested,
6 unusable, 7 blocked, 10 tracker, 11 store, 12 agent, 13 git, 130 interrupted"
)]
struct Cli {
    /// Print exactly one JSON object on stdout (`feed`: one an event)
    #[arg(long, global = true)]
    json: bool,
    /// Work in this directory instead of the current one
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    directory: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run chains and look at them
    #[command(subcommand)]
    Chain(ChainCommand),
    /// Look at formulas, the templates of chains
    #[command(subcommand)]
    Formula(FormulaCommand),
    Ps(ps::PsArgs),
    Feed(feed::FeedArgs),
    Result(result::ResultArgs),
    /// Check what sp needs on this machine and in this repository
    Doctor,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let exit = match Cli::try_parse_from(&args) {
        Ok(cli) => {
            let printer = Printer::new(if cli.json { Format::Json } else { Format::Text });
            start_log();
            run(cli, printer).unwrap_or_else(|failure| printer.print_failure(&failure))
        }
        Err(error) => not_understood(&error, &args),
    };
    ExitCode::from(exit.0)
}

fn run(cli: Cli, printer: Printer) -> Result<Exit, Failure> {
    let cx = Context::new(printer, cli.directory)?;
    match &cli.command {
        Command::Chain(command) => chain::run(command, &cx),
        Command::Formula(command) => formula::run(command, &cx),
        Command::Ps(args) => ps::run(args, &cx),
        Command::Feed(args) => feed::run(args, &cx),
        Command::Result(args) => result::run(args, &cx),
        Command::Doctor => doctor::run(&cx),
    }
}

/// Prints help and version on stdout, a fault on stderr; under `--json` the envelope of a failure on stdout.
fn not_understood(error: &clap::Error, args: &[OsString]) -> Exit {
    let is_asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if !is_asked_for && wants_json(args) {
        return Printer::new(Format::Json).print_failure(&CliError::Usage { problem: problem(error) }.into());
    }
    // Nowhere is left to say that nothing can be said, and a closed pipe is no failure.
    drop(error.print());
    if is_asked_for { Exit::SUCCESS } else { Exit(2) }
}

/// Returns whether `--json` stands anywhere before a `--`: the rest was not understood, so it can't be asked.
fn wants_json(args: &[OsString]) -> bool {
    args.iter().skip(1).take_while(|arg| *arg != "--").any(|arg| arg == "--json")
}

/// Returns what clap has to say on one line, without its own label, usage and pointers.
fn problem(error: &clap::Error) -> String {
    let text = error.render().to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        return "a command is missing".to_owned();
    }
    let lines = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let line = words.join(" ").replace(" tip: ", "; tip: ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

/// Sends the log to stderr, as far as `SP_LOG` asks (default: warnings; see tracing's directives).
fn start_log() {
    use tracing_subscriber::EnvFilter;
    let filter = std::env::var("SP_LOG").ok().filter(|directives| !directives.is_empty());
    let (filter, fault) = match filter.as_deref().map(EnvFilter::try_new) {
        None => (EnvFilter::new("warn"), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (EnvFilter::new("warn"), Some(error)),
    };
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(anstream::stderr).with_target(false);
    // An embedding program may have one already.
    drop(log.try_init());
    if let Some(error) = fault {
        tracing::warn!(%error, "SP_LOG was not understood");
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_commands_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_is_imperative_and_ends_without_a_full_stop() {
        fn walk(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && !about.ends_with('.'), "{path}: {about:?}");
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.is_empty() && !help.ends_with('.'), "{path} {}: {help:?}", argument.get_id());
            }
            command.get_subcommands().for_each(|command| walk(command, &path));
        }
        walk(&Cli::command(), "");
    }

    #[test]
    fn the_guide_tells_of_every_command_and_flag() {
        fn walk(command: &clap::Command, path: &str, guide: &str) {
            for command in command.get_subcommands() {
                let path = format!("{path} {}", command.get_name());
                let is_leaf = command.get_subcommands().next().is_none();
                assert!(!is_leaf || guide.contains(&format!("`{path}")), "{path}");
                let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
                for flag in shown.filter_map(clap::Arg::get_long) {
                    assert!(guide.contains(&format!("--{flag}")), "{path} --{flag}");
                }
                walk(command, &path, guide);
            }
        }
        walk(&Cli::command(), "sp", include_str!("../../docs/cli.md"));
    }

    #[test]
    fn the_guide_and_the_help_have_the_exit_statuses_of_the_table() {
        let guide = include_str!("../../docs/cli.md");
        let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with("| ") && line.contains("` |")).collect();
        let help = Cli::command().render_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for (exit, kind, meaning) in crate::failure::TABLE {
            let row = format!("| {exit} | `{kind}` | {meaning} |");
            assert!(rows.contains(&row.as_str()), "{row}");
            assert!(help.contains(&format!("{exit} {}", kind.replace('_', " "))), "{exit} {kind}");
        }
    }

    #[test]
    fn json_is_wanted_only_before_the_end_of_options() {
        let wants = |args: &[&str]| wants_json(&args.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(wants(&["sp", "ps", "--frob", "--json"]) && wants(&["sp", "--json"]));
        assert!(!wants(&["sp", "result", "--", "--json"]) && !wants(&["--json"]) && !wants(&["sp", "ps", "--jsonx"]));
    }

    #[test]
    fn a_fault_of_the_command_line_fits_on_one_line() {
        let told = |args: &[&str]| problem(&Cli::try_parse_from(args).unwrap_err());
        assert_eq!(
            told(&["sp", "ps", "--al"]),
            "unexpected argument '--al' found; tip: a similar argument exists: '--all'"
        );
        assert!(told(&["sp", "pss"]).starts_with("unrecognized subcommand 'pss'"));
        assert_eq!(told(&["sp"]), "a command is missing");
        assert!(told(&["sp", "feed"]).contains("<SUBJECT>"));
    }
}

//! `sp chain list`: the chains of this repository.

use std::io::{self, Write};

use serde::Serialize;

use super::context::Context;
use super::figures::span;
use super::output::{Exit, Human};
use super::standing::{Alive, Machine, Owners};
use super::table::{Table, terminal_width};
use crate::failure::Failure;
use crate::ids::{BeadId, ChainId};
use crate::storage::Reader;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --all only chains that still hold their bead are listed: running, blocked,
stopped, ready to merge. Status `dead` is a chain that needs a process and has none;
`sp chain resume` goes on with it.")]
pub struct ListArgs {
    /// Include chains that are published, cancelled or abandoned
    #[arg(long)]
    all: bool,
}

/// One chain. Times are ms since 1970 UTC.
#[derive(Debug, Serialize)]
struct ChainLine {
    id: ChainId,
    bead_id: BeadId,
    formula: String,
    /// The stored word, or `dead`.
    status: &'static str,
    is_dead: bool,
    branch: Option<String>,
    created_at_ms: i64,
    updated_at_ms: i64,
}

#[derive(Debug, Serialize)]
struct ChainList {
    /// The newest first.
    chains: Vec<ChainLine>,
    #[serde(skip)]
    width: Option<usize>,
    #[serde(skip)]
    now_ms: i64,
}

impl Human for ChainList {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new(["CHAIN", "BEAD", "FORMULA", "STATUS", "AGE", "BRANCH"], &[5, 2, 0]);
        for chain in &self.chains {
            table.row([
                chain.id.to_string(),
                chain.bead_id.to_string(),
                chain.formula.clone(),
                chain.status.to_owned(),
                span(self.now_ms - chain.created_at_ms),
                chain.branch.clone().unwrap_or_else(|| "-".to_owned()),
            ]);
        }
        if self.chains.is_empty() { Ok(()) } else { table.write(out, self.width) }
    }
}

/// Runs the command.
pub fn run(args: &ListArgs, cx: &Context) -> Result<Exit, Failure> {
    let reader = cx.reader()?;
    let mut list = listed(args, reader.as_ref(), &Machine::look()?, cx.now_ms())?;
    if list.chains.is_empty() {
        cx.printer.remark(if args.all {
            "no chains"
        } else {
            "no live chains; `sp chain list --all` shows the others"
        });
    }
    list.width = terminal_width();
    cx.printer.print(&list)
}

fn listed(args: &ListArgs, reader: Option<&Reader>, alive: &dyn Alive, now_ms: i64) -> Result<ChainList, Failure> {
    let Some(reader) = reader else { return Ok(ChainList { chains: vec![], width: None, now_ms }) };
    let owners = Owners::read(reader, alive)?;
    let chains = reader.chains()?.into_iter().filter(|head| args.all || head.status.is_live());
    let chains = chains.map(|head| ChainLine {
        status: owners.chain_word(&head.chain, head.status),
        is_dead: owners.is_abandoned(&head.chain, head.status),
        id: head.chain,
        bead_id: head.bead,
        formula: head.formula,
        branch: head.branch,
        created_at_ms: head.created_at_ms,
        updated_at_ms: head.updated_at_ms,
    });
    Ok(ChainList { chains: chains.collect(), width: None, now_ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fixture::{OnlyPids, Recorded, START_MS, text};
    use crate::storage::{ChainPatch, ChainStatus};

    #[test]
    fn live_chains_are_listed_and_all_on_request() {
        let recorded = Recorded::chain_in_its_second_step();
        recorded.open_chain("proj-mol-0", "proj-99", START_MS - 86_400_000);
        let over = ChainPatch { status: Some(ChainStatus::Abandoned), ..ChainPatch::default() };
        recorded.chain_events("proj-mol-0", 5, START_MS, &[], over);
        let show = |all, alive: &'static [u32]| {
            text(&listed(&ListArgs { all }, Some(&recorded.reader()), &OnlyPids(alive), START_MS + 125_000).unwrap())
        };
        insta::assert_snapshot!(show(true, &[10]), @"
        CHAIN       BEAD       FORMULA        STATUS     AGE    BRANCH
        proj-mol-1  proj-a3f2  code-standard  running    2m05s  feature/proj-a3f2-executor
        proj-mol-0  proj-99    code-standard  abandoned  1d00h  feature/proj-99-executor
        ");
        insta::assert_snapshot!(show(false, &[]), @"
        CHAIN       BEAD       FORMULA        STATUS  AGE    BRANCH
        proj-mol-1  proj-a3f2  code-standard  dead    2m05s  feature/proj-a3f2-executor
        ");
        assert!(listed(&ListArgs { all: true }, None, &OnlyPids(&[]), 0).unwrap().chains.is_empty());
    }
}

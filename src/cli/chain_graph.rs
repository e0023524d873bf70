//! `sp chain graph`: the steps of a chain or formula as a picture.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::context::Context;
use super::error::CliError;
use super::figures::span;
use super::formula_sources::{compiled, sources, variable_value};
use super::output::{Exit, Human};
use super::phase::{folded, phase_word};
use crate::chain::formula::{FormulaError, load};
use crate::chain::graph::{answering_writer, ascii, critical_path, dot, mermaid, sent_back, waves};
use crate::chain::shape::{Class, Shape, Writer};
use crate::failure::{Explain, Failure, FailureKind};
use crate::ids::{ChainId, StepId};
use crate::specialist::Roster;
use crate::storage::{ChainRow, JobFilter, Reader, StoreError};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sp chain graph code-standard                       the steps of a formula
  sp chain graph proj-a3f2                           the chain on a bead, with where each step stands
  sp chain graph code-standard --format dot | dot -Tsvg > steps.svg")]
pub struct GraphArgs {
    /// Chain, contract bead of a chain, or formula
    subject: String,
    /// Kind of picture
    #[arg(long, value_enum, default_value_t = Picture::Ascii)]
    format: Picture,
    /// Value for a variable of the formula; may be given more than once
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable_value)]
    vars: Vec<(String, String)>,
}

/// Kinds of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Picture {
    /// Aligned lines, with waves, the critical path and what a failing gate sends back
    Ascii,
    /// Graphviz
    Dot,
    /// Mermaid flowchart
    Mermaid,
}

#[derive(Debug, Serialize)]
struct StepLine {
    id: StepId,
    role: String,
    class: Class,
    needs: Vec<StepId>,
    /// Where it stands; `null` for a formula.
    phase: Option<String>,
}

/// What runs again when a gate fails.
#[derive(Debug, Serialize)]
struct WayBack {
    gate: StepId,
    /// The writer that answers for what the gate judges, and all that depends on it.
    steps: Vec<StepId>,
}

#[derive(Debug, Serialize)]
struct Graph {
    /// `null` for a formula.
    chain_id: Option<ChainId>,
    formula: String,
    steps: Vec<StepLine>,
    waves: Vec<Vec<StepId>>,
    critical_path: Vec<StepId>,
    /// How long the jobs on the critical path took so far; `null` for a formula.
    critical_path_ms: Option<u64>,
    /// Of the gates that have a writer before them.
    sent_back: Vec<WayBack>,
    format: Picture,
    picture: String,
}

impl Human for Graph {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.picture.as_bytes())?;
        if self.format != Picture::Ascii {
            return Ok(());
        }
        let join = |ids: &[StepId], with| ids.iter().map(StepId::as_str).collect::<Vec<_>>().join(with);
        let waves: Vec<String> = self.waves.iter().map(|wave| join(wave, " ")).collect();
        writeln!(out, "\n{} waves: {}", waves.len(), waves.join(" | "))?;
        let weight = match self.critical_path_ms {
            Some(ms) => span(i64::try_from(ms).unwrap_or(i64::MAX)),
            None => format!("{} steps", self.critical_path.len()),
        };
        writeln!(out, "critical path: {} ({weight})", join(&self.critical_path, " -> "))?;
        for way in &self.sent_back {
            writeln!(out, "a failing {} sends back: {}", way.gate, join(&way.steps, ", "))?;
        }
        Ok(())
    }
}

/// The stored shape of a chain can't be read.
#[derive(Debug, thiserror::Error)]
#[error("read the shape of chain {chain}")]
struct UnreadableShape {
    chain: ChainId,
    source: serde_json::Error,
}

impl Explain for UnreadableShape {
    fn explain(&self) -> (FailureKind, &'static str, String) {
        (FailureKind::Store, "chain_shape_unreadable", "use the sp that ran this chain, or a later one".into())
    }
}

/// Runs the command.
pub fn run(args: &GraphArgs, cx: &Context) -> Result<Exit, Failure> {
    // A formula can be drawn outside of a repository too.
    let reader = if cx.place().is_ok() { cx.reader()? } else { None };
    if let Some(reader) = &reader {
        match reader.find_chain(&args.subject) {
            Ok(chain) => return cx.printer.print(&of_chain(reader, &chain, args.format, cx.now_ms())?),
            Err(StoreError::NoSuchChain { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let formula = match load(&args.subject, &sources(cx)) {
        Ok(formula) => formula,
        // The name may have meant a chain, so it isn't said that no formula has it. A wanted parent is another matter.
        Err(FormulaError::NotFound { name, wanted_by: None, nearest }) => {
            return Err(CliError::NoGraph { name, nearest }.into());
        }
        Err(error) => return Err(error.into()),
    };
    let given: BTreeMap<String, String> = args.vars.iter().cloned().collect();
    let shape = compiled(&formula, &given, &Roster::shipped())?;
    cx.printer.print(&graph(shape, None, &BTreeMap::new(), None, args.format))
}

fn of_chain(reader: &Reader, chain: &ChainRow, format: Picture, now_ms: i64) -> Result<Graph, Failure> {
    let shape: Shape = serde_json::from_str(&chain.shape_json)
        .map_err(|source| UnreadableShape { chain: chain.chain.clone(), source })?;
    let state = folded(reader, &chain.chain)?;
    let phases = state.iter().flat_map(|state| &state.steps).map(|(id, step)| (id.clone(), phase_word(step)));
    let phases: BTreeMap<StepId, String> = phases.collect();
    let mut spent: BTreeMap<StepId, u64> = BTreeMap::new();
    for job in reader.jobs(&JobFilter { chain: Some(chain.chain.clone()), ..JobFilter::default() })? {
        let until = job.completed_at_ms.unwrap_or(if job.status.is_live() { now_ms } else { job.updated_at_ms });
        if let Some(step) = job.step {
            *spent.entry(step).or_default() += u64::try_from(until - job.started_at_ms).unwrap_or(0);
        }
    }
    Ok(graph(shape, Some(chain.chain.clone()), &phases, Some(&spent), format))
}

fn graph(
    shape: Shape,
    chain_id: Option<ChainId>,
    phases: &BTreeMap<StepId, String>,
    spent: Option<&BTreeMap<StepId, u64>>,
    format: Picture,
) -> Graph {
    // Steps that took no time yet still make a path longer; a second tells them apart from nothing.
    let weight = |id: &StepId| spent.map_or(1, |spent| spent.get(id).copied().unwrap_or(0).max(1));
    let (path, _) = critical_path(&shape, |step| weight(&step.id));
    let taken = spent.map(|spent| path.iter().filter_map(|id| spent.get(id)).sum());
    let picture = match format {
        Picture::Ascii => ascii(&shape, phases),
        Picture::Dot => dot(&shape, phases),
        Picture::Mermaid => mermaid(&shape, phases),
    };
    let gates = shape.steps.iter().filter(|step| step.class == Class::Gate).map(|step| &step.id);
    let ways = gates.filter_map(|gate| {
        let writer = answering_writer(&shape, gate, Writer::Primary)?;
        Some(WayBack { gate: gate.clone(), steps: sent_back(&shape, &writer.id) })
    });
    let steps = shape.steps.iter().map(|step| StepLine {
        id: step.id.clone(),
        role: step.role.clone(),
        class: step.class,
        needs: step.needs.iter().cloned().collect(),
        phase: phases.get(&step.id).cloned(),
    });
    Graph {
        chain_id,
        steps: steps.collect(),
        waves: waves(&shape),
        critical_path: path,
        critical_path_ms: taken,
        sent_back: ways.collect(),
        format,
        picture,
        formula: shape.formula,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fixture::{Recorded, START_MS, shape, text};

    #[test]
    fn a_chain_is_drawn_with_where_its_steps_stand() {
        let recorded = Recorded::chain_in_its_second_step();
        let reader = recorded.reader();
        let chain = reader.find_chain("proj-a3f2").unwrap();
        let graph = of_chain(&reader, &chain, Picture::Ascii, START_MS + 260_000).unwrap();
        insta::assert_snapshot!(text(&graph), @"
        1  executor             writer            running
        2  seconder             mandatory gate    pending  <- executor
        3  test-engineer        secondary writer  pending  <- seconder
        4  test-runner          mandatory gate    pending  <- test-engineer
        5  obligations-scanner  mandatory gate    pending  <- test-runner
        6  reviewer             final gate        pending  <- obligations-scanner

        6 waves: executor | seconder | test-engineer | test-runner | obligations-scanner | reviewer
        critical path: executor -> seconder -> test-engineer -> test-runner -> obligations-scanner -> reviewer (4m12s)
        a failing seconder sends back: executor, seconder, test-engineer, test-runner, obligations-scanner, reviewer
        a failing test-runner sends back: executor, seconder, test-engineer, test-runner, obligations-scanner, reviewer
        a failing obligations-scanner sends back: executor, seconder, test-engineer, test-runner, obligations-scanner, reviewer
        a failing reviewer sends back: executor, seconder, test-engineer, test-runner, obligations-scanner, reviewer
        ");
        assert_eq!(graph.critical_path_ms, Some(252_000));
    }

    #[test]
    fn a_formula_is_drawn_in_each_format_and_only_text_has_lines_below() {
        let none = BTreeMap::new();
        let drawn = |format| text(&graph(shape(), None, &none, None, format));
        assert!(
            drawn(Picture::Ascii).contains("-> reviewer (6 steps)\na failing seconder sends back: executor, "),
            "{}",
            drawn(Picture::Ascii)
        );
        assert!(drawn(Picture::Dot).ends_with("}\n") && drawn(Picture::Dot).starts_with("digraph"));
        assert!(
            drawn(Picture::Mermaid).starts_with("flowchart LR\n") && !drawn(Picture::Mermaid).contains("sends back")
        );
    }
}

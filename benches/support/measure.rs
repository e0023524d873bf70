//! The measurements, each made in a process of its own: what it used is what the process used.
//!
//! CPU time and memory are those of the whole process, the stubs in it included: an upper bound of what `sp` takes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use specialists::{Orchestrator, RunRequest};

use super::agent::{Flood, StubAgent};
use super::meter::{cpu, peak_kib};
use super::rig::{Outcome, Rig, finish, running};

/// Deltas of one block in a flood.
const BLOCK: u64 = 1_000;
/// Steps of a code-standard chain.
const STEPS: u64 = 6;

/// What was measured: name and value.
pub(crate) type Facts = Vec<(String, f64)>;

fn fact(facts: &mut Facts, name: &str, value: f64) {
    facts.push((name.to_owned(), value));
}

/// Counts are far below 2^52.
fn count(number: u64) -> f64 {
    number as f64
}

/// One agent that says `lines` delta lines before it answers. A chain without a flood goes first, to warm up.
pub(crate) async fn stream(root: &Path, lines: u64) -> Outcome<Facts> {
    let mut facts = Facts::new();
    let quiet = root.join("quiet");
    std::fs::create_dir_all(&quiet)?;
    let rig = Rig::start(&quiet, Flood::default()).await?;
    rig.run(1).await?;
    let (quiet_blocks, quiet_rows) = rig.close().await?;

    let flood = Flood { blocks: lines / BLOCK, deltas: BLOCK };
    let rig = Rig::start(root, flood).await?;
    let (peak, used, began) = (peak_kib(), cpu(), Instant::now());
    rig.run(1).await?;
    let (used, wall) = (cpu() - used, began.elapsed());
    let (blocks, rows) = rig.close().await?;
    fact(&mut facts, "lines_per_cpu_s", count(lines) / used.as_secs_f64());
    fact(&mut facts, "wall_s", wall.as_secs_f64());
    fact(&mut facts, "rows_per_block", count(blocks - quiet_blocks) / count(flood.blocks));
    fact(&mut facts, "rows", count(rows - quiet_rows));
    fact(&mut facts, "peak_mib", count(peak_kib()) / 1024.0);
    fact(&mut facts, "peak_before_mib", count(peak) / 1024.0);
    Ok(facts)
}

/// Chains one after the other, or all at once.
pub(crate) async fn chains(root: &Path, number: u64, at_once: bool) -> Outcome<Facts> {
    let mut facts = Facts::new();
    let rig = Rig::start(root, Flood::default()).await?;
    rig.run(0).await?;
    let (before, used, began) = (rig.tracker.calls(), cpu(), Instant::now());
    if at_once {
        let mut begun = Vec::new();
        for chain in 1..=number {
            begun.push(rig.begin(chain).await?);
        }
        fact(&mut facts, "begun_s", began.elapsed().as_secs_f64());
        for chain in begun {
            finish(chain).await?;
        }
    } else {
        for chain in 1..=number {
            rig.run(chain).await?;
        }
    }
    let (used, wall) = (cpu() - used, began.elapsed());
    let steps = count(number * STEPS);
    fact(&mut facts, "cpu_ms_per_step", used.as_secs_f64() * 1e3 / steps);
    fact(&mut facts, "wall_ms_per_step", wall.as_secs_f64() * 1e3 / steps);
    fact(&mut facts, "wall_s", wall.as_secs_f64());
    fact(&mut facts, "cpu_s", used.as_secs_f64());
    fact(&mut facts, "peak_mib", count(peak_kib()) / 1024.0);
    for (call, total) in rig.tracker.calls() {
        let since = total - before.get(call).copied().unwrap_or_default();
        fact(&mut facts, &format!("calls_per_step.{call}"), count(since) / steps);
    }
    rig.close().await?;
    Ok(facts)
}

/// Chains on beads of a real bd workspace in a real repository, all at once; only the agent is a stub.
pub(crate) async fn real_bd(root: &Path, bd: PathBuf, beads: &[String]) -> Outcome<Facts> {
    let mut facts = Facts::new();
    let agent = Arc::new(StubAgent::writing());
    let orchestrator = Orchestrator::builder(root).bd(Some(bd)).agent(agent).build().await?;
    let (used, began) = (cpu(), Instant::now());
    let mut begun = Vec::new();
    for bead in beads {
        begun.push(running(orchestrator.run_chain(RunRequest::new("code-standard", bead.as_str())).await?)?);
    }
    for chain in begun {
        finish(chain).await?;
    }
    fact(&mut facts, "wall_s", began.elapsed().as_secs_f64());
    fact(&mut facts, "cpu_s", (cpu() - used).as_secs_f64());
    orchestrator.close().await;
    Ok(facts)
}

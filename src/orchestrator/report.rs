//! Reports, read from the database alone: no actor, no bd.

use std::collections::BTreeSet;
use std::path::Path;

use super::builder::owner_is_alive;
use super::error::OrchestratorError;
use crate::chain::machine::{ChainEvent, ChainState, fold};
use crate::chain::report::{ChainReport, JobFacts, ReportFacts};
use crate::git::Git;
use crate::ids::ChainId;
use crate::ports::{DiffStat, Workspace};
use crate::storage::{ChainRow, JobFilter, JobScope, Layout, Reader, Resource, StoreError};

/// Finds a chain by its id or its bead.
pub fn find_chain(root: &Path, name: &str) -> Result<ChainRow, OrchestratorError> {
    Ok(Reader::open(&Layout::new(root).database())?.find_chain(name)?)
}

/// Returns the live process that runs a chain, if one does.
pub fn running_process(root: &Path, chain: &str) -> Result<Option<u32>, OrchestratorError> {
    let reader = Reader::open(&Layout::new(root).database())?;
    let owner = reader.owner(&Resource::Chain(ChainId::from(chain)))?.and_then(|row| row.holder);
    Ok(owner.filter(owner_is_alive).map(|owner| owner.pid))
}

/// Returns the chain that a process runs, once it is on disk.
pub fn chain_of_process(root: &Path, pid: u32) -> Result<Option<String>, OrchestratorError> {
    let reader = match Reader::open(&Layout::new(root).database()) {
        Ok(reader) => reader,
        Err(StoreError::NotThere { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let runs = |row: &crate::storage::OwnerRow| {
        row.holder.as_ref().is_some_and(|holder| holder.pid == pid && owner_is_alive(holder))
    };
    let found = reader
        .owners()?
        .into_iter()
        .filter(runs)
        .find_map(|row| row.resource.strip_prefix("chain:").map(str::to_owned));
    Ok(found)
}

/// Returns the events of a chain after one: place, wall clock, event.
pub fn stored_events(
    root: &Path,
    chain: &ChainId,
    after: u64,
) -> Result<Vec<(u64, i64, ChainEvent)>, OrchestratorError> {
    let rows = Reader::open(&Layout::new(root).database())?.chain_events(chain, after)?;
    rows.into_iter()
        .map(|row| {
            let event = serde_json::from_str(&row.body).map_err(|error| OrchestratorError::Log {
                chain: chain.clone(),
                reason: format!("event {}: {error}", row.seq),
            })?;
            Ok((row.seq, row.at_ms, event))
        })
        .collect()
}

/// Reports on a chain, named by its id or its bead.
pub async fn chain_report(root: &Path, name: &str) -> Result<ChainReport, OrchestratorError> {
    let reader = Reader::open(&Layout::new(root).database())?;
    let row = reader.find_chain(name)?;
    let state = folded(&reader, &row)?;
    let diff = diff_stat(root, &state).await;
    let events = reader.chain_events(&row.chain, 0)?;
    let filter = JobFilter { scope: JobScope::All, chain: Some(row.chain.clone()), ..JobFilter::default() };
    let jobs: Vec<JobFacts> = reader
        .jobs(&filter)?
        .into_iter()
        .map(|job| JobFacts {
            job: job.job.to_string(),
            step: job.step.map(|step| step.to_string()).unwrap_or_default(),
            status: job.status.as_str().to_owned(),
            started_ms: job.started_at_ms,
            ended_ms: job.completed_at_ms.unwrap_or(job.updated_at_ms),
            input_tokens: job.totals.input_tokens + job.totals.cache_read_tokens,
            output_tokens: job.totals.output_tokens,
            cost_usd: job.totals.cost_usd,
        })
        .collect();
    let mut findings: Vec<String> = reader
        .findings(&row.chain)?
        .into_iter()
        .filter(|found| found.finding.mode != "shadow")
        .map(|found| format!("{}: {}", found.finding.code, found.finding.message))
        .collect();
    findings.extend(events.iter().filter_map(|event| match serde_json::from_str(&event.body) {
        Ok(ChainEvent::Remarked { code, step, detail }) => {
            let step = step.map(|step| format!(" ({step})")).unwrap_or_default();
            Some(format!("{code}{step}: {detail}"))
        }
        _ => None,
    }));
    // A chain that was stopped by the same thing twice says so once.
    let mut told = BTreeSet::new();
    findings.retain(|finding| told.insert(finding.clone()));
    Ok(ChainReport::new(&ReportFacts {
        chain: &state,
        base_ref: row.base_ref.as_deref(),
        contract: super::open::kept(&row)?.contract,
        opened_ms: row.created_at_ms,
        last_ms: events.last().map_or(row.created_at_ms, |event| event.at_ms),
        jobs: &jobs,
        diff,
        findings: &findings,
    }))
}

/// The size of the change; unknown when git can't say.
async fn diff_stat(root: &Path, state: &ChainState) -> Option<DiffStat> {
    let head = state.tree.as_ref().map(|tree| tree.head.clone())?;
    let git = Git::open(root).await.ok()?;
    git.diff_stat(&state.base, &head).await.ok()
}

/// Folds the log of a chain.
pub(super) fn folded(reader: &Reader, row: &ChainRow) -> Result<ChainState, OrchestratorError> {
    let broken = |reason: String| OrchestratorError::Log { chain: row.chain.clone(), reason };
    let events = reader
        .chain_events(&row.chain, 0)?
        .iter()
        .map(|event| {
            serde_json::from_str::<ChainEvent>(&event.body)
                .map_err(|error| broken(format!("event {}: {error}", event.seq)))
        })
        .collect::<Result<Vec<_>, _>>()?;
    match fold(&events) {
        Some(state) => Ok(state),
        // Killed between the row and its first event: the row holds the same opening.
        None if events.is_empty() => {
            let opening = super::open::kept(row)?.opening;
            fold(&[ChainEvent::Opened(Box::new(opening))]).ok_or_else(|| broken("no opening".to_owned()))
        }
        None => Err(broken("it does not begin with its opening".to_owned())),
    }
}

//! Table `chains`: one row a chain; the bead and the live status together are unique.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, named_params, params};

use super::error::{StoreError, failed};
use super::owners::{self, Ownership, ProcessIdentity, Resource};
use super::words::ChainStatus;
use super::writer::Write;
use crate::ids::{BeadId, ChainId};

/// One chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainRow {
    /// The chain, and its molecule in bd.
    pub chain: ChainId,
    /// The contract bead.
    pub bead: BeadId,
    /// Name of the formula.
    pub formula: String,
    /// How it stands.
    pub status: ChainStatus,
    /// The resolved shape, JSON.
    pub shape_json: String,
    /// What was asked for, JSON; a resume goes by it.
    pub request_json: String,
    /// Ref the work is based on.
    pub base_ref: Option<String>,
    /// Commit the work is based on, 40 hex digits.
    pub base_sha: Option<String>,
    /// Branch of the work.
    pub branch: Option<String>,
    /// Worktree of the work.
    pub worktree_path: Option<String>,
    /// Wall clock, ms since 1970 UTC.
    pub created_at_ms: i64,
    /// Wall clock of the last change.
    pub updated_at_ms: i64,
    /// The report of its last run, JSON.
    pub report_json: Option<String>,
}

/// A chain without its documents, for listings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHead {
    /// The chain.
    pub chain: ChainId,
    /// The contract bead.
    pub bead: BeadId,
    /// Name of the formula.
    pub formula: String,
    /// How it stands.
    pub status: ChainStatus,
    /// Branch of the work.
    pub branch: Option<String>,
    /// Wall clock, ms since 1970 UTC.
    pub created_at_ms: i64,
    /// Wall clock of the last change.
    pub updated_at_ms: i64,
}

/// A live chain with what was asked for, for those who compare requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveRequest {
    /// The chain.
    pub chain: ChainId,
    /// The contract bead.
    pub bead: BeadId,
    /// Name of the formula.
    pub formula: String,
    /// What was asked for, JSON.
    pub request_json: String,
}

/// What changes in a chain's row; `None` leaves it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChainPatch {
    /// How it stands.
    pub status: Option<ChainStatus>,
    /// The resolved shape, JSON.
    pub shape_json: Option<String>,
    /// Ref the work is based on.
    pub base_ref: Option<String>,
    /// Commit the work is based on.
    pub base_sha: Option<String>,
    /// Branch of the work.
    pub branch: Option<String>,
    /// Worktree of the work.
    pub worktree_path: Option<String>,
    /// The report of its last run, JSON.
    pub report_json: Option<String>,
}

impl ChainHead {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            chain: ChainId::new(row.get::<_, String>("chain_id")?),
            bead: BeadId::new(row.get::<_, String>("bead_id")?),
            formula: row.get("formula")?,
            status: row.get("status")?,
            branch: row.get("branch")?,
            created_at_ms: row.get("created_at_ms")?,
            updated_at_ms: row.get("updated_at_ms")?,
        })
    }
}

impl ChainRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let head = ChainHead::read(row)?;
        Ok(Self {
            chain: head.chain,
            bead: head.bead,
            formula: head.formula,
            status: head.status,
            shape_json: row.get("shape_json")?,
            request_json: row.get("request_json")?,
            base_ref: row.get("base_ref")?,
            base_sha: row.get("base_sha")?,
            branch: head.branch,
            worktree_path: row.get("worktree_path")?,
            created_at_ms: head.created_at_ms,
            updated_at_ms: head.updated_at_ms,
            report_json: row.get("report_json")?,
        })
    }
}

/// Records a new chain and makes the caller its owner, in one transaction; durable before anything is poured.
///
/// Answers the ownership epoch. The same request again answers the same.
#[derive(Debug, Clone)]
pub struct OpenChain {
    /// The row; `created_at_ms` is also when it is taken.
    pub row: ChainRow,
    /// The process that opens it.
    pub owner: ProcessIdentity,
}

impl Write for OpenChain {
    type Answer = u32;

    fn apply(&self, tx: &Transaction<'_>) -> Result<u32, StoreError> {
        let row = &self.row;
        let taken = || StoreError::ChainIdTaken { chain: row.chain.clone() };
        match get(tx, &row.chain)? {
            Some(stored) if stored.is_same_request(row) => {}
            Some(_) => return Err(taken()),
            None => {
                if let Some(chain) = live_on(tx, &row.bead)? {
                    return Err(StoreError::LiveChainExists { bead: row.bead.clone(), chain });
                }
                insert(tx, row)?;
            }
        }
        // A new chain has no owner, so whoever holds it is somebody who adopted it since.
        match owners::take(tx, &Resource::Chain(row.chain.clone()), &self.owner, row.created_at_ms, &|_| true)? {
            Ownership::Owned { epoch } => Ok(epoch),
            Ownership::HeldBy(_) => Err(taken()),
        }
    }
}

impl ChainRow {
    fn is_same_request(&self, other: &Self) -> bool {
        self.bead == other.bead && self.formula == other.formula && self.request_json == other.request_json
    }
}

fn insert(tx: &Transaction<'_>, row: &ChainRow) -> Result<(), StoreError> {
    let sql = "
        INSERT INTO chains (chain_id, bead_id, formula, status, shape_json, request_json, base_ref, base_sha, branch,
          worktree_path, created_at_ms, updated_at_ms, report_json)
        VALUES (:chain, :bead, :formula, :status, :shape, :request, :base_ref, :base_sha, :branch, :worktree, :created,
          :updated, :report)";
    tx.prepare_cached(sql)
        .and_then(|mut insert| {
            insert.execute(named_params! {
                ":chain": row.chain.as_str(), ":bead": row.bead.as_str(), ":formula": row.formula,
                ":status": row.status, ":shape": row.shape_json, ":request": row.request_json,
                ":base_ref": row.base_ref, ":base_sha": row.base_sha, ":branch": row.branch,
                ":worktree": row.worktree_path, ":created": row.created_at_ms, ":updated": row.updated_at_ms,
                ":report": row.report_json,
            })
        })
        .map(|_| ())
        .map_err(failed("record a chain"))
}

/// Changes the row of a chain.
pub(super) fn patch(tx: &Transaction<'_>, chain: &ChainId, change: &ChainPatch, now_ms: i64) -> Result<(), StoreError> {
    if change.status.is_some_and(ChainStatus::is_live) {
        refuse_second_live_chain(tx, chain)?;
    }
    let sql = "
        UPDATE chains SET status = coalesce(:status, status), shape_json = coalesce(:shape, shape_json),
          base_ref = coalesce(:base_ref, base_ref), base_sha = coalesce(:base_sha, base_sha),
          branch = coalesce(:branch, branch), worktree_path = coalesce(:worktree, worktree_path),
          report_json = coalesce(:report, report_json), updated_at_ms = :now
        WHERE chain_id = :chain";
    let written = tx
        .prepare_cached(sql)
        .and_then(|mut update| {
            update.execute(named_params! {
                ":status": change.status, ":shape": change.shape_json, ":base_ref": change.base_ref,
                ":base_sha": change.base_sha, ":branch": change.branch, ":worktree": change.worktree_path,
                ":report": change.report_json, ":now": now_ms, ":chain": chain.as_str(),
            })
        })
        .map_err(failed("change a chain"))?;
    if written == 1 { Ok(()) } else { Err(StoreError::NoSuchChain { chain: chain.to_string() }) }
}

/// A chain that had ended may come back only while no other holds its bead.
fn refuse_second_live_chain(tx: &Transaction<'_>, chain: &ChainId) -> Result<(), StoreError> {
    // Asked at every append: not by the whole row, whose documents are long.
    let bead: Option<String> = tx
        .prepare_cached("SELECT bead_id FROM chains WHERE chain_id = ?1")
        .and_then(|mut select| select.query_row(params![chain.as_str()], |row| row.get("bead_id")).optional())
        .map_err(failed("read the bead of a chain"))?;
    let Some(bead) = bead.map(BeadId::new) else { return Ok(()) };
    match live_on(tx, &bead)? {
        Some(other) if other != *chain => Err(StoreError::LiveChainExists { bead, chain: other }),
        Some(_) | None => Ok(()),
    }
}

fn live_on(connection: &Connection, bead: &BeadId) -> Result<Option<ChainId>, StoreError> {
    let sql = format!("SELECT chain_id FROM chains WHERE bead_id = ?1 AND status IN ({})", ChainStatus::live_list());
    connection
        .prepare_cached(&sql)
        .and_then(|mut select| select.query_row(params![bead.as_str()], |row| row.get("chain_id")).optional())
        .map(|found: Option<String>| found.map(ChainId::new))
        .map_err(failed("look for a live chain on a bead"))
}

/// Reads one chain.
pub(super) fn get(connection: &Connection, chain: &ChainId) -> Result<Option<ChainRow>, StoreError> {
    connection
        .prepare_cached("SELECT * FROM chains WHERE chain_id = ?1")
        .and_then(|mut select| select.query_row(params![chain.as_str()], ChainRow::read).optional())
        .map_err(failed("read a chain"))
}

/// Reads the chain of a bead: the live one, else the newest.
pub(super) fn by_bead(connection: &Connection, bead: &BeadId) -> Result<Option<ChainRow>, StoreError> {
    let sql = format!(
        "SELECT * FROM chains WHERE bead_id = ?1
         ORDER BY status IN ({}) DESC, created_at_ms DESC, chain_id DESC LIMIT 1",
        ChainStatus::live_list()
    );
    connection
        .prepare_cached(&sql)
        .and_then(|mut select| select.query_row(params![bead.as_str()], ChainRow::read).optional())
        .map_err(failed("read the chain of a bead"))
}

/// Lists chains, the newest first.
pub(super) fn list(connection: &Connection) -> Result<Vec<ChainHead>, StoreError> {
    let sql = "SELECT chain_id, bead_id, formula, status, branch, created_at_ms, updated_at_ms
               FROM chains ORDER BY created_at_ms DESC, chain_id";
    connection
        .prepare_cached(sql)
        .and_then(|mut select| select.query_map([], ChainHead::read)?.collect())
        .map_err(failed("list chains"))
}

/// Lists the requests of live chains, the newest first.
pub(super) fn live_requests(connection: &Connection) -> Result<Vec<LiveRequest>, StoreError> {
    let sql = format!(
        "SELECT chain_id, bead_id, formula, request_json FROM chains WHERE status IN ({})
         ORDER BY created_at_ms DESC, chain_id",
        ChainStatus::live_list()
    );
    let read = |row: &Row<'_>| {
        Ok(LiveRequest {
            chain: ChainId::new(row.get::<_, String>("chain_id")?),
            bead: BeadId::new(row.get::<_, String>("bead_id")?),
            formula: row.get("formula")?,
            request_json: row.get("request_json")?,
        })
    };
    connection
        .prepare_cached(&sql)
        .and_then(|mut select| select.query_map([], read)?.collect())
        .map_err(failed("list live chains"))
}

#[cfg(test)]
mod tests;

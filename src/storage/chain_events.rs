//! Table `chain_events`: the log a chain is folded from. Appended by the owner of the chain alone.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::chains::{self, ChainPatch};
use super::error::{StoreError, failed};
use super::owners::{self, Resource};
use super::writer::Write;
use crate::ids::ChainId;

/// One event of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainEventRow {
    /// Place in the log, from 1, gapless.
    pub seq: u64,
    /// Wall clock, ms since 1970 UTC.
    pub at_ms: i64,
    /// The event, JSON.
    pub body: String,
}

/// Appends to the log of a chain and changes its row, under an ownership epoch.
///
/// Refused when the caller does not own the chain (any more), when the events would leave a hole, and when others stand
/// in their place. The same events again are fine: an acknowledgement was lost.
#[derive(Debug, Clone)]
pub struct AppendChainEvents {
    /// The chain.
    pub chain: ChainId,
    /// The caller's ownership epoch, from [`super::OpenChain`] or [`super::TakeOwnership`].
    pub epoch: u32,
    /// Place of the first event: the last stored one plus 1.
    pub first_seq: u64,
    /// The events, JSON.
    pub bodies: Vec<String>,
    /// Wall clock, ms since 1970 UTC.
    pub at_ms: i64,
    /// What changes in the chain's row with them.
    pub patch: ChainPatch,
}

impl Write for AppendChainEvents {
    type Answer = ();

    fn apply(&self, tx: &Transaction<'_>) -> Result<(), StoreError> {
        let current = owners::held_epoch(tx, &Resource::Chain(self.chain.clone()))?;
        if current != Some(self.epoch) {
            return Err(StoreError::StaleOwner { chain: self.chain.clone(), epoch: self.epoch, current });
        }
        let expected = last_seq(tx, &self.chain)? + 1;
        if self.first_seq == 0 || self.first_seq > expected {
            return Err(StoreError::Gap { chain: self.chain.clone(), seq: self.first_seq, expected });
        }
        for (seq, body) in (self.first_seq..).zip(&self.bodies) {
            append(tx, &self.chain, &ChainEventRow { seq, at_ms: self.at_ms, body: body.clone() })?;
        }
        // A late repeat must not put the row back to what later events have changed.
        let is_latest = self.first_seq + self.bodies.len() as u64 >= expected;
        if is_latest { chains::patch(tx, &self.chain, &self.patch, self.at_ms) } else { Ok(()) }
    }
}

/// Appends one event. The same event again is fine; another one at its place means a second writer.
fn append(tx: &Transaction<'_>, chain: &ChainId, event: &ChainEventRow) -> Result<(), StoreError> {
    let sql = "INSERT INTO chain_events (chain_id, seq, at_ms, body) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (chain_id, seq) DO UPDATE SET seq = seq WHERE body = excluded.body";
    let written = tx
        .prepare_cached(sql)
        .and_then(|mut insert| {
            insert.execute(params![chain.as_str(), event.seq.cast_signed(), event.at_ms, event.body])
        })
        .map_err(failed("append an event of a chain"))?;
    if written == 1 { Ok(()) } else { Err(StoreError::SecondWriter { log: chain.to_string(), seq: event.seq }) }
}

/// Returns the last place of a chain's log; 0 when it is empty.
fn last_seq(connection: &Connection, chain: &ChainId) -> Result<u64, StoreError> {
    let sql = "SELECT seq FROM chain_events WHERE chain_id = ?1 ORDER BY seq DESC LIMIT 1";
    connection
        .prepare_cached(sql)
        .and_then(|mut select| select.query_row(params![chain.as_str()], |row| row.get::<_, i64>("seq")).optional())
        .map(|last| last.map_or(0, i64::cast_unsigned))
        .map_err(failed("read the last event of a chain"))
}

/// Reads the log of a chain after a place in it; 0 reads all.
pub(super) fn after(
    connection: &Connection,
    chain: &ChainId,
    after_seq: u64,
) -> Result<Vec<ChainEventRow>, StoreError> {
    let sql = "SELECT seq, at_ms, body FROM chain_events WHERE chain_id = ?1 AND seq > ?2 ORDER BY seq";
    let read = |row: &Row<'_>| {
        Ok(ChainEventRow {
            seq: row.get::<_, i64>("seq")?.cast_unsigned(),
            at_ms: row.get("at_ms")?,
            body: row.get("body")?,
        })
    };
    connection
        .prepare_cached(sql)
        .and_then(|mut select| select.query_map(params![chain.as_str(), after_seq.cast_signed()], read)?.collect())
        .map_err(failed("read the events of a chain"))
}

#[cfg(test)]
mod tests;

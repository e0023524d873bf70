//! Table `findings`: durable remarks of policy. The same remark again changes nothing.

use rusqlite::{Connection, Row, Transaction, named_params, params};

use super::error::{StoreError, failed};
use super::writer::Write;
use crate::ids::{ChainId, JobId, StepId};

/// A remark of policy. Chain, job, step, code and message together tell it from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The chain it is about.
    pub chain: Option<ChainId>,
    /// The job it is about.
    pub job: Option<JobId>,
    /// The step it is about.
    pub step: Option<StepId>,
    /// Which rule speaks, snake case.
    pub code: String,
    /// How grave, in policy's word.
    pub severity: String,
    /// What was found.
    pub message: String,
    /// Mode that policy was in: off, shadow, warn, enforce.
    pub mode: String,
    /// Wall clock, ms since 1970 UTC.
    pub at_ms: i64,
}

/// A stored finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingRow {
    /// Number, in the order of recording.
    pub id: i64,
    /// The finding.
    pub finding: Finding,
}

impl FindingRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let finding = Finding {
            chain: row.get::<_, Option<String>>("chain_id")?.map(ChainId::new),
            job: row.get::<_, Option<String>>("job_id")?.map(JobId::new),
            step: row.get::<_, Option<String>>("step")?.map(StepId::new),
            code: row.get("code")?,
            severity: row.get("severity")?,
            message: row.get("message")?,
            mode: row.get("mode")?,
            at_ms: row.get("at_ms")?,
        };
        Ok(Self { id: row.get("id")?, finding })
    }
}

/// Whether a finding was news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is.
    New,
    /// It was recorded before; time, mode and severity of the first stay.
    Known,
}

/// Records a finding.
#[derive(Debug, Clone)]
pub struct RecordFinding(pub Finding);

impl Write for RecordFinding {
    type Answer = Recorded;

    fn apply(&self, tx: &Transaction<'_>) -> Result<Recorded, StoreError> {
        let finding = &self.0;
        let sql = "
            INSERT INTO findings (chain_id, job_id, step, code, severity, message, mode, at_ms)
            VALUES (:chain, :job, :step, :code, :severity, :message, :mode, :at)
            ON CONFLICT (coalesce(chain_id, ''), coalesce(job_id, ''), coalesce(step, ''), code, message) DO NOTHING";
        let written = tx
            .prepare_cached(sql)
            .and_then(|mut insert| {
                insert.execute(named_params! {
                    ":chain": finding.chain.as_ref().map(ChainId::as_str),
                    ":job": finding.job.as_ref().map(JobId::as_str),
                    ":step": finding.step.as_ref().map(StepId::as_str),
                    ":code": finding.code, ":severity": finding.severity, ":message": finding.message,
                    ":mode": finding.mode, ":at": finding.at_ms,
                })
            })
            .map_err(failed("record a finding"))?;
        Ok(if written == 1 { Recorded::New } else { Recorded::Known })
    }
}

/// Reads the findings about a chain, in the order of recording.
pub(super) fn of_chain(connection: &Connection, chain: &ChainId) -> Result<Vec<FindingRow>, StoreError> {
    read_all(connection, "SELECT * FROM findings WHERE chain_id = ?1 ORDER BY id", chain.as_str())
}

fn read_all(connection: &Connection, sql: &str, key: &str) -> Result<Vec<FindingRow>, StoreError> {
    connection
        .prepare_cached(sql)
        .and_then(|mut select| select.query_map(params![key], FindingRow::read)?.collect())
        .map_err(failed("read findings"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::connection::in_memory;

    fn finding(chain: Option<&str>, job: Option<&str>, message: &str) -> Finding {
        Finding {
            chain: chain.map(ChainId::from),
            job: job.map(JobId::from),
            step: None,
            code: "readiness_divergence".into(),
            severity: "warning".into(),
            message: message.into(),
            mode: "warn".into(),
            at_ms: 5,
        }
    }

    #[test]
    fn the_same_finding_is_stored_once_even_without_chain_or_job() {
        let mut connection = in_memory();
        let tx = connection.transaction().unwrap();
        for (chain, job, message, expected) in [
            (Some("m1"), None, "a", Recorded::New),
            (Some("m1"), None, "a", Recorded::Known),
            (Some("m1"), None, "b", Recorded::New),
            (Some("m1"), Some("j1"), "a", Recorded::New),
            (Some("m2"), None, "a", Recorded::New),
            (None, None, "a", Recorded::New),
            (None, None, "a", Recorded::Known),
        ] {
            let mut again = finding(chain, job, message);
            again.at_ms += 1;
            assert_eq!(RecordFinding(again).apply(&tx).unwrap(), expected, "{chain:?} {job:?} {message}");
        }
        let messages = |rows: Vec<FindingRow>| rows.into_iter().map(|row| row.finding.message).collect::<Vec<_>>();
        assert_eq!(messages(of_chain(&tx, &"m1".into()).unwrap()), ["a", "b", "a"]);
    }
}

//! bd's answers as values. Pure. What is not understood is an error, never "none" (beads.md §2.2).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::classify::{Trouble, complaint};
use crate::ids::BeadId;
use crate::ports::{Bead, GraphPlan};

/// What one bd process left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Returns the payload of an answer, out of its envelope if it has one.
///
/// An error may sit inside the envelope, on either stream, or be plain text, and may come with exit 0.
pub(super) fn payload(answer: &Answer) -> Result<Value, Trouble> {
    let parsed = serde_json::from_slice(&answer.stdout).map(unwrap_envelope);
    let inside = parsed.as_ref().ok().and_then(error_of);
    if answer.code == Some(0) && inside.is_none() {
        return parsed.map_err(Trouble::Garbled);
    }
    let stderr = String::from_utf8_lossy(&answer.stderr);
    let (values, plain) = split_json(&stderr);
    let said = inside.or_else(|| values.into_iter().map(unwrap_envelope).find_map(|value| error_of(&value)));
    let text = said.unwrap_or_else(|| {
        if plain.trim().is_empty() { String::from_utf8_lossy(&answer.stdout).into_owned() } else { plain }
    });
    // An error with exit 0 is one all the same.
    Err(Trouble::Said(complaint(answer.code, &text)))
}

/// Takes the payload out of `{"schema_version":…,"data":…}`; anything else is a payload as it stands.
fn unwrap_envelope(value: Value) -> Value {
    match value {
        Value::Object(mut envelope) if envelope.contains_key("schema_version") && envelope.contains_key("data") => {
            envelope.remove("data").unwrap_or_default()
        }
        bare => bare,
    }
}

/// Returns the error text in a payload: the parts that failed where it lists them, else its summary.
fn error_of(payload: &Value) -> Option<String> {
    let summary = payload.get("error")?.as_str()?;
    let parts: Vec<&str> = payload
        .get("failed")
        .and_then(Value::as_array)
        .map(|failed| failed.iter().filter_map(|part| part.get("error")?.as_str()).collect())
        .unwrap_or_default();
    let message = payload.get("message").and_then(Value::as_str);
    Some(match (parts.is_empty(), message) {
        (false, _) => parts.join("; "),
        (true, Some(message)) => format!("{summary}: {message}"),
        (true, None) => summary.to_owned(),
    })
}

/// Splits text into the JSON objects that begin a line, and the rest.
fn split_json(text: &str) -> (Vec<Value>, String) {
    let (mut values, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while !rest.is_empty() {
        if rest.starts_with('{') {
            let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            if let Some(Ok(value)) = stream.next() {
                values.push(value);
                rest = &rest[stream.byte_offset()..];
                continue;
            }
        }
        let (line, after) = rest.split_at(rest.find('\n').map_or(rest.len(), |end| end + 1));
        plain.push_str(line);
        rest = after;
    }
    (values, plain)
}

fn read<T: DeserializeOwned>(payload: Value) -> Result<T, Trouble> {
    serde_json::from_value(payload).map_err(Trouble::Garbled)
}

fn garbled(what: impl std::fmt::Display) -> Trouble {
    Trouble::Garbled(serde_json::Error::custom(what))
}

/// Returns the beads in a payload: an array, one object, or `null` for none.
pub(super) fn beads(payload: Value) -> Result<Vec<Bead>, Trouble> {
    let rows: Vec<BeadRow> = match payload {
        Value::Null => Vec::new(),
        rows @ Value::Array(_) => read(rows)?,
        one => vec![read(one)?],
    };
    rows.into_iter().map(BeadRow::into_bead).collect()
}

/// The fields we act on; bd leaves out what is empty and may add others at any time.
#[derive(Deserialize)]
struct BeadRow {
    id: String,
    status: String,
    #[serde(default, deserialize_with = "or_default")]
    title: String,
    #[serde(default, deserialize_with = "or_default")]
    issue_type: String,
    #[serde(default, deserialize_with = "or_default")]
    description: String,
    #[serde(default, deserialize_with = "or_default")]
    notes: String,
    assignee: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    labels: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    metadata: BTreeMap<String, Value>,
    parent: Option<String>,
    close_reason: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    dependencies: Vec<EdgeRow>,
    #[serde(default, deserialize_with = "or_default")]
    dependents: Vec<EdgeRow>,
}

/// The other end of an edge. `show` gives a short bead with `dependency_type`; `list` and `ready` give a bare edge
/// (`issue_id`, `depends_on_id`, `type`) without a status, from which nothing can be told about blocking.
#[derive(Deserialize)]
struct EdgeRow {
    id: Option<String>,
    status: Option<String>,
    dependency_type: Option<String>,
}

impl EdgeRow {
    /// Returns the id of an open bead at the other end of an edge of one of these types.
    fn open_end(self, types: &[&str]) -> Option<String> {
        let kind = self.dependency_type?;
        (types.contains(&kind.as_str()) && self.status.as_deref() != Some("closed")).then_some(self.id).flatten()
    }
}

impl BeadRow {
    fn into_bead(self) -> Result<Bead, Trouble> {
        if self.id.is_empty() || self.status.is_empty() {
            return Err(garbled(format_args!("a bead without id or status: `{}`, `{}`", self.id, self.status)));
        }
        let open =
            |edges: Vec<EdgeRow>, types: &[&str]| edges.into_iter().filter_map(|edge| edge.open_end(types)).collect();
        Ok(Bead {
            open_blockers: open(self.dependencies, &["blocks", "conditional-blocks", "waits-for"]),
            open_children: open(self.dependents, &["parent-child"]),
            id: self.id,
            title: self.title,
            status: self.status,
            issue_type: self.issue_type,
            description: self.description,
            notes: self.notes,
            assignee: self.assignee.filter(|name| !name.is_empty()),
            labels: self.labels,
            metadata: self.metadata,
            parent: self.parent.filter(|id| !id.is_empty()),
            close_reason: self.close_reason,
        })
    }
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

#[derive(Deserialize)]
struct VersionRow {
    version: String,
}

/// Returns the version in the answer of `version`.
pub(super) fn version(payload: Value) -> Result<String, Trouble> {
    read(payload).map(|row: VersionRow| row.version)
}

/// Returns whether sp knows this version's behaviour: 1.3.x.
pub(super) fn is_supported(version: &str) -> bool {
    let mut parts = version.trim_start_matches('v').split('.');
    parts.next() == Some("1") && parts.next() == Some("3") && parts.next().is_some()
}

/// Identity of a workspace, from the answer of `context`.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Context {
    pub beads_dir: PathBuf,
    /// Absent from a database that bd has just made up (beads.md §13.1), so required.
    pub project_id: String,
}

/// Returns the identity in the answer of `context`.
pub(super) fn context(payload: Value) -> Result<Context, Trouble> {
    let context: Context = read(payload)?;
    if context.project_id.is_empty() { Err(garbled("an empty project_id")) } else { Ok(context) }
}

#[derive(Deserialize)]
struct WhereRow {
    prefix: String,
}

/// Returns the id prefix in the answer of `where`.
pub(super) fn prefix(payload: Value) -> Result<String, Trouble> {
    read(payload).map(|row: WhereRow| row.prefix)
}

#[derive(Deserialize)]
struct BatchRow {
    operations: usize,
}

/// Checks that a batch applied this many operations.
pub(super) fn applied(payload: Value, count: usize) -> Result<(), Trouble> {
    let row: BatchRow = read(payload)?;
    if row.operations == count {
        Ok(())
    } else {
        Err(garbled(format_args!("{} operations instead of {count}", row.operations)))
    }
}

/// Checks that a bead is in progress and held by this one.
pub(super) fn held(payload: Value, bead: &BeadId, holder: &str) -> Result<(), Trouble> {
    let found = beads(payload)?;
    let is_held =
        |row: &&Bead| row.id == bead.as_str() && row.status == "in_progress" && row.assignee.as_deref() == Some(holder);
    found.iter().find(is_held).map(drop).ok_or_else(|| garbled(format_args!("{bead} is not held by {holder}")))
}

#[derive(Deserialize)]
struct GraphRow {
    ids: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct CheckRow {
    dry_run: bool,
    node_count: usize,
    edge_count: usize,
}

/// Checks that a graph was looked at whole, and only looked at.
pub(super) fn checked(payload: Value, plan: &GraphPlan) -> Result<(), Trouble> {
    let row: CheckRow = read(payload)?;
    if row.dry_run && (row.node_count, row.edge_count) == (plan.nodes.len(), plan.edges.len()) {
        return Ok(());
    }
    Err(garbled(format_args!("a dry run ({}) of {} nodes and {} edges", row.dry_run, row.node_count, row.edge_count)))
}

/// Checks that a graph was created with the ids of its plan.
pub(super) fn created(payload: Value, plan: &GraphPlan) -> Result<(), Trouble> {
    let row: GraphRow = read(payload)?;
    match plan.nodes.iter().find(|node| row.ids.get(&node.key) != Some(&node.id)) {
        Some(node) => Err(garbled(format_args!("node {} is not {}", node.key, node.id))),
        None => Ok(()),
    }
}

/// Returns whether these beads are the ones of a plan: every id is there and carries the plan's metadata.
pub(super) fn is_poured(plan: &GraphPlan, found: &[Bead]) -> bool {
    plan.nodes.iter().all(|node| {
        found
            .iter()
            .filter(|bead| bead.id == node.id)
            .any(|bead| node.metadata.iter().all(|(key, value)| bead.metadata.get(key) == Some(value)))
    })
}

#[derive(Deserialize)]
struct WorktreeRow {
    branch: String,
}

/// Checks that a worktree was made on this branch.
pub(super) fn worktree_on(payload: Value, branch: &str) -> Result<(), Trouble> {
    let row: WorktreeRow = read(payload)?;
    if row.branch == branch { Ok(()) } else { Err(garbled(format_args!("branch {} instead of {branch}", row.branch))) }
}

#[cfg(test)]
mod tests;

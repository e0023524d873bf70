//! The beads of a chain: what one pour creates in bd. Rules: docs/design/contract.md, section Pour.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::ids::ChainId;
use crate::ports::{Bead, GraphEdge, GraphNode, GraphPlan};

use super::shape::{Relation, Shape, Step, Target};

/// Longest title that bd takes, in bytes.
const TITLE_LIMIT: usize = 500;

/// Relations that bd knows and that block nothing. bd takes any other word too and makes an edge of it, so the rest
/// (`informs`, `implements`, `parent-child` …) stays in labels and metadata.
const EDGE_TYPES: [&str; 6] = ["validates", "related", "relates-to", "discovered-from", "tracks", "caused-by"];

/// What a molecule says of its chain beyond its steps, so that it can be gone on with when the database is lost.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Commit that the branch starts from.
    pub base: &'a str,
    /// Whether its models are a script.
    pub rehearsal: bool,
}

/// Lays out the molecule of a chain, its steps and their edges, to be created in one transaction.
///
/// The root bead waits for the molecule. bd holds one edge per pair of beads: a relation becomes one where the pair is
/// free, and is kept in `sp_edges` either way. The same input gives the same plan.
pub fn plan(shape: &Shape, chain: &ChainId, root: &Bead, origin: &Origin<'_>) -> GraphPlan {
    let mut nodes = vec![molecule(shape, chain, root, origin)];
    nodes.extend(shape.steps.iter().map(|step| step_node(shape, chain, root, step)));
    let mut edges: Vec<GraphEdge> = shape
        .steps
        .iter()
        .flat_map(|step| {
            step.needs.iter().map(|need| between(chain, step, &Target::Step(need.clone()), root, "blocks"))
        })
        .collect();
    edges.push(GraphEdge {
        from_id: Some(root.id.clone()),
        to_key: Some(chain.to_string()),
        edge_type: "blocks".to_owned(),
        ..GraphEdge::default()
    });
    edges.extend(shape.steps.iter().flat_map(|step| typed_edges(shape, chain, root, step)));
    GraphPlan { commit_message: format!("sp: pour {} on {} as {chain}", shape.formula, root.id), nodes, edges }
}

fn molecule(shape: &Shape, chain: &ChainId, root: &Bead, origin: &Origin<'_>) -> GraphNode {
    let mut metadata = own_metadata(shape, chain, root);
    metadata.insert("sp_base".to_owned(), json!(origin.base));
    metadata.insert("sp_rehearsal".to_owned(), json!(origin.rehearsal));
    GraphNode {
        key: chain.to_string(),
        id: chain.to_string(),
        title: title(&format!("{} on {}: {}", shape.formula, root.id, root.title), &shape.formula),
        issue_type: "molecule".to_owned(),
        description: String::new(),
        notes: String::new(),
        priority: shape.steps.iter().map(|step| step.priority).min().unwrap_or(2),
        labels: Vec::new(),
        metadata,
        parent_key: None,
    }
}

fn step_node(shape: &Shape, chain: &ChainId, root: &Bead, step: &Step) -> GraphNode {
    // Keys that begin with `sp_` are ours: a formula can't say that a step belongs to another chain.
    let foreign = step.metadata.iter().filter(|(key, _)| !key.starts_with("sp_"));
    let mut metadata: BTreeMap<String, Value> = foreign.map(|(key, value)| (key.clone(), value.clone())).collect();
    metadata.extend(own_metadata(shape, chain, root));
    metadata.insert("sp_step".to_owned(), json!(step.id));
    metadata.insert("sp_edges".to_owned(), step.relations.iter().map(sp_edge).collect());
    let mut labels = vec!["kind:step".to_owned()];
    for label in &step.labels {
        if !labels.contains(label) {
            labels.push(label.clone());
        }
    }
    let bead = chain.step_bead(&step.id).to_string();
    GraphNode {
        key: bead.clone(),
        id: bead,
        title: title(&step.title, step.id.as_str()),
        issue_type: "task".to_owned(),
        description: step.description.clone(),
        notes: step.notes.clone(),
        priority: step.priority,
        labels,
        metadata,
        parent_key: Some(chain.to_string()),
    }
}

fn own_metadata(shape: &Shape, chain: &ChainId, root: &Bead) -> BTreeMap<String, Value> {
    [("sp_chain", json!(chain)), ("sp_bead", json!(root.id)), ("sp_formula", json!(shape.formula))]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// A relation as the metadata keeps it; the target is a step id, or `root`.
fn sp_edge(relation: &Relation) -> Value {
    let target = match &relation.target {
        Target::Root => "root",
        Target::Step(step) => step.as_str(),
    };
    json!({"type": relation.kind, "target": target})
}

/// The relations of a step that become edges: known to bd, to a bead that is there, on a pair that is free.
fn typed_edges(shape: &Shape, chain: &ChainId, root: &Bead, step: &Step) -> Vec<GraphEdge> {
    let mut taken: BTreeSet<Target> = step.needs.iter().cloned().map(Target::Step).collect();
    taken.insert(Target::Step(step.id.clone()));
    step.relations
        .iter()
        .filter(|relation| EDGE_TYPES.contains(&relation.kind.as_str()))
        .filter(|relation| match &relation.target {
            Target::Root => true,
            Target::Step(target) => shape.step(target).is_some(),
        })
        .filter(|relation| taken.insert(relation.target.clone()))
        .map(|relation| between(chain, step, &relation.target, root, &relation.kind))
        .collect()
}

fn between(chain: &ChainId, step: &Step, target: &Target, root: &Bead, edge_type: &str) -> GraphEdge {
    let (to_key, to_id) = match target {
        Target::Root => (None, Some(root.id.clone())),
        Target::Step(target) => (Some(chain.step_bead(target).to_string()), None),
    };
    let from_key = Some(chain.step_bead(&step.id).to_string());
    GraphEdge { from_key, from_id: None, to_key, to_id, edge_type: edge_type.to_owned() }
}

/// bd refuses an empty title and one of more than 500 bytes.
fn title(text: &str, otherwise: &str) -> String {
    let text = if text.trim().is_empty() { otherwise } else { text };
    text[..text.floor_char_boundary(TITLE_LIMIT)].to_owned()
}

#[cfg(test)]
#[path = "pour/tests.rs"]
mod tests;

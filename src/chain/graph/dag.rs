//! Steps and their needs as a petgraph graph, addressed by id.

use std::collections::BTreeMap;

use petgraph::Direction;
use petgraph::algo::{has_path_connecting, tarjan_scc};
use petgraph::graph::{DiGraph, NodeIndex};

use crate::chain::shape::Shape;

/// Edges lead from what is needed to what needs it. Needs that are no step have no edge.
pub(super) struct Dag<'a> {
    graph: DiGraph<&'a str, ()>,
    index: BTreeMap<&'a str, NodeIndex>,
}

impl<'a> Dag<'a> {
    /// Builds the graph of (step, its needs).
    pub(super) fn new(steps: &[(&'a str, Vec<&'a str>)]) -> Self {
        let mut graph = DiGraph::with_capacity(steps.len(), steps.len());
        let index: BTreeMap<&str, NodeIndex> = steps.iter().map(|(id, _)| (*id, graph.add_node(*id))).collect();
        for (id, needs) in steps {
            for need in needs {
                if let Some(from) = index.get(need) {
                    graph.update_edge(*from, index[id], ());
                }
            }
        }
        Self { graph, index }
    }

    /// Builds the graph of a shape.
    pub(super) fn of(shape: &'a Shape) -> Self {
        let pairs: Vec<_> = shape
            .steps
            .iter()
            .map(|step| (step.id.as_str(), step.needs.iter().map(|need| need.as_str()).collect()))
            .collect();
        Self::new(&pairs)
    }

    /// Returns whether a path of at least one edge leads from `earlier` to `later`.
    pub(super) fn is_before(&self, earlier: &str, later: &str) -> bool {
        match (self.index.get(earlier), self.index.get(later)) {
            (Some(from), Some(to)) => from != to && has_path_connecting(&self.graph, *from, *to, None),
            _ => false,
        }
    }

    /// Returns the steps that directly need `id`, in the order of the steps.
    pub(super) fn needed_by(&self, id: &str) -> Vec<&'a str> {
        self.neighbours(id, Direction::Outgoing)
    }

    fn neighbours(&self, id: &str, direction: Direction) -> Vec<&'a str> {
        let Some(node) = self.index.get(id) else { return Vec::new() };
        let mut found: Vec<NodeIndex> = self.graph.neighbors_directed(*node, direction).collect();
        found.sort();
        found.into_iter().map(|node| self.graph[node]).collect()
    }

    /// Returns a cycle in order, its first step again at the end; `None` when there is none.
    ///
    /// The same graph always names the same one: it starts at the smallest id of its component.
    pub(super) fn cycle(&self) -> Option<Vec<String>> {
        let loops = |component: &Vec<NodeIndex>| {
            component.len() > 1 || component.iter().any(|node| self.graph.contains_edge(*node, *node))
        };
        let component = tarjan_scc(&self.graph).into_iter().filter(loops).min_by_key(|nodes| self.smallest(nodes))?;
        // Inside a strongly connected component each node has a successor in it, so the walk must meet itself.
        let mut path: Vec<&str> = vec![self.smallest(&component)?];
        loop {
            let inside = self.needed_by(path[path.len() - 1]);
            let next = inside.into_iter().filter(|id| component.iter().any(|node| self.graph[*node] == *id)).min()?;
            if let Some(start) = path.iter().position(|id| *id == next) {
                return Some(path[start..].iter().copied().chain([next]).map(str::to_owned).collect());
            }
            path.push(next);
        }
    }

    fn smallest(&self, nodes: &[NodeIndex]) -> Option<&'a str> {
        nodes.iter().map(|node| self.graph[*node]).min()
    }

    /// Returns the steps by levels: each level holds what needs only earlier ones, in the order of the steps.
    ///
    /// Steps on a cycle, and after one, are in no level.
    pub(super) fn levels(&self) -> Vec<Vec<&'a str>> {
        let mut waiting: Vec<usize> = self
            .graph
            .node_indices()
            .map(|node| self.graph.neighbors_directed(node, Direction::Incoming).count())
            .collect();
        let mut level: Vec<NodeIndex> = self.graph.node_indices().filter(|node| waiting[node.index()] == 0).collect();
        let mut levels = Vec::new();
        while !level.is_empty() {
            levels.push(level.iter().map(|node| self.graph[*node]).collect());
            let mut next = Vec::new();
            for after in level.iter().flat_map(|node| self.graph.neighbors(*node)) {
                waiting[after.index()] -= 1;
                if waiting[after.index()] == 0 {
                    next.push(after);
                }
            }
            next.sort();
            level = next;
        }
        levels
    }
}

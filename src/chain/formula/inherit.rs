//! `extends`: parents merged into one formula, by bd's rules.

use std::collections::BTreeMap;

use super::error::{FormulaError, Place};
use super::library::{FormulaSource, find};
use super::parse::{parse, refuse_duplicates};
use super::schema::Formula;

/// Finds a formula and merges all it extends.
///
/// A child's step replaces its parent's of the same id in place, other steps follow; a child's variable replaces its
/// parent's. Of two parents the first wins for variables, and a step id in both is an error. Everything else
/// (description, version, intent) is the child's alone.
///
/// # Errors
/// `NotFound` names the formula that wanted it; `ExtendsCycle`; `DuplicateStep`; what parsing and the source say.
pub fn load(name: &str, source: &dyn FormulaSource) -> Result<Formula, FormulaError> {
    Family { source, open: Vec::new(), done: BTreeMap::new() }.member(name)
}

struct Family<'a> {
    source: &'a dyn FormulaSource,
    /// Names being resolved, outermost first.
    open: Vec<String>,
    done: BTreeMap<String, Formula>,
}

impl Family<'_> {
    fn member(&mut self, name: &str) -> Result<Formula, FormulaError> {
        if let Some(start) = self.open.iter().position(|open| open == name) {
            let chain = self.open[start..].iter().cloned().chain([name.to_owned()]).collect();
            return Err(FormulaError::ExtendsCycle { chain });
        }
        if let Some(done) = self.done.get(name) {
            return Ok(done.clone());
        }
        let text = find(self.source, name, self.open.last().map(String::as_str))?;
        let child = parse(&text)?;
        // Rules go by name: a file that calls itself otherwise would be bound by those of another formula.
        if child.name != name {
            let at = Place { origin: text.origin, step: None, field: "formula".to_owned() };
            let problem = format!("is {:?}, but the file is that of {name:?}", child.name);
            return Err(FormulaError::Malformed { at, problem });
        }
        self.open.push(name.to_owned());
        let parents = child.extends.iter().map(|parent| self.member(parent)).collect::<Result<Vec<_>, _>>()?;
        self.open.pop();
        let merged = merge(parents, child)?;
        self.done.insert(name.to_owned(), merged.clone());
        Ok(merged)
    }
}

fn merge(parents: Vec<Formula>, mut child: Formula) -> Result<Formula, FormulaError> {
    let mut steps = Vec::new();
    for parent in parents {
        child.lineage.extend(parent.lineage);
        for (name, var) in parent.vars {
            child.vars.entry(name).or_insert(var);
        }
        steps.extend(parent.steps);
    }
    refuse_duplicates(&steps)?;
    for step in std::mem::take(&mut child.steps) {
        match steps.iter().position(|parent| parent.id == step.id) {
            Some(place) => steps[place] = step,
            None => steps.push(step),
        }
    }
    Ok(Formula { steps, extends: Vec::new(), ..child })
}

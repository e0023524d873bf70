//! A shape as a picture: text, DOT, Mermaid. The same shape always gives the same bytes.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::dag::Dag;
use crate::chain::shape::{Class, Shape, Step, Target, Writer};
use crate::ids::StepId;

/// Draws the steps as aligned lines, one a step, in waves.
///
/// `status` may hold a word about each step, such as `passed`.
pub fn ascii(shape: &Shape, status: &BTreeMap<StepId, String>) -> String {
    let levels = Dag::of(shape).levels();
    let mut rows: Vec<[String; 5]> = Vec::new();
    for (wave, level) in levels.iter().enumerate() {
        for (index, step) in level.iter().filter_map(|id| shape.step(&StepId::from(*id))).enumerate() {
            let needs: Vec<&str> = in_shape_order(shape, step);
            rows.push([
                if index == 0 { (wave + 1).to_string() } else { String::new() },
                one_line(step.id.as_str()),
                nature(step),
                status.get(&step.id).map(|text| one_line(text)).unwrap_or_default(),
                if needs.is_empty() { String::new() } else { format!("<- {}", one_line(&needs.join(", "))) },
            ]);
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths = [0, 1, 2, 3].map(width);
    let mut text = String::new();
    for row in &rows {
        let mut line = format!("{:>w$}", row[0], w = widths[0]);
        for column in 1..4 {
            if widths[column] > 0 {
                push(&mut line, format_args!("  {:<w$}", row[column], w = widths[column]));
            }
        }
        push(&mut line, format_args!("  {}", row[4]));
        push(&mut text, format_args!("{}\n", line.trim_end()));
    }
    text
}

/// Draws the steps as a Graphviz digraph; needs are solid edges, relations between steps dashed ones.
pub fn dot(shape: &Shape, status: &BTreeMap<StepId, String>) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "");
    let mut text = format!("digraph \"{}\" {{\n  rankdir=LR;\n  node [shape=box];\n", quoted(&shape.formula));
    for step in &shape.steps {
        let shape_of = if step.class == Class::Gate { ", shape=diamond" } else { "" };
        let label = quoted(&lines(step, status).join("\n"));
        push(&mut text, format_args!("  \"{}\" [label=\"{label}\"{shape_of}];\n", quoted(step.id.as_str())));
    }
    for step in &shape.steps {
        for need in in_shape_order(shape, step) {
            push(&mut text, format_args!("  \"{}\" -> \"{}\";\n", quoted(need), quoted(step.id.as_str())));
        }
    }
    for (from, kind, to) in relations(shape) {
        let (from, kind, to) = (quoted(from), quoted(kind), quoted(to));
        push(&mut text, format_args!("  \"{from}\" -> \"{to}\" [label=\"{kind}\", style=dashed, constraint=false];\n"));
    }
    text.push_str("}\n");
    text
}

/// Draws the steps as a Mermaid flowchart; needs are solid edges, relations between steps dotted ones.
pub fn mermaid(shape: &Shape, status: &BTreeMap<StepId, String>) -> String {
    // Numbered nodes: a step may be called `end`, which Mermaid would take for its own.
    let number = |id: &str| shape.steps.iter().position(|step| step.id.as_str() == id).unwrap_or_default();
    let mut text = String::from("flowchart LR\n");
    for (index, step) in shape.steps.iter().enumerate() {
        let label = lines(step, status).iter().map(|line| entities(line)).collect::<Vec<_>>().join("<br/>");
        let (open, close) = if step.class == Class::Gate { ("{{", "}}") } else { ("[", "]") };
        push(&mut text, format_args!("  s{index}{open}\"{label}\"{close}\n"));
    }
    for step in &shape.steps {
        for need in in_shape_order(shape, step) {
            push(&mut text, format_args!("  s{} --> s{}\n", number(need), number(step.id.as_str())));
        }
    }
    for (from, kind, to) in relations(shape) {
        push(&mut text, format_args!("  s{} -.->|\"{}\"| s{}\n", number(from), entities(kind), number(to)));
    }
    text
}

/// Returns what stands in a step's box.
fn lines(step: &Step, status: &BTreeMap<StepId, String>) -> Vec<String> {
    [step.id.to_string(), nature(step)].into_iter().chain(status.get(&step.id).cloned()).collect()
}

/// Returns what a step is: its role where the id says another, then class, writer, advisor.
fn nature(step: &Step) -> String {
    let is_final = step.labels.iter().any(|label| label == "gate:final");
    let class = match (step.class, step.writer, step.mandatory) {
        (Class::Gate, _, true) if is_final => "final gate",
        (Class::Gate, _, true) => "mandatory gate",
        (Class::Gate, _, false) => "gate",
        (Class::Step, Some(Writer::Primary), _) => "writer",
        (Class::Step, Some(Writer::Secondary), _) => "secondary writer",
        (Class::Step, None, _) if step.advisor => "advisor",
        (Class::Step, None, _) => "step",
    };
    if step.role == step.id.as_str() { class.to_owned() } else { format!("{class} ({})", one_line(&step.role)) }
}

/// Relations between steps as (from, kind, to); those to the root contract leave the picture.
fn relations(shape: &Shape) -> impl Iterator<Item = (&str, &str, &str)> {
    shape.steps.iter().flat_map(|step| {
        step.relations.iter().filter_map(move |relation| match &relation.target {
            Target::Step(target) => Some((step.id.as_str(), relation.kind.as_str(), target.as_str())),
            Target::Root => None,
        })
    })
}

fn in_shape_order<'a>(shape: &'a Shape, step: &Step) -> Vec<&'a str> {
    shape.steps.iter().filter(|each| step.needs.contains(&each.id)).map(|each| each.id.as_str()).collect()
}

/// Mermaid reads `#`, quotes, angle brackets, backticks and braces in a label; entity codes are left alone.
fn entities(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for each in text.chars() {
        match each {
            '"' | '#' | '<' | '>' | '&' | '`' | '{' | '}' | ';' => {
                push(&mut safe, format_args!("#{};", u32::from(each)))
            }
            '\n' | '\r' | '\t' => safe.push(' '),
            _ => safe.push(each),
        }
    }
    safe
}

fn one_line(text: &str) -> String {
    text.chars().map(|each| if each.is_control() { ' ' } else { each }).collect()
}

fn push(text: &mut String, part: std::fmt::Arguments<'_>) {
    // Writing into a `String` has no way to fail.
    let _ = text.write_fmt(part);
}

#[cfg(test)]
pub(in crate::chain::graph) mod tests;

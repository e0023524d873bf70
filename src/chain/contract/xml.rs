//! The XML form, spec 003 §14.3.

use roxmltree::{Document, Node};

use super::error::ContractError;
use super::model::{Contract, Form, Section, UnknownPart, tidy_line};

const OPEN: &str = "<change-contract";
const CLOSE: &str = "</change-contract";

/// Returns where contract elements begin. A mention in an inline code span, `` `<change-contract>` ``, is none.
pub(super) fn starts(description: &str) -> Vec<usize> {
    description
        .match_indices(OPEN)
        .map(|(at, _)| at)
        .filter(|&at| {
            let after = description[at + OPEN.len()..].chars().next();
            let named = after.is_none_or(|c| c.is_whitespace() || matches!(c, '>' | '/'));
            let before = &description[..at];
            let ticks = before.len() - before.trim_end_matches('`').len();
            named && !matches!(ticks, 1 | 2)
        })
        .collect()
}

/// Reads the one `<change-contract>` of a description; prose and code fences around it are skipped.
///
/// Errors carry the line and column of the description. Unknown elements and attributes are kept.
pub fn parse_xml(description: &str) -> Result<Contract, ContractError> {
    let starts = starts(description);
    let start = match starts[..] {
        [] => return Err(malformed(description, 0, "no <change-contract> element".into())),
        [start] => start,
        [_, second, ..] => {
            return Err(ContractError::Several { count: starts.len(), line: position(description, second).0 });
        }
    };
    let source = &description[start..end_of(description, start)];
    let document = Document::parse(source).map_err(|error| {
        let pos = error.pos();
        let (line, column) = position(description, start);
        ContractError::Malformed {
            line: line + pos.row - 1,
            column: if pos.row == 1 { column + pos.col - 1 } else { pos.col },
            reason: reason(&error),
        }
    })?;
    read(document.root_element(), description)
}

/// Returns where the contract that begins at `start` ends: after its closing tag, after a self-closing tag, or at the
/// end of the description, where the reader then says what is missing.
fn end_of(description: &str, start: usize) -> usize {
    let rest = &description[start..];
    let after = |from: usize| rest[from..].find('>').map_or(rest.len(), |at| from + at + 1);
    let opened = after(0);
    let length = if rest[..opened].ends_with("/>") { opened } else { rest.find(CLOSE).map_or(rest.len(), after) };
    start + length
}

/// The reader's text without its own position, which is that of the slice.
fn reason(error: &roxmltree::Error) -> String {
    error.to_string().replace(&format!(" at {}", error.pos()), "")
}

fn malformed(description: &str, at: usize, reason: String) -> ContractError {
    let (line, column) = position(description, at);
    ContractError::Malformed { line, column, reason }
}

/// Line and column of a byte offset, from 1.
fn position(text: &str, at: usize) -> (u32, u32) {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

fn read(root: Node<'_, '_>, description: &str) -> Result<Contract, ContractError> {
    let mut contract = Contract::empty(Form::Xml, description);
    for attribute in root.attributes() {
        if !contract.set_attribute(attribute.name(), attribute.value())? {
            contract.unknown.push(unknown(&format!("@{}", attribute.name()), attribute.value()));
        }
    }
    for child in root.children() {
        if child.is_element() {
            read_section(&mut contract, child);
        } else if let Some(stray) = child.text().filter(|text| child.is_text() && !text.trim().is_empty()) {
            contract.unknown.push(unknown("text", stray));
        }
    }
    Ok(contract)
}

fn read_section(contract: &mut Contract, node: Node<'_, '_>) {
    let name = node.tag_name().name();
    let Some(section) = Section::ALL.into_iter().find(|section| section.as_str() == name) else {
        contract.unknown.push(unknown(name, &text_of(node)));
        return;
    };
    match section {
        Section::Problem | Section::Rollback | Section::RetirementTrigger => {
            contract.add_prose(section, &text_of(node));
        }
        Section::Scope
        | Section::NonGoals
        | Section::Dependencies
        | Section::Deliverables
        | Section::Validation
        | Section::Acceptance => read_entries(contract, section, node),
    }
}

/// Reads a section of entries: its elements, and text outside of them line by line, with or without list dashes.
fn read_entries(contract: &mut Contract, section: Section, node: Node<'_, '_>) {
    for child in node.children() {
        if child.is_element() {
            let name = child.tag_name().name();
            let text = tidy_line(&text_of(child));
            match (section, name) {
                (Section::Scope, "repo") if !text.is_empty() => contract.scope.repos.push(text),
                (Section::Scope, "repo") => {}
                (Section::Scope, "path")
                | (Section::NonGoals | Section::Deliverables, "item")
                | (Section::Dependencies, "work-package")
                | (Section::Validation | Section::Acceptance, "criterion") => contract.add_entries(section, vec![text]),
                _ => contract.unknown.push(UnknownPart { name: format!("{section}/{name}"), text }),
            }
        } else if child.is_text() {
            let lines = child.text().unwrap_or_default().lines();
            let entries = lines.map(|line| tidy_line(line.trim().trim_start_matches(['-', '*']))).collect();
            contract.add_entries(section, entries);
        }
    }
}

/// All text below a node.
fn text_of(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|text| text.text()).collect()
}

fn unknown(name: &str, text: &str) -> UnknownPart {
    UnknownPart { name: name.to_owned(), text: tidy_line(text) }
}

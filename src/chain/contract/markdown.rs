//! The headed form: Markdown headings of any level, or lines such as `PROBLEM:` that older beads use.
//!
//! A section runs to the next section. Its entries are list items, paragraphs, and the lines of code blocks.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::error::ContractError;
use super::model::{Contract, Form, Section, UnknownPart, tidy_line};

/// What a heading announces.
#[derive(Clone, PartialEq)]
enum Part {
    Section(Section),
    /// One of the attributes of the XML form, by its name there.
    Attribute(&'static str),
    Unknown(String),
}

/// A heading: where it starts, what it announces, and where its body begins.
struct Mark {
    at: usize,
    /// 1–6; a plain line counts as deeper than any heading, so that every heading ends it.
    level: u8,
    part: Part,
    /// Text on the line of the heading itself, after a colon.
    inline: String,
    body: usize,
}

const PLAIN: u8 = 7;

/// Reads the headed form. A description without any known section is a contract of form `none`.
pub fn parse_markdown(description: &str) -> Result<Contract, ContractError> {
    let marks = marks(description);
    let Some(first) = marks.iter().position(|mark| !matches!(mark.part, Part::Unknown(_))) else {
        return Ok(Contract::empty(Form::None, description));
    };
    let mut contract = Contract::empty(Form::Markdown, description);
    // The title and whatever else comes before the first section is no part of the contract, but may hold attributes.
    for (name, value) in description[..marks[first].at].lines().filter_map(attribute_line) {
        contract.set_attribute(name, &value)?;
    }
    let sections = own_sections(&marks[first..]);
    for (index, mark) in sections.iter().enumerate() {
        let end = sections.get(index + 1).map_or(description.len(), |next| next.at);
        let body = format!("{}\n{}", mark.inline, &description[mark.body.min(end)..end]);
        add(&mut contract, &mark.part, &body)?;
    }
    Ok(contract)
}

/// Leaves out unknown headings that are deeper than the section they stand in: they structure its text.
fn own_sections(marks: &[Mark]) -> Vec<&Mark> {
    let mut level = 0;
    marks
        .iter()
        .filter(|mark| {
            let own = !matches!(mark.part, Part::Unknown(_)) || mark.level <= level;
            if own {
                level = mark.level;
            }
            own
        })
        .collect()
}

fn add(contract: &mut Contract, part: &Part, body: &str) -> Result<(), ContractError> {
    match part {
        Part::Attribute(name) => {
            let word = body.split_whitespace().next().unwrap_or_default().trim_matches(['`', '*', ',', '.']);
            contract.set_attribute(name, word)?;
        }
        Part::Unknown(name) => {
            contract.unknown.push(UnknownPart { name: name.clone(), text: tidy_line(body) });
        }
        Part::Section(section) => match section {
            Section::Problem | Section::Rollback | Section::RetirementTrigger => contract.add_prose(*section, body),
            Section::Scope => entries(body).into_iter().for_each(|entry| add_scope(contract, &entry)),
            Section::NonGoals
            | Section::Dependencies
            | Section::Deliverables
            | Section::Validation
            | Section::Acceptance => contract.add_entries(*section, entries(body)),
        },
    }
    Ok(())
}

/// One entry of the scope: `repo: owner/name`, a path, several paths with commas, or a sentence.
fn add_scope(contract: &mut Contract, entry: &str) {
    let unticked = |text: &str| match text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
        Some(inner) if !inner.contains('`') => inner.trim().to_owned(),
        _ => text.to_owned(),
    };
    if let Some((name, value)) = entry.split_once(':')
        && ["repo", "repository", "path"].iter().any(|word| name.trim().eq_ignore_ascii_case(word))
    {
        let value = unticked(value.trim());
        let is_path = name.trim().eq_ignore_ascii_case("path");
        if is_path {
            contract.scope.paths.push(value)
        } else {
            contract.scope.repos.push(value)
        }
        return;
    }
    let parts: Vec<&str> = entry.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.iter().all(|part| !part.contains(char::is_whitespace)) {
        contract.scope.paths.extend(parts.into_iter().map(unticked));
    } else {
        contract.scope.paths.push(entry.to_owned());
    }
}

/// Finds every heading and every plain line that names a section, in order.
fn marks(text: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut code: Vec<Range<usize>> = Vec::new();
    let mut heading: Option<(Range<usize>, u8, String)> = None;
    for (event, range) in Parser::new_ext(text, Options::empty()).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => heading = Some((range, level as u8, String::new())),
            Event::Text(words) | Event::Code(words) => {
                if let Some((_, _, title)) = &mut heading {
                    title.push_str(&words);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some((range, level, title)) = heading.take() {
                    marks.push(heading_mark(range, level, &title));
                }
            }
            Event::Start(Tag::CodeBlock(_)) => code.push(range),
            _ => {}
        }
    }
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let in_code = code.iter().any(|range| range.contains(&at));
        if !in_code && let Some((part, inline)) = plain_line(line) {
            // `PROBLEM: …` over a line of dashes is a heading to Markdown, but a plain line to us.
            marks.retain(|mark| mark.at != at);
            marks.push(Mark { at, level: PLAIN, part, inline, body: at + line.len() });
        }
        at += line.len();
    }
    marks.sort_by_key(|mark| mark.at);
    marks
}

fn heading_mark(range: Range<usize>, level: u8, title: &str) -> Mark {
    let (name, inline) = title.split_once(':').unwrap_or((title, ""));
    let (part, inline) = match known(name) {
        Some(part) => (part, inline.trim().to_owned()),
        None => (Part::Unknown(tidy_line(title).trim_end_matches(':').to_owned()), String::new()),
    };
    Mark { at: range.start, level, part, inline, body: range.end }
}

/// Reads a line such as `PROBLEM: the pager skips a page` or `**Scope:**`. Without bold marks the name must be in
/// capitals, so that "Scope: unclear to me" inside a sentence is none.
fn plain_line(line: &str) -> Option<(Part, String)> {
    let line = line.trim_end();
    let bold = line.starts_with("**");
    let (name, rest) = line.trim_start_matches('*').split_once(':')?;
    let name = name.trim_end_matches('*').trim_end();
    let capitals = !name.chars().any(char::is_lowercase);
    let part = (bold || capitals).then(|| known(name)).flatten()?;
    Some((part, rest.trim_start_matches('*').trim().to_owned()))
}

/// Reads `Type: bug` and the like, in any case, with or without a list dash.
fn attribute_line(line: &str) -> Option<(&'static str, String)> {
    let (name, value) = line.trim_start_matches([' ', '\t', '-', '*']).split_once(':')?;
    let Some(Part::Attribute(name)) = known(name.trim_end_matches('*')) else { return None };
    let word = value.trim_start_matches(['*', ' ', '\t', '`']).split_whitespace().next().unwrap_or_default();
    Some((name, word.trim_end_matches(['`', '*', ',', '.']).to_owned()))
}

/// Recognises a section or attribute by its name; case, spaces, `-` and `_` don't count.
fn known(name: &str) -> Option<Part> {
    let letters: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    Some(match letters.as_str() {
        "problem" => Part::Section(Section::Problem),
        "scope" => Part::Section(Section::Scope),
        "nongoals" | "nongoal" | "outofscope" => Part::Section(Section::NonGoals),
        "dependencies" => Part::Section(Section::Dependencies),
        "deliverables" => Part::Section(Section::Deliverables),
        "validation" => Part::Section(Section::Validation),
        "acceptance" | "acceptancecriteria" => Part::Section(Section::Acceptance),
        "rollback" => Part::Section(Section::Rollback),
        "retirementtrigger" => Part::Section(Section::RetirementTrigger),
        "workpackage" => Part::Attribute("work-package"),
        "issueid" => Part::Attribute("issue-id"),
        "type" => Part::Attribute("type"),
        "scrutiny" => Part::Attribute("scrutiny"),
        _ => return None,
    })
}

/// Cuts a section's text into entries, each one line: list items, other blocks, and each line of a code block.
fn entries(body: &str) -> Vec<String> {
    let mut cutter = Cutter { body, entries: Vec::new(), words: String::new(), span: None };
    let mut depth = 0usize;
    let mut in_code = false;
    for (event, range) in Parser::new_ext(body, Options::ENABLE_TASKLISTS).into_offset_iter() {
        match event {
            Event::Start(Tag::Item) => {
                cutter.end_entry();
                depth += 1;
            }
            Event::End(TagEnd::Item) => {
                cutter.end_entry();
                depth = depth.saturating_sub(1);
            }
            Event::Start(Tag::CodeBlock(_)) => {
                in_code = true;
                cutter.end_span();
            }
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(code) if in_code && depth == 0 => code.lines().for_each(|line| cutter.whole(line)),
            Event::Text(code) if in_code => cutter.add(&code),
            Event::Start(Tag::Paragraph | Tag::Heading { .. } | Tag::HtmlBlock | Tag::BlockQuote(_))
            | Event::End(TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::HtmlBlock | TagEnd::BlockQuote(_)) => {
                cutter.end_span();
                if depth == 0 {
                    cutter.end_entry();
                }
            }
            Event::Start(Tag::List(_)) | Event::End(TagEnd::List(_)) => cutter.end_entry(),
            Event::TaskListMarker(_) | Event::Rule | Event::End(_) => {}
            // Everything else stands inside a line: its source counts, so that code and emphasis stay as written.
            _ => cutter.extend(range),
        }
    }
    cutter.end_entry();
    cutter.entries
}

/// Gathers the source of one entry after the other.
struct Cutter<'a> {
    body: &'a str,
    entries: Vec<String>,
    words: String,
    span: Option<Range<usize>>,
}

impl Cutter<'_> {
    fn extend(&mut self, range: Range<usize>) {
        self.span = Some(match self.span.take() {
            Some(span) => span.start.min(range.start)..span.end.max(range.end),
            None => range,
        });
    }

    fn end_span(&mut self) {
        if let Some(span) = self.span.take() {
            let text = &self.body[span];
            self.add(text);
        }
    }

    fn add(&mut self, text: &str) {
        self.words.push(' ');
        self.words.push_str(text);
    }

    fn whole(&mut self, line: &str) {
        self.end_entry();
        self.add(line);
        self.end_entry();
    }

    fn end_entry(&mut self) {
        self.end_span();
        let entry = tidy_line(&self.words);
        self.words.clear();
        if !entry.is_empty() {
            self.entries.push(entry);
        }
    }
}

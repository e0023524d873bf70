//! The parsed contract.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::chain::scrutiny::{Scrutiny, path_words};

use super::error::ContractError;

/// How a contract was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A `<change-contract>` element.
    Xml,
    /// Headings, or lines such as `PROBLEM:`.
    Markdown,
    /// Not at all: a description without any section we know.
    None,
}

/// What kind of change is asked for. Not bd's issue types: see [`ContractKind::bead_type`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContractKind {
    /// Something new.
    Feature,
    /// Something mended.
    Bug,
    /// The same behaviour in better form.
    Refactor,
    /// An answer.
    Research,
    /// Words.
    Docs,
}

impl ContractKind {
    /// The words, in the order of the enum.
    pub const WORDS: [&'static str; 5] = ["feature", "bug", "refactor", "research", "docs"];

    /// Returns the word of this kind.
    pub fn as_str(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// Returns the issue type of bd that holds such a contract.
    pub fn bead_type(self) -> &'static str {
        match self {
            Self::Feature => "feature",
            Self::Bug => "bug",
            Self::Refactor | Self::Research | Self::Docs => "task",
        }
    }
}

impl FromStr for ContractKind {
    type Err = ContractError;

    fn from_str(text: &str) -> Result<Self, ContractError> {
        let kinds = [Self::Feature, Self::Bug, Self::Refactor, Self::Research, Self::Docs];
        let wanted = text.trim();
        kinds
            .into_iter()
            .find(|kind| kind.as_str().eq_ignore_ascii_case(wanted))
            .ok_or_else(|| ContractError::UnknownKind { found: wanted.to_owned() })
    }
}

/// A section of a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Section {
    /// The defect or the missing capability. Required.
    Problem,
    /// Where the change may happen. Required.
    Scope,
    /// What is left alone. Required.
    NonGoals,
    /// Work packages that come first.
    Dependencies,
    /// What is handed over.
    Deliverables,
    /// How to check it. Required.
    Validation,
    /// When it is done. Required.
    Acceptance,
    /// How to undo it.
    Rollback,
    /// When a bridge may go.
    RetirementTrigger,
}

impl Section {
    /// All sections in the order of spec 003 §14.3.
    pub const ALL: [Self; 9] = [
        Self::Problem,
        Self::Scope,
        Self::NonGoals,
        Self::Dependencies,
        Self::Deliverables,
        Self::Validation,
        Self::Acceptance,
        Self::Rollback,
        Self::RetirementTrigger,
    ];

    /// Returns the name of its XML element; a heading says the same with spaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Scope => "scope",
            Self::NonGoals => "non-goals",
            Self::Dependencies => "dependencies",
            Self::Deliverables => "deliverables",
            Self::Validation => "validation",
            Self::Acceptance => "acceptance",
            Self::Rollback => "rollback",
            Self::RetirementTrigger => "retirement-trigger",
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Where the change may happen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scope {
    /// Repositories, such as `owner/name`.
    pub repos: Vec<String>,
    /// Paths, directories and globs, as written; an older contract may hold a sentence here.
    pub paths: Vec<String>,
}

impl Scope {
    /// Returns every path that the scope names, normalised, also those inside sentences.
    pub fn named_paths(&self) -> Vec<String> {
        self.paths.iter().flat_map(|entry| path_words(entry)).collect()
    }
}

/// A part of a contract that its schema does not know. Kept, and reported as a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownPart {
    /// Where: an element path such as `scope/file`, an attribute such as `@owner`, or a heading.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// What a root bead binds us to. Source: spec 003 §14.3 and the older five-section form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// How it was written.
    pub form: Form,
    /// Name of the work package.
    pub work_package: Option<String>,
    /// Id that older contracts carry.
    pub issue_id: Option<String>,
    /// Kind of change.
    pub kind: Option<ContractKind>,
    /// Stated scrutiny.
    pub scrutiny: Option<Scrutiny>,
    /// The defect or the missing capability; lines trimmed, blank ones between paragraphs kept. Empty when missing.
    pub problem: String,
    /// Where the change may happen.
    pub scope: Scope,
    /// What is left alone.
    pub non_goals: Vec<String>,
    /// Work packages that come first.
    pub dependencies: Vec<String>,
    /// What is handed over.
    pub deliverables: Vec<String>,
    /// How to check it.
    pub validation: Vec<String>,
    /// When it is done.
    pub acceptance: Vec<String>,
    /// How to undo it; empty when not said.
    pub rollback: String,
    /// When a bridge may go; empty when not said.
    pub retirement_trigger: String,
    /// Parts that the schema does not know.
    pub unknown: Vec<UnknownPart>,
    /// The description as it stands in the bead, byte for byte. bd keeps it; no record of ours does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub raw: String,
}

impl Contract {
    pub(super) fn empty(form: Form, raw: &str) -> Self {
        Self {
            form,
            work_package: None,
            issue_id: None,
            kind: None,
            scrutiny: None,
            problem: String::new(),
            scope: Scope::default(),
            non_goals: Vec::new(),
            dependencies: Vec::new(),
            deliverables: Vec::new(),
            validation: Vec::new(),
            acceptance: Vec::new(),
            rollback: String::new(),
            retirement_trigger: String::new(),
            unknown: Vec::new(),
            raw: raw.to_owned(),
        }
    }

    /// Sets one of the four attributes by its XML name; an empty value says nothing. False for any other name.
    pub(super) fn set_attribute(&mut self, name: &str, value: &str) -> Result<bool, ContractError> {
        let value = value.trim();
        let text = (!value.is_empty()).then(|| value.to_owned());
        match name {
            "work-package" => self.work_package = text,
            "issue-id" => self.issue_id = text,
            "type" => self.kind = text.map(|word| word.parse()).transpose()?,
            "scrutiny" => {
                self.scrutiny = text.map(|word| word.parse()).transpose().map_err(ContractError::UnknownScrutiny)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds text to a section of prose; a section that comes twice reads as two paragraphs.
    pub(super) fn add_prose(&mut self, section: Section, text: &str) {
        let field = match section {
            Section::Problem => &mut self.problem,
            Section::Rollback => &mut self.rollback,
            Section::RetirementTrigger => &mut self.retirement_trigger,
            _ => return self.add_entries(section, vec![tidy_line(text)]),
        };
        let text = tidy(text);
        if !field.is_empty() && !text.is_empty() {
            field.push_str("\n\n");
        }
        field.push_str(&text);
    }

    /// Adds entries to a section of entries.
    pub(super) fn add_entries(&mut self, section: Section, entries: Vec<String>) {
        let field = match section {
            Section::Scope => &mut self.scope.paths,
            Section::NonGoals => &mut self.non_goals,
            Section::Dependencies => &mut self.dependencies,
            Section::Deliverables => &mut self.deliverables,
            Section::Validation => &mut self.validation,
            Section::Acceptance => &mut self.acceptance,
            Section::Problem | Section::Rollback | Section::RetirementTrigger => {
                return self.add_prose(section, &entries.join("\n"));
            }
        };
        field.extend(entries.into_iter().filter(|entry| !entry.is_empty()));
    }
}

/// A contract as people are shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractView {
    /// All that was understood.
    #[serde(flatten)]
    pub contract: Contract,
    /// Required sections that it lacks.
    pub missing: Vec<Section>,
}

impl ContractView {
    /// Shows a contract.
    pub fn of(contract: &Contract) -> Self {
        Self { contract: Contract { raw: String::new(), ..contract.clone() }, missing: missing(contract) }
    }

    /// Returns the sections that say something, in the order of the spec.
    pub fn sections(&self) -> Vec<Section> {
        let contract = &self.contract;
        let lacks = |section: &Section| match section {
            Section::Dependencies => contract.dependencies.is_empty(),
            Section::Deliverables => contract.deliverables.is_empty(),
            Section::Rollback => contract.rollback.is_empty(),
            Section::RetirementTrigger => contract.retirement_trigger.is_empty(),
            required => self.missing.contains(required),
        };
        Section::ALL.into_iter().filter(|section| !lacks(section)).collect()
    }
}

/// Returns the required sections that a contract lacks, in the order of the spec.
pub fn missing(contract: &Contract) -> Vec<Section> {
    let scope = &contract.scope;
    [
        (Section::Problem, contract.problem.is_empty()),
        (Section::Scope, scope.paths.is_empty() && scope.repos.is_empty()),
        (Section::NonGoals, contract.non_goals.is_empty()),
        (Section::Validation, contract.validation.is_empty()),
        (Section::Acceptance, contract.acceptance.is_empty()),
    ]
    .into_iter()
    .filter_map(|(section, lacks)| lacks.then_some(section))
    .collect()
}

/// Trims each line and keeps one blank line where there were several.
pub(super) fn tidy(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        if !line.is_empty() || lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push(line);
        }
    }
    lines.join("\n").trim_end().to_owned()
}

/// Makes one line of a text.
pub(super) fn tidy_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

//! `sp formula show`: what a formula asks for, and what its roles must answer.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use super::context::Context;
use super::formula_sources::{OneFile, is_path, sources};
use super::output::{Exit, Human};
use super::table::one_line;
use crate::chain::formula::{Formula, FormulaStep, Var, VarKind, load};
use crate::failure::Failure;
use crate::specialist::{Roster, Tier};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Steps are shown as written, `{{variables}}` and all; `sp chain graph` shows what becomes of them.
The JSON holds the whole schema of each output contract:
  sp formula show code-standard --json | jq '.contracts[] | select(.role == \"reviewer\").schema'")]
pub struct ShowArgs {
    /// Formula, by name or file
    formula: String,
}

#[derive(Debug, Serialize)]
struct VarLine {
    name: String,
    description: String,
    required: bool,
    default: Option<String>,
    #[serde(rename = "enum")]
    allowed: Vec<String>,
    pattern: Option<String>,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Debug, Serialize)]
struct StepLine {
    id: String,
    title: String,
    /// `null` for the step that stands for the contract.
    role: Option<String>,
    /// Of the role's specialist; `null` when there is no such specialist.
    tier: Option<Tier>,
    needs: Vec<String>,
    labels: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ContractLine {
    role: String,
    /// Title of the schema.
    name: String,
    /// The key whose text decides.
    key: String,
    schema: Value,
}

#[derive(Debug, Serialize)]
struct FormulaCard {
    formula: String,
    origin: String,
    description: String,
    extends: Vec<String>,
    vars: Vec<VarLine>,
    steps: Vec<StepLine>,
    contracts: Vec<ContractLine>,
}

impl Human for FormulaCard {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let bold = anstyle::Style::new().bold();
        writeln!(out, "{bold}{}{bold:#} ({})", self.formula, one_line(&self.origin))?;
        writeln!(out, "{}", one_line(&self.description))?;
        if !self.vars.is_empty() {
            writeln!(out, "\n{bold}variables{bold:#}")?;
        }
        for var in &self.vars {
            writeln!(out, "  {}  {}", var.name, one_line(&var.words()))?;
        }
        writeln!(out, "\n{bold}steps{bold:#}")?;
        for step in &self.steps {
            let role = match (&step.role, step.tier) {
                (None, _) => "the contract bead".to_owned(),
                (Some(role), Some(tier)) => format!("{role}, {}", word(tier)),
                (Some(role), None) => format!("{role}, which is no specialist here"),
            };
            let needs = if step.needs.is_empty() { String::new() } else { format!("  <- {}", step.needs.join(", ")) };
            writeln!(out, "  {} ({}){}", one_line(&step.id), one_line(&role), one_line(&needs))?;
            if !step.labels.is_empty() {
                writeln!(out, "      {}", one_line(&step.labels.join(" ")))?;
            }
        }
        writeln!(out, "\n{bold}output contracts{bold:#}")?;
        for contract in &self.contracts {
            let words = Some(allowed_words(&contract.schema, &contract.key)).filter(|words| !words.is_empty());
            let words = words.map(|words| format!(": {words}")).unwrap_or_default();
            writeln!(out, "  {}  schema {}, decides by `{}`{words}", contract.role, contract.name, contract.key)?;
        }
        Ok(())
    }
}

impl VarLine {
    fn of(name: &str, var: &Var) -> Self {
        Self {
            name: name.to_owned(),
            description: var.description.clone(),
            required: var.required,
            default: var.default.clone(),
            allowed: var.allowed.clone(),
            pattern: var.pattern.clone(),
            kind: match var.kind {
                VarKind::Text => "string",
                VarKind::Int => "int",
                VarKind::Bool => "bool",
            },
        }
    }

    fn words(&self) -> String {
        let rule = match (&self.default, self.required) {
            (_, true) => "required".to_owned(),
            (Some(default), false) => format!("default {default:?}"),
            (None, false) => "no default".to_owned(),
        };
        let allowed =
            if self.allowed.is_empty() { String::new() } else { format!("; one of {}", self.allowed.join(", ")) };
        let pattern = self.pattern.as_ref().map(|pattern| format!("; matches {pattern}")).unwrap_or_default();
        let kind = if self.kind == "string" { String::new() } else { format!("; {}", self.kind) };
        format!("{} ({rule}{allowed}{pattern}{kind})", self.description)
    }
}

/// Runs the command.
pub fn run(args: &ShowArgs, cx: &Context) -> Result<Exit, Failure> {
    let formula = if is_path(&args.formula) {
        let file = OneFile::new(&args.formula, cx)?;
        load(file.name(), &file)?
    } else {
        load(&args.formula, &sources(cx))?
    };
    cx.printer.print(&card(&formula, &Roster::shipped()))
}

fn card(formula: &Formula, roster: &Roster) -> FormulaCard {
    let steps: Vec<StepLine> = formula.steps.iter().map(|step| line(step, roster)).collect();
    let mut contracts: BTreeMap<&str, ContractLine> = BTreeMap::new();
    for role in steps.iter().filter_map(|step| step.role.as_deref()) {
        if let Ok(specialist) = roster.get(role) {
            let contract = specialist.contract();
            let schema = contract.schema().clone();
            let name = schema["title"].as_str().unwrap_or("unnamed").to_owned();
            let line = ContractLine { role: role.to_owned(), name, key: contract.key().to_owned(), schema };
            contracts.insert(role, line);
        }
    }
    let contracts = contracts.into_values().collect();
    FormulaCard {
        formula: formula.name.clone(),
        origin: formula.origin.clone(),
        description: formula.description.clone(),
        extends: formula.extends.clone(),
        vars: formula.vars.iter().map(|(name, var)| VarLine::of(name, var)).collect(),
        contracts,
        steps,
    }
}

fn line(step: &FormulaStep, roster: &Roster) -> StepLine {
    let is_root = step.id == "root" || step.labels.iter().any(|label| label == "kind:root" || label == "chain-root");
    let labelled = step.labels.iter().find_map(|label| label.strip_prefix("role:"));
    let role = (!is_root).then(|| labelled.unwrap_or(&step.id).to_owned());
    let tier = role.as_deref().and_then(|role| roster.get(role).ok()).map(|specialist| specialist.tier());
    StepLine {
        id: step.id.clone(),
        title: step.title.clone(),
        role,
        tier,
        needs: step.needs.clone(),
        labels: step.labels.clone(),
    }
}

fn word(tier: Tier) -> &'static str {
    match tier {
        Tier::ReadOnly => "READ_ONLY",
        Tier::Low => "LOW",
        Tier::Medium => "MEDIUM",
        Tier::High => "HIGH",
    }
}

/// Returns the words that the deciding key may hold, where the schema lists them.
fn allowed_words(schema: &Value, key: &str) -> String {
    let words = schema["properties"][key]["enum"].as_array();
    words.into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fixture::text;
    use crate::formulas::EmbeddedSource;

    #[test]
    fn a_formula_is_shown_with_variables_steps_and_what_its_roles_answer() {
        let formula = load("code-standard", &EmbeddedSource).unwrap();
        let card = card(&formula, &Roster::shipped());
        insta::assert_snapshot!(text(&card), @r#"
        code-standard (built-in code-standard)
        The default way of a change to production code: one writer, a second look, tests written and run, obligations, a final review.

        variables
          root_title  Title of the root contract, for the titles of the steps (default "root contract")
          scope  Paths the change may touch, when narrower than the root contract (default "the scope of the root contract")
          scrutiny  How hard the gates look (default "medium"; one of none, low, medium, high, critical)

        steps
          root (the contract bead)
              chain-root kind:root scrutiny:{{scrutiny}}
          executor (executor, HIGH)  <- root
              chain-step kind:step role:executor position:primary-writer edge:implements->root
          seconder (seconder, READ_ONLY)  <- executor
              chain-step kind:step role:seconder gate:mandatory edge:validates->executor
          test-engineer (test-engineer, HIGH)  <- seconder
              chain-step kind:step role:test-engineer position:secondary-writer edge:validates->executor
          test-runner (test-runner, LOW)  <- test-engineer
              chain-step kind:step role:test-runner gate:mandatory
          obligations-scanner (obligations-scanner, READ_ONLY)  <- test-runner
              chain-step kind:step role:obligations-scanner gate:mandatory edge:validates->executor
          reviewer (reviewer, READ_ONLY)  <- obligations-scanner
              chain-step kind:step role:reviewer gate:final edge:validates->root

        output contracts
          executor  schema executor, decides by `status`: success, partial, failed
          obligations-scanner  schema obligations-scanner, decides by `verdict`: CLEAN, OBLIGATIONS_FOUND, BLOCKED
          reviewer  schema reviewer, decides by `verdict`: PASS, PARTIAL, FAIL
          seconder  schema seconder, decides by `overall_verdict`: PASS, PARTIAL, FAIL
          test-engineer  schema test-engineer, decides by `status`: tests_written, blocked, source_bug_suspected
          test-runner  schema test-runner, decides by `status`: passed, failed, blocked
        "#);
        assert!(card.contracts.iter().all(|contract| contract.schema["type"] == "object"));
    }
}

//! How people read a report on a chain and a composition.

use std::io::{self, Write};

use super::figures::{cost, count, span};
use super::output::{Human, printable};
use crate::chain::contract::{ContractView, Section};
use crate::chain::report::{ChainReport, StepReport};
use crate::orchestrator::Composition;

impl Human for ChainReport {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let steps = self.steps.len();
        writeln!(
            out,
            "{} {}: {} of {steps} steps passed",
            self.chain_id,
            self.status.replace('_', " "),
            self.passed()
        )?;
        if let Some(why) = &self.why {
            writeln!(out, "  {}", printable(why))?;
        }
        writeln!(out)?;
        let width = self.steps.iter().map(|step| step.step.len()).max().unwrap_or(0);
        for step in &self.steps {
            step_line(out, step, width)?;
        }
        writeln!(out)?;
        writeln!(out, "  bead      {} by {}", self.root_bead_id, self.formula)?;
        let scrutiny = match self.scrutiny.stated == self.scrutiny.effective {
            true => self.scrutiny.effective.clone(),
            false => format!("{}, stated {}", self.scrutiny.effective, self.scrutiny.stated),
        };
        if let Some(contract) = &self.contract {
            contract_line(out, contract)?;
        }
        writeln!(out, "  scrutiny  {scrutiny}")?;
        let short = |sha: &str| sha.get(..12).unwrap_or(sha).to_owned();
        let base_ref = self.work.base_ref.as_deref().unwrap_or("commit");
        writeln!(out, "  base      {base_ref} {}", short(&self.work.base_sha))?;
        if let (Some(branch), Some(head)) = (&self.work.branch, &self.work.head_sha) {
            writeln!(out, "  branch    {branch} {}", short(head))?;
        }
        if let Some(worktree) = &self.work.worktree {
            writeln!(out, "  worktree  {}", printable(worktree))?;
        }
        if let Some(diff) = self.work.diff {
            writeln!(out, "  change    {} file(s), +{} \u{2212}{} lines", diff.files, diff.added, diff.removed)?;
        }
        writeln!(
            out,
            "  spent     {}, {} round(s), {} tokens in, {} out, {}",
            span(self.duration_ms),
            self.rounds,
            count(self.input_tokens),
            count(self.output_tokens),
            cost(self.cost_usd)
        )?;
        for finding in &self.findings {
            writeln!(out, "  remark    {}", printable(finding))?;
        }
        for (step, why) in self.blocked() {
            writeln!(out, "\n{} is blocked, {}:", step.step, why.code)?;
            for line in why.detail.lines() {
                writeln!(out, "  {}", printable(line))?;
            }
        }
        if !self.next.is_empty() {
            writeln!(out, "\nnext:")?;
            for next in &self.next {
                writeln!(out, "  {next}")?;
            }
        }
        Ok(())
    }
}

fn step_line(out: &mut dyn Write, step: &StepReport, width: usize) -> io::Result<()> {
    let mark = match step.outcome {
        "passed" | "accepted" => "\u{2713}",
        "blocked" => "\u{2717}",
        "running" | "interrupted" => "\u{2192}",
        _ => "\u{25cb}",
    };
    write!(out, "  {mark} {:width$}  {:11}", step.step, step.outcome)?;
    if step.rounds > 0 {
        write!(
            out,
            "  {:>6}  {} round(s)  {:>6} in {:>6} out  {:>8}",
            span(step.duration_ms),
            step.rounds,
            count(step.input_tokens),
            count(step.output_tokens),
            cost(step.cost_usd)
        )?;
    }
    if let Some(job) = &step.job {
        write!(out, "  {job}")?;
    }
    if let Some(summary) = &step.summary {
        let summary: String = printable(summary).chars().take(80).collect();
        write!(out, "  {summary}")?;
    }
    writeln!(out)
}

fn contract_line(out: &mut dyn Write, view: &ContractView) -> io::Result<()> {
    let names = |sections: &[Section]| sections.iter().map(|section| section.as_str()).collect::<Vec<_>>().join(", ");
    let kind = view.contract.kind.map_or("of no kind", |kind| kind.as_str());
    write!(out, "  contract  {kind}: {}", names(&view.sections()))?;
    if !view.missing.is_empty() {
        write!(out, "; lacks {}", names(&view.missing))?;
    }
    writeln!(out)
}

impl Human for Composition {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} on {}: {}", self.formula, self.root_bead_id, printable(&self.title))?;
        writeln!(out, "nothing was created (--dry-run)\n")?;
        let width = self.steps.iter().map(|step| step.step.len()).max().unwrap_or(0);
        for step in &self.steps {
            let class = if step.mandatory { "gate, mandatory" } else { "step" };
            let needs =
                if step.needs.is_empty() { String::new() } else { format!("  after {}", step.needs.join(", ")) };
            writeln!(out, "  {:width$}  {} {:?}, {class}{needs}", step.step, step.role, step.tier)?;
        }
        writeln!(out)?;
        if let Some(contract) = &self.contract {
            contract_line(out, contract)?;
        }
        writeln!(out, "  scrutiny  {}, stated {}", self.scrutiny.effective, self.scrutiny.stated)?;
        for raised in &self.scrutiny.escalations {
            writeln!(
                out,
                "            {} \u{2192} {}: {} touches {}",
                raised.from, raised.to, raised.path, raised.surface
            )?;
        }
        writeln!(out, "  base      {} {}", self.base_ref, self.base_sha.get(..12).unwrap_or(&self.base_sha))?;
        if self.dirty_paths > 0 {
            writeln!(out, "  note      {} uncommitted path(s) here will not be in the worktree", self.dirty_paths)?;
        }
        for finding in &self.findings {
            writeln!(out, "  remark    {}", printable(finding))?;
        }
        Ok(())
    }
}

//! One event of a feed, as a line for people and as a line of JSON.

use serde_json::{Map, Value, json};

use super::figures::{cost, count, span, time_of_day};
use super::table::{fit, one_line};
use crate::chain::machine::{Cause, ChainEvent, ClosedBy};
use crate::chain::verdict::Verdict;
use crate::ids::{ChainId, JobId, StepId};
use crate::storage::{ChainEventRow, JobEventRow};

/// Longest free text in a line, in characters.
const LONGEST: usize = 160;

/// One event of a feed.
#[derive(Debug)]
pub enum Item {
    /// Of a job.
    Job {
        /// The job.
        job: JobId,
        /// Its specialist.
        specialist: String,
        /// The event.
        event: JobEventRow,
    },
    /// Of a chain.
    Chain {
        /// The chain.
        chain: ChainId,
        /// The event.
        event: ChainEventRow,
    },
}

impl Item {
    /// Returns the line of JSON: where it comes from, then the event as it is stored.
    pub fn json(&self) -> String {
        let (head, body) = match self {
            Self::Job { job, specialist, event } => {
                (json!({"source": "job", "job_id": job, "specialist": specialist}), &event.json)
            }
            Self::Chain { chain, event } => {
                (json!({"source": "chain", "chain_id": chain, "seq": event.seq, "t": event.at_ms}), &event.body)
            }
        };
        let Value::Object(mut line) = head else { return String::new() };
        match serde_json::from_str(body) {
            Ok(Value::Object(fields)) => {
                // The source's own names win: nothing an event holds can pass for another job's.
                for (name, value) in fields {
                    line.entry(name).or_insert(value);
                }
            }
            Ok(_) | Err(_) => drop(line.insert("unreadable".into(), Value::String(body.clone()))),
        }
        Value::Object(line).to_string()
    }

    /// Returns the line for people, without its end; `None` for what only repeats another one.
    pub fn text(&self) -> Option<String> {
        let (at_ms, who, (label, details)) = match self {
            Self::Job { specialist, event, .. } => (event.at_ms, specialist.as_str(), job_event(event)?),
            Self::Chain { event, .. } => {
                let told = match serde_json::from_str::<ChainEvent>(&event.body) {
                    Ok(known) => chain_event(&known),
                    // Of a later sp.
                    Err(_) => ("event", fit(&event.body, LONGEST)),
                };
                (event.at_ms, "chain", told)
            }
        };
        let (who, label, details) = (one_line(who), one_line(label), one_line(&details));
        Some(format!("{}  {who:<19}  {label:<9}  {details}", time_of_day(at_ms)).trim_end().to_owned())
    }
}

fn job_event(event: &JobEventRow) -> Option<(&str, String)> {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(&event.json) else {
        return Some((&event.kind, "unreadable".to_owned()));
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let number = |name: &str| fields.get(name).and_then(Value::as_i64);
    let because =
        |name: &str| if text(name).is_empty() { String::new() } else { format!(": {}", fit(text(name), LONGEST)) };
    let details = match (event.kind.as_str(), text("phase")) {
        // The summary of the turn and the blocks in it say more.
        ("turn" | "message", _) => return None,
        ("tool", "start") => format!("{} {}", text("tool"), fit(text("args"), LONGEST)),
        ("tool", _) => {
            let took = number("duration_ms").map(|ms| format!(" after {}", span(ms))).unwrap_or_default();
            let failed = fields.get("is_error").and_then(Value::as_bool).unwrap_or_default();
            let how = if failed { format!("failed{}", because("result_summary")) } else { "ended".to_owned() };
            format!("{}{took} {how}", text("tool"))
        }
        ("text", _) => format!("wrote {} characters", number("char_count").unwrap_or_default()),
        ("thinking", _) => format!("thought {} characters", number("char_count").unwrap_or_default()),
        ("meta", _) => text("model").to_owned(),
        ("run_start", _) => [text("model"), text("bead_id")]
            .iter()
            .filter(|part| !part.is_empty())
            .copied()
            .collect::<Vec<_>>()
            .join(" on "),
        ("turn_summary", _) => turn(&fields),
        ("run_complete", _) => {
            let seconds = number("elapsed_s").unwrap_or_default();
            format!("{} after {}{}", text("status"), span(seconds.saturating_mul(1000)), because("error"))
        }
        ("status_change", _) => format!("{}{}", text("status"), because("reason")),
        ("retry" | "compaction" | "extension_error", phase) => format!("{phase}{}", because("error_message")),
        _ => rest(&fields),
    };
    let label = match event.kind.as_str() {
        "run_start" => "start",
        "run_complete" => "end",
        "turn_summary" => "turn",
        "status_change" => "status",
        "meta" => "model",
        other => other,
    };
    Some((label, details))
}

fn turn(fields: &Map<String, Value>) -> String {
    let usage = fields.get("token_usage");
    let tokens = |name: &str| usage.and_then(|usage| usage.get(name)).and_then(Value::as_i64).unwrap_or_default();
    let usd = usage.and_then(|usage| usage.get("cost_usd")).and_then(Value::as_f64).unwrap_or_default();
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let read = tokens("input_tokens") + tokens("cache_read_tokens") + tokens("cache_creation_tokens");
    let used = format!("{} in, {} out, {}", count(read), count(tokens("output_tokens")), cost(usd));
    let said = Some(text("error_message")).filter(|error| !error.is_empty()).unwrap_or(text("text_content"));
    let said = if said.is_empty() { String::new() } else { format!(": {}", fit(said, LONGEST)) };
    format!("{} ({used}){said}", text("finish_reason"))
}

/// Returns the fields of an event that this sp has no words for.
fn rest(fields: &Map<String, Value>) -> String {
    let own = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "seq" | "t" | "type"));
    let shown: Vec<String> = own
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        })
        .collect();
    fit(&shown.join(" "), LONGEST)
}

/// Returns label and sentence of an event of a chain.
pub fn chain_event(event: &ChainEvent) -> (&'static str, String) {
    let cut = |text: &str| fit(text, LONGEST);
    let short = |commit: &str| commit.chars().take(10).collect::<String>();
    match event {
        ChainEvent::Opened(opening) => (
            "opened",
            format!("{} on {}, scrutiny {}", opening.shape.formula, opening.bead, opening.scrutiny.effective),
        ),
        ChainEvent::Adopted { incarnation } => ("adopted", format!("by another process, incarnation {incarnation}")),
        ChainEvent::Reread => ("reread", "the beads were read again".to_owned()),
        ChainEvent::Poured => ("poured", "the molecule is in bd".to_owned()),
        ChainEvent::RootHeld => ("held", "the contract bead is claimed".to_owned()),
        ChainEvent::Recovered { round, .. } => ("recovered", format!("from what bd knows, in round {round}")),
        ChainEvent::TreeReady { path, branch, head, reused } => {
            ("worktree", format!("{branch} at {} in {path}{}", short(head), if *reused { ", reused" } else { "" }))
        }
        ChainEvent::StepClaiming { step, epoch } => ("claim", with_epoch(step, *epoch)),
        ChainEvent::ClaimLost { step, why, .. } => ("unclaimed", format!("{step}: {}", cut(why))),
        ChainEvent::StepDispatched { step, job, .. } => ("dispatch", format!("{step} as job {job}")),
        ChainEvent::StepInterrupted { step, .. } => ("interrupt", step.to_string()),
        ChainEvent::JobFailed { step, code, detail, .. } => ("failed", format!("{step}: {code}: {}", cut(detail))),
        ChainEvent::JobAnswered { step, verdict, summary, .. } => {
            ("answer", format!("{step} {}: {}", verdict_word(verdict), cut(summary)))
        }
        ChainEvent::WorkSettled { step, head, .. } => ("settled", format!("{step} at {}", short(head))),
        ChainEvent::StepPassed { step, commit, .. } => ("passed", format!("{step} on {}", short(commit))),
        ChainEvent::StepAccepted { step, .. } => ("accepted", format!("{step}, by hand")),
        ChainEvent::EvidenceNoted { step, .. } => ("noted", step.to_string()),
        ChainEvent::StepClosed { step, by } => match by {
            ClosedBy::Job => ("closed", step.to_string()),
            ClosedBy::Operator => ("closed", format!("{step}, by hand")),
        },
        ChainEvent::RoundOpened { round, cause, to, findings, .. } => {
            let by = match cause {
                Cause::Gate(gate) => gate.as_str(),
                Cause::Operator => "the operator",
                Cause::Moved => "the moved branch",
            };
            ("round", format!("{round} begins at {to}, asked by {by}: {}", cut(findings)))
        }
        ChainEvent::ScrutinyRaised { to, why } => ("scrutiny", format!("{to} from here on: {}", cut(why))),
        ChainEvent::RoundNoted { round } => ("noted", format!("round {round}")),
        ChainEvent::RoundReopened { round } => ("reopened", format!("the steps of round {round}")),
        ChainEvent::StepBlocked { step, why } => ("blocked", format!("{step}: {}: {}", why.code, cut(&why.detail))),
        ChainEvent::BlockNoted { step } => ("noted", format!("{step} is blocked")),
        ChainEvent::ChainBlocked => ("blocked", "the chain waits for people".to_owned()),
        ChainEvent::StopRequested { why } => ("stop", format!("asked for: {}", cut(why))),
        ChainEvent::ChainStopped { why } => ("stopped", cut(why)),
        ChainEvent::ResumeAsked { note, from } => {
            let from = from.as_ref().map(|step| format!(" from {step}")).unwrap_or_default();
            ("resume", format!("asked for{from}: {}", cut(note)))
        }
        ChainEvent::ResumeDropped => ("resume", "there was nothing to work again".to_owned()),
        ChainEvent::ChainReady { tip } => ("ready", format!("to merge, at {}", short(tip))),
        ChainEvent::PublishRequested => ("publish", "its beads are to be closed".to_owned()),
        ChainEvent::Published { tip } => ("published", format!("at {}", short(tip))),
        ChainEvent::AbandonRequested { reason } => ("abandon", format!("asked for: {}", cut(reason))),
        ChainEvent::Abandoned { reason } => ("abandoned", cut(reason)),
        ChainEvent::Cancelled { why } => ("cancelled", cut(why)),
        ChainEvent::Remarked { code, step, detail } => {
            let step = step.as_ref().map(|step| format!("{step}: ")).unwrap_or_default();
            ("remark", format!("{step}{code}: {}", cut(detail)))
        }
    }
}

fn with_epoch(step: &StepId, epoch: u32) -> String {
    if epoch > 1 { format!("{step}, epoch {epoch}") } else { step.to_string() }
}

fn verdict_word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Passed { .. } => "passes",
        Verdict::Rework { .. } => "sends back",
        Verdict::Blocked { .. } => "needs people",
        Verdict::Again { .. } => "needs another turn",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::machine::Blocked;
    use crate::cli::fixture::START_MS;

    fn job(event: Value) -> Item {
        let kind = event["type"].as_str().unwrap().to_owned();
        let event = JobEventRow { seq: 1, at_ms: START_MS, kind, json: event.to_string() };
        Item::Job { job: JobId::new("0aaaaaaa"), specialist: "executor".into(), event }
    }

    fn chain(body: String) -> Item {
        Item::Chain { chain: ChainId::new("m-1"), event: ChainEventRow { seq: 3, at_ms: START_MS, body } }
    }

    #[test]
    fn events_of_a_job_read_as_lines() {
        let lines: Vec<String> = [
            json!({"type": "run_start", "model": "acme/big", "bead_id": "p-1"}),
            json!({"type": "turn", "phase": "start"}),
            json!({"type": "tool", "phase": "start", "tool": "bash", "args": "{\"command\":\"ls\u{1b}[2J\n\"}"}),
            json!({"type": "tool", "phase": "end", "tool": "bash", "is_error": true, "result_summary": "exit 1", "duration_ms": 320}),
            json!({"type": "tool", "phase": "end", "tool": "read", "is_error": false}),
            json!({"type": "thinking", "char_count": 42}),
            json!({"type": "turn_summary", "finish_reason": "stop", "token_usage": {"input_tokens": 12000, "output_tokens": 90, "cost_usd": 0.2}, "text_content": "done\nall"}),
            json!({"type": "retry", "phase": "start", "error_message": "429"}),
            json!({"type": "status_change", "status": "waiting", "reason": null}),
            json!({"type": "run_complete", "status": "ERROR", "elapsed_s": 61, "error": "no answer"}),
            json!({"type": "novelty", "seq": 1, "t": 2, "level": 7, "what": "x"}),
        ]
        .into_iter()
        .filter_map(|event| job(event).text())
        .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        09:00:00  executor             start      acme/big on p-1
        09:00:00  executor             tool       bash {"command":"ls [2J "}
        09:00:00  executor             tool       bash after 0.3s failed: exit 1
        09:00:00  executor             tool       read ended
        09:00:00  executor             thinking   thought 42 characters
        09:00:00  executor             turn       stop (12k in, 90 out, $0.20): done all
        09:00:00  executor             retry      start: 429
        09:00:00  executor             status     waiting
        09:00:00  executor             end        ERROR after 1m01s: no answer
        09:00:00  executor             novelty    level=7 what=x
        "#);
    }

    #[test]
    fn events_of_a_chain_read_as_sentences_and_unknown_ones_are_shown_as_stored() {
        let step = || StepId::new("reviewer");
        let lines: Vec<String> = [
            ChainEvent::StepDispatched { step: step(), epoch: 2, job: JobId::new("0aaaaaaa") },
            ChainEvent::JobAnswered {
                step: step(),
                epoch: 2,
                verdict: Verdict::Passed { remark: None },
                summary: "good".into(),
            },
            ChainEvent::StepBlocked {
                step: step(),
                why: Blocked { code: "no_verdict".into(), detail: "asked twice".into() },
            },
            ChainEvent::ChainReady { tip: "0123456789abcdef".into() },
        ]
        .iter()
        .map(|event| chain(serde_json::to_string(event).unwrap()).text().unwrap())
        .chain([chain(r#"{"type":"of_tomorrow","x":1}"#.into()).text().unwrap()])
        .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        09:00:00  chain                dispatch   reviewer as job 0aaaaaaa
        09:00:00  chain                answer     reviewer passes: good
        09:00:00  chain                blocked    reviewer: no_verdict: asked twice
        09:00:00  chain                ready      to merge, at 0123456789
        09:00:00  chain                event      {"type":"of_tomorrow","x":1}
        "#);
    }

    #[test]
    fn the_json_of_an_event_names_its_source_and_an_event_cannot_pass_for_anothers() {
        let line = job(json!({"type": "text", "seq": 1, "job_id": "forged", "char_count": 3})).json();
        assert_eq!(
            line,
            r#"{"source":"job","job_id":"0aaaaaaa","specialist":"executor","type":"text","seq":1,"char_count":3}"#
        );
        let line = chain(r#"{"type":"poured"}"#.into()).json();
        assert_eq!(line, format!(r#"{{"source":"chain","chain_id":"m-1","seq":3,"t":{START_MS},"type":"poured"}}"#));
        assert!(chain("cut off".into()).json().ends_with(r#""unreadable":"cut off"}"#));
    }
}

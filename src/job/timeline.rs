//! What a session says, as rows of the job's timeline (spec 000 §6). Deltas are counted: one row a block at most.

use serde_json::{Map, Value, json};

use crate::pi::{AssistantEnd, BlockKind, BlockPhase, PiEvent, Role, SessionTask};

/// One row of a timeline. `t` and `seq` are given by who stores it.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineEvent {
    /// Kind, by the names of spec 000 §6.
    pub kind: &'static str,
    /// Its other fields.
    pub fields: Map<String, Value>,
}

impl TimelineEvent {
    /// Makes a row from an object literal.
    pub fn new(kind: &'static str, fields: Value) -> Self {
        let fields = match fields {
            Value::Object(fields) => fields,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
        };
        Self { kind, fields }
    }
}

/// What a job has used so far, summed over every answer of the model, also failed ones.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// Turns that ended.
    pub turns: u32,
    /// Tools that ended.
    pub tools: u32,
    /// Tokens read, not from cache.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from cache.
    pub cache_read: u64,
    /// Tokens put into cache.
    pub cache_write: u64,
    /// US dollars, as pi reckons them.
    pub cost_usd: f64,
}

/// Folds the events of a session into rows.
#[derive(Debug, Clone, Default)]
pub struct Mapper {
    totals: Totals,
    model: Option<String>,
    /// Characters of the blocks that are open, by (kind, index).
    open: Vec<(BlockKind, u32, u64)>,
}

impl Mapper {
    /// Goes on counting where earlier incarnations of the job ended.
    pub fn after(task: &SessionTask) -> Self {
        let totals = Totals {
            turns: task.turns,
            tools: task.tools,
            input: task.usage.input,
            output: task.usage.output,
            cache_read: task.usage.cache_read,
            cache_write: task.usage.cache_write,
            cost_usd: task.usage.cost_usd,
        };
        Self { totals, ..Self::default() }
    }

    /// Returns what was used so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Takes one event and adds the rows that it completes.
    pub fn map(&mut self, event: &PiEvent, rows: &mut Vec<TimelineEvent>) {
        match event {
            PiEvent::Block { kind, phase, index, .. } => self.block(*kind, *phase, *index, rows),
            PiEvent::TurnStart => rows.push(TimelineEvent::new("turn", json!({"phase": "start"}))),
            PiEvent::TurnEnd => {
                self.totals.turns += 1;
                rows.push(TimelineEvent::new("turn", json!({"phase": "end"})));
            }
            PiEvent::MessageStart { role } => message(*role, "start", rows),
            PiEvent::MessageEnd { role, assistant } => {
                if let Some(answer) = assistant {
                    self.answer(answer, rows);
                }
                message(*role, "end", rows);
            }
            PiEvent::ToolStart { id, name, args } => rows.push(TimelineEvent::new(
                "tool",
                json!({"tool": name, "phase": "start", "tool_call_id": id, "args": args}),
            )),
            PiEvent::ToolEnd { id, name, is_error, summary, duration } => {
                self.totals.tools += 1;
                let ms = duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
                rows.push(TimelineEvent::new(
                    "tool",
                    json!({"tool": name, "phase": "end", "tool_call_id": id, "is_error": is_error,
                           "result_summary": summary, "duration_ms": ms}),
                ));
            }
            PiEvent::AutoRetryStart { attempt, max_attempts, delay, error } => rows.push(TimelineEvent::new(
                "retry",
                json!({"phase": "start", "attempt": attempt, "max_attempts": max_attempts,
                       "delay_ms": u64::try_from(delay.as_millis()).unwrap_or(u64::MAX), "error_message": error}),
            )),
            PiEvent::AutoRetryEnd { success, attempt, error } => rows.push(TimelineEvent::new(
                "retry",
                json!({"phase": "end", "attempt": attempt, "success": success, "error_message": error}),
            )),
            PiEvent::CompactionStart { reason } => {
                rows.push(TimelineEvent::new("compaction", json!({"phase": "start", "reason": reason})));
            }
            PiEvent::CompactionEnd { reason, error, .. } => rows.push(TimelineEvent::new(
                "compaction",
                json!({"phase": "end", "reason": reason, "error_message": error}),
            )),
            PiEvent::ExtensionError { extension, error, .. } => rows
                .push(TimelineEvent::new("extension_error", json!({"extension": extension, "error_message": error}))),
            // Run boundaries are told by the job itself (`run_complete`); the rest changes nothing for a reader.
            _ => {}
        }
    }

    fn block(&mut self, kind: BlockKind, phase: BlockPhase, index: u32, rows: &mut Vec<TimelineEvent>) {
        let at = self.open.iter().position(|(open, at, _)| *open == kind && *at == index);
        match phase {
            BlockPhase::Start => match at {
                Some(at) => self.open[at].2 = 0,
                None => self.open.push((kind, index, 0)),
            },
            BlockPhase::Delta { chars } => match at {
                Some(at) => self.open[at].2 += chars,
                None => self.open.push((kind, index, chars)),
            },
            BlockPhase::End { chars } => {
                let counted = at.map_or(0, |at| self.open.remove(at).2);
                let name = match kind {
                    BlockKind::Text => "text",
                    BlockKind::Thinking => "thinking",
                    // Told by the tool's own start and end.
                    BlockKind::ToolCall => return,
                };
                rows.push(TimelineEvent::new(name, json!({"char_count": chars.max(counted)})));
            }
        }
    }

    fn answer(&mut self, answer: &AssistantEnd, rows: &mut Vec<TimelineEvent>) {
        let usage = &answer.usage;
        self.totals.input += usage.input;
        self.totals.output += usage.output;
        self.totals.cache_read += usage.cache_read;
        self.totals.cache_write += usage.cache_write;
        self.totals.cost_usd += usage.cost_usd;
        // An aborted message closes no block.
        self.open.clear();
        let model = format!("{}/{}", answer.provider, answer.model);
        if self.model.as_deref() != Some(&model) {
            rows.push(TimelineEvent::new("meta", json!({"model": model, "backend": answer.provider})));
            self.model = Some(model);
        }
        rows.push(TimelineEvent::new(
            "turn_summary",
            json!({"turn_index": self.totals.turns, "finish_reason": answer.stop_reason.as_str(),
                   "error_message": answer.error_message,
                   "token_usage": {"input_tokens": usage.input, "output_tokens": usage.output,
                                   "cache_read_tokens": usage.cache_read, "cache_creation_tokens": usage.cache_write,
                                   "reasoning_tokens": usage.reasoning, "total_tokens": usage.total,
                                   "cost_usd": usage.cost_usd},
                   "text_content": preview(&answer.text)}),
        ));
    }
}

fn message(role: Role, phase: &'static str, rows: &mut Vec<TimelineEvent>) {
    let role = match role {
        Role::Assistant => "assistant",
        Role::ToolResult => "toolResult",
        _ => return,
    };
    rows.push(TimelineEvent::new("message", json!({"phase": phase, "role": role})));
}

/// The first 2,000 characters: enough for a reader of the feed; the whole text is in the session file.
fn preview(text: &str) -> String {
    match text.char_indices().nth(2_000) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pi::{StopReason, Usage};

    fn rows(events: &[PiEvent]) -> (Mapper, Vec<TimelineEvent>) {
        let (mut mapper, mut rows) = (Mapper::default(), Vec::new());
        events.iter().for_each(|event| mapper.map(event, &mut rows));
        (mapper, rows)
    }

    fn block(kind: BlockKind, phase: BlockPhase) -> PiEvent {
        PiEvent::Block { kind, phase, index: 0, tool: None }
    }

    #[test]
    fn ten_thousand_deltas_make_one_row() {
        let mut events = vec![block(BlockKind::Text, BlockPhase::Start)];
        events.extend((0..10_000).map(|_| block(BlockKind::Text, BlockPhase::Delta { chars: 8 })));
        events.push(block(BlockKind::Text, BlockPhase::End { chars: 80_000 }));
        let (_, rows) = rows(&events);
        assert_eq!(rows, [TimelineEvent::new("text", json!({"char_count": 80_000}))]);
    }

    #[test]
    fn usage_of_every_answer_is_summed_and_the_model_named_once() {
        let answer = |output| PiEvent::MessageEnd {
            role: Role::Assistant,
            assistant: Some(Box::new(AssistantEnd {
                text: "é".repeat(3_000),
                stop_reason: StopReason::Stop,
                error_message: None,
                usage: Usage { input: 10, output, cost_usd: 0.5, ..Usage::default() },
                model: "m".into(),
                provider: "p".into(),
                tool_calls: 0,
                thinking_chars: 0,
            })),
        };
        let (mapper, rows) = rows(&[answer(1), PiEvent::TurnEnd, answer(2)]);
        let totals = mapper.totals();
        assert_eq!((totals.input, totals.output, totals.turns), (20, 3, 1));
        assert!((totals.cost_usd - 1.0).abs() < 1e-9);
        assert_eq!(rows.iter().filter(|row| row.kind == "meta").count(), 1);
        let summary = rows.iter().find(|row| row.kind == "turn_summary").expect("one for each answer");
        let preview = summary.fields["text_content"].as_str().expect("text");
        assert_eq!(preview.chars().count(), 2_001);
    }

    #[test]
    fn a_tool_counts_once_at_its_end() {
        let (mapper, rows) = rows(&[
            PiEvent::ToolStart { id: "c".into(), name: "bash".into(), args: "{}".into() },
            PiEvent::ToolUpdate { id: "c".into(), name: "bash".into() },
            PiEvent::ToolEnd {
                id: "c".into(),
                name: "bash".into(),
                is_error: true,
                summary: "exit 1".into(),
                duration: None,
            },
        ]);
        assert_eq!((mapper.totals().tools, rows.len()), (1, 2));
    }
}

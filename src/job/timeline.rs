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
    /// Calls that run, by id and tool, in the order of their begin.
    tools: Vec<(String, String)>,
    /// Tokens that the last answer and what it was given take.
    context: Option<u64>,
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

    /// Returns the tool that runs; of several the one that began last.
    pub fn current_tool(&self) -> Option<&str> {
        self.tools.last().map(|(_, name)| name.as_str())
    }

    /// Returns how much of a context of `window` tokens is in use, in percent with one decimal. `None` before the first
    /// answer, after the context was shortened, and where the window is not known.
    pub fn context_pct(&self, window: u64) -> Option<f64> {
        let used = self.context.filter(|_| window > 0)?;
        // Exact up to 2^53 tokens.
        Some((used as f64 * 1_000.0 / window as f64).round().min(1_000.0) / 10.0)
    }

    /// Takes one event and adds the rows that it completes.
    pub fn map(&mut self, event: &PiEvent, rows: &mut Vec<TimelineEvent>) {
        match event {
            PiEvent::Block { kind, phase, index, .. } => self.block(*kind, *phase, *index, rows),
            PiEvent::TurnStart => rows.push(TimelineEvent::new("turn", json!({"phase": "start"}))),
            PiEvent::TurnEnd => {
                self.totals.turns += 1;
                self.tools.clear();
                rows.push(TimelineEvent::new("turn", json!({"phase": "end"})));
            }
            PiEvent::MessageStart { role } => message(*role, "start", rows),
            PiEvent::MessageEnd { role, assistant } => {
                if let Some(answer) = assistant {
                    self.answer(answer, rows);
                }
                message(*role, "end", rows);
            }
            PiEvent::ToolStart { id, name, args } => {
                self.tools.push((id.clone(), name.clone()));
                rows.push(TimelineEvent::new(
                    "tool",
                    json!({"tool": name, "phase": "start", "tool_call_id": id, "args": args}),
                ));
            }
            PiEvent::ToolEnd { id, name, is_error, summary, duration } => {
                self.totals.tools += 1;
                self.tools.retain(|(running, _)| running != id);
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
            PiEvent::CompactionEnd { reason, error, aborted, .. } => {
                if error.is_none() && !aborted {
                    self.context = None;
                }
                rows.push(TimelineEvent::new(
                    "compaction",
                    json!({"phase": "end", "reason": reason, "error_message": error}),
                ));
            }
            // An aborted run ends without a word of its tools.
            PiEvent::AgentSettled { .. } => self.tools.clear(),
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
        let sum = usage.input + usage.output + usage.cache_read + usage.cache_write;
        // A request that failed says nothing of the context.
        self.context = [usage.total, sum].into_iter().find(|tokens| *tokens > 0).or(self.context);
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

    fn answered(text: &str, usage: Usage) -> PiEvent {
        PiEvent::MessageEnd {
            role: Role::Assistant,
            assistant: Some(Box::new(AssistantEnd {
                text: text.to_owned(),
                stop_reason: StopReason::Stop,
                error_message: None,
                usage,
                model: "m".into(),
                provider: "p".into(),
                tool_calls: 0,
                thinking_chars: 0,
            })),
        }
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
        let answer =
            |output| answered(&"é".repeat(3_000), Usage { input: 10, output, cost_usd: 0.5, ..Usage::default() });
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
    fn the_current_tool_is_the_youngest_that_runs() {
        let start = |id: &str| PiEvent::ToolStart { id: id.into(), name: format!("tool-{id}"), args: "{}".into() };
        let end = |id: &str| PiEvent::ToolEnd {
            id: id.into(),
            name: format!("tool-{id}"),
            is_error: false,
            summary: String::new(),
            duration: None,
        };
        let mut mapper = Mapper::default();
        for (event, expected) in [
            (start("a"), Some("tool-a")),
            (start("b"), Some("tool-b")),
            (end("b"), Some("tool-a")),
            (start("c"), Some("tool-c")),
            (PiEvent::TurnEnd, None),
            (start("d"), Some("tool-d")),
            (PiEvent::AgentSettled { aborted: true }, None),
        ] {
            mapper.map(&event, &mut Vec::new());
            assert_eq!(mapper.current_tool(), expected, "after {event:?}");
        }
    }

    #[test]
    fn the_share_of_the_context_is_that_of_the_last_answer_that_has_one() {
        let answer = |usage: Usage| answered("", usage);
        let mut mapper = Mapper::default();
        assert_eq!(mapper.context_pct(1_000), None);
        for (event, expected) in [
            (answer(Usage { input: 100, output: 20, cache_read: 3, ..Usage::default() }), Some(12.3)),
            (answer(Usage { input: 1, total: 345, ..Usage::default() }), Some(34.5)),
            (answer(Usage::default()), Some(34.5)),
            (answer(Usage { total: 5_000, ..Usage::default() }), Some(100.0)),
            (compacted(Some("no room")), Some(100.0)),
            (compacted(None), None),
        ] {
            mapper.map(&event, &mut Vec::new());
            assert_eq!(mapper.context_pct(1_000), expected, "after {event:?}");
        }
        mapper.map(&answer(Usage { total: 5, ..Usage::default() }), &mut Vec::new());
        assert_eq!(mapper.context_pct(0), None, "a window that nobody knows");
    }

    fn compacted(error: Option<&str>) -> PiEvent {
        let error = error.map(str::to_owned);
        PiEvent::CompactionEnd { reason: "threshold".into(), aborted: false, will_retry: false, error }
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

//! When a job's row is written while it works: with its timeline, and not once a tool in a flood of them.

use std::time::Duration;

use super::TimelineEvent;

/// Shortest time between two records that no finished turn asks for, in ms.
const PACE_MS: i64 = 1_000;

/// Whether the row is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// It says all that is to be known, or its time was told already.
    No,
    /// With the rows at hand.
    Now,
    /// After this time, unless it is written before.
    In(Duration),
}

/// How far the row of a job is behind its timeline. Times are wall clock, ms since 1970 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    written_at_ms: Option<i64>,
    is_behind: bool,
    is_awaited: bool,
}

impl Pace {
    /// Takes rows of the timeline that are about to be written.
    pub fn hear(&mut self, rows: &[TimelineEvent], now_ms: i64) -> Due {
        self.is_behind |= rows.iter().any(|row| matches!(row.kind, "tool" | "turn" | "turn_summary" | "compaction"));
        if rows.iter().any(|row| row.kind == "turn_summary") {
            return Due::Now;
        }
        self.due(now_ms)
    }

    /// The time that was told by [`Due::In`] is over.
    pub fn over(&mut self, now_ms: i64) -> Due {
        self.is_awaited = false;
        self.due(now_ms)
    }

    /// The row is written as it stands now.
    pub fn written(&mut self, now_ms: i64) {
        (self.written_at_ms, self.is_behind) = (Some(now_ms), false);
    }

    fn due(&mut self, now_ms: i64) -> Due {
        if !self.is_behind {
            return Due::No;
        }
        let since = self.written_at_ms.map(|written| now_ms - written);
        match since.filter(|since| (0..PACE_MS).contains(since)) {
            // Also by a clock that was set back.
            None => Due::Now,
            Some(_) if self.is_awaited => Due::No,
            Some(since) => {
                self.is_awaited = true;
                Due::In(Duration::from_millis((PACE_MS - since).unsigned_abs()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(kind: &'static str) -> Vec<TimelineEvent> {
        vec![TimelineEvent::new(kind, json!({}))]
    }

    #[test]
    fn a_finished_turn_is_written_at_once_and_tools_once_a_second() {
        let mut pace = Pace::default();
        pace.written(1_000);
        for (at_ms, kind, expected) in [
            (1_010, "text", Due::No),
            (1_020, "tool", Due::In(Duration::from_millis(980))),
            (1_030, "tool", Due::No),
            (1_040, "turn_summary", Due::Now),
        ] {
            assert_eq!(pace.hear(&row(kind), at_ms), expected, "{kind} at {at_ms}");
        }
        pace.written(1_040);
        assert_eq!(pace.hear(&row("text"), 3_000), Due::No, "nothing in it changes the row");
        assert_eq!(pace.hear(&row("tool"), 3_000), Due::Now);
    }

    #[test]
    fn what_was_put_off_is_written_at_its_time_or_a_second_after_what_came_between() {
        let mut pace = Pace::default();
        pace.written(1_000);
        assert_eq!(pace.hear(&row("tool"), 1_500), Due::In(Duration::from_millis(500)));
        assert_eq!(pace.over(2_000), Due::Now);
        pace.written(2_000);
        assert_eq!(pace.hear(&row("tool"), 2_500), Due::In(Duration::from_millis(500)));
        pace.written(2_600);
        assert_eq!(pace.hear(&row("tool"), 2_700), Due::No, "its time is told already");
        assert_eq!(pace.over(3_000), Due::In(Duration::from_millis(600)));
        pace.written(3_100);
        assert_eq!(pace.over(3_600), Due::No);
    }

    #[test]
    fn a_clock_that_was_set_back_holds_nothing_up() {
        let mut pace = Pace::default();
        pace.written(1_000_000);
        assert_eq!(pace.hear(&row("tool"), 5), Due::Now);
    }
}

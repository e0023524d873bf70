//! The wall clock. Elapsed time comes from tokio's clock, which tests can pause.

use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the wall clock.
pub trait Clock: Send + Sync + 'static {
    /// Returns milliseconds since 1970 UTC.
    fn now_ms(&self) -> i64;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

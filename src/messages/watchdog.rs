//! Mailbox of a StallWatchdog, and the pulse that it feels.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// When a session was last heard. Kept outside the watchdog, so that a restarted one goes on from it. Monotonic.
#[derive(Debug, Clone)]
pub struct Pulse {
    origin: Instant,
    last_ms: Arc<AtomicU64>,
    expected: Arc<AtomicU64>,
}

impl Pulse {
    /// Begins a pulse now.
    pub fn begin() -> Self {
        Self { origin: Instant::now(), last_ms: Arc::default(), expected: Arc::new(AtomicU64::new(1)) }
    }

    /// Notes that something was heard.
    pub fn beat(&self) {
        self.last_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Says whether silence means something now.
    pub fn expect(&self, expected: bool) {
        let was = self.expected.swap(u64::from(expected), Ordering::Relaxed);
        if was == 0 && expected {
            self.beat();
        }
    }

    /// Returns for how long nothing was heard, in ms; 0 while nothing is expected.
    pub fn silence_ms(&self) -> u64 {
        if self.expected.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.now_ms().saturating_sub(self.last_ms.load(Ordering::Relaxed))
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// To a StallWatchdog.
#[derive(Debug, Clone, Copy)]
pub enum WatchdogMsg {
    /// From itself: look at the pulse.
    Tick,
    /// From a test: panic, as a fault of ours would make it.
    #[cfg(test)]
    Break,
}

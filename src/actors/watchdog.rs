//! The StallWatchdog: feels a session's pulse and tells its job when it is gone.

use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::messages::{JobMsg, Pulse, WatchdogMsg};

/// One watchdog.
pub struct StallWatchdog {
    /// What it feels.
    pub pulse: Pulse,
    /// Whom it tells.
    pub job: ActorRef<JobMsg>,
    /// Silence that is remarked.
    pub warn_after: Duration,
    /// Silence that is too long.
    pub stalled_after: Duration,
}

/// Whether the present silence was remarked.
#[derive(Default)]
pub struct Watched {
    warned: bool,
}

impl Actor for StallWatchdog {
    type Msg = WatchdogMsg;
    type State = Watched;
    type Arguments = ();

    async fn pre_start(&self, me: ActorRef<WatchdogMsg>, (): ()) -> Result<Watched, ActorProcessingErr> {
        // Often enough that a stall is seen within a tenth of its limit, and at most every ten seconds.
        let tick =
            (self.warn_after.min(self.stalled_after) / 10).clamp(Duration::from_millis(10), Duration::from_secs(10));
        me.send_interval(tick, || WatchdogMsg::Tick);
        Ok(Watched::default())
    }

    async fn handle(
        &self,
        _: ActorRef<WatchdogMsg>,
        mail: WatchdogMsg,
        state: &mut Watched,
    ) -> Result<(), ActorProcessingErr> {
        match mail {
            WatchdogMsg::Tick => self.feel(state),
            #[cfg(test)]
            WatchdogMsg::Break => panic!("a fault of ours"),
        }
        Ok(())
    }
}

impl StallWatchdog {
    fn feel(&self, state: &mut Watched) {
        let silence_ms = self.pulse.silence_ms();
        let is_over = |limit: Duration| u128::from(silence_ms) >= limit.as_millis();
        if is_over(self.stalled_after) {
            // Told at every tick: a job that missed the word once hears it again.
            drop(self.job.cast(JobMsg::Silent { silence_ms, too_long: true }));
        } else if is_over(self.warn_after) && !state.warned {
            state.warned = true;
            drop(self.job.cast(JobMsg::Silent { silence_ms, too_long: false }));
        } else if !is_over(self.warn_after) {
            state.warned = false;
        }
    }
}

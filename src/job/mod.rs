//! Pure: what one job does next, and what its timeline says.

mod machine;
mod timeline;

pub use machine::{JobEffect, JobInput, JobPhase, JobState, PromptKind, Reading, Stopping, step};
pub use timeline::{Mapper, TimelineEvent, Totals};

//! Pure: what one job does next, and what its timeline says.

mod machine;
mod pace;
mod reading;
mod timeline;

pub use machine::{Held, JobEffect, JobInput, JobPhase, JobState, PromptKind, fatal_code, step};
pub use pace::{Due, Pace};
pub use reading::read;
pub use timeline::{Mapper, TimelineEvent};

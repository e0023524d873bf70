//! Pure: specialists, their prompts and output contracts.

mod tier;

pub use tier::Tier;

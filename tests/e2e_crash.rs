//! Chains that are killed, stopped, doubled and left alone, on real git, bd and pi: whatever happens, the next command
//! goes on, and each step's work is done once.

#[expect(dead_code, unused_imports, reason = "every test crate uses a part of it")]
mod support;

#[path = "e2e_crash/deaths.rs"]
mod deaths;
#[path = "e2e_crash/lost.rs"]
mod lost;
#[path = "e2e_crash/orders.rs"]
mod orders;
#[path = "e2e_crash/outside.rs"]
mod outside;
#[path = "e2e_crash/signals.rs"]
mod signals;
#[path = "e2e_crash/story.rs"]
mod story;
#[path = "e2e_crash/together.rs"]
mod together;

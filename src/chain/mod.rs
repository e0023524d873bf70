//! Pure: formulas, shapes, contracts and the machine of a chain. No clock, no environment, no I/O.

pub mod machine;
pub mod formula;
pub mod graph;
pub mod shape;
pub mod verdict;

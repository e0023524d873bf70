//! Pure: formulas, shapes, contracts and the machine of a chain. No clock, no environment, no I/O.

pub mod context;
pub mod contract;
pub mod evidence;
pub mod formula;
pub mod graph;
pub mod machine;
pub mod pour;
pub mod report;
pub mod scrutiny;
pub mod shape;
pub mod test_paths;
pub mod verdict;

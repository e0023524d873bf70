//! The formulas there are: those of the formula directories and those built into the program.

#[cfg(test)]
mod agreement;
mod dirs;
mod embedded;

pub use dirs::{DirSource, search_path, standard_dirs};
pub use embedded::EmbeddedSource;

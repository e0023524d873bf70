//! The formulas there are: those of the formula directories and those built into the program.

#[cfg(test)]
mod agreement;
mod dirs;
mod embedded;

pub use dirs::{search_path, standard_dirs};
#[cfg(test)]
pub use embedded::EmbeddedSource;

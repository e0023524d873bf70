//! The graph of a chain's steps: compiled, checked, asked, drawn. Design: docs/design/formulas.md.

mod compile;
mod dag;
mod error;
mod gates;
mod labels;
mod query;
mod render;

pub use compile::compile;
pub use error::ShapeError;
pub use query::{answering_writer, critical_path, sent_back, waves};
pub use render::{ascii, dot, mermaid};

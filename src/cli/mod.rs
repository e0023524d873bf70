//! The command line: parse, call the library, print. One file a command. Guide: docs/cli.md.

mod chain;
mod chain_abandon;
mod chain_drive;
mod chain_end;
mod chain_graph;
mod chain_list;
mod chain_progress;
mod chain_resume;
mod chain_run;
mod chain_show;
mod chain_stop;
mod chain_text;
mod context;
mod detach;
mod doctor;
mod error;
mod feed;
mod feed_line;
mod figures;
#[cfg(test)]
mod fixture;
mod formula;
mod formula_list;
mod formula_show;
mod formula_sources;
mod formula_validate;
mod output;
mod phase;
mod place;
mod program;
mod ps;
mod ps_view;
mod result;
mod standing;
mod subject;
mod table;

pub use program::main;

//! The tracker adapter: bd.

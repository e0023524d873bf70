//! Starts local programs in process groups of their own.

//! The actors: thin shells around the pure machines.

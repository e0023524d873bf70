//! Sample rows for tests.

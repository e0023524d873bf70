//! SQLite database and job files.

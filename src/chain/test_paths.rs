//! Where tests live: what a secondary writer may change.

/// Globs, relative to the worktree, of the paths that count as tests, fixtures and test harness.
pub const TEST_PATHS: [&str; 12] = [
    "test/**",
    "tests/**",
    "spec/**",
    "e2e/**",
    "**/test/**",
    "**/tests/**",
    "**/__tests__/**",
    "**/fixtures/**",
    "**/*.test.*",
    "**/*.spec.*",
    "**/*_test.*",
    "**/test_*.*",
];

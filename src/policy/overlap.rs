//! Whether two scopes can touch the same file.

use globset::GlobBuilder;

/// Returns the first pair of paths, one of each scope, that can touch the same file.
///
/// A directory holds all below it. Two globs are compared by the directories before their first wildcard, so a pair
/// may be named that never meets.
pub fn overlap<'a>(ours: &'a [String], theirs: &'a [String]) -> Option<(&'a str, &'a str)> {
    ours.iter().find_map(|one| theirs.iter().find(|other| meet(one, other)).map(|other| (one.as_str(), other.as_str())))
}

fn meet(one: &str, other: &str) -> bool {
    match (is_glob(one), is_glob(other)) {
        (false, false) => within(one, other) || within(other, one),
        (true, false) => glob_meets(one, other),
        (false, true) => glob_meets(other, one),
        (true, true) => within(stem(one), stem(other)) || within(stem(other), stem(one)),
    }
}

/// A glob meets a path when it matches the path, or when what it matches may lie below the path.
fn glob_meets(glob: &str, path: &str) -> bool {
    let matches = GlobBuilder::new(glob).literal_separator(true).build();
    // A pattern that doesn't compile is a name with an odd character: compared by its stem alone.
    matches.map_or_else(|_| within(path, stem(glob)), |glob| glob.compile_matcher().is_match(path))
        || within(stem(glob), path)
        || (is_directory_like(path) && within(path, stem(glob)))
}

/// A last component without a dot may be a directory, and a glob above it may reach into it.
fn is_directory_like(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| !name.contains('.'))
}

fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

/// The directories before the first wildcard.
fn stem(glob: &str) -> &str {
    let wild = glob.find(['*', '?', '[', '{']).unwrap_or(glob.len());
    if wild == glob.len() { glob } else { glob[..wild].rfind('/').map_or("", |slash| &glob[..slash]) }
}

/// Whether `path` is `directory` or below it. The empty directory is the repository.
fn within(path: &str, directory: &str) -> bool {
    directory.is_empty() || path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_overlap_when_they_can_touch_the_same_file() {
        for (one, other, expected) in [
            ("src/a.rs", "src/a.rs", true),
            ("src/a.rs", "src/b.rs", false),
            ("src", "src/deep/a.rs", true),
            ("src", "srcs/a.rs", false),
            ("src/**", "src/a.rs", true),
            ("src/**", "test/a.rs", false),
            ("src/*.rs", "src/a.ts", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/**/*.rs", "src/deep", true),
            ("src/**/*.rs", "src", true),
            ("src/**", "src/deep/**", true),
            ("src/**", "test/**", false),
            ("**", "anything", true),
            ("", "anything", true),
            ("src/[x", "src/[x", true),
        ] {
            let (one, other) = ([one.to_owned()], [other.to_owned()]);
            assert_eq!(overlap(&one, &other).is_some(), expected, "{one:?} {other:?}");
            assert_eq!(overlap(&other, &one).is_some(), expected, "{other:?} {one:?}");
        }
    }
}

//! The known word that somebody probably meant.

/// Returns the option that is most like `found`, or `None` when none comes near.
///
/// Case does not count. An option is near when at most half of its letters would have to change.
pub fn nearest<'a>(found: &str, options: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let found = found.trim().to_lowercase();
    options
        .into_iter()
        .map(|option| (strsim::damerau_levenshtein(&found, &option.to_lowercase()), option))
        .filter(|(distance, option)| distance * 2 <= option.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, option)| option)
}

/// Says what could have been meant: the nearest option if there is one, else all of them.
pub fn advice(found: &str, options: &[&str]) -> String {
    match nearest(found, options.iter().copied()) {
        Some(option) => format!("did you mean `{option}`? Known are: {}", options.join(", ")),
        None => format!("known are: {}", options.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_a_stranger_finds_none() {
        let options = ["feature", "bug", "refactor"];
        for (found, expected) in [
            ("refactr", Some("refactor")),
            ("BUG", Some("bug")),
            ("bgu", Some("bug")),
            ("feture", Some("feature")),
            ("quantum", None),
            ("", None),
        ] {
            assert_eq!(nearest(found, options), expected, "{found}");
        }
        assert!(advice("bgu", &options).starts_with("did you mean `bug`?"));
        assert_eq!(advice("quantum", &options), "known are: feature, bug, refactor");
    }
}

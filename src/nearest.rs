//! Pure: the names that a mistyped one most likely meant.

/// Likeness (0–1) below which a suggestion reads like a guess.
const ALIKE: f64 = 0.6;

/// Returns the candidates that resemble `word`, best first, at most three; empty when none does. Case does not count.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let lower = word.trim().to_lowercase();
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (likeness(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(3).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// Swapped letters count by edit distance, a word cut short by its common beginning, and a name that holds the word
/// whole is as good as a small slip: `test` for `test-runner`.
fn likeness(word: &str, candidate: &str) -> f64 {
    let holds = word.len() >= 3 && candidate.contains(word);
    let alike =
        strsim::normalized_damerau_levenshtein(word, candidate).max(strsim::jaro_winkler(word, candidate) - 0.2);
    alike.max(if holds { ALIKE } else { 0.0 })
}

/// Returns the tail of a message that offers `names`: `"; did you mean a or b?"`, or nothing.
pub(crate) fn hint(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}

/// Says what could have been meant where few words are known: the nearest if there is one, and all of them.
pub(crate) fn advice(found: &str, options: &[&str]) -> String {
    match nearest(found, options.iter().copied()).first() {
        Some(option) => format!("did you mean `{option}`? Known are: {}", options.join(", ")),
        None => format!("known are: {}", options.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_a_stranger_finds_none() {
        let roles = ["executor", "seconder", "test-engineer", "test-runner", "obligations-scanner", "reviewer"];
        let keys = ["needs", "notes", "title", "description", "feature", "bug", "refactor"];
        for (word, options, expected) in [
            ("excutor", &roles[..], Some("executor")),
            ("Reviewer", &roles, Some("reviewer")),
            ("test_runner", &roles, Some("test-runner")),
            ("obligations", &roles, Some("obligations-scanner")),
            ("xyzzy", &roles, None),
            ("", &roles, None),
            ("need", &keys, Some("needs")),
            ("titel", &keys, Some("title")),
            ("Notes", &keys, Some("notes")),
            ("refactr", &keys, Some("refactor")),
            ("bgu", &keys, Some("bug")),
            ("quantum", &keys, None),
        ] {
            let found = nearest(word, options.iter().copied());
            assert_eq!(found.first().map(String::as_str), expected, "{word}: {found:?}");
        }
        assert_eq!(nearest("test", roles).len(), 2);
    }

    #[test]
    fn what_was_meant_is_worded_for_a_message() {
        assert_eq!(hint(&[]), "");
        assert_eq!(hint(&["a".into(), "b".into()]), "; did you mean a or b?");
        assert_eq!(advice("bgu", &["feature", "bug"]), "did you mean `bug`? Known are: feature, bug");
        assert_eq!(advice("quantum", &["feature", "bug"]), "known are: feature, bug");
    }
}

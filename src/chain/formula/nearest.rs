//! The name that a mistyped one most likely meant.

/// Returns the candidates that resemble `word`, best first, at most three; empty when none does.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    // Below this likeness (0–1) a suggestion reads like a guess.
    const ALIKE: f64 = 0.6;
    let lower = word.to_lowercase();
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (likeness(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(3).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// Swapped letters count by edit distance, a word cut short by its common beginning.
fn likeness(a: &str, b: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(a, b).max(strsim::jaro_winkler(a, b) - 0.2)
}

/// Returns the tail of a message that offers `names`: `"; did you mean a, b?"`, or nothing.
pub(crate) fn hint(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::{hint, nearest};

    #[test]
    fn a_typing_error_finds_its_word_and_an_unlike_word_finds_nothing() {
        let names = ["needs", "notes", "title", "description"];
        for (word, expected) in [
            ("need", "; did you mean needs?"),
            ("titel", "; did you mean title?"),
            ("zzz", ""),
            ("Notes", "; did you mean notes?"),
        ] {
            assert_eq!(hint(&nearest(word, names)[..nearest(word, names).len().min(1)]), expected, "{word}");
        }
    }
}

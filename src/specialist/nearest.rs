//! Names that a mistyped one may have meant.

/// Likeness (0–1, Jaro-Winkler) from which a name is worth proposing.
const ALIKE: f64 = 0.75;

/// Returns up to three of `known` that resemble `name`, the most alike first; empty when none does.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    let lower = name.to_lowercase();
    let mut alike: Vec<(f64, &str)> = known
        .into_iter()
        .map(|known| (likeness(&lower, &known.to_lowercase()), known))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    alike.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.cmp(b)));
    alike.into_iter().take(3).map(|(_, known)| known).collect()
}

/// A name that holds the other whole is as good as a small slip: `test` for `test-runner`.
fn likeness(name: &str, known: &str) -> f64 {
    let holds = name.len() >= 3 && (known.contains(name) || name.contains(known));
    strsim::jaro_winkler(name, known).max(if holds { ALIKE } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_and_nonsense_finds_none() {
        let known = ["executor", "seconder", "test-engineer", "test-runner", "obligations-scanner", "reviewer"];
        for (name, expected) in [
            ("excutor", vec!["executor"]),
            ("Reviewer", vec!["reviewer"]),
            ("test_runner", vec!["test-runner"]),
            ("obligations", vec!["obligations-scanner"]),
            ("xyzzy", vec![]),
            ("", vec![]),
        ] {
            let found = nearest(name, known);
            assert_eq!(found.first(), expected.first(), "{name}: {found:?}");
        }
        assert!(nearest("test", known).len() == 2);
    }
}

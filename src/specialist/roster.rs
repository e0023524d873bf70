//! The specialists that a chain can call on.

use std::collections::BTreeMap;

use super::error::SpecialistError;
use super::spec::Specialist;

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        [$((
            concat!("config/specialists/", $name, ".specialist.json"),
            include_str!(concat!("../../config/specialists/", $name, ".specialist.json")),
        )),+]
    };
}

/// (file, content) of the specialists inside the program.
const SHIPPED: [(&str, &str); 6] =
    files!["executor", "seconder", "test-engineer", "test-runner", "obligations-scanner", "reviewer"];

/// Specialists by name.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    specialists: BTreeMap<String, Specialist>,
}

impl Roster {
    /// Returns the six specialists inside the program.
    pub fn shipped() -> Self {
        let mut roster = Self::default();
        for (file, text) in SHIPPED {
            roster.add(Specialist::parse(file, text).expect("a test parses every shipped specialist"));
        }
        roster
    }

    /// Adds a specialist; one of the same name is replaced whole.
    pub fn add(&mut self, specialist: Specialist) {
        self.specialists.insert(specialist.name().to_owned(), specialist);
    }

    /// Returns the specialist of this name.
    ///
    /// # Errors
    ///
    /// [`SpecialistError::Unknown`] with the names that resemble it.
    pub fn get(&self, name: &str) -> Result<&Specialist, SpecialistError> {
        self.specialists.get(name).ok_or_else(|| SpecialistError::Unknown {
            name: name.to_owned(),
            nearest: crate::nearest::nearest(name, self.names()),
            known: self.names().map(str::to_owned).collect(),
        })
    }

    /// Returns all names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.specialists.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;
    use crate::ports::Tool;
    use crate::specialist::Tier;

    #[test]
    fn the_six_have_their_tiers_contracts_and_no_model() {
        let roster = Roster::shipped();
        let rows = [
            ("executor", Tier::High, "status"),
            ("seconder", Tier::ReadOnly, "overall_verdict"),
            ("test-engineer", Tier::High, "status"),
            ("test-runner", Tier::Low, "status"),
            ("obligations-scanner", Tier::ReadOnly, "verdict"),
            ("reviewer", Tier::ReadOnly, "verdict"),
        ];
        for (name, tier, key) in rows {
            let specialist = roster.get(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((specialist.tier(), specialist.contract().key()), (tier, key), "{name}");
            assert_eq!(specialist.model(), None, "{name}");
        }
        assert_eq!(roster.names().count(), rows.len());
    }

    #[test]
    fn a_role_that_judges_cannot_change_what_it_judges() {
        let roster = Roster::shipped();
        for name in ["seconder", "obligations-scanner", "reviewer"] {
            let tools = roster.get(name).expect(name).tier().tools();
            assert_eq!(tools, [Tool::Read, Tool::Grep, Tool::Find, Tool::Ls], "{name}");
        }
        assert!(!roster.get("test-runner").expect("shipped").tier().writes());
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let failure = Failure::from(Roster::shipped().get("reviwer").expect_err("no such role"));
        assert_eq!((failure.kind, failure.error_code, failure.exit), ("not_found", "specialist_unknown", 4));
        assert_eq!(failure.message, "find specialist reviwer; did you mean reviewer?");
        assert!(failure.next_safe_action.contains("obligations-scanner"), "{}", failure.next_safe_action);
    }

    #[test]
    fn a_specialist_of_the_same_name_replaces_the_shipped_one() {
        let mut roster = Roster::shipped();
        let own = r#"{"specialist": {
            "metadata": {"name": "reviewer", "version": "9.0.0", "description": "d", "category": "c"},
            "execution": {"model": "acme/big"}, "prompt": {"task_template": "$contract"}}}"#;
        roster.add(Specialist::parse("reviewer.specialist.json", own).expect("valid"));
        assert_eq!(roster.get("reviewer").expect("known").model(), Some("acme/big"));
        assert_eq!(roster.names().count(), 6);
    }
}

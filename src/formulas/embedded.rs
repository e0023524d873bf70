//! The formulas shipped in `formulas/`, built into the program.

use crate::chain::formula::{Format, FormulaError, FormulaSource, Listed, SourceText};

/// (name, text), sorted by name.
const SHIPPED: [(&str, &str); 1] = [("code-standard", include_str!("../../formulas/code-standard.formula.json"))];

/// The last layer of the search path.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmbeddedSource;

impl FormulaSource for EmbeddedSource {
    fn load(&self, name: &str) -> Result<Option<SourceText>, FormulaError> {
        let shipped = SHIPPED.iter().find(|(shipped, _)| *shipped == name);
        Ok(shipped.map(|(name, text)| SourceText {
            origin: origin(name),
            text: (*text).to_owned(),
            format: Format::Json,
        }))
    }

    fn list(&self) -> Result<Vec<Listed>, FormulaError> {
        Ok(SHIPPED.iter().map(|(name, _)| Listed { name: (*name).to_owned(), origin: origin(name) }).collect())
    }
}

fn origin(name: &str) -> String {
    format!("built-in {name}")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::Path;

    use super::{EmbeddedSource, SHIPPED};
    use crate::chain::formula::resolve_named;
    use crate::chain::graph::{ascii, compile};
    use crate::chain::shape::{Shape, Target};
    use crate::specialist::Tier;

    fn code_standard() -> Shape {
        let roster = BTreeMap::from(
            [
                ("executor", Tier::High),
                ("seconder", Tier::ReadOnly),
                ("test-engineer", Tier::Medium),
                ("test-runner", Tier::Low),
                ("obligations-scanner", Tier::ReadOnly),
                ("reviewer", Tier::ReadOnly),
            ]
            .map(|(role, tier)| (role.to_owned(), tier)),
        );
        let given = BTreeMap::from([("root_title".to_owned(), "Fix the pager".to_owned())]);
        compile(&resolve_named("code-standard", &given, &EmbeddedSource).unwrap(), &roster).unwrap()
    }

    #[test]
    fn every_file_of_the_formula_directory_is_built_in_under_its_name() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("formulas");
        let files: BTreeSet<String> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let shipped: BTreeSet<String> = SHIPPED.iter().map(|(name, _)| format!("{name}.formula.json")).collect();
        assert_eq!(files, shipped);
    }

    #[test]
    fn code_standard_runs_the_production_pipeline_in_its_order() {
        insta::assert_snapshot!(ascii(&code_standard(), &BTreeMap::new()), @r"
        1  executor             writer
        2  seconder             mandatory gate    <- executor
        3  test-engineer        secondary writer  <- seconder
        4  test-runner          mandatory gate    <- test-engineer
        5  obligations-scanner  mandatory gate    <- test-runner
        6  reviewer             final gate        <- obligations-scanner
        ");
        assert!(code_standard().steps.iter().all(|step| step.title == format!("{}: Fix the pager", step.role)));
    }

    #[test]
    fn code_standard_keeps_its_relations_and_leaves_the_root_to_the_contract() {
        let relations: Vec<String> = code_standard()
            .steps
            .iter()
            .flat_map(|step| {
                step.relations.iter().map(|relation| (step.id.clone(), relation.clone())).collect::<Vec<_>>()
            })
            .map(|(step, relation)| match relation.target {
                Target::Root => format!("{step} {} root", relation.kind),
                Target::Step(target) => format!("{step} {} {target}", relation.kind),
            })
            .collect();
        assert_eq!(
            relations,
            [
                "executor implements root",
                "seconder validates executor",
                "test-engineer validates executor",
                "obligations-scanner validates executor",
                "reviewer validates root",
            ]
        );
    }

    #[test]
    fn every_step_carries_a_whole_contract_and_the_reviewer_names_its_five_inputs() {
        for step in &code_standard().steps {
            let document = roxmltree::Document::parse(&step.description).unwrap();
            let contract = document.root_element();
            assert_eq!(
                (contract.tag_name().name(), contract.attribute("role")),
                ("step-contract", Some(step.role.as_str()))
            );
            let parts: Vec<&str> =
                contract.children().filter(|child| child.is_element()).map(|child| child.tag_name().name()).collect();
            assert_eq!(parts, ["mandate", "inputs", "outputs", "scope", "non-goals", "validation"], "{}", step.id);
            if step.role == "reviewer" {
                let inputs: Vec<&str> = contract
                    .descendants()
                    .filter(|node| {
                        node.has_tag_name("item") && node.parent().is_some_and(|parent| parent.has_tag_name("inputs"))
                    })
                    .filter_map(|item| item.text())
                    .collect();
                assert_eq!(
                    inputs,
                    ["root contract", "executor diff", "seconder verdict", "test evidence", "obligations output"]
                );
            }
        }
    }
}

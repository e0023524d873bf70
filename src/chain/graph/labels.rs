//! What a step's labels say about it: role, gate, writer, advisor, relations, root.

use crate::chain::shape::Writer;
use crate::nearest::{hint, nearest};

/// Kinds of relation that an `edge:` label may name (spec 003 §2.2).
pub(super) const RELATIONS: [&str; 5] = ["validates", "informs", "implements", "discovered-from", "parent-child"];

/// Which gate a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    /// `phase:gate`: its verdict decides, a person may pass it by hand.
    Plain,
    /// `gate:mandatory`
    Mandatory,
    /// `gate:final`
    Final,
}

/// What the labels say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// `role:`
    pub(super) role: Option<String>,
    /// `gate:` or `phase:gate`
    pub(super) gate: Option<Gate>,
    /// `position:`
    pub(super) writer: Option<Writer>,
    /// `advisor:` or `phase:advisor`
    pub(super) advisor: bool,
    /// `kind:root` or `chain-root`
    pub(super) root: bool,
    /// (kind, target) of each `edge:`, in order.
    pub(super) relations: Vec<(String, String)>,
}

/// Reads labels; those of other families are topics and say nothing.
///
/// # Errors
/// A text that names the label and what is wrong with it.
pub(super) fn read(labels: &[String]) -> Result<Marks, String> {
    let mut marks = Marks::default();
    for label in labels {
        match label.split_once(':') {
            Some(("role", role)) => match &marks.role {
                Some(other) if other != role => {
                    return Err(format!("labels role:{other} and {label} contradict each other"));
                }
                _ if role.is_empty() => return Err("label role: names no specialist".to_owned()),
                _ => marks.role = Some(role.to_owned()),
            },
            Some(("gate", kind)) => {
                let gate = match kind {
                    "mandatory" => Gate::Mandatory,
                    "final" => Gate::Final,
                    _ => return Err(unknown(label, kind, &["mandatory", "final"])),
                };
                // `gate:mandatory` beside `gate:final` adds nothing.
                if marks.gate != Some(Gate::Final) {
                    marks.gate = Some(gate);
                }
            }
            Some(("phase", "gate")) => marks.gate = marks.gate.or(Some(Gate::Plain)),
            Some(("phase", "advisor") | ("advisor", _)) => marks.advisor = true,
            Some(("position", position)) => {
                let writer = match position {
                    "primary-writer" => Writer::Primary,
                    "secondary-writer" => Writer::Secondary,
                    _ => return Err(unknown(label, position, &["primary-writer", "secondary-writer"])),
                };
                if marks.writer.is_some_and(|other| other != writer) {
                    return Err(
                        "labels position:primary-writer and position:secondary-writer contradict each other".to_owned()
                    );
                }
                marks.writer = Some(writer);
            }
            Some(("edge", edge)) => {
                let (kind, target) = edge
                    .split_once("->")
                    .filter(|(_, target)| !target.is_empty())
                    .ok_or_else(|| format!("label {label} is not edge:<kind>-><step or root>"))?;
                if !RELATIONS.contains(&kind) {
                    return Err(unknown(label, kind, &RELATIONS));
                }
                marks.relations.push((kind.to_owned(), target.to_owned()));
            }
            Some(("kind", "root")) => marks.root = true,
            _ if label == "chain-root" => marks.root = true,
            _ => {}
        }
    }
    Ok(marks)
}

fn unknown(label: &str, found: &str, known: &[&str]) -> String {
    format!("label {label} is unknown (known: {}){}", known.join(", "), hint(&nearest(found, known.iter().copied())))
}

#[cfg(test)]
mod tests {
    use super::{Gate, read};
    use crate::chain::shape::Writer;

    fn of(labels: &[&str]) -> Result<super::Marks, String> {
        read(&labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn labels_say_what_a_step_is() {
        let marks =
            of(&["chain-step", "role:executor", "edge:implements->root", "position:primary-writer", "topic"]).unwrap();
        assert_eq!((marks.role.as_deref(), marks.writer, marks.gate), (Some("executor"), Some(Writer::Primary), None));
        assert_eq!(marks.relations, [("implements".to_owned(), "root".to_owned())]);
        for (labels, gate) in [
            (&["gate:mandatory"][..], Some(Gate::Mandatory)),
            (&["gate:final", "gate:mandatory", "phase:gate"], Some(Gate::Final)),
            (&["phase:gate"], Some(Gate::Plain)),
            (&["phase:design", "gateway"], None),
        ] {
            assert_eq!(of(labels).unwrap().gate, gate, "{labels:?}");
        }
        assert!(of(&["advisor:pre-impl"]).unwrap().advisor && of(&["phase:advisor"]).unwrap().advisor);
        assert!(
            of(&["chain-root"]).unwrap().root && of(&["kind:root"]).unwrap().root && !of(&["kind:step"]).unwrap().root
        );
    }

    #[test]
    fn labels_that_contradict_or_mean_nothing_are_refused() {
        for (labels, expected) in [
            (&["role:a", "role:b"][..], "labels role:a and role:b contradict each other"),
            (&["role:"], "label role: names no specialist"),
            (&["gate:finale"], "label gate:finale is unknown (known: mandatory, final); did you mean final?"),
            (
                &["position:writer"],
                "label position:writer is unknown (known: primary-writer, secondary-writer); did you mean primary-writer or secondary-writer?",
            ),
            (
                &["position:primary-writer", "position:secondary-writer"],
                "labels position:primary-writer and position:secondary-writer contradict each other",
            ),
            (&["edge:validates"], "label edge:validates is not edge:<kind>-><step or root>"),
            (&["edge:validates->"], "label edge:validates-> is not edge:<kind>-><step or root>"),
            (
                &["edge:validate->a"],
                "label edge:validate->a is unknown (known: validates, informs, implements, discovered-from, parent-child); did you mean validates?",
            ),
        ] {
            assert_eq!(of(labels).unwrap_err(), expected);
        }
    }
}

//! The script of `bd batch`: one operation a line (beads.md §12).

use crate::ports::BatchOp;

/// Returns the script of some operations; line N is operation N, counted from 1.
pub(super) fn script(operations: &[BatchOp]) -> String {
    operations.iter().map(|operation| line(operation) + "\n").collect()
}

fn line(operation: &BatchOp) -> String {
    match operation {
        BatchOp::Close { bead, reason } => format!("close {} {}", token(bead.as_str()), token(reason)),
        BatchOp::Update { bead, status, assignee: None } => format!("update {} status={status}", token(bead.as_str())),
        BatchOp::Update { bead, status, assignee: Some(holder) } => {
            format!("update {} status={status} assignee={}", token(bead.as_str()), token(holder))
        }
    }
}

/// Returns text as one quoted token. bd reads line by line and knows `\"` and `\\` alone, so breaks become spaces.
fn token(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for sign in text.chars() {
        match sign {
            '"' | '\\' => quoted.extend(['\\', sign]),
            '\t' => quoted.push(sign),
            control if control.is_control() => quoted.push(' '),
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(reason: &str) -> BatchOp {
        BatchOp::Close { bead: "p-1".into(), reason: reason.to_owned() }
    }

    fn update(assignee: Option<&str>) -> BatchOp {
        BatchOp::Update { bead: "p-1".into(), status: "open", assignee: assignee.map(str::to_owned) }
    }

    #[test]
    fn an_operation_becomes_its_line() {
        for (case, operation, expected) in [
            ("plain", close("lint passed"), r#"close "p-1" "lint passed""#),
            ("quotes and backslashes", close(r#"says "a\n""#), r#"close "p-1" "says \"a\\n\"""#),
            ("breaks", close("one\r\ntwo\tthree"), "close \"p-1\" \"one  two\tthree\""),
            ("empty", close(""), r#"close "p-1" """#),
            ("status alone", update(None), r#"update "p-1" status=open"#),
            ("no holder", update(Some("")), r#"update "p-1" status=open assignee="""#),
            ("a holder", update(Some("sp/a b")), r#"update "p-1" status=open assignee="sp/a b""#),
        ] {
            assert_eq!(script(&[operation]), format!("{expected}\n"), "{case}");
        }
    }

    /// What bd does with a quoted token: undo the two escapes, end at the first bare quote.
    fn unquote(quoted: &str) -> Option<String> {
        let mut signs = quoted.strip_prefix('"')?.chars();
        let mut text = String::new();
        loop {
            match signs.next()? {
                '"' => return signs.next().is_none().then_some(text),
                '\\' => text.push(signs.next()?),
                sign => text.push(sign),
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_stays_one_token_on_one_line(text in any::<String>()) {
            let quoted = token(&text);
            prop_assert!(!quoted.contains(['\n', '\r']));
            let flat: String = text.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect();
            prop_assert_eq!(unquote(&quoted), Some(flat));
        }
    }
}

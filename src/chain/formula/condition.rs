//! A step's `condition`, in bd's syntax (bd 1.3.0, `formula schema`): `{{v}}`, `!{{v}}`, `{{v}} == text`, `{{v}} != text`.

use std::fmt;

/// Whether a step is kept, by the value of one variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The variable.
    pub var: String,
    /// What is asked of its value.
    pub test: Test,
}

/// What a condition asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// Neither empty nor one of `false`, `0`, `no`, `off`, in any case.
    Truthy,
    /// The opposite.
    Falsy,
    /// Exactly this text.
    Is(String),
    /// Any other text.
    IsNot(String),
}

impl Condition {
    /// Parses a condition; an empty one is `Ok(None)`.
    ///
    /// # Errors
    /// A text that says what is wrong.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let unclear = || {
            format!(
                "condition {text:?} is not `{{{{var}}}}`, `!{{{{var}}}}`, `{{{{var}}}} == value` or `{{{{var}}}} != value`"
            )
        };
        let (negated, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (var, tail) = rest.strip_prefix("{{").and_then(|rest| rest.split_once("}}")).ok_or_else(unclear)?;
        if !is_name(var) {
            return Err(unclear());
        }
        let test = match (negated, tail.trim()) {
            (true, "") => Test::Falsy,
            (false, "") => Test::Truthy,
            (true, _) => return Err(unclear()),
            (false, tail) => {
                let (value, test): (&str, fn(String) -> Test) = match (tail.strip_prefix("=="), tail.strip_prefix("!="))
                {
                    (Some(value), _) => (value, Test::Is),
                    (None, Some(value)) => (value, Test::IsNot),
                    (None, None) => return Err(unclear()),
                };
                let value = value.trim();
                // bd compares with the text as it stands: a second variable would never be looked at.
                if value.is_empty() || value.contains("{{") || value.contains('\n') {
                    return Err(unclear());
                }
                test(unquoted(value).to_owned())
            }
        };
        Ok(Some(Self { var: var.to_owned(), test }))
    }

    /// Returns whether the step is kept for this value of its variable.
    pub fn holds(&self, value: &str) -> bool {
        let falsy = ["", "false", "0", "no", "off"].contains(&value.to_lowercase().as_str());
        match &self.test {
            Test::Truthy => !falsy,
            Test::Falsy => falsy,
            Test::Is(text) => value == text,
            Test::IsNot(text) => value != text,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let var = &self.var;
        match &self.test {
            Test::Truthy => write!(out, "{{{{{var}}}}}"),
            Test::Falsy => write!(out, "!{{{{{var}}}}}"),
            Test::Is(text) => write!(out, "{{{{{var}}}}} == {text:?}"),
            Test::IsNot(text) => write!(out, "{{{{{var}}}}} != {text:?}"),
        }
    }
}

/// Returns whether bd would substitute `{{name}}`: a letter or `_`, then letters, digits, `_`, all ASCII.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|each| each.is_ascii_alphanumeric() || each == '_')
}

fn unquoted(text: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::Condition;

    #[test]
    fn a_condition_holds_as_bd_says() {
        for (condition, value, expected) in [
            ("{{v}}", "yes", true),
            ("{{v}}", "", false),
            ("{{v}}", "OFF", false),
            ("{{v}}", "No", false),
            ("{{v}}", "0", false),
            ("{{v}}", "00", true),
            ("!{{v}}", "false", true),
            ("!{{v}}", "x", false),
            ("{{v}} == high", "high", true),
            ("{{v}}=='high'", "high", true),
            ("{{v}} == \"a b\"", "a b", true),
            ("  {{v}} != high ", "low", true),
            ("{{v}} != high", "high", false),
            ("{{v}} == ''", "", true),
        ] {
            let parsed = Condition::parse(condition).unwrap().unwrap();
            assert_eq!(parsed.holds(value), expected, "{condition} with {value:?}");
            assert_eq!(
                Condition::parse(&parsed.to_string()).unwrap(),
                Some(parsed),
                "{condition} printed and read again"
            );
        }
    }

    #[test]
    fn a_condition_of_another_syntax_is_refused() {
        for text in [
            "v",
            "{{v",
            "{{ v }}",
            "{{v}} > 3",
            "!{{v}} == a",
            "{{v}} ==",
            "{{v}} == {{w}}",
            "{{a-b}}",
            "{{a}} && {{b}}",
        ] {
            assert!(Condition::parse(text).is_err(), "{text}");
        }
        assert_eq!(Condition::parse("  "), Ok(None));
    }
}

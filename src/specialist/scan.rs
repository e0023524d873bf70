//! JSON objects in free text, found in time linear in the text.
//!
//! Trying a JSON parser at each `{` is quadratic on hostile text (a megabyte of `{"a":`). Here one attempt notes every
//! brace that it passed as JSON; where the attempt breaks, those are not tried again, since an object inside a broken
//! one is never an answer. What is left to try stands inside strings of the broken attempt; two attempts that overlap
//! there differ in what they call "inside a string", so no byte is looked at by more than two.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;

/// What a text holds.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The last object that has the key at its top level, unless a broken one with the key comes after it.
    pub(super) object: Option<Value>,
    /// The last broken object that had the key already: from its brace to where it breaks.
    pub(super) broken: Option<Range<usize>>,
}

/// Finds the last JSON object in `text` that holds `key` at its top level and is not part of another object.
pub(super) fn last_object_with(text: &str, key: &str) -> Scan {
    scan(text, key).0
}

/// Also returns how many bytes were looked at, each time counted: the bound on it is what the tests hold.
fn scan(text: &str, key: &str) -> (Scan, usize) {
    let mut scan = Scan::default();
    let mut looked_at = 0;
    let mut passed = HashSet::new();
    let mut from = 0;
    while let Some(start) = memchr::memchr(b'{', &text.as_bytes()[from..]).map(|offset| from + offset) {
        from = start + 1;
        if passed.contains(&start) {
            continue;
        }
        let attempt = attempt(text, start, key);
        looked_at += attempt.end - start;
        let object = attempt.whole.then(|| &text[start..attempt.end]);
        // Parsed for good only where it matters; what the grammar allows and serde_json doesn't (a lone surrogate,
        // 1e999, more than 127 levels) counts as broken.
        let value = object.filter(|_| attempt.has_key).and_then(|object| serde_json::from_str(object).ok());
        if attempt.has_key {
            scan.broken = value.is_none().then_some(start..attempt.end);
            scan.object = value;
        }
        if attempt.whole {
            from = attempt.end;
        } else {
            passed.extend(attempt.braces);
        }
    }
    (scan, looked_at)
}

/// One try to read an object.
struct Attempt {
    /// Where the object ends, or where it breaks.
    end: usize,
    /// Whether it was read to its closing brace.
    whole: bool,
    /// Whether the key stands at its top level, as far as it was read.
    has_key: bool,
    /// Braces that opened objects within.
    braces: Vec<usize>,
}

/// What the grammar allows next.
#[derive(Clone, Copy)]
enum Next {
    KeyOrEnd,
    Key,
    Colon,
    Value,
    ValueOrEnd,
    CommaOrEnd,
}

fn attempt(text: &str, start: usize, key: &str) -> Attempt {
    let bytes = text.as_bytes();
    let mut attempt = Attempt { end: start + 1, whole: false, has_key: false, braces: Vec::new() };
    let mut closers = vec![b'}'];
    let mut next = Next::KeyOrEnd;
    while let Some(&closer) = closers.last() {
        let at = skip_blanks(bytes, attempt.end);
        attempt.end = at;
        let Some(&byte) = bytes.get(at) else { return attempt };
        let step = match (next, byte) {
            (Next::KeyOrEnd | Next::ValueOrEnd | Next::CommaOrEnd, _) if byte == closer => {
                closers.pop();
                Some((at + 1, Next::CommaOrEnd))
            }
            (Next::KeyOrEnd | Next::Key, b'"') => string_end(bytes, at).map(|end| {
                attempt.has_key |= closers.len() == 1 && &text[at + 1..end - 1] == key;
                (end, Next::Colon)
            }),
            (Next::Colon, b':') => Some((at + 1, Next::Value)),
            (Next::CommaOrEnd, b',') => Some((at + 1, if closer == b'}' { Next::Key } else { Next::Value })),
            (Next::Value | Next::ValueOrEnd, b'{') => {
                attempt.braces.push(at);
                closers.push(b'}');
                Some((at + 1, Next::KeyOrEnd))
            }
            (Next::Value | Next::ValueOrEnd, b'[') => {
                closers.push(b']');
                Some((at + 1, Next::ValueOrEnd))
            }
            (Next::Value | Next::ValueOrEnd, _) => scalar_end(bytes, at).map(|end| (end, Next::CommaOrEnd)),
            (Next::KeyOrEnd | Next::Key | Next::Colon | Next::CommaOrEnd, _) => None,
        };
        let Some((end, following)) = step else { return attempt };
        (attempt.end, next) = (end, following);
    }
    attempt.whole = true;
    attempt
}

fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    let blanks = bytes[from..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    from + blanks
}

/// End of a string, number or word that starts at `at`.
fn scalar_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes[at] {
        b'"' => string_end(bytes, at),
        b't' => word_end(bytes, at, b"true"),
        b'f' => word_end(bytes, at, b"false"),
        b'n' => word_end(bytes, at, b"null"),
        _ => number_end(bytes, at),
    }
}

fn word_end(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    bytes[at..].starts_with(word).then_some(at + word.len())
}

/// End of the string whose opening quote stands at `at`.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at + 1;
    loop {
        match bytes.get(end)? {
            b'"' => return Some(end + 1),
            b'\\' => match bytes.get(end + 1)? {
                b'u' => {
                    let digits = bytes.get(end + 2..end + 6)?;
                    digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                    end += 6;
                }
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => end += 2,
                _ => return None,
            },
            0..0x20 => return None,
            _ => end += 1,
        }
    }
}

fn number_end(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = |from: usize| {
        let count = bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count > 0).then_some(from + count)
    };
    let first = if bytes[at] == b'-' { at + 1 } else { at };
    let mut end = if bytes.get(first) == Some(&b'0') { first + 1 } else { digits(first)? };
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1)?;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = digits(end + 1 + sign)?;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::de::{Deserializer, IoRead};

    use super::*;

    /// Where serde_json ends the value that starts `text`, if it is one.
    fn serde_end(text: &str) -> Option<usize> {
        let mut values = Deserializer::new(IoRead::new(text.as_bytes())).into_iter::<Value>();
        values.next()?.ok()?;
        Some(values.byte_offset())
    }

    /// Text made of the pieces that a scanner can trip over.
    fn tricky_text() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            "\"",
            ":",
            ",",
            "\\",
            "\"k\"",
            "\"k\":",
            " ",
            "\n",
            "1",
            "-0.5e+3",
            "01",
            "true",
            "null",
            "nul",
            "{\"a\":",
            "{\"k\":1}",
            "\\\"",
            "\\u00e9",
            "é",
            "```json\n",
            "{\":\":\",\",",
        ]);
        vec(pieces, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn an_attempt_reads_what_serde_json_reads(tail in tricky_text()) {
            let text = format!("{{{tail}");
            let attempt = attempt(&text, 0, "k");
            prop_assert_eq!(attempt.whole.then_some(attempt.end), serde_end(&text));
        }

        #[test]
        fn no_byte_is_looked_at_more_than_twice(text in tricky_text()) {
            let (_, looked_at) = scan(&text, "k");
            prop_assert!(looked_at <= 2 * text.len(), "{} of {}", looked_at, text.len());
        }
    }

    #[test]
    fn a_megabyte_of_braces_is_looked_at_once_or_twice() {
        let size = 1 << 20;
        for piece in [
            "{",
            "{\"",
            "{\"a\":",
            "{\"a\":[",
            "{\"a\":[{},",
            "{}",
            "[{",
            "{\"k\":\"{",
            "{\":\":\",\",",
            "{\"{\":\"}\",",
            "{\"a\":\"\\\"",
            "{ ",
            "{\"k\":1}",
            "}",
        ] {
            let text = piece.repeat(size / piece.len());
            let (_, looked_at) = scan(&text, "k");
            assert!(looked_at <= 2 * text.len(), "{piece}: {looked_at} of {}", text.len());
        }
    }
}

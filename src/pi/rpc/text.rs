//! Strings as pi writes them: any JavaScript string, so half of a surrogate pair is possible and invalid UTF-8 is
//! not excluded. Neither may lose a line, as a strict decoder would.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A string of a line, borrowed where it holds no escapes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl Text<'_> {
    pub(super) fn into_string(self) -> String {
        self.0.into_owned()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lossy;
        impl<'de> Visitor<'de> for Lossy {
            type Value = Text<'de>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string")
            }
            fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Text<'de>, E> {
                Ok(Text(String::from_utf8_lossy(bytes)))
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(String::from_utf8_lossy(bytes).into_owned())))
            }
        }
        // As bytes: serde_json then accepts lone surrogates.
        deserializer.deserialize_bytes(Lossy)
    }
}

/// The number of characters of a string, counted without keeping it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Chars(pub(super) u64);

impl<'de> Deserialize<'de> for Chars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Count;
        impl Visitor<'_> for Count {
            type Value = Chars;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Chars, E> {
                Ok(Chars(count(bytes)))
            }
        }
        deserializer.deserialize_bytes(Count)
    }
}

/// Returns how many characters UTF-8 text has: every byte but the continuations.
pub(super) fn count(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u64
}

/// Reads a count as a whole number; providers also send `null`, fractions and, for "prompt minus cached", less than 0.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    // A float turns into the nearest integer in range.
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or_default() as u64)
}

/// Cuts to one line of at most `most` characters, an ellipsis included.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut left = most;
    for piece in text.split_whitespace() {
        let gap = usize::from(!line.is_empty());
        let size = piece.chars().count() + gap;
        if size > left {
            // Room for the ellipsis is taken from what stands there already, if need be.
            let mut cut: String =
                line.chars().chain(" ".chars().take(gap)).chain(piece.chars()).take(most - 1).collect();
            cut.truncate(cut.trim_end().len());
            return cut + "…";
        }
        if gap == 1 {
            line.push(' ');
        }
        line.push_str(piece);
        left -= size;
    }
    line
}

/// Cuts to beginning and end, together at most `most` characters.
pub(super) fn ends(text: &str, most: usize) -> String {
    let size = text.chars().count();
    if size <= most {
        return text.to_owned();
    }
    const GAP: &str = " … ";
    let head = (most - GAP.chars().count()) / 2;
    let tail = most - GAP.chars().count() - head;
    text.chars().take(head).chain(GAP.chars()).chain(text.chars().skip(size - tail)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_that_are_no_valid_unicode_are_kept_as_well_as_can_be() {
        for (json, expected, chars) in [
            (br#""plain""#.as_slice(), "plain", 5),
            (br#""h\u00e4h\n""#, "häh\n", 4),
            ("\"ä\u{2028}😀\"".as_bytes(), "ä\u{2028}😀", 3),
            (br#""half \ud83d""#, "half \u{fffd}\u{fffd}\u{fffd}", 6),
            (b"\"bad \xff\"", "bad \u{fffd}", 5),
        ] {
            assert_eq!(serde_json::from_slice::<Text<'_>>(json).unwrap().0, expected);
            assert_eq!(serde_json::from_slice::<Chars>(json).unwrap().0, chars, "{expected}");
        }
    }

    #[test]
    fn cut_texts_keep_their_limit() {
        for (text, most, expected) in [
            ("a  b\nc", 10, "a b c"),
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abcde…"),
            ("abc defg", 6, "abc d…"),
            ("abcdef g", 6, "abcde…"),
            ("abcd efg", 6, "abcd…"),
            ("", 6, ""),
        ] {
            assert_eq!(one_line(text, most), expected, "{text:?}");
        }
        assert_eq!(ends("0123456789", 10), "0123456789");
        assert_eq!(ends("0123456789a", 9), "012 … 89a");
    }

    #[test]
    fn odd_numbers_are_counts() {
        #[derive(serde::Deserialize)]
        struct One(#[serde(deserialize_with = "whole")] u64);
        for (json, expected) in [("7", 7), ("7.9", 7), ("-3", 0), ("null", 0), ("1e12", 1_000_000_000_000)] {
            assert_eq!(serde_json::from_str::<One>(json).unwrap().0, expected, "{json}");
        }
    }
}

//! Marks where a text of others begins and ends, so that the text can't pretend to end.

use sha2::{Digest, Sha256};

/// Bytes that a fence adds to its text, beside twice its name.
const MARKS: usize = "<<< \n\n >>>\n".len() + 2 * TAG;
const TAG: usize = 8;

/// Returns how many bytes a fence of this name adds to a text.
pub(super) fn overhead(name: &str) -> usize {
    MARKS + 2 * name.len()
}

/// Puts a text between two marks that hold a word which the text does not hold.
///
/// The word is drawn from the text itself: the same text has the same fence, and nobody can write a text that holds
/// its own.
pub(super) fn fenced(name: &str, text: &str) -> String {
    let mut round = 0u32;
    loop {
        let digest = Sha256::digest(format!("{name}\0{round}\0{text}").as_bytes());
        let tag: String = digest.iter().take(TAG / 2).map(|byte| format!("{byte:02x}")).collect();
        if !text.contains(&tag) {
            return format!("<<<{name} {tag}\n{text}\n{name} {tag}>>>\n");
        }
        round += 1;
    }
}

/// Takes the effect from an envelope inside a text of others: `<chain-context` becomes `&lt;chain-context`.
///
/// There is one envelope in a prompt, and a reader that looks for it must not find another.
pub(super) fn defanged(text: &str) -> String {
    // ASCII lower case keeps every byte in its place.
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (at, _) in lower.match_indices("chain-context") {
        let before = lower[..at].strip_suffix('/').unwrap_or(&lower[..at]);
        if let Some(open) = before.strip_suffix('<').map(str::len).filter(|&open| open >= from) {
            out.push_str(&text[from..open]);
            out.push_str("&lt;");
            from = open + 1;
        }
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_envelope_of_others_loses_its_bracket_and_nothing_else() {
        for (text, expected) in [
            ("a <chain-context version=\"1\"> b", "a &lt;chain-context version=\"1\"> b"),
            ("</Chain-Context>", "&lt;/Chain-Context>"),
            ("chain-context <x>", "chain-context <x>"),
            ("<chain-context<chain-context", "&lt;chain-context&lt;chain-context"),
        ] {
            assert_eq!(defanged(text), expected);
        }
    }

    proptest! {
        #[test]
        fn a_fence_holds_its_text_and_the_text_never_its_end(text in "(\\PC|\n|<<<|>>>|data [0-9a-f]{8}>>>){0,40}") {
            let fence = fenced("data", &text);
            prop_assert_eq!(fence.len(), text.len() + overhead("data"));
            let (open, rest) = fence.split_once('\n').unwrap();
            let tag = open.strip_prefix("<<<data ").unwrap();
            let end = format!("\ndata {tag}>>>\n");
            prop_assert_eq!(rest.find(&end), Some(text.len()));
            prop_assert_eq!(&rest[..text.len()], text.as_str());
        }
    }
}

//! Cuts texts to a budget.

/// Which part of a text a reader needs most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// The beginning.
    Head,
    /// Beginning and end: the end of a result holds its verdict.
    Ends,
}

/// The longest mark of a cut, in bytes.
const MARK: usize = "\n[… 18446744073709551615 bytes left out …]\n".len();

/// Shortens a text to at most `limit` bytes, mark included, at character boundaries. The flag says whether it was cut.
pub(super) fn excerpt(text: &str, limit: usize, keep: Keep) -> (String, bool) {
    if text.len() <= limit {
        return (text.to_owned(), false);
    }
    let Some(room) = limit.checked_sub(MARK) else { return (String::new(), true) };
    let tail = match keep {
        Keep::Head => 0,
        Keep::Ends => room / 3,
    };
    let head = text.floor_char_boundary(room - tail);
    let rest = text.ceil_char_boundary(text.len() - tail);
    let left_out = rest - head;
    (format!("{}\n[… {left_out} bytes left out …]\n{}", &text[..head], &text[rest..]), true)
}

/// Divides a budget: each need is met whole or gets an equal share of what is left.
pub(super) fn shares(needs: &[usize], budget: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|&at| needs[at]);
    let mut shares = vec![0; needs.len()];
    let mut left = budget;
    for (done, at) in order.into_iter().enumerate() {
        shares[at] = needs[at].min(left / (needs.len() - done));
        left -= shares[at];
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_text_keeps_its_ends_and_says_how_much_is_gone() {
        let text = format!("begin{}end", "é".repeat(200));
        let (short, cut) = excerpt(&text, 100, Keep::Ends);
        assert!(cut && short.len() <= 100 && short.starts_with("begin") && short.ends_with("end"), "{short}");
        let (head, _) = excerpt(&text, 100, Keep::Head);
        assert!(head.ends_with("bytes left out …]\n"), "{head}");
        assert_eq!(excerpt("short", 5, Keep::Head), ("short".to_owned(), false));
        assert_eq!(excerpt("longer", 5, Keep::Head), (String::new(), true));
    }

    proptest! {
        #[test]
        fn an_excerpt_fits_and_is_cut_only_when_it_must_be(text in "\\PC{0,300}", limit in 0..400usize) {
            let (short, cut) = excerpt(&text, limit, Keep::Ends);
            prop_assert!(short.len() <= limit);
            prop_assert_eq!(cut, text.len() > limit);
            prop_assert!(cut || short == text);
        }

        #[test]
        fn shares_stay_within_budget_and_leave_nothing_that_somebody_needs(
            needs in proptest::collection::vec(0..500usize, 0..8), budget in 0..2000usize,
        ) {
            let shares = shares(&needs, budget);
            let total: usize = shares.iter().sum();
            prop_assert!(total <= budget);
            prop_assert!(needs.iter().zip(&shares).all(|(need, share)| share <= need));
            if needs.iter().sum::<usize>() <= budget {
                prop_assert_eq!(shares, needs);
            } else {
                prop_assert!(budget - total < needs.len().max(1));
            }
        }
    }
}

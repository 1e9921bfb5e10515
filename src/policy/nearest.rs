//! Guesses which known word was meant.

/// Longer words are no slips of the finger.
const WORD_CHARS_MAX: usize = 40;

/// The known word nearest to `word`, if it is near enough to have been meant.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let written: Vec<char> = word.chars().take(WORD_CHARS_MAX + 1).collect();
    if written.len() > WORD_CHARS_MAX {
        return None;
    }
    let slips_max = written.len().div_ceil(3);
    known
        .iter()
        .map(|candidate| (slips(&written, candidate), *candidate))
        .filter(|(slips, _)| *slips <= slips_max)
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance; upper and lower case count as one.
fn slips(written: &[char], known: &str) -> usize {
    let mut row: Vec<usize> = (0..=written.len()).collect();
    for (above, known) in known.chars().enumerate() {
        let mut next = vec![above + 1];
        let mut left = above + 1;
        for (pair, written) in row.windows(2).zip(written) {
            let [diagonal, over] = pair else { continue };
            let replaced = diagonal + usize::from(!written.eq_ignore_ascii_case(&known));
            left = replaced.min(over + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_guessed() {
        let known = ["max_attempts", "max_hint", "mode", "UNAVAILABLE"];
        let cases = [
            ("max_atempts", Some("max_attempts")),
            ("maxattempts", Some("max_attempts")),
            ("max_hints", Some("max_hint")),
            ("unavailable", Some("UNAVAILABLE")),
            ("mdoe", Some("mode")),
            ("retries", None),
            ("", None),
        ];
        for (word, expected) in cases {
            assert_eq!(nearest(word, &known), expected, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), &known), None);
    }
}

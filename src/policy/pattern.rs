//! Patterns over names: `*` is any run of characters, nothing else is special.

/// One pattern, held against a whole name byte by byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Box<str>);

/// Stands for a `*` of the pattern that is covered or not: a byte that occurs in no UTF-8 text.
const STAND_IN: u8 = 0xff;

impl Pattern {
    /// The pattern `text`, unless it is empty.
    pub fn new(text: &str) -> Option<Pattern> {
        if text.is_empty() { None } else { Some(Pattern(text.into())) }
    }

    /// The pattern that matches every name.
    pub fn everything() -> Pattern {
        Pattern("*".into())
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `name` fits, from its first byte to its last.
    pub fn matches(&self, name: &str) -> bool {
        fits(self.0.as_bytes(), name.as_bytes(), |byte| byte)
    }

    /// Whether every name fits.
    pub(super) fn is_everything(&self) -> bool {
        self.0.bytes().all(|byte| byte == b'*')
    }

    /// Whether this pattern matches the text of `later` with each `*` taken for a character that
    /// occurs in neither. Then every name that fits `later` fits this one, too.
    pub(super) fn covers(&self, later: &Pattern) -> bool {
        let stand_in = |byte| if byte == b'*' { STAND_IN } else { byte };
        fits(self.0.as_bytes(), later.0.as_bytes(), stand_in)
    }
}

/// Only the last `*` ever needs to take more: giving more to an earlier one leaves less text for
/// the same rest. So the worst case is the product of the two lengths, and nothing is kept.
fn fits(pattern: &[u8], text: &[u8], read: impl Fn(u8) -> u8) -> bool {
    let (mut at, mut read_to) = (0, 0);
    let mut last_star = None;
    loop {
        match (pattern.get(at), text.get(read_to)) {
            (Some(b'*'), _) if at + 1 == pattern.len() => return true,
            (Some(b'*'), _) => {
                at += 1;
                last_star = Some((at, read_to));
            }
            (Some(want), Some(got)) if *want == read(*got) => {
                at += 1;
                read_to += 1;
            }
            (None, None) => return true,
            (Some(_), None) => return false,
            (_, Some(_)) => match last_star {
                Some((after_star, taken_to)) => {
                    at = after_star;
                    read_to = taken_to + 1;
                    last_star = Some((at, read_to));
                }
                None => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text).unwrap()
    }

    #[test]
    fn a_pattern_matches_the_whole_name() {
        let cases = [
            ("*", "", true),
            ("*", "anything/at all", true),
            ("shop", "shop", true),
            ("shop", "shops", false),
            ("shop", "Shop", false),
            ("shop-*", "shop-", true),
            ("shop-*", "shop-eu", true),
            ("shop-*", "shop", false),
            ("*-eu", "shop-eu", true),
            ("*-eu", "shop-eu-1", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a/b/b/c", true),
            ("a*b*c", "acb", false),
            ("**", "x", true),
            ("a**", "a", true),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("?", "x", false),
            ("?", "?", true),
            ("é*", "eté", false),
            ("é*", "étude", true),
        ];
        for (text, name, expected) in cases {
            assert_eq!(pattern(text).matches(name), expected, "{text} on {name}");
        }
    }

    #[test]
    fn a_pattern_covers_what_it_matches_star_by_star() {
        let cases = [
            ("*", "shop-*", true),
            ("shop-*", "shop-eu-*", true),
            ("shop-*", "shop-*", true),
            ("shop-*", "shop-eu", true),
            ("shop-eu", "shop-*", false),
            ("shop-*", "*", false),
            ("*-*", "shop-*", true),
            ("a*", "*a", false),
            ("**", "*", true),
            // The texts are compared, not the sets of names: `**` needs at least nothing twice.
            ("*x*", "*", false),
        ];
        for (earlier, later, expected) in cases {
            assert_eq!(
                pattern(earlier).covers(&pattern(later)),
                expected,
                "{earlier} over {later}"
            );
        }
    }

    #[test]
    fn the_worst_case_is_quadratic() {
        let text = "a".repeat(20_000);
        assert!(!pattern(&format!("{}b", "*a".repeat(200))).matches(&text));
    }

    /// The definition, in so many words.
    fn fits_by_definition(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => {
                (0..=text.len()).any(|taken| fits_by_definition(rest, &text[taken..]))
            }
            [want, rest @ ..] => text.first() == Some(want) && fits_by_definition(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn a_match_is_what_the_definition_says(text in "[ab*]{1,8}", name in "[ab]{0,10}") {
            let expected = fits_by_definition(text.as_bytes(), name.as_bytes());
            prop_assert_eq!(pattern(&text).matches(&name), expected);
        }

        #[test]
        fn what_is_covered_is_matched(earlier in "[ab*]{1,6}", later in "[ab*]{1,6}", name in "[ab]{0,8}") {
            if pattern(&earlier).covers(&pattern(&later)) && pattern(&later).matches(&name) {
                prop_assert!(pattern(&earlier).matches(&name));
            }
        }
    }
}

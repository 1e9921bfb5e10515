//! Patterns over names: `*` is any run of characters, nothing else is special.

/// One pattern, held against a whole name byte by byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Box<str>);

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
        fits(&self.0, name)
    }

    /// Whether every name fits.
    pub(crate) fn is_everything(&self) -> bool {
        self.0.bytes().all(|byte| byte == b'*')
    }

    /// Whether this pattern matches the text of `later` with each `*` taken for a character that
    /// occurs in neither. Then every name that fits `later` fits this one, too.
    pub(crate) fn covers(&self, later: &Pattern) -> bool {
        // A `*` of the later text needs no stand-in: no run of plain characters has one.
        fits(&self.0, &later.0)
    }
}

/// Each run of plain characters is taken where it comes first: giving more to the `*` before it
/// leaves less text for the same rest. So the time grows with the two lengths and not with their
/// product, whatever a file says: a thousand policies are compared each with each.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut text) = text.strip_prefix(start).and_then(|text| text.strip_suffix(end)) else {
        return false;
    };
    for run in middle.split('*') {
        match text.split_once(run) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    true
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
    fn the_worst_case_is_linear() {
        let text = "a".repeat(800_000);
        for half in ["*a", "a"] {
            let long = pattern(&format!("*{}b*", half.repeat(400_000)));
            assert!(!long.matches(&text));
            assert!(!long.covers(&pattern(&text)));
        }
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

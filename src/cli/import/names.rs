//! Names for policies: what a policy file allows, each once.
use std::collections::HashSet;

/// The longest name of a policy.
const NAME_BYTES_MAX: usize = 63;

#[derive(Debug, Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// A name like `text` that was not given before.
    pub(super) fn name(&mut self, text: &str) -> Box<str> {
        let mut name = String::new();
        for letter in text.chars().map(|letter| letter.to_ascii_lowercase()) {
            match letter {
                'a'..='z' | '0'..='9' => name.push(letter),
                _ if name.is_empty() || name.ends_with('-') => {}
                _ => name.push('-'),
            }
        }
        // All of it is ASCII.
        name.truncate(NAME_BYTES_MAX);
        let name = match name.trim_end_matches('-') {
            "" => "policy",
            name => name,
        };
        let numbered = (2..).map(|number| {
            let end = format!("-{number}");
            let kept: String = name.chars().take(NAME_BYTES_MAX - end.len()).collect();
            kept + &end
        });
        let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| {
            // Taken by this very look.
            self.0.insert(name.clone())
        });
        free.unwrap_or_default().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_plain_and_given_once() {
        let mut names = Names::default();
        let long = "x".repeat(100);
        let cases = [
            ("payments.v1.Payments/Charge", "payments-v1-payments-charge"),
            ("payments.v1.payments/charge", "payments-v1-payments-charge-2"),
            ("payments.v1.Payments/*", "payments-v1-payments"),
            ("**", "policy"),
            ("é", "policy-2"),
            (&long, &long[..63]),
            (&long, &format!("{}-2", &long[..61])),
        ];
        for (text, expected) in cases {
            assert_eq!(&*names.name(text), expected, "{text}");
        }
    }
}

//! Names for policies: what a policy file allows, each once.
use std::collections::{HashMap, HashSet};

/// The longest name of a policy.
const NAME_BYTES_MAX: usize = 63;

#[derive(Debug, Default)]
pub(super) struct Names {
    given: HashSet<String>,
    /// The number that comes next for a name. Counting anew each time, a file with nothing but one
    /// name would take minutes.
    next: HashMap<String, u64>,
}

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
        let next = self.next.entry(name.to_owned()).or_insert(1);
        loop {
            let end = if *next == 1 { String::new() } else { format!("-{next}") };
            *next += 1;
            let kept: String = name.chars().take(NAME_BYTES_MAX - end.len()).collect();
            let free = kept + &end;
            if self.given.insert(free.clone()) {
                return free.into();
            }
        }
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

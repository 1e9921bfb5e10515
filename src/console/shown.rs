//! Names and numbers as people can read them.

/// A name that a caller chose, with each character that cannot be seen written out: two names that
/// differ look different, and none turns the text after it around.
pub(super) fn name(name: &str) -> String {
    name.chars().map(visible).collect()
}

fn visible(c: char) -> String {
    match c {
        '\'' | '"' | '\\' => c.to_string(),
        _ => c.escape_debug().to_string(),
    }
}

/// The digits in groups of three, with thin spaces between them that no line breaks at.
pub(super) fn number(number: u64) -> String {
    const THIN_SPACE: char = '\u{202f}';
    let digits = number.to_string();
    let mut grouped = String::with_capacity(2 * digits.len());
    for (place, digit) in digits.chars().enumerate() {
        if 0 < place && (digits.len() - place).is_multiple_of(3) {
            grouped.push(THIN_SPACE);
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        let cases = [
            ("shop-1", "shop-1"),
            ("a.B/c_d é 店", "a.B/c_d é 店"),
            (r#"it's "\""#, r#"it's "\""#),
            ("pohs\u{202e}", r"pohs\u{202e}"),
            ("zero\u{200b}width", r"zero\u{200b}width"),
            ("tag\u{e0041}", r"tag\u{e0041}"),
            ("<script>", "<script>"),
        ];
        for (given, expected) in cases {
            assert_eq!(name(given), expected);
        }
    }

    #[test]
    fn digits_stand_in_groups_of_three() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1 000"), (1_234_567, "1 234 567")];
        for (given, expected) in cases {
            assert_eq!(number(given).replace('\u{202f}', " "), expected);
        }
    }
}

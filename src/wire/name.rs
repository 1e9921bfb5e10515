//! Names, ids and counts that callers choose. Names are bounded and without control characters.

const TENANT_BYTES_MAX: usize = 128;
const OPERATION_BYTES_MAX: usize = 256;
const ID_BYTES_MAX: usize = 64;

pub(super) fn tenant(text: &str) -> Result<&str, &'static str> {
    required(text, TENANT_BYTES_MAX, "longer than 128 bytes")
}

pub(super) fn operation(text: &str) -> Result<&str, &'static str> {
    required(text, OPERATION_BYTES_MAX, "longer than 256 bytes")
}

/// A `call_id` or `report_id`; empty is none.
pub(super) fn id(text: &str) -> Result<&str, &'static str> {
    bounded(text, ID_BYTES_MAX, "longer than 64 bytes")
}

/// An id that must be there.
pub(super) fn required_id(text: &str) -> Result<&str, &'static str> {
    required(text, ID_BYTES_MAX, "longer than 64 bytes")
}

/// A count that is at least 1.
pub(super) fn positive(count: u32) -> Result<u32, &'static str> {
    if count == 0 { Err("must be at least 1") } else { Ok(count) }
}

fn required<'a>(
    text: &'a str,
    bytes_max: usize,
    too_long: &'static str,
) -> Result<&'a str, &'static str> {
    if text.is_empty() { Err("required") } else { bounded(text, bytes_max, too_long) }
}

fn bounded<'a>(
    text: &'a str,
    bytes_max: usize,
    too_long: &'static str,
) -> Result<&'a str, &'static str> {
    if bytes_max < text.len() {
        Err(too_long)
    // U+0000 to U+001F and U+007F to U+009F: what Unicode calls control characters.
    } else if text.chars().any(char::is_control) {
        Err("has a control character")
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_in_bytes() {
        assert!(tenant(&"t".repeat(128)).is_ok());
        assert!(tenant(&"t".repeat(129)).is_err());
        assert!(tenant(&"é".repeat(65)).is_err());
        assert!(operation(&"o".repeat(256)).is_ok());
        assert!(operation(&"o".repeat(257)).is_err());
        assert!(id(&"i".repeat(64)).is_ok());
        assert!(id(&"i".repeat(65)).is_err());
    }

    #[test]
    fn only_an_id_may_be_empty() {
        assert!(tenant("").is_err());
        assert!(operation("").is_err());
        assert!(id("").is_ok());
    }

    #[test]
    fn control_characters_are_refused() {
        for control in ('\u{0}'..='\u{1f}').chain('\u{7f}'..='\u{9f}') {
            assert!(tenant(&format!("a{control}")).is_err(), "{control:?}");
            assert!(id(&format!("a{control}")).is_err(), "{control:?}");
        }
        for fine in [' ', '~', '\u{a0}', 'é', '\u{2028}'] {
            assert!(tenant(&format!("a{fine}")).is_ok(), "{fine:?}");
        }
    }
}

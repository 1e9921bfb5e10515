//! A text that a person entered, to a context; or what is wrong with it, and where.
use crate::wire::pb;

/// Characters shown on each side of a wrong place.
const AROUND: usize = 40;

/// Why a text is no context.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotAContext {
    pub(super) message: String,
    /// Absent where it concerns the text as a whole.
    pub(super) place: Option<Place>,
}

/// Where a text is wrong: its line, around the character that was read last.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) before: String,
    pub(super) at: String,
    pub(super) after: String,
}

/// Reads a context of at most `bytes_max`, and has it decided without a trace and explained.
pub(super) fn read(text: &str, bytes_max: usize) -> Result<pb::RetryContext, NotAContext> {
    let whole = |message: String| NotAContext { message, place: None };
    if text.trim().is_empty() {
        return Err(whole("nothing was entered".to_owned()));
    }
    if bytes_max < text.len() {
        let length = text.len();
        return Err(whole(format!("it has {length} bytes; at most {bytes_max} are read")));
    }
    let mut context = serde_json::from_str::<pb::RetryContext>(text).map_err(|error| {
        let place = (0 < error.line()).then(|| place(text, error.line(), error.column()));
        NotAContext { message: without_place(&error), place }
    })?;
    context.explain = true;
    context.dry_run = true;
    Ok(context)
}

/// The place has a line of its own on the page.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

/// `column` counts bytes from 1, and is 0 before the first one.
fn place(text: &str, line: usize, column: usize) -> Place {
    let content = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let last = content.floor_char_boundary(column.saturating_sub(1));
    let (before, rest) = content.split_at_checked(last).unwrap_or((content, ""));
    let mut rest = rest.chars();
    let at = rest.next().map(String::from).unwrap_or_default();
    let before_from = before.char_indices().rev().nth(AROUND.saturating_sub(1));
    let before = before_from.map_or(before, |(from, _)| before.get(from..).unwrap_or_default());
    Place {
        line,
        column: content.get(..last).unwrap_or_default().chars().count() + 1,
        before: before.to_owned(),
        at,
        after: rest.take(AROUND).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_MAX: usize = 4_096;

    fn refused(text: &str) -> NotAContext {
        read(text, BYTES_MAX).unwrap_err()
    }

    #[test]
    fn a_context_is_explained_and_leaves_no_trace_whatever_it_says() {
        let context = read(r#"{"tenant": "shop", "explain": false, "dryRun": false}"#, BYTES_MAX);
        let context = context.unwrap();
        assert!(context.explain && context.dry_run);
        assert_eq!(context.tenant, "shop");
    }

    #[test]
    fn the_wrong_place_is_shown() {
        for (text, line, column, before, at, after) in [
            ("{\n  \"tenant\": shop\n}", 2, 13, "  \"tenant\": ", "s", "hop"),
            ("{\n  \"tenat\": \"é\"\n}", 2, 9, "  \"tenat", "\"", ": \"é\""),
            ("{\"tenant\": \"é\", x}", 1, 17, "{\"tenant\": \"é\", ", "x", "}"),
            ("{", 1, 1, "", "{", ""),
            ("[]", 1, 2, "[", "]", ""),
        ] {
            let place = refused(text).place.unwrap();
            assert_eq!((place.line, place.column), (line, column), "{text}");
            let shown = (&*place.before, &*place.at, &*place.after);
            assert_eq!(shown, (before, at, after), "{text}");
        }
    }

    #[test]
    fn of_a_long_line_only_the_surroundings_are_shown() {
        let text = format!("{{\"tenant\": \"{}\", oops{}}}", "é".repeat(1_000), "x".repeat(1_000));
        let place = refused(&text).place.unwrap();
        assert_eq!(place.before.chars().count(), AROUND);
        assert_eq!(place.after.chars().count(), AROUND);
    }

    #[test]
    fn the_message_does_not_repeat_the_place() {
        let refused = refused("{\"tenat\": 1}");
        assert!(refused.message.starts_with("unknown field `tenat`"), "{}", refused.message);
        assert!(!refused.message.contains(" at line "), "{}", refused.message);
    }

    #[test]
    fn a_text_is_read_up_to_its_limit() {
        let padded = |length: usize| format!("{:<length$}", "{}");
        assert!(read(&padded(BYTES_MAX), BYTES_MAX).is_ok());
        assert_eq!(
            refused(&padded(BYTES_MAX + 1)).message,
            "it has 4097 bytes; at most 4096 are read"
        );
        assert_eq!(refused(" \r\n").message, "nothing was entered");
    }
}

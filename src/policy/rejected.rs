//! Why a policy file is refused: every problem with file, line, column and the line itself.
use std::{error::Error, fmt, io, ops::Range};

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use super::FILE_BYTES_MAX;

/// Problems that are told. A file with more has one cause for most of them.
pub(super) const PROBLEMS_TOLD_MAX: usize = 100;
/// Characters of a line that are shown before a place, and after it.
const WINDOW_CHARS: usize = 200;
/// Characters of a value that are repeated in an error.
const SHOWN_CHARS_MAX: usize = 60;

/// A policy file, or a file of tests beside it, was refused. Its `Display` is the whole report, over many lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    file: String,
    problems: Vec<Problem>,
    report: String,
}

/// One thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it stands. `None`: nowhere in particular.
    pub place: Option<Place>,
    /// What it is, in one line.
    pub message: String,
}

/// A place in a file, counted in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    pub(super) width: usize,
}

impl Rejected {
    /// Everything that is wrong, in the file's order.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// What is wrong and where, a line each, without the lines of the file.
    pub fn brief(&self) -> String {
        let told = self.problems.iter().take(PROBLEMS_TOLD_MAX);
        let lines = told.map(|Problem { place, message }| match place {
            Some(Place { line, column, .. }) => format!("{}:{line}:{column}: {message}", self.file),
            None => format!("{}: {message}", self.file),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn new(
        file: &str,
        source: &str,
        problems: impl IntoIterator<Item = Problem>,
    ) -> Rejected {
        let mut problems: Vec<Problem> = problems.into_iter().collect();
        problems.sort_by_key(|problem| problem.place);
        // The renderer shows other control characters by a symbol.
        let source = source.replace(|c| ('\u{80}'..='\u{9f}').contains(&c), "\u{fffd}");
        let lines: Vec<&str> = lines(&source).collect();
        let told = problems.iter().take(PROBLEMS_TOLD_MAX);
        let mut report: Vec<String> = told.map(|problem| render(file, &lines, problem)).collect();
        let untold = problems.len().saturating_sub(PROBLEMS_TOLD_MAX);
        if 0 < untold {
            report.push(format!("and {untold} more"));
        }
        Rejected { file: file.to_owned(), problems, report: report.join("\n\n") }
    }

    pub(super) fn unreadable(file: &str, error: &io::Error) -> Rejected {
        let message = format!("the file cannot be read: {error}");
        Rejected::new(file, "", [Problem { place: None, message }])
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.report)
    }
}

impl Error for Rejected {}

/// The text in `bytes`, without a byte order mark.
pub(crate) fn text<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, Rejected> {
    if FILE_BYTES_MAX < bytes.len() {
        let message = format!("the file is larger than {FILE_BYTES_MAX} bytes");
        return Err(Rejected::new(file, "", [Problem { place: None, message }]));
    }
    let broken = match str::from_utf8(bytes) {
        Ok(text) => return Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => error,
    };
    let (sound, _) = bytes.split_at_checked(broken.valid_up_to()).unwrap_or((bytes, &[]));
    let sound = str::from_utf8(sound).unwrap_or_default();
    let place = Place {
        line: lines(sound).count(),
        column: lines(sound).last().unwrap_or_default().chars().count() + 1,
        width: 1,
    };
    let message = "this byte is not UTF-8".to_owned();
    Err(Rejected::new(file, sound, [Problem { place: Some(place), message }]))
}

/// The lines as YAML counts them: a lone carriage return ends one, too.
fn lines(source: &str) -> impl Iterator<Item = &str> {
    source.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// `text` between backticks: short, and without anything that a terminal would obey.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).flat_map(visible).collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push_str("...");
    }
    format!("`{shown}`")
}

fn visible(character: char) -> impl Iterator<Item = char> {
    // The last two end a line, to some readers.
    let is_odd = character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
    let escaped = is_odd.then(|| character.escape_default());
    let plain = (!is_odd).then_some(character);
    plain.into_iter().chain(escaped.into_iter().flatten())
}

fn render(file: &str, lines: &[&str], problem: &Problem) -> String {
    let title = Level::ERROR.primary_title(problem.message.as_str());
    let Some(place) = problem.place else {
        return Renderer::plain().render(&[title.element(Origin::path(file))]);
    };
    // Only the line itself: its neighbours may be long, and the reader has the number.
    let line = lines.get(place.line.saturating_sub(1)).copied().unwrap_or_default();
    let (shown, marked) = window(line, place);
    let mark = AnnotationKind::Primary.span(marked);
    let snippet = Snippet::source(shown).line_start(place.line).annotation(mark);
    let group = if line.starts_with(shown) {
        title.element(snippet.path(file))
    } else {
        // The column in what is shown is not the one in the line.
        title
            .element(Origin::path(file).line(place.line).char_column(place.column))
            .element(snippet)
    };
    Renderer::plain().render(&[group])
}

/// The part of `line` around `place`, and the bytes of it that `place` covers.
fn window(line: &str, place: Place) -> (&str, Range<usize>) {
    let from = place.column.saturating_sub(1);
    let window_start = from.saturating_sub(WINDOW_CHARS);
    let rest = after(line, window_start);
    let (shown, _) = rest.split_at(rest.len() - after(rest, 2 * WINDOW_CHARS).len());
    let byte_at = |chars: usize| shown.len() - after(shown, chars).len();
    let start = from - window_start;
    (shown, byte_at(start)..byte_at(start.saturating_add(place.width.max(1))))
}

/// `text` without its first characters.
fn after(text: &str, chars: usize) -> &str {
    let mut rest = text.chars();
    if 0 < chars {
        rest.nth(chars - 1);
    }
    rest.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, column: usize, width: usize, message: &str) -> Problem {
        Problem { place: Some(Place { line, column, width }), message: message.to_owned() }
    }

    #[test]
    fn a_report_points_at_the_value() {
        let source = "version: 1\nmax_attempts: 0\n";
        let rejected = Rejected::new("p.yaml", source, [at(2, 15, 1, "`0` is too small")]);
        let expected = "\
error: `0` is too small
 --> p.yaml:2:15
  |
2 | max_attempts: 0
  |               ^";
        assert_eq!(rejected.to_string(), expected);
        assert_eq!(rejected.brief(), "p.yaml:2:15: `0` is too small");
    }

    #[test]
    fn no_control_character_of_the_file_reaches_a_terminal() {
        let source = "a: \u{1b}\u{7f}\u{9b}31m";
        let report = Rejected::new("p.yaml", source, [at(1, 6, 1, "odd")]).to_string();
        assert!(report.contains("\u{fffd}31m"), "{report}");
        assert!(!report.contains(|c: char| c.is_control() && c != '\n'), "{report:?}");
    }

    #[test]
    fn every_break_of_yaml_ends_a_line() {
        for source in ["a: 1\nb: 0\n", "a: 1\r\nb: 0\r\n", "a: 1\rb: 0\r"] {
            let report = Rejected::new("p.yaml", source, [at(2, 4, 1, "odd")]).to_string();
            assert!(report.contains("2 | b: 0\n"), "{source:?}: {report}");
            let broken = [source.as_bytes(), b"c: \xff"].concat();
            let place = text("p.yaml", &broken).unwrap_err().problems()[0].place.unwrap();
            assert_eq!((place.line, place.column), (3, 4), "{source:?}");
        }
    }

    #[test]
    fn a_long_line_is_shown_around_the_value() {
        let source = format!("{}é!{}", "x".repeat(5_000), "y".repeat(1_000_000));
        let report = Rejected::new("p.yaml", &source, [at(1, 5_002, 1, "odd")]).to_string();
        assert!(report.contains("--> p.yaml:1:5002"), "{report}");
        assert!(report.contains("xé!y") && report.len() < 1_500, "{report}");
    }

    #[test]
    fn a_place_outside_of_the_text_is_no_panic() {
        for (line, column, width) in [(0, 0, 0), (1, 99, 5), (7, 1, 1), (1, 1, usize::MAX)] {
            let rejected = Rejected::new("p.yaml", "é", [at(line, column, width, "odd")]);
            assert!(rejected.to_string().contains("odd"));
        }
    }

    #[test]
    fn a_long_report_ends() {
        let many = (1..=250).map(|line| at(line, 1, 1, "again"));
        let rejected = Rejected::new("p.yaml", "", many);
        assert_eq!(rejected.problems().len(), 250);
        assert!(rejected.to_string().ends_with("and 150 more"));
    }

    #[test]
    fn a_value_is_shown_short_and_harmless() {
        assert_eq!(quoted("a\u{1b}[31mé\n"), "`a\\u{1b}[31mé\\n`");
        assert_eq!(quoted("a\u{2028}b\u{2029}"), "`a\\u{2028}b\\u{2029}`");
        assert_eq!(quoted(&"x".repeat(1000)), format!("`{}...`", "x".repeat(60)));
    }
}

//! The lines of a log, one at a time, none of them longer than a decision can be.
use std::io::{self, BufRead, Read as _};

/// A context has 64 KiB at most, which escapes make six times as long.
const LINE_BYTES_MAX: usize = 512 << 10;

/// The lines of a log.
pub(super) struct Lines<R> {
    log: R,
    line: Vec<u8>,
    number: u64,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Text<'a> {
    Line(&'a [u8]),
    TooLong,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn of(log: R) -> Lines<R> {
        Lines { log, line: Vec::new(), number: 0 }
    }

    /// The next line that is not empty, and its number.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, Text<'_>)>> {
        let is_too_long = loop {
            self.line.clear();
            let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
            let read = self.log.by_ref().take(limit).read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if read == LINE_BYTES_MAX && self.line.last() != Some(&b'\n') {
                self.log.skip_until(b'\n')?;
                break true;
            }
            if !self.line.trim_ascii().is_empty() {
                break false;
            }
        };
        let text = if is_too_long { Text::TooLong } else { Text::Line(&self.line) };
        Ok(Some((self.number, text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers() {
        let long = "x".repeat(LINE_BYTES_MAX + 10);
        let text = format!("a\n\n \r\nb\n{long}\nc");
        let mut lines = Lines::of(text.as_bytes());
        assert_eq!(lines.next().unwrap(), Some((1, Text::Line(b"a\n"))));
        assert_eq!(lines.next().unwrap(), Some((4, Text::Line(b"b\n"))));
        assert_eq!(lines.next().unwrap(), Some((5, Text::TooLong)));
        assert_eq!(lines.next().unwrap(), Some((6, Text::Line(b"c"))));
        assert_eq!(lines.next().unwrap(), None);
        assert!(lines.line.capacity() < 2 * LINE_BYTES_MAX);
    }
}

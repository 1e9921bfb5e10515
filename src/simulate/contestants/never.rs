//! No retries.
use super::{Contestant, Entry, Failed};

pub(super) const ENTRY: Entry = Entry {
    name: "none",
    title: "no retries",
    source: "Nothing is ever repeated.",
    enter: |_, _, _| Box::new(Never),
};

struct Never;

impl Contestant for Never {
    fn failed(&mut self, _: &Failed) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::FAILED;
    use super::*;

    #[test]
    fn nothing_is_repeated() {
        assert_eq!(Never.failed(&FAILED), None);
    }
}

//! Whether what was found at the path is news.
use crate::policy::{Rejected, Source};

/// What stood at the path, or why it cannot be read.
pub(super) type Found = Result<Source, Rejected>;

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// What was taken last: put in force, or refused. Either is told once.
    taken: Option<Found>,
    /// Another one, which may still be changing.
    unsettled: Option<Found>,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Then {
    Nothing,
    LookAgain,
    Take,
}

impl Watched {
    /// `asked`: it shall be taken in any case. `in_force` is asked at first, when only the start has
    /// read the file so far.
    pub(super) fn notice(
        &mut self,
        found: &Found,
        asked: bool,
        in_force: impl FnOnce(&Source) -> bool,
    ) -> Then {
        let unsettled = self.unsettled.take();
        if asked || unsettled.as_ref() == Some(found) {
            self.taken = Some(found.clone());
            return Then::Take;
        }
        let is_known = match &self.taken {
            Some(taken) => taken == found,
            None => found.as_ref().is_ok_and(in_force),
        };
        if is_known {
            self.taken = Some(found.clone());
            return Then::Nothing;
        }
        self.unsettled = Some(found.clone());
        Then::LookAgain
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn file(text: &str) -> Found {
        Ok(Source { name: "p.yaml".to_owned(), bytes: text.as_bytes().to_vec() })
    }

    fn missing() -> Found {
        Source::read(Path::new("no/such/file.yaml"))
    }

    /// What each look leads to. The start has read `good`.
    fn check(looks: &[(Found, Then)]) {
        let mut watched = Watched::default();
        for (place, (found, then)) in looks.iter().enumerate() {
            let noticed = watched.notice(found, false, |source| source.bytes == b"good");
            assert_eq!(&noticed, then, "look {place} of {looks:?}");
        }
    }

    #[test]
    fn what_the_start_has_read_is_no_news() {
        check(&[(file("good"), Then::Nothing), (file("good"), Then::Nothing)]);
    }

    #[test]
    fn a_change_since_the_start_is_news_at_the_first_look() {
        check(&[(file("new"), Then::LookAgain), (file("new"), Then::Take)]);
    }

    #[test]
    fn a_file_is_taken_when_it_has_stopped_changing_and_once() {
        check(&[
            (file("good"), Then::Nothing),
            (file(""), Then::LookAgain),
            (file("ne"), Then::LookAgain),
            (file("new"), Then::LookAgain),
            (file("new"), Then::Take),
            (file("new"), Then::Nothing),
        ]);
    }

    #[test]
    fn what_cannot_be_read_is_told_once_and_its_return_is_news() {
        check(&[
            (file("good"), Then::Nothing),
            (missing(), Then::LookAgain),
            (missing(), Then::Take),
            (missing(), Then::Nothing),
            (file("good"), Then::LookAgain),
            (file("good"), Then::Take),
        ]);
    }

    #[test]
    fn a_change_that_was_taken_back_at_once_is_none() {
        check(&[
            (file("good"), Then::Nothing),
            (file("new"), Then::LookAgain),
            (file("good"), Then::Nothing),
            (file("new"), Then::LookAgain),
        ]);
    }

    #[test]
    fn whoever_asks_has_it_taken_changed_or_not() {
        let mut watched = Watched::default();
        for found in [file("good"), file("good"), missing()] {
            assert_eq!(watched.notice(&found, true, |_| true), Then::Take);
            assert_eq!(watched.notice(&found, false, |_| false), Then::Nothing);
        }
    }
}

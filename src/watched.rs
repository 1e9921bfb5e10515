//! Files that are looked at again and again: whether what was found is news, and has stopped changing.

/// What was seen so far.
#[derive(Debug)]
pub(crate) struct Watched<T> {
    /// What was taken last: put in force, or refused. Either is told once.
    taken: Option<T>,
    /// Another one, which may still be changing.
    unsettled: Option<T>,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    LookAgain,
    Take,
}

impl<T: Clone + PartialEq> Watched<T> {
    /// Nothing was taken yet.
    pub(crate) fn new() -> Watched<T> {
        Watched { taken: None, unsettled: None }
    }

    /// Whether something was taken.
    pub(crate) fn has_taken(&self) -> bool {
        self.taken.is_some()
    }

    /// This is taken, changed or not: by the start, or because somebody asks.
    pub(crate) fn take(&mut self, found: &T) {
        *self = Watched { taken: Some(found.clone()), unsettled: None };
    }

    /// What differs from what was taken is taken when it looks the same twice.
    pub(crate) fn notice(&mut self, found: &T) -> Then {
        let unsettled = self.unsettled.take();
        if self.taken.as_ref() == Some(found) {
            return Then::Nothing;
        }
        if unsettled.as_ref() == Some(found) {
            self.taken = unsettled;
            return Then::Take;
        }
        self.unsettled = Some(found.clone());
        Then::LookAgain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stood in a file, or why it cannot be read.
    type Found = Result<&'static str, &'static str>;

    fn file(text: &'static str) -> Found {
        Ok(text)
    }

    fn missing() -> Found {
        Err("no such file")
    }

    /// What each look leads to. The start has read `good`.
    fn check(looks: &[(Found, Then)]) {
        let mut watched = Watched::new();
        watched.take(&file("good"));
        for (place, (found, then)) in looks.iter().enumerate() {
            assert_eq!(&watched.notice(found), then, "look {place} of {looks:?}");
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
        let mut watched = Watched::new();
        assert!(!watched.has_taken());
        for found in [file("good"), file("good"), missing()] {
            watched.take(&found);
            assert!(watched.has_taken());
            assert_eq!(watched.notice(&found), Then::Nothing);
        }
    }
}

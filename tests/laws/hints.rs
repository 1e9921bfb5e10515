//! Laws: a hint only delays, is never cut, and every yes fits its deadline.
use retryd::engine::{Facts, Failure, GrpcCode, Hint, Retry, Wait, decide};

use super::grid::Grid;
use super::reference::{backoff_ms, fits};
use super::said;

/// One failure is retryable only with a hint: without one its code has other meanings.
#[test]
fn a_longer_hint_never_turns_a_no_into_a_yes_nor_shortens_a_delay() {
    Grid::coarse().each(|_, f| {
        let before = decide(f).as_ref().ok().map(delay_ms);
        for longer in longer_hints(f) {
            let after = decide(&longer).as_ref().ok().map(delay_ms);
            let needs_hint = f.hint.wait == Wait::Unsaid
                && f.failure.failure() == Failure::Grpc(GrpcCode::ResourceExhausted);
            match (before, after) {
                (_, None) => {}
                (None, Some(_)) => assert!(needs_hint, "{f:?} -> {longer:?}"),
                (Some(before), Some(after)) => assert!(before <= after, "{f:?} -> {longer:?}"),
            }
        }
    });
}

/// The facts with a hint where there was none, or with a longer one.
fn longer_hints<'a>(f: &Facts<'a>) -> impl Iterator<Item = Facts<'a>> {
    let (least, b) = match f.hint.wait {
        Wait::Unsaid => (Some(0), f.rules.backoff.base_ms),
        Wait::AtLeast(ms) => (Some(ms + 1), ms),
        Wait::Forbidden => (None, 0),
    };
    let hints = [0, 1, 20, b + 1, f.rules.hint_ms_max, f.rules.hint_ms_max + 1, u64::MAX];
    hints
        .into_iter()
        .chain(least)
        .filter(move |ms| least.is_some_and(|least| least <= *ms))
        .map(|ms| Facts { hint: Hint { wait: Wait::AtLeast(ms), ..f.hint }, ..*f })
}

#[test]
fn every_yes_waits_as_long_as_the_hint_and_fits_the_deadline() {
    Grid::coarse().each(|_, f| {
        let Ok(retry) = decide(f) else { return };
        let delay_ms = delay_ms(&retry);
        let hint_ms = if let Wait::AtLeast(hint_ms) = f.hint.wait { hint_ms } else { 0 };
        assert!(1 <= delay_ms, "{f:?}");
        assert!(hint_ms <= delay_ms, "a hint was cut: {f:?}");
        assert!(u128::from(delay_ms) <= u128::from(hint_ms) + backoff_ms(f), "{f:?}");
        assert!(fits(f, delay_ms.into()), "{f:?}");
    });
}

#[test]
fn a_hint_beyond_the_longest_backoff_is_honoured_in_full() {
    let rules = super::Policy::default().rules;
    let mut f = super::clear(&rules, super::http(503));
    f.hint.wait = Wait::AtLeast(rules.hint_ms_max);
    assert!(rules.backoff.max_ms < rules.hint_ms_max);
    assert_eq!(decide(&f).as_ref().map(delay_ms).unwrap(), rules.hint_ms_max + 100);
}

#[test]
fn a_malformed_header_changes_no_answer() {
    Grid::coarse().each(|_, f| {
        let hint = Hint { malformed: true, ..f.hint };
        assert_eq!(said(&Facts { hint, ..*f }), said(f), "{f:?}");
    });
}

fn delay_ms(retry: &Retry<'_>) -> u64 {
    retry.delay().ms()
}

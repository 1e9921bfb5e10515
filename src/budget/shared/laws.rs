//! What one replica's part of a balance does, step by step.
use super::exchange::{Call, Reply, Sizes, Standing};
use super::share::Share;
use super::trade::Want;
use crate::budget::balance::Purpose;
use crate::budget::{Limits, OnStoreLoss, Usage, bucket, ratio, throttle};
use crate::engine::Class;

const RETRY: Purpose = Purpose::Attempt(Class::Transient);
/// Late enough that a lease can have begun before.
const NOW: u64 = 1_000_000;

fn ratio(count: u32) -> Limits {
    let floor = ratio::Floor { count, interval_ms: 1_000 };
    Limits::Ratio(ratio::Limits { percent: 20, interval_ms: 10_000, floor })
}

fn bucket() -> Limits {
    Limits::TokenBucket(bucket::Limits { capacity: 500, costs: bucket::Costs::AWS_2026 })
}

const FINE: Standing = Standing {
    lost_since_ms: None,
    emptied_ms: None,
    replicas: 2,
    on_store_loss: OnStoreLoss::LocalShare,
};

fn lost_at(since_ms: u64) -> Standing {
    Standing { lost_since_ms: Some(since_ms), ..FINE }
}

/// How many of `asks` are granted.
fn granted(share: &mut Share, limits: &Limits, asks: usize) -> usize {
    (0..asks).filter(|_| share.withdraw(limits, RETRY, 1).is_some()).count()
}

fn report(share: &mut Share, limits: &Limits, requests: u64) {
    let usage = Usage { requests, first_try_successes: requests, ..Usage::NOTHING };
    share.deposit(limits, &usage);
}

/// Calls, and hears that so many tokens are leased.
fn lease(share: &mut Share, limits: &Limits, tokens: u64, now_ms: u64) -> Call {
    let call = share.call(limits);
    let reply = Reply { now_ms, granted: tokens, active: 1, ..Reply::default() };
    share.answered(limits, &call, &reply, now_ms);
    call
}

#[test]
fn a_lease_ends_by_itself_and_what_is_left_goes_back() {
    let limits = ratio(10);
    let mut share = Share::fresh(&limits, FINE, NOW);
    lease(&mut share, &limits, 4, NOW);
    assert_eq!(granted(&mut share, &limits, 1), 1);
    share.settle(&limits, FINE, NOW + 499);
    assert_eq!(share.available(&limits), 3 + 1, "and one on credit");
    share.settle(&limits, FINE, NOW + 500);
    assert_eq!(share.available(&limits), 1);
    let call = share.call(&limits);
    assert_eq!((call.holds, call.returns), (0, 3));
}

#[test]
fn what_is_given_is_gone_unless_the_store_has_refused_it() {
    let limits = ratio(0);
    for (is_refused, left) in [(true, 2), (false, 0)] {
        let mut share = Share::fresh(&limits, FINE, NOW);
        report(&mut share, &limits, 10);
        let call = share.call(&limits);
        assert_eq!(call.gives.iter().map(|(_, units)| units).sum::<u32>(), 200);
        if is_refused {
            share.refused_call(&limits, &call);
        } else {
            share.unanswered();
        }
        assert_eq!(granted(&mut share, &limits, 9), left, "refused: {is_refused}");
    }
}

#[test]
fn a_credit_is_told_until_it_is_heard_and_given_once() {
    let limits = ratio(10);
    let mut share = Share::fresh(&limits, FINE, NOW);
    assert_eq!(granted(&mut share, &limits, 5), 1);
    let call = share.call(&limits);
    assert_eq!((call.owes, call.start), (1, Sizes::of(&limits).full()));
    share.unanswered();
    assert_eq!(granted(&mut share, &limits, 5), 0);
    let call = share.call(&limits);
    assert_eq!(call.owes, 1);
    // The pool had nothing to pay it with.
    let owing = Reply { now_ms: NOW, active: 1, debt: 1, ..Reply::default() };
    share.answered(&limits, &call, &owing, NOW);
    assert_eq!(granted(&mut share, &limits, 5), 0);
    let call = share.call(&limits);
    assert_eq!((call.owes, call.start, call.debt), (0, 0, 1), "a pool that is gone owes it still");
    let paid = Reply { debt: 0, level: 1, ..owing };
    share.answered(&limits, &call, &paid, NOW);
    assert_eq!(granted(&mut share, &limits, 5), 1);
}

#[test]
fn nothing_is_lent_that_nothing_will_pay() {
    let nothing = ratio::Floor { count: 0, interval_ms: 1_000 };
    let nothing = Limits::Ratio(ratio::Limits { percent: 0, interval_ms: 10_000, floor: nothing });
    for limits in [nothing, ratio(0), bucket()] {
        let mut share = Share::fresh(&limits, FINE, NOW);
        assert_eq!(granted(&mut share, &limits, 1), 0);
        lease(&mut share, &limits, 0, NOW);
        assert_eq!(granted(&mut share, &limits, 1), 0, "{limits:?}");
    }
}

#[test]
fn without_the_store_a_part_of_the_floor_fills_from_empty_and_a_reload_empties_it() {
    let limits = ratio(10);
    let mut share = Share::fresh(&limits, lost_at(NOW), NOW);
    assert_eq!(granted(&mut share, &limits, 9), 0);
    share.settle(&limits, lost_at(NOW), NOW + 400);
    // Half of ten a second, as there are two.
    assert_eq!(granted(&mut share, &limits, 9), 2);
    share.settle(&limits, lost_at(NOW), NOW + 60_000);
    assert_eq!(share.available(&limits), 5);
    assert!(share.is_degraded());
    share.rescale(&limits, &ratio(20));
    share.settle(&ratio(20), lost_at(NOW), NOW + 60_000);
    assert_eq!(share.available(&ratio(20)), 0);
    share.settle(&ratio(20), FINE, NOW + 60_000);
    assert!(!share.is_degraded());
}

#[test]
fn a_budget_that_denies_grants_what_its_requests_earned_and_no_more() {
    let denies = Standing { on_store_loss: OnStoreLoss::Deny, ..lost_at(NOW) };
    for (limits, left) in [(ratio(10), 2), (bucket(), 0), (throttle(), 0)] {
        let mut share = Share::fresh(&limits, denies, NOW);
        report(&mut share, &limits, 10);
        share.settle(&limits, denies, NOW + 9_000);
        assert_eq!(granted(&mut share, &limits, 9), left, "{limits:?}");
    }
}

fn throttle() -> Limits {
    Limits::Throttle(throttle::Limits { tokens_max: 10, token_ratio_thousandths: 100 })
}

#[test]
fn a_throttle_goes_on_from_the_sum_of_what_all_have_seen() {
    let limits = throttle();
    let mut share = Share::fresh(&limits, FINE, NOW);
    share.count_failure();
    let call = share.call(&limits);
    assert_eq!((call.owes, call.returns), (1_000, 0));
    // While it is on its way, another one.
    share.count_failure();
    let sum = Reply { now_ms: NOW, level: 7_500, ..Reply::default() };
    share.answered(&limits, &call, &sum, NOW);
    assert!(share.grants(&limits, RETRY), "6.5 of 10");
    assert_eq!(share.call(&limits).owes, 1_000);
    // Nobody knows what became of that: a failure counts again, and a success does not.
    report(&mut share, &limits, 5);
    assert_eq!(share.call(&limits).returns, 500);
    share.unanswered();
    let call = share.call(&limits);
    assert_eq!((call.owes, call.returns), (1_000, 0));
}

#[test]
fn a_part_that_is_made_anew_goes_on_with_higher_numbers() {
    let limits = ratio(10);
    let mut share = Share::fresh(&limits, FINE, NOW);
    let numbers: Vec<u64> = (0..30).map(|_| share.call(&limits).sequence).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next));
    let mut anew = Share::fresh(&limits, FINE, NOW + 3_000);
    assert!(numbers[29] < anew.call(&limits).sequence);
}

#[test]
fn whoever_was_asked_wants_to_be_exchanged_first_and_whoever_holds_nothing_never() {
    let limits = ratio(10);
    let mut share = Share::fresh(&limits, FINE, NOW);
    assert_eq!(share.want(), Want::Never);
    report(&mut share, &limits, 1);
    assert_eq!(share.want(), Want::Soon);
    assert_eq!(granted(&mut share, &limits, 1), 1);
    assert_eq!(share.want(), Want::Now);
    lease(&mut share, &limits, 5, NOW);
    assert!(matches!(share.want(), Want::Later(due_ms) if NOW < due_ms), "{:?}", share.want());
    share.settle(&limits, FINE, NOW + 400);
    assert_eq!(share.want(), Want::Soon, "before the lease ends");
}

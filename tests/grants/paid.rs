//! Who has paid for an attempt already, and how a charge is receipted.
use retryd::budget::{Account, Ask, BudgetId, Grant, Holder, Payers, Payment, Store};
use retryd::engine::{Coverage, Purse};

use super::{Bench, Budget, ask, bucket, budget, charge, ratio, throttle};

fn exhausted(budget: &str) -> Coverage<'_> {
    Coverage::Exhausted(Purse { budget, available: 0 })
}

#[test]
fn a_budget_that_has_paid_covers_the_attempt_and_pays_no_more() {
    let bench = Bench::of(&[budget("r", ratio(1))]);
    let ask = ask(bench.holder("a"));
    let mut grant = Grant::default();
    assert_eq!(charge(&bench, ask, &mut grant), Some(Payment::Paid));
    assert_eq!(bench.memory.open(&ask, None).coverage(), exhausted("r"));
    let coverage = bench.memory.open(&ask, Some(&grant)).coverage();
    assert!(!matches!(coverage, Coverage::Exhausted(_)), "{coverage:?}");
    assert_eq!(charge(&bench, ask, &mut grant), Some(Payment::Remembered));
    assert_eq!(grant.retries(), 1);
}

/// As after a reload that has the policy name one more.
#[test]
fn only_budgets_that_have_not_paid_yet_are_charged() {
    let budgets = [budget("r", ratio(2)), budget("b", bucket(30))];
    let bench = Bench::of(&budgets);
    let first = Payers::new(&[BudgetId(0)], &budgets).unwrap();
    let mut grant = Grant::default();
    let before = Holder { payers: &first, ..bench.holder("a") };
    assert_eq!(charge(&bench, ask(before), &mut grant), Some(Payment::Paid));
    for _ in 0..2 {
        let after = ask(bench.holder("a"));
        assert_eq!(charge(&bench, after, &mut grant), Some(Payment::Remembered));
        assert_eq!(bench.available(bench.holder("a"), 0), [1, 9]);
    }
    assert_eq!(bench.memory.give_back(bench.holder("a"), &mut grant, 1, 0), 1);
    assert_eq!(bench.available(bench.holder("a"), 0), [1, 10]);
}

#[test]
fn a_budget_that_has_not_paid_may_refuse() {
    let budgets = [budget("r", ratio(2)), budget("none", ratio(0))];
    let bench = Bench::of(&budgets);
    let first = Payers::new(&[BudgetId(0)], &budgets).unwrap();
    let mut grant = Grant::default();
    let before = Holder { payers: &first, ..bench.holder("a") };
    assert_eq!(charge(&bench, ask(before), &mut grant), Some(Payment::Paid));
    let repeat = ask(bench.holder("a"));
    let mut account = bench.memory.open(&repeat, Some(&grant));
    assert_eq!(account.coverage(), exhausted("none"));
    assert_eq!(account.charge(Some(&mut grant)), Err(exhausted("none")));
}

#[test]
fn a_throttle_is_asked_again() {
    let bench = Bench::of(&[budget("b", bucket(30)), budget("t", throttle(4))]);
    let ask = ask(bench.holder("a"));
    let mut grant = Grant::default();
    assert_eq!(charge(&bench, Ask { counts: true, ..ask }, &mut grant), Some(Payment::Paid));
    drop(bench.memory.open(&Ask { counts: true, ..ask }, None));
    assert_eq!(bench.memory.open(&ask, Some(&grant)).coverage(), exhausted("t"));
}

#[test]
fn a_budget_and_its_twin_pay_each_for_themselves() {
    for (first, other) in [(false, true), (true, false)] {
        let bench = Bench::of(&[budget("r", ratio(2))]);
        let of = |twins| ask(Holder { twins, ..bench.holder("a") });
        let mut grant = Grant::default();
        assert_eq!(charge(&bench, of(first), &mut grant), Some(Payment::Paid));
        assert_eq!(charge(&bench, of(other), &mut grant), Some(Payment::Paid));
        assert_eq!(bench.available(of(first).holder, 0), [1]);
        assert_eq!(bench.available(of(other).holder, 0), [1]);
    }
}

#[test]
fn a_namesake_in_another_place_of_the_file_has_not_paid() {
    let bench = Bench::of(&[budget("one", ratio(2)), budget("other", ratio(2))]);
    let only = |place: usize, budgets: &[Budget]| Payers::new(&[BudgetId(place)], budgets).unwrap();
    let budgets = [budget("one", ratio(2)), budget("other", ratio(2))];
    let [one, other] = [only(0, &budgets), only(1, &budgets)];
    let mut grant = Grant::default();
    for payers in [&one, &other] {
        let ask = ask(Holder { payers, ..bench.holder("a") });
        assert_eq!(charge(&bench, ask, &mut grant), Some(Payment::Paid));
    }
}

#[test]
fn a_dry_run_is_receipted_as_such_and_notes_nothing() {
    let bench = Bench::of(&[budget("r", ratio(2))]);
    let dry = Ask { dry_run: true, ..ask(bench.holder("a")) };
    let mut grant = Grant::default();
    assert_eq!(charge(&bench, dry, &mut grant), Some(Payment::DryRun));
    assert_eq!(grant, Grant::default());
    charge(&bench, ask(bench.holder("a")), &mut grant);
    let paid = grant.clone();
    assert_eq!(charge(&bench, dry, &mut grant), Some(Payment::DryRun));
    assert_eq!(grant, paid);
}

#[test]
fn without_budgets_there_is_a_retry_to_release_all_the_same() {
    let bench = Bench::of(&[]);
    let mut grant = Grant::default();
    assert_eq!(charge(&bench, ask(bench.holder("a")), &mut grant), Some(Payment::Unbudgeted));
    assert_eq!(bench.memory.give_back(bench.holder("a"), &mut grant, 1, 0), 1);
}

#[test]
fn balances_in_memory_are_never_a_local_share() {
    let bench = Bench::of(&[budget("r", ratio(2))]);
    assert!(!bench.memory.open(&ask(bench.holder("a")), None).is_degraded());
}

/// All but the last retry of a lease may be given back, and the lease is still paid for.
#[test]
fn a_grant_is_paid_for_until_its_last_retry_is_given_back() {
    let bench = Bench::of(&[budget("b", bucket(30))]);
    let mut grant = bench.acquire(bench.holder("a"), 2);
    for payment in [Payment::Remembered, Payment::Paid] {
        assert_eq!(bench.memory.give_back(bench.holder("a"), &mut grant, 1, 0), 1);
        let ask = ask(bench.holder("a"));
        let mut account = bench.memory.open(&ask, Some(&grant));
        assert_eq!(account.charge(None).unwrap().payment(), payment);
    }
}

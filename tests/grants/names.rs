//! The budgets of one policy.
use retryd::budget::{BudgetId, PAYERS_MAX, Payers, State};
use retryd::engine::Purse;

use super::{Budget, budget, ratio};

#[test]
fn a_policy_names_eight_budgets_of_its_file_at_most() {
    let budgets: Vec<Budget> = (0..9).map(|name| budget(&name.to_string(), ratio(1))).collect();
    let ids: Vec<BudgetId> = (0..9).rev().map(BudgetId).collect();
    let eight = Payers::new(&ids[..PAYERS_MAX], &budgets).unwrap();
    assert_eq!(eight.ids(), &ids[..8]);
    assert_eq!(Payers::new(&ids, &budgets), None);
    assert_eq!(Payers::new(&ids[..1], &budgets[..8]), None, "it is not in the file");
    assert_eq!(Payers::new(&[], &[]), Some(Payers::default()));
}

#[test]
fn of_several_states_the_first_of_the_scarcest_stands_for_all() {
    let state = |budget, available| State { budget, available, capacity: 9 };
    let states = [state("a", 3), state("b", 2), state("c", 2), state("d", 4)];
    assert_eq!(State::scarcest(states), Some(state("b", 2)));
    assert_eq!(State::scarcest([]), None);
    assert_eq!(Purse::from(states[0]), Purse { budget: "a", available: 3 });
}

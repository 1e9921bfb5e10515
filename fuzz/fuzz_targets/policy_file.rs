//! Any bytes as a policy file: refused with places inside of it, or read into policies that keep
//! what `retryd::policy` promises.
#![no_main]
use libfuzzer_sys::fuzz_target;
use retryd::policy::{Policies, Rejected, guarantee};

fuzz_target!(|bytes: &[u8]| match Policies::parse("fuzzed.yaml", bytes) {
    Ok(policies) => keeps_its_promises(&policies, bytes),
    Err(rejected) => points_into(&rejected, bytes),
});

fn keeps_its_promises(policies: &Policies, bytes: &[u8]) {
    assert_eq!(Policies::parse("again.yaml", bytes).as_ref(), Ok(policies));
    assert_eq!(policies.revision().len(), 12);
    let last = policies.policies().last().expect("there is a last policy");
    for (tenant, operation) in
        [("", ""), ("shop-1", "payments.v1.Payments/Charge"), ("*", "\u{e9}")]
    {
        assert!(last.matches(tenant, operation));
        let found = policies.find(tenant, operation);
        let first = policies.policies().find(|policy| policy.matches(tenant, operation));
        assert_eq!(Some(found), first);
    }
    for policy in policies.policies() {
        assert!(policy.payers.ids().iter().all(|id| id.0 < policies.budgets().len()));
        assert!(1 <= policy.rules.attempts_max);
        assert!(policy.rules.backoff.base_ms <= policy.rules.backoff.max_ms);
    }
    for budget in policies.budgets() {
        assert!(!guarantee(budget).is_empty());
    }
    for warning in policies.warnings() {
        assert!(!warning.to_string().is_empty());
    }
}

fn points_into(rejected: &Rejected, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // An error may be that the text ends, and that is on the line or in the column after.
    // A carriage return breaks a line of YAML, too.
    let broken = || text.split(['\n', '\r']);
    let lines = broken().count() + 1;
    let columns = broken().map(|line| line.chars().count()).max().unwrap_or(0) + 1;
    assert!(!rejected.problems().is_empty());
    for problem in rejected.problems() {
        assert!(!problem.message.is_empty() && !problem.message.contains('\n'), "{problem:?}");
        if let Some(place) = problem.place {
            assert!((1..=lines).contains(&place.line), "{problem:?}");
            assert!((1..=columns).contains(&place.column), "{problem:?}");
        }
    }
    let report = rejected.to_string();
    assert!(report.contains("fuzzed.yaml"));
    let is_harmless = |c: char| c == '\n' || !c.is_control();
    assert!(report.chars().all(is_harmless), "a terminal would obey it: {report:?}");
}

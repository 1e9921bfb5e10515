//! Each counter shows under its own name.
use super::*;
use crate::admin::reloads::ReloadError;
use crate::engine::Rule;

#[test]
fn every_counter_has_the_name_that_it_counts() {
    let metrics = Metrics::new();
    metrics.in_force("old", &["gone"], &["gone"], 1_000);
    let counts = metrics.in_force("new", &["first", "last"], &["paid"], 2_999);
    for (count, rule) in (1..).zip(Rule::ALL) {
        (0..count).for_each(|_| counts.decided(1, rule));
    }
    counts.denied(0);
    metrics.violated("tenant");
    metrics.set_ready(true);
    for (count, reason) in (1..).zip(Refused::ALL) {
        (0..count).for_each(|_| metrics.refused(reason));
    }
    for (count, port) in (1..).zip(Port::ALL) {
        metrics.connections(port).open.set(count);
    }
    metrics.logs.dropped.inc_by(5);
    metrics.set_occupancy(Occupancy { balances: 7, looked_at: 0, evicted: 8, overflowed: 9 });
    let why = || "why".into();
    metrics.reloads.refused(ReloadError { text: why(), brief: why(), unix_ms: 3_000 });
    assert!(
        !metrics.render(Format::OpenMetrics).unwrap().contains("retryd_store_up "),
        "there is no store"
    );
    metrics.set_store(StoreState {
        is_lost: false,
        replicas: 2,
        answered: 3,
        refused: 4,
        unknown: 5,
        losses: 6,
        waiting: 7,
        leased: 8,
    });

    let text = metrics.render(Format::OpenMetrics).unwrap();
    let has = |line: String| assert!(text.lines().any(|has| has == line), "{line}\n{text}");
    for (count, rule) in (1..).zip(Rule::ALL) {
        let verdict = if rule == Rule::Retryable { "RETRY" } else { "DO_NOT_RETRY" };
        let name = rule.name();
        let labels = format!("verdict=\"{verdict}\",reason=\"{name}\",policy=\"last\"");
        has(format!("retryd_decisions_total{{{labels}}} {count}"));
    }
    for (count, reason) in (1..).zip(Refused::ALL) {
        let name = reason.name();
        has(format!("retryd_requests_refused_total{{reason=\"{name}\"}} {count}"));
    }
    for (count, port) in (1..).zip(Port::ALL) {
        has(format!("retryd_connections_open{{port=\"{}\"}} {count}", port.name()));
    }
    has("retryd_budget_denials_total{budget=\"paid\"} 1".to_owned());
    has("retryd_context_violations_total{field=\"tenant\"} 1".to_owned());
    has("retryd_ready 1".to_owned());
    has("retryd_policy_info{revision=\"new\"} 1".to_owned());
    has("retryd_balances 7".to_owned());
    has("retryd_store_up 1".to_owned());
    has("retryd_store_replicas 2".to_owned());
    has("retryd_store_exchanges_total{outcome=\"answered\"} 3".to_owned());
    has("retryd_store_exchanges_total{outcome=\"refused\"} 4".to_owned());
    has("retryd_store_exchanges_total{outcome=\"unknown\"} 5".to_owned());
    has("retryd_store_losses_total 6".to_owned());
    has("retryd_store_balances 7".to_owned());
    has("retryd_store_tokens_leased_total 8".to_owned());
    has("retryd_balances_evicted_total 8".to_owned());
    has("retryd_overflow_uses_total 9".to_owned());
    has("retryd_log_lines_dropped_total 5".to_owned());
    has("retryd_policy_reloads_total{outcome=\"applied\"} 0".to_owned());
    has("retryd_policy_reloads_total{outcome=\"refused\"} 1".to_owned());
    has("retryd_policy_last_reload_successful 0".to_owned());
    has("retryd_policy_last_reload_success_timestamp_seconds 2".to_owned());
    assert!(!text.contains("\"old\"") && !text.contains("\"gone\""), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

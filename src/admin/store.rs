//! What is counted of the shared store. Without one, nothing of it shows.
use std::sync::atomic::Ordering;

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::budget::StoreState;

type NoLabels = [(&'static str, &'static str); 0];
type OneLabel = [(&'static str, &'static str); 1];

/// The metrics of the shared store.
#[derive(Debug)]
pub(super) struct StoreMetrics {
    up: Family<NoLabels, Gauge>,
    replicas: Family<NoLabels, Gauge>,
    balances: Family<NoLabels, Gauge>,
    losses: Family<NoLabels, Counter>,
    leased: Family<NoLabels, Counter>,
    exchanges: Family<OneLabel, Counter>,
}

impl StoreMetrics {
    pub(super) fn register(registry: &mut Registry) -> StoreMetrics {
        let metrics = StoreMetrics {
            up: Family::default(),
            replicas: Family::default(),
            balances: Family::default(),
            losses: Family::default(),
            leased: Family::default(),
            exchanges: Family::default(),
        };
        let StoreMetrics { up, replicas, balances, losses, leased, exchanges } = &metrics;
        registry.register("store_up", "The shared store answers", up.clone());
        registry.register("store_replicas", "Replicas that share, as known here", replicas.clone());
        let help = "Balances that take part in the exchange";
        registry.register("store_balances", help, balances.clone());
        registry.register("store_losses", "Times that the store was lost", losses.clone());
        let help = "Tokens that the pools have leased to this process";
        registry.register("store_tokens_leased", help, leased.clone());
        registry.register("store_exchanges", "Exchanges, by outcome", exchanges.clone());
        metrics
    }

    pub(super) fn set(&self, state: StoreState) {
        let StoreState { is_lost, replicas, answered, refused, unknown, losses, .. } = state;
        let gauge = |family: &Family<NoLabels, Gauge>, value| family.get_or_create(&[]).set(value);
        gauge(&self.up, i64::from(!is_lost));
        gauge(&self.replicas, i64::from(replicas));
        gauge(&self.balances, i64::try_from(state.waiting).unwrap_or(i64::MAX));
        // They only grow, where they are counted.
        let counter = |counter: &Counter, value| counter.inner().store(value, Ordering::Relaxed);
        counter(&self.losses.get_or_create(&[]), losses);
        counter(&self.leased.get_or_create(&[]), state.leased);
        for (outcome, value) in [("answered", answered), ("refused", refused), ("unknown", unknown)]
        {
            counter(&self.exchanges.get_or_create(&[("outcome", outcome)]), value);
        }
    }
}

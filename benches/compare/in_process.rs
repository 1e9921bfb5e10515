//! retryd in this process, as `serve` puts it together, for what is counted and not timed.
use std::{net::SocketAddr, sync::Arc};

use retryd::{
    admin::metrics::Metrics,
    budget::Memory,
    clock::{Clock, Dice},
    decider::Decider,
    policy::Policies,
    server::{Drain, Health, Limits, Listen, Server},
    service::Retryd,
};
use tonic::service::Routes;

/// Serves until the runtime ends.
pub(crate) async fn serve() -> SocketAddr {
    let bound = "127.0.0.1:0".parse::<Listen>().unwrap().bind().await.unwrap();
    let address = bound.local().to_string().parse().unwrap();
    let (policies, metrics) = (Policies::embedded(), Arc::new(Metrics::new()));
    let (store, clock) = (Memory::new(policies.budgets()), Clock::system());
    let decider = Decider::new(policies, store, clock.clone(), Dice::fair(), Arc::clone(&metrics));
    let drain = Drain::new();
    let retryd = Retryd::new(Arc::new(decider), Arc::clone(&metrics), drain.stopping().clone());
    let server = Server {
        listeners: vec![bound],
        probe: None,
        routes: Routes::new(retryd.retry_service()),
        at_once: Some(retryd.decide_at_once()),
        limits: Limits::default(),
        health: Health::new().await,
        metrics,
        clock,
        tls: None,
        traces: None,
    };
    tokio::spawn(server.run(drain));
    address
}

//! A proxy beside each client with Envoy's retry budget.
use super::{Contestant, Entry, Failed, Sent, Succeeded, clients};
use crate::simulate::chance::scaled;

pub(super) const ENTRY: Entry = Entry {
    name: "envoy-budget",
    title: "Envoy retry budget, per proxy",
    source: "Envoy with a retry_budget, retry_on \"5xx,unavailable\" and per_try_timeout, so that timeouts \
             are repeated too; the sizes are its defaults: num_retries 1, base_interval 25ms with full jitter, \
             budget_percent 20 of the active requests, min_retry_concurrency 3 \
             (https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/cluster/v3/circuit_breaker.proto, \
             https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/router_filter).",
    enter: |scenario, _, _| Box::new(Envoy { proxies: vec![Proxy::default(); clients(scenario)] }),
};

const RETRIES_MAX: u32 = 1;
const BASE_US: u64 = 25_000;
const BUDGET_PERCENT: u64 = 20;
const CONCURRENCY_MIN: u64 = 3;

struct Envoy {
    proxies: Vec<Proxy>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Proxy {
    /// Requests that are with the service.
    active: u64,
    /// Retries that wait or are with the service.
    retries: u64,
}

impl Proxy {
    fn can_retry(&self) -> bool {
        self.retries < (self.active * BUDGET_PERCENT / 100).max(CONCURRENCY_MIN)
    }

    /// A request is back.
    fn ends(&mut self, attempts: u32) {
        self.active = self.active.saturating_sub(1);
        if 1 < attempts {
            self.retries = self.retries.saturating_sub(1);
        }
    }
}

impl Contestant for Envoy {
    fn sent(&mut self, sent: &Sent) {
        if let Some(proxy) = self.proxies.get_mut(sent.client) {
            proxy.active += 1;
        }
    }

    fn failed(&mut self, failed: &Failed) -> Option<u64> {
        let proxy = self.proxies.get_mut(failed.client)?;
        // The failed request still counts as active while Envoy looks.
        let is_granted = failed.attempts <= RETRIES_MAX && proxy.can_retry();
        proxy.ends(failed.attempts);
        proxy.retries += u64::from(is_granted);
        is_granted.then(|| scaled(BASE_US, u64::from(failed.draw)))
    }

    fn succeeded(&mut self, succeeded: &Succeeded) {
        if let Some(proxy) = self.proxies.get_mut(succeeded.client) {
            proxy.ends(succeeded.attempts);
        }
    }

    fn cut_short(&mut self, client: usize) {
        if let Some(proxy) = self.proxies.get_mut(client) {
            proxy.retries = proxy.retries.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FAILED, SUCCEEDED};
    use super::*;

    fn with_active(active: u32) -> Envoy {
        let mut envoy = Envoy { proxies: vec![Proxy::default(); 2] };
        (0..active).for_each(|_| envoy.sent(&Sent { client: 0, attempts: 1 }));
        envoy
    }

    fn granted(envoy: &mut Envoy, failures: u32) -> usize {
        (0..failures).filter(|_| envoy.failed(&FAILED).is_some()).count()
    }

    #[test]
    fn a_fifth_of_the_active_requests_may_be_retries_and_three_always() {
        assert_eq!(granted(&mut with_active(10), 10), 3);
        // 5 of the 25 to 20 that are active when the first failures come.
        assert_eq!(granted(&mut with_active(29), 6), 5);
    }

    #[test]
    fn a_retry_counts_until_its_answer_and_is_the_last() {
        let mut envoy = with_active(4);
        assert_eq!(granted(&mut envoy, 4), 3);
        envoy.sent(&Sent { client: 0, attempts: 2 });
        assert_eq!(envoy.failed(&Failed { attempts: 2, ..FAILED }), None);
        assert_eq!(envoy.proxies[0], Proxy { active: 0, retries: 2 });
        envoy.sent(&Sent { client: 0, attempts: 2 });
        envoy.succeeded(&Succeeded { attempts: 2, ..SUCCEEDED });
        envoy.cut_short(0);
        assert_eq!(envoy.proxies, [Proxy::default(); 2]);
    }
}

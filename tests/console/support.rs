//! A console over a service of its own, and what it answers.
use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Request, StatusCode, header::HOST},
};
use retryd::{
    admin::metrics::Metrics,
    budget::{Memory, Sharing},
    clock::{Clock, Dice, Now},
    console::{Console, PolicyFile},
    decider::Decider,
    policy::Policies,
    service::{Retryd, Sizes},
    wire::pb,
};
use tokio_util::sync::CancellationToken;
use tower::Service as _;
use url::form_urlencoded;

/// 1 January 2026.
pub(crate) const START: Now = Now { monotonic_ms: 1_000, unix_ms: 1_767_225_600_000 };

/// Two retries a tenant, and never more: time alone gives nothing to a bucket.
pub(crate) const POLICY: &str = "
version: 1
budgets:
  - {name: per-tenant, scope: tenant, token_bucket: {capacity: 2, costs: {transient: 1, throttling: 1, timeout: 1}}}
policies:
  - name: payments
    match: {operation: \"pay*\"}
    max_attempts: 2
    backoff: {base: 100ms, jitter: none}
    budgets: [per-tenant]
  - name: everything-else
    budgets: [per-tenant]
";

pub(crate) struct Scene {
    pub(crate) retryd: Retryd<Memory>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Clock,
    router: Router,
}

pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        Scene::with(POLICY, None, PolicyFile::default())
    }

    pub(crate) fn with(policy: &str, sharing: Option<Arc<Sharing>>, file: PolicyFile) -> Scene {
        Scene::of_sizes(policy, sharing, file, Sizes::default())
    }

    pub(crate) fn of_sizes(
        policy: &str,
        sharing: Option<Arc<Sharing>>,
        file: PolicyFile,
        sizes: Sizes,
    ) -> Scene {
        let policies = Policies::parse("policy.yaml", policy.as_bytes()).unwrap();
        let (store, metrics) = (Memory::new(policies.budgets()), Arc::new(Metrics::new()));
        let clock = Clock::standing_at(START);
        let decider =
            Decider::new(policies, store, clock.clone(), Dice::fair(), Arc::clone(&metrics));
        let stopping = CancellationToken::new();
        let retryd = Retryd::new(Arc::new(decider), Arc::clone(&metrics), stopping);
        let retryd = retryd.with_sizes(sizes);
        let policy_file = Arc::new(move || file.clone());
        let hosts = vec!["console.internal".to_owned()];
        let router = Console { retryd: retryd.clone(), sharing, policy_file, hosts }.start();
        Scene { retryd, metrics, clock, router }
    }

    pub(crate) async fn get(&self, path: &str) -> Page {
        self.send(Request::get(path).header(HOST, "127.0.0.1:9090").body(Body::empty()).unwrap())
            .await
    }

    /// What the form of the page sends.
    pub(crate) async fn ask(&self, context: &str) -> Page {
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("context", context)
            .finish();
        let request = Request::post("/console/ask").header(HOST, "localhost:9090");
        self.send(request.body(form.into()).unwrap()).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Page {
        let response = self.router.clone().call(request).await.unwrap();
        let (head, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Page { status: head.status, headers: head.headers, text }
    }

    /// An attempt that is repeated as long as the tenant's budget has something.
    pub(crate) fn decide(&self, tenant: &str) -> pb::Verdict {
        let context = pb::RetryContext {
            tenant: tenant.to_owned(),
            operation: "pay".to_owned(),
            attempts_made: 1,
            body_replayable: true,
            failure: Some(pb::Failure {
                category: pb::FailureCategory::Connect.into(),
                status: None,
            }),
            ..Default::default()
        };
        self.retryd.decide(&context).unwrap().verdict()
    }

    /// Later, when a new list of balances is made and the task that takes samples has run.
    pub(crate) async fn later(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

impl Page {
    /// The cells of each row of the tables on it, without markup.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let rows = self.text.split("<tr").skip(1).map(|row| row.split("</tr>").next().unwrap());
        let cells = rows.map(|row| {
            let cells =
                row.split("</t").filter(|cell| cell.contains("<td") || cell.contains("<th"));
            cells.map(plain).collect()
        });
        cells.collect()
    }

    pub(crate) fn has(&self, text: &str) {
        assert!(self.text.contains(text), "no `{text}` in {}", self.text);
    }

    pub(crate) fn has_not(&self, text: &str) {
        assert!(!self.text.contains(text), "`{text}` in {}", self.text);
    }
}

/// The text of one cell, from the last `<td` or `<th` on.
fn plain(cell: &str) -> String {
    let from = cell.rfind("<td").max(cell.rfind("<th")).unwrap();
    let mut text = String::new();
    let mut is_markup = false;
    for c in cell[from..].chars() {
        match c {
            '<' => is_markup = true,
            '>' => is_markup = false,
            _ if is_markup => {}
            c => text.push(c),
        }
    }
    text.trim().to_owned()
}

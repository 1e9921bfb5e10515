//! BudgetService over two replicas: what one spends or gives back, the other shows and grants.
use std::time::Duration;

use retryd::wire::pb::{
    self, AcquireRetriesRequest, GetBudgetRequest, ListBudgetsRequest, ReleaseRetriesRequest,
    WatchBudgetRequest, release_retries_request,
};
use tokio::time::{Instant, sleep, timeout};

use crate::scene::{MACHINE, replicas};
use crate::servers::{Flavour, Server};
use crate::support::{Process, SOON, policy_file};

/// Nothing but a release refills it.
const POLICY: &str = "version: 1
budgets:
  - {name: mine, scope: tenant, token_bucket: {capacity: 60, costs: {transient: 1, throttling: 1, timeout: 1}}}
policies: [{name: all, budgets: [mine]}]
";

async fn shown(process: &Process) -> u32 {
    let asked = GetBudgetRequest { tenant: "a".to_owned(), operation: "op".to_owned() };
    let answer = process.budgets().await.get_budget(asked).await.unwrap().into_inner();
    answer.budgets[0].retries_available
}

/// As often as it takes: a lease comes with the exchange after the question.
async fn acquire(process: &Process, wanted: u32) -> Vec<(String, u32)> {
    let mut client = process.budgets().await;
    let (mut leases, mut missing) = (Vec::new(), wanted);
    let end = Instant::now() + SOON;
    while 0 < missing {
        assert!(Instant::now() < end, "{missing} of {wanted} do not come");
        let (tenant, operation) = ("a".to_owned(), "op".to_owned());
        let asked = AcquireRetriesRequest { tenant, operation, wanted: missing };
        let answer = client.acquire_retries(asked).await.unwrap().into_inner();
        missing -= answer.granted;
        if 0 < answer.granted {
            leases.push((answer.lease, answer.granted));
        }
        sleep(Duration::from_millis(50)).await;
    }
    leases
}

async fn until_shown(process: &Process, expected: impl Fn(u32) -> bool) {
    let end = Instant::now() + SOON;
    loop {
        let shown = shown(process).await;
        if expected(shown) {
            return;
        }
        assert!(Instant::now() < end, "{shown} is shown");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_replica_spends_and_gives_back_the_other_shows_and_grants() {
    let _alone = MACHINE.write().await;
    let server = Server::start(Flavour::Valkey8);
    let url = server.url();
    let both = replicas(&policy_file("replicas-service.yaml", POLICY), &[&url, &url]);
    assert_eq!(shown(&both[1]).await, 60, "nobody has used it");
    // One retry each, so that both take part.
    acquire(&both[1], 1).await;
    // Less than its half, so that it need not wait until the other one is idle.
    let leases = acquire(&both[0], 25).await;
    acquire(&both[1], 1).await;
    // Of 60, 27 are spent, and each replica would grant one more on credit.
    until_shown(&both[1], |shown| shown <= 35).await;

    let watched = WatchBudgetRequest { tenant: "a".to_owned(), operation: "op".to_owned() };
    let mut watch = both[1].budgets().await.watch_budget(watched).await.unwrap().into_inner();
    let first = timeout(SOON, watch.message()).await.unwrap().unwrap().unwrap();
    assert!(first.budgets[0].retries_available <= 35, "{first:?}");

    let mut released = 0;
    for (lease, granted) in leases {
        let request = ReleaseRetriesRequest {
            tenant: "a".to_owned(),
            operation: "op".to_owned(),
            unused: granted,
            grant: Some(release_retries_request::Grant::Lease(lease)),
        };
        let answer = both[0].budgets().await.release_retries(request).await.unwrap();
        released += answer.get_ref().released;
    }
    assert_eq!(released, 25);
    // What the one has given back is all that the other could have.
    acquire(&both[1], 50).await;
    until_shown(&both[1], |shown| shown <= 10).await;
    let list = both[1].budgets().await.list_budgets(ListBudgetsRequest::default()).await.unwrap();
    let rows: Vec<&pb::TenantBudget> = list.get_ref().budgets.iter().collect();
    let [row] = rows[..] else { panic!("{rows:?}") };
    assert_eq!((row.tenant.as_str(), row.budget.as_ref().unwrap().retries_capacity), ("a", 60));
    let told = timeout(SOON, watch.message()).await.unwrap().unwrap().unwrap();
    assert_ne!(told.budgets[0].retries_available, first.budgets[0].retries_available);
}

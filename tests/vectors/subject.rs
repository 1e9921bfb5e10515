//! What is asked: retryd in process, or the built binary over a connection.
use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use retryd::admin::metrics::Metrics;
use retryd::budget::Memory;
use retryd::clock::{Clock, Dice};
use retryd::decider::Decider;
use retryd::policy::Policies;
use retryd::service::Retryd;
use retryd::wire::pb;
use retryd::wire::pb::budget_service_client::BudgetServiceClient;
use retryd::wire::pb::retry_service_client::RetryServiceClient;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

use crate::format::{Policy, Vectors};

/// Whom every call is made to.
pub(crate) enum Subject {
    InProcess { retryd: Box<Retryd<Memory>>, decider: Arc<Decider<Memory>> },
    Remote(Channel),
}

macro_rules! rpc {
    ($name:ident($request:ident) -> $response:ident by $client:ident) => {
        pub(crate) async fn $name(
            &self,
            request: pb::$request,
        ) -> Result<pb::$response, tonic::Status> {
            match self {
                Subject::InProcess { retryd, .. } => Ok(retryd.$name(&request)?),
                Subject::Remote(channel) => {
                    Ok($client::new(channel.clone()).$name(request).await?.into_inner())
                }
            }
        }
    };
}

impl Subject {
    /// A retryd of its own, with full budgets.
    pub(crate) fn in_process(policies: Policies, clock: Clock, dice: Dice) -> Subject {
        let store = Memory::new(policies.budgets());
        let metrics = Arc::<Metrics>::default();
        let decider = Arc::new(Decider::new(policies, store, clock, dice, Arc::clone(&metrics)));
        let retryd = Retryd::new(Arc::clone(&decider), metrics, CancellationToken::new());
        Subject::InProcess { retryd: Box::new(retryd), decider }
    }

    rpc!(decide(RetryContext) -> Decision by RetryServiceClient);
    rpc!(report_usage(ReportUsageRequest) -> ReportUsageResponse by BudgetServiceClient);
    rpc!(acquire_retries(AcquireRetriesRequest) -> AcquireRetriesResponse by BudgetServiceClient);
    rpc!(release_retries(ReleaseRetriesRequest) -> ReleaseRetriesResponse by BudgetServiceClient);
    rpc!(get_budget(GetBudgetRequest) -> GetBudgetResponse by BudgetServiceClient);
    rpc!(list_budgets(ListBudgetsRequest) -> ListBudgetsResponse by BudgetServiceClient);

    pub(crate) fn reload(&self, policies: Policies) {
        match self {
            Subject::InProcess { decider, .. } => decider.reload(policies),
            Subject::Remote(_) => panic!("only a run in process reloads"),
        }
    }
}

/// A policy file of the vectors named `name`, loaded.
pub(crate) fn policies(name: &str, policy: &Policy) -> Policies {
    let loaded = Policies::parse(name, policy.text().as_bytes());
    loaded.unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The built binary, serving one file's policy. It ends with the value.
pub(crate) struct Server {
    child: Child,
    channel: Channel,
}

impl Server {
    pub(crate) async fn start(vectors: &Vectors) -> Server {
        let policy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.yaml", vectors.name));
        fs::write(&policy, vectors.policy().text()).unwrap();
        let (listen, admin) = (free_address(), free_address());
        let mut child = Command::new(env!("CARGO_BIN_EXE_retryd"))
            .args(["serve", "--listen", &listen, "--admin-listen", &admin, "--policy"])
            .arg(&policy)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{listen}")).unwrap();
        for _ in 0..200 {
            if let Ok(channel) = endpoint.connect().await {
                return Server { child, channel };
            }
            if let Some(status) = child.try_wait().unwrap() {
                panic!("{}: `retryd serve` ended with {status}", vectors.name);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        child.kill().unwrap();
        panic!("{}: nobody listens on {listen}", vectors.name);
    }

    pub(crate) fn subject(&self) -> Subject {
        Subject::Remote(self.channel.clone())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A port that was free a moment ago.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

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

use crate::format::Vectors;

/// Answers questions and takes reports.
pub(crate) enum Subject {
    InProcess(Box<Retryd<Memory>>),
    Remote(Channel),
}

impl Subject {
    /// A retryd of its own, with full budgets.
    pub(crate) fn in_process(policies: Policies, clock: Clock, dice: Dice) -> Subject {
        let store = Memory::new(policies.budgets());
        let metrics = Arc::<Metrics>::default();
        let decider = Decider::new(policies, store, clock, dice, Arc::clone(&metrics));
        let retryd = Retryd::new(Arc::new(decider), metrics, CancellationToken::new());
        Subject::InProcess(Box::new(retryd))
    }

    pub(crate) async fn decide(
        &self,
        context: pb::RetryContext,
    ) -> Result<pb::Decision, tonic::Status> {
        match self {
            Subject::InProcess(retryd) => Ok(retryd.decide(&context)?),
            Subject::Remote(channel) => {
                let mut retries = RetryServiceClient::new(channel.clone());
                Ok(retries.decide(context).await?.into_inner())
            }
        }
    }

    /// Sends a report of one entry, and returns what became of it.
    pub(crate) async fn report(
        &self,
        report: pb::ReportUsageRequest,
    ) -> Result<pb::UsageResult, tonic::Status> {
        let mut response = match self {
            Subject::InProcess(retryd) => retryd.report_usage(&report)?,
            Subject::Remote(channel) => {
                let mut budgets = BudgetServiceClient::new(channel.clone());
                budgets.report_usage(report).await?.into_inner()
            }
        };
        assert_eq!(response.results.len(), 1, "one entry, one result");
        Ok(response.results.remove(0))
    }
}

/// The policy file of `vectors`, loaded.
pub(crate) fn policies(vectors: &Vectors) -> Policies {
    let loaded = Policies::parse(&vectors.name, vectors.policy().as_bytes());
    loaded.unwrap_or_else(|error| panic!("{}: {error}", vectors.name))
}

/// The built binary, serving one file's policy. It ends with the value.
pub(crate) struct Server {
    child: Child,
    channel: Channel,
}

impl Server {
    pub(crate) async fn start(vectors: &Vectors) -> Server {
        let policy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.yaml", vectors.name));
        fs::write(&policy, vectors.policy()).unwrap();
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

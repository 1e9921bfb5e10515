//! `retryd healthcheck`: for containers without a shell.
use std::time::Duration;

use clap::Args;
use tonic::transport::Endpoint;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::{FINE, NO};

#[derive(Debug, Args)]
pub(super) struct Healthcheck {
    /// The server: HOST:PORT or unix:PATH
    #[arg(default_value = "127.0.0.1:50051")]
    address: String,
    /// The service to ask for; empty for the server as a whole
    #[arg(long, default_value = "")]
    service: String,
    /// How many milliseconds to wait for the answer
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    timeout_ms: u64,
}

impl Healthcheck {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let uri = if self.address.starts_with("unix:") {
            self.address.clone()
        } else {
            format!("http://{}", self.address)
        };
        let endpoint = Endpoint::from_shared(uri)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let timeout = Duration::from_millis(self.timeout_ms);
        let ask = async { tokio::time::timeout(timeout, self.ask(endpoint)).await };
        let answer = runtime.block_on(ask);
        match answer {
            Ok(Ok(ServingStatus::Serving)) => Ok(FINE),
            Ok(Ok(status)) => Ok(self.no(status.as_str_name())),
            Ok(Err(status)) => Ok(self.no(status.message())),
            Err(_) => Ok(self.no("no answer in time")),
        }
    }

    async fn ask(&self, endpoint: Endpoint) -> Result<ServingStatus, tonic::Status> {
        let connect = endpoint.connect().await;
        let channel = connect.map_err(|error| {
            // By itself it says "transport error"; what lies beneath says why.
            tonic::Status::unavailable(anyhow::Error::from(error).root_cause().to_string())
        })?;
        let question = HealthCheckRequest { service: self.service.clone() };
        let answer = HealthClient::new(channel).check(question).await?;
        Ok(answer.get_ref().status())
    }

    fn no(&self, why: &str) -> u8 {
        super::complain(&format_args!("{}: not serving: {why}", self.address));
        NO
    }
}

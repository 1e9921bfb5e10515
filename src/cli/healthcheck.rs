//! `retryd healthcheck`: for containers without a shell.
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
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
    /// Ask over TLS, and trust these authorities, in PEM; the port for probes needs none of it
    #[arg(long, value_name = "FILE")]
    tls_ca_file: Option<PathBuf>,
    /// A certificate to show to the server, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key_file", requires = "tls_ca_file")]
    tls_cert_file: Option<PathBuf>,
    /// The private key of that certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_key_file: Option<PathBuf>,
    /// The name in the server's certificate, if it is not the host that is asked
    #[arg(long, value_name = "NAME", requires = "tls_ca_file")]
    tls_server_name: Option<String>,
}

impl Healthcheck {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let endpoint = self.endpoint()?;
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

    fn endpoint(&self) -> anyhow::Result<Endpoint> {
        let address = &self.address;
        let tls = self.tls()?;
        let uri = match &tls {
            _ if address.starts_with("unix:") => address.clone(),
            Some(_) => format!("https://{address}"),
            None => format!("http://{address}"),
        };
        let endpoint = Endpoint::from_shared(uri)?;
        Ok(match tls {
            Some(tls) => endpoint.tls_config(tls)?,
            None => endpoint,
        })
    }

    fn tls(&self) -> anyhow::Result<Option<ClientTlsConfig>> {
        let Some(authorities) = &self.tls_ca_file else { return Ok(None) };
        let mut tls =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(authorities)?));
        if let (Some(cert), Some(key)) = (&self.tls_cert_file, &self.tls_key_file) {
            tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?));
        }
        if let Some(name) = &self.tls_server_name {
            tls = tls.domain_name(name);
        }
        Ok(Some(tls))
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

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))
}

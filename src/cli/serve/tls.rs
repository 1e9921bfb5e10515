//! The options of TLS.
use std::path::PathBuf;

use clap::Args;

use crate::admin::metrics::Metrics;
use crate::clock::Clock;
use crate::server::{Listen, Tls, TlsFiles};

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Serve calls over TLS: the server's certificate in PEM, with those between it and its
    /// authority. This file and the next two are read again when they change
    #[arg(long, env = "RETRYD_TLS_CERT_FILE", value_name = "FILE", requires = "tls_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// The private key of the server's certificate, in PEM
    #[arg(long, env = "RETRYD_TLS_KEY_FILE", value_name = "FILE", requires = "tls_cert_file")]
    tls_key_file: Option<PathBuf>,
    /// Refuse callers without a certificate of one of these authorities, in PEM; needs `callers` in
    /// the policy file
    #[arg(long, env = "RETRYD_TLS_CLIENT_CA_FILE", value_name = "FILE")]
    #[arg(requires = "tls_cert_file")]
    tls_client_ca_file: Option<PathBuf>,
}

impl Options {
    /// Whoever can reach the port may spend every tenant's budget.
    pub(super) fn refuse_open_plaintext(
        &self,
        listen: &[Listen],
        insecure: bool,
    ) -> anyhow::Result<()> {
        let open = listen.iter().filter(|address| !address.is_loopback());
        let open: Vec<String> = open.map(|address| format!("`{address}`")).collect();
        anyhow::ensure!(
            insecure || self.files().is_some() || open.is_empty(),
            "{} is not loopback, and would be served in plaintext: pass `--tls-cert-file` and \
             `--tls-key-file`, or `--insecure` if the network may be trusted",
            open.join(", ")
        );
        Ok(())
    }

    /// Whether callers must show a certificate.
    pub(super) fn is_mutual(&self) -> bool {
        self.files().is_some_and(|files| files.client_ca.is_some())
    }

    /// Reads the files, and goes on reading them.
    pub(super) fn load(&self, metrics: &Metrics, clock: &Clock) -> anyhow::Result<Option<Tls>> {
        let Some(files) = self.files() else { return Ok(None) };
        let tls = Tls::load(files, metrics.tls().clone(), clock.clone())?;
        tokio::spawn(tls.clone().watch());
        Ok(Some(tls))
    }

    /// Says what callers have to prove.
    pub(super) fn tell(&self) {
        if self.is_mutual() {
            tracing::info!("client certificates: `callers` says who may ask for which tenants");
        } else {
            tracing::warn!("no client certificates: every caller may ask for every tenant");
        }
    }

    fn files(&self) -> Option<TlsFiles> {
        let (cert, key) = (self.tls_cert_file.clone()?, self.tls_key_file.clone()?);
        Some(TlsFiles { cert, key, client_ca: self.tls_client_ca_file.clone() })
    }
}

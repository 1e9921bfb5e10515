//! Certificates as openssl makes them, and clients that go by them.
use std::{fs, process::Command};

use retryd::wire::pb::{
    budget_service_client::BudgetServiceClient, retry_service_client::RetryServiceClient,
};
use tempfile::TempDir;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Error, Identity};

use crate::support::Process;

/// A folder with `ca`, an authority, `server`, a certificate of it for 127.0.0.1, and what a test adds:
/// each as `NAME.pem` and `NAME.key`.
pub(crate) struct Certificates {
    folder: TempDir,
}

/// For `openssl ca`, the only command of its version that makes a certificate of the past.
const CA_CONF: &str =
    "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nnew_certs_dir=.\nrand_serial=yes
default_md=sha256\npolicy=p\ncopy_extensions=copy\nunique_subject=no\n[p]\ncommonName=supplied\n";

impl Certificates {
    pub(crate) fn make() -> Certificates {
        let certificates = Certificates { folder: tempfile::tempdir().unwrap() };
        certificates.authority("ca");
        certificates.sign("server", "ca", "subjectAltName=IP:127.0.0.1");
        certificates
    }

    pub(crate) fn authority(&self, name: &str) {
        self.request(name, &["-x509", "-days", "30", "-out", &format!("{name}.pem")]);
    }

    /// A certificate with an extension such as `subjectAltName=DNS:x`, and its own name as common name.
    pub(crate) fn sign(&self, name: &str, authority: &str, extension: &str) {
        let [pem, ca, ca_key] =
            [format!("{name}.pem"), format!("{authority}.pem"), format!("{authority}.key")];
        let not_ca = "basicConstraints=CA:FALSE";
        let more = ["-x509", "-days", "30", "-out", &pem, "-CA", &ca, "-CAkey", &ca_key];
        let extensions = ["-addext", not_ca, "-addext", extension];
        self.request(name, &[&more[..], &extensions].concat());
    }

    /// The same, good for a month of the year 2020.
    pub(crate) fn sign_expired(&self, name: &str, extension: &str) {
        let [pem, csr] = [format!("{name}.pem"), format!("{name}.csr")];
        self.request(name, &["-new", "-out", &csr, "-addext", extension]);
        fs::write(self.folder.path().join("ca.conf"), CA_CONF).unwrap();
        fs::write(self.folder.path().join("index.txt"), "").unwrap();
        let month = ["-startdate", "20200101000000Z", "-enddate", "20200201000000Z"];
        let files = ["-config", "ca.conf", "-in", &csr, "-out", &pem];
        let authority = ["-cert", "ca.pem", "-keyfile", "ca.key", "-batch", "-notext"];
        self.openssl(&[&["ca"][..], &files, &authority, &month].concat());
    }

    fn request(&self, name: &str, more: &[&str]) {
        let (subject, key) = (format!("/CN={name}"), format!("{name}.key"));
        let new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        let named = ["-subj", &subject, "-keyout", &key];
        self.openssl(&[&["req"][..], &new, &named, more].concat());
    }

    fn openssl(&self, arguments: &[&str]) {
        let output =
            Command::new("openssl").args(arguments).current_dir(self.folder.path()).output();
        let output = output.expect("openssl; `tests/run tools` installs it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn path(&self, file: &str) -> String {
        self.folder.path().join(file).to_str().unwrap().to_owned()
    }

    pub(crate) fn read(&self, file: &str) -> Vec<u8> {
        fs::read(self.path(file)).unwrap()
    }

    /// TLS, without a word on callers.
    pub(crate) fn tls(&self) -> Vec<String> {
        let [cert, key] = [self.path("server.pem"), self.path("server.key")];
        ["--tls-cert-file", &cert, "--tls-key-file", &key].map(str::to_owned).to_vec()
    }

    /// TLS, with callers that must show a certificate of the authority's.
    pub(crate) fn mutual(&self) -> Vec<String> {
        [self.tls(), vec!["--tls-client-ca-file".to_owned(), self.path("ca.pem")]].concat()
    }

    pub(crate) fn start(&self, policy: &str) -> Process {
        self.start_with(policy, &[])
    }

    pub(crate) fn start_with(&self, policy: &str, more: &[&str]) -> Process {
        let mutual = self.mutual();
        let mutual = mutual.iter().map(String::as_str).chain(["--policy", policy]);
        Process::start(&mutual.chain(more.iter().copied()).collect::<Vec<_>>())
    }

    /// What a client trusts, and the certificate that it shows.
    pub(crate) fn client(&self, authorities: &[&str], shown: Option<&str>) -> ClientTlsConfig {
        let trusted = authorities.iter().flat_map(|name| self.read(&format!("{name}.pem")));
        let trusted = Certificate::from_pem(trusted.collect::<Vec<_>>());
        let config = ClientTlsConfig::new().ca_certificate(trusted);
        match shown {
            Some(name) => config.identity(Identity::from_pem(
                self.read(&format!("{name}.pem")),
                self.read(&format!("{name}.key")),
            )),
            None => config,
        }
    }

    /// A caller with the certificate of that name.
    pub(crate) async fn caller(&self, process: &Process, name: &str) -> Caller {
        Caller(connect(process, self.client(&["ca"], Some(name))).await.unwrap())
    }
}

pub(crate) async fn connect(process: &Process, config: ClientTlsConfig) -> Result<Channel, Error> {
    let address = format!("https://{}", process.calls);
    Endpoint::from_shared(address).unwrap().tls_config(config).unwrap().connect().await
}

/// One connection of a caller.
pub(crate) struct Caller(Channel);

impl Caller {
    pub(crate) fn decisions(&self) -> RetryServiceClient<Channel> {
        RetryServiceClient::new(self.0.clone())
    }

    pub(crate) fn budgets(&self) -> BudgetServiceClient<Channel> {
        BudgetServiceClient::new(self.0.clone())
    }
}

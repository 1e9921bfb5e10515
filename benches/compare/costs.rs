//! What can be on or off in retryd, and what it takes to have it on.
use std::{
    future::Future,
    net::SocketAddr,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use retryd::wire::pb;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};
use tokio_rustls::TlsConnector;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

use crate::{
    client::{Client, Load, Socket},
    process::{Cores, Extra, Kind, Process},
};

/// As often as the most eager of scrapers.
const SCRAPES_EVERY: Duration = Duration::from_secs(1);
const SHARE: &str = "0.01";

/// What is there for all servers of the scenario, until it ends.
pub(crate) struct Around {
    folder: TempDir,
    collector: Process,
}

impl Around {
    /// A collector of traces on the client's core, and certificates for 127.0.0.1.
    pub(crate) fn start() -> Around {
        let folder = tempfile::tempdir().unwrap();
        let collector = Process::start(Kind::Collector, Cores::Clients);
        let around = Around { folder, collector };
        let new =
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30";
        around.shell(&format!("{new} -subj /CN=ca -keyout ca.key -out ca.pem"));
        around.shell(&format!(
            "{new} -subj /CN=server -keyout server.key -out server.pem -CA ca.pem -CAkey ca.key \
             -addext basicConstraints=CA:FALSE -addext subjectAltName=IP:127.0.0.1"
        ));
        around
    }

    fn shell(&self, line: &str) {
        let done = Command::new("sh").args(["-c", line]).current_dir(&self.folder).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Puts it on.
    pub(crate) fn set(&self, extra: Extra, command: &mut Command) {
        let file = |name: &str| self.folder.path().join(name);
        match extra {
            Extra::Scrapes => {}
            Extra::DecisionLog => {
                command.arg("--decision-log").arg(file("decisions.jsonl"));
                command.args(["--decision-log-sample", SHARE]);
            }
            Extra::Tls => {
                command.arg("--tls-cert-file").arg(file("server.pem"));
                command.arg("--tls-key-file").arg(file("server.key"));
            }
            Extra::NoTraces | Extra::Traces => {
                let share = if extra == Extra::Traces { SHARE } else { "0" };
                let endpoint = format!("http://{}", self.collector.address);
                command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
                command.env("OTEL_TRACES_SAMPLER", "parentbased_traceidratio");
                command.env("OTEL_TRACES_SAMPLER_ARG", share);
            }
        }
    }

    /// Whether it did something: otherwise its row would tell of nothing.
    pub(crate) async fn check(&self, extra: Extra, process: &Process) {
        let counter = match extra {
            Extra::Scrapes | Extra::Tls | Extra::NoTraces => return,
            Extra::DecisionLog => "retryd_decision_log_lines_total{outcome=\"written\"} ",
            Extra::Traces => "retryd_spans_total{outcome=\"exported\"} ",
        };
        let shown = scrape(process.admin.unwrap()).await;
        let count = shown.lines().find_map(|line| line.strip_prefix(counter));
        assert!(count.is_some_and(|count| count != "0"), "nothing by {counter}: {shown}");
    }

    /// A client over TLS, whose first answer was right.
    pub(crate) async fn client(
        &self,
        to: SocketAddr,
        load: Load,
        questions: &[pb::RetryContext],
    ) -> Client {
        let pem = std::fs::read(self.folder.path().join("ca.pem")).unwrap();
        crate::process::check(channel(to, &pem).await).await;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
        let mut config =
            ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        let mut sockets: Vec<Socket> = Vec::new();
        for _ in 0..load.connections {
            let socket = TcpStream::connect(to).await.unwrap();
            socket.set_nodelay(true).unwrap();
            let name = ServerName::try_from("127.0.0.1").unwrap();
            sockets.push(Box::new(connector.connect(name, socket).await.unwrap()));
        }
        Client::over(sockets, load.in_flight, false, questions).await
    }
}

async fn channel(to: SocketAddr, authority: &[u8]) -> Channel {
    let trust = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority));
    let endpoint = Endpoint::from_shared(format!("https://{to}")).unwrap();
    endpoint.tls_config(trust).unwrap().connect().await.unwrap()
}

/// Scrapes the metrics of one server, by the time that it has been under load: rounds are not whole seconds.
pub(crate) struct Scraper {
    admin: SocketAddr,
    left: Duration,
}

impl Scraper {
    pub(crate) fn of(process: &Process) -> Scraper {
        Scraper { admin: process.admin.unwrap(), left: SCRAPES_EVERY }
    }

    pub(crate) async fn during<T>(&mut self, load: impl Future<Output = T>) -> T {
        tokio::pin!(load);
        let mut scrapes: Vec<JoinHandle<String>> = Vec::new();
        let made = loop {
            let begun = Instant::now();
            tokio::select! {
                made = &mut load => {
                    self.left = self.left.saturating_sub(begun.elapsed());
                    break made;
                }
                () = tokio::time::sleep(self.left) => {
                    // Beside the load, which must not wait for it.
                    scrapes.push(tokio::spawn(scrape(self.admin)));
                    self.left = SCRAPES_EVERY;
                }
            }
        };
        for scrape in scrapes {
            scrape.await.unwrap();
        }
        made
    }
}

async fn scrape(admin: SocketAddr) -> String {
    let mut socket = TcpStream::connect(admin).await.unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    let text = String::from_utf8(answer).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("# EOF\n"), "{text}");
    text
}

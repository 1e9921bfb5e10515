//! TLS of the built binary: who gets in, what is counted of the others, and files that change.
use std::{
    fs,
    os::unix::fs::symlink,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use retryd::wire::pb::{Verdict, retry_service_client::RetryServiceClient};
use rustls::{
    ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    version::{TLS12, TLS13},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::{Code, transport::Endpoint};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::{
    certificates::{Certificates, connect},
    support::{DECIDE, Process, SOON, call, context, encoded, grpc, policy_file},
};

const CALLERS: &str = "version: 1
policies: [{name: all}]
callers: [{identity: 'spiffe://prod.example/*', tenants: ['*']}]
";

const OWN_NAME: &str = "subjectAltName=URI:spiffe://prod.example/ns/shop";

fn failed(cause: &str) -> String {
    format!("retryd_tls_handshakes_failed_total{{cause=\"{cause}\"}}")
}

/// How the process ends that cannot start, and what it says.
fn refused_start(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_retryd"))
        .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
        .args(arguments)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn borrowed(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

async fn decides(process: &Process, certificates: &Certificates, shown: Option<&str>) -> bool {
    // With TLS 1.3 a client may be refused after its handshake.
    let Ok(channel) = connect(process, certificates.client(&["ca"], shown)).await else {
        return false;
    };
    let answer = RetryServiceClient::new(channel).decide(context("t")).await;
    answer.is_ok_and(|answer| answer.get_ref().verdict() == Verdict::Retry)
}

#[tokio::test]
async fn only_a_good_certificate_of_the_right_authority_gets_in() {
    let certificates = Certificates::make();
    certificates.authority("elsewhere");
    certificates.sign("good", "ca", OWN_NAME);
    certificates.sign("foreign", "elsewhere", OWN_NAME);
    certificates.sign_expired("old", OWN_NAME);
    let process = certificates.start(&policy_file("tls-mutual.yaml", CALLERS));
    for (shown, gets_in, cause) in [
        (Some("good"), true, None),
        (None, false, Some("no_certificate")),
        (Some("foreign"), false, Some("untrusted_certificate")),
        (Some("old"), false, Some("expired_certificate")),
    ] {
        assert_eq!(decides(&process, &certificates, shown).await, gets_in, "{shown:?}");
        if let Some(cause) = cause {
            process.metric_reaches(&failed(cause), 1).await;
        }
    }
    // A client that does not trust the server.
    let stranger = certificates.client(&["elsewhere"], Some("good"));
    assert!(connect(&process, stranger).await.is_err());
    process.metric_reaches(&failed("refused_by_client"), 1).await;
    assert!(decides(&process, &certificates, Some("good")).await);
}

#[tokio::test]
async fn plaintext_is_closed_on_a_port_with_tls_and_served_on_the_port_for_probes() {
    let certificates = Certificates::make();
    let socket = certificates.path("retryd.sock");
    let listen = format!("unix:{socket}");
    let tls = certificates.tls();
    let more = ["--probe-listen", "127.0.0.1:0", "--listen", &listen];
    let process = Process::start(&[&borrowed(&tls)[..], &more].concat());
    process.logged("no client certificates: every caller may ask for every tenant");
    assert!(decides(&process, &certificates, None).await);

    let plaintext = RetryServiceClient::connect(format!("http://{}", process.calls)).await;
    if let Ok(mut client) = plaintext {
        client.decide(context("t")).await.unwrap_err();
    }
    let mut unix = UnixStream::connect(&socket).await.unwrap();
    unix.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut answer = Vec::new();
    timeout(SOON, unix.read_to_end(&mut answer)).await.expect("it is closed").ok();
    assert!(!answer.windows(4).any(|bytes| bytes == [0, 0, 0, 4]), "no SETTINGS: {answer:?}");
    process.metric_reaches(&failed("not_tls"), 2).await;
    let refused = "retryd_connections_refused_total{port=\"calls\",cause=\"handshake\"}";
    process.metric_reaches(refused, 2).await;

    let probe = format!("http://{}", process.probe.unwrap());
    let probe = Endpoint::from_shared(probe).unwrap().connect().await.unwrap();
    HealthClient::new(probe).check(HealthCheckRequest::default()).await.unwrap();
}

async fn handshake(
    process: &Process,
    certificates: &Certificates,
    version: &'static SupportedProtocolVersion,
    alpn: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&certificates.read("ca.pem")).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(&[version]).unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let socket = TcpStream::connect(process.calls).await.unwrap();
    let server = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(config)).connect(server, socket).await
}

#[tokio::test]
async fn both_versions_are_spoken_and_only_http2() {
    let certificates = Certificates::make();
    let process = Process::start(&borrowed(&certificates.tls()));
    for (version, expected) in
        [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)]
    {
        let tls = handshake(&process, &certificates, version, &["http/1.1", "h2"]).await.unwrap();
        let (_, session) = tls.get_ref();
        assert_eq!(session.protocol_version(), Some(expected));
        assert_eq!(session.alpn_protocol(), Some(&b"h2"[..]));
        let (mut send, connection) = h2::client::handshake(tls).await.unwrap();
        tokio::spawn(connection);
        let ending = call(&mut send, grpc(DECIDE), encoded(&context("t"))).await.unwrap();
        assert_eq!(ending.code, Some(Code::Ok));
    }
    let http1 = handshake(&process, &certificates, &TLS13, &["http/1.1"]).await;
    assert!(http1.is_err());
    process.metric_is(&failed("incompatible"), 1).await;
}

#[tokio::test]
async fn whoever_is_silent_is_cut_in_time() {
    let certificates = Certificates::make();
    let process = Process::start(&borrowed(&certificates.tls()));
    // Nothing at all, the head of a record, and a whole handshake with nothing behind it.
    let silent = TcpStream::connect(process.calls).await.unwrap();
    let mut slow = TcpStream::connect(process.calls).await.unwrap();
    slow.write_all(b"\x16\x03\x01\x01\x00\x01").await.unwrap();
    let greeted = handshake(&process, &certificates, &TLS13, &["h2"]).await.unwrap();
    let closed = async |mut socket: Box<dyn tokio::io::AsyncRead + Unpin>| {
        timeout(SOON, socket.read_to_end(&mut Vec::new())).await.expect("it is cut").ok();
    };
    closed(Box::new(silent)).await;
    closed(Box::new(slow)).await;
    closed(Box::new(greeted)).await;
    process.metric_is(&failed("too_slow"), 2).await;
    let refused = "retryd_connections_refused_total{port=\"calls\",cause=\"handshake\"}";
    process.metric_is(refused, 3).await;
    // Whoever goes away is no trouble.
    drop(TcpStream::connect(process.calls).await.unwrap());
    process.metric_reaches(&failed("closed"), 1).await;
    assert!(decides(&process, &certificates, None).await);
}

/// The files stand as kubelet projects a Secret: behind a link to a folder, which is swapped.
#[tokio::test]
async fn a_changed_certificate_takes_hold_and_fails_no_call() {
    let certificates = Certificates::make();
    certificates.authority("later");
    certificates.sign("successor", "later", "subjectAltName=IP:127.0.0.1");
    let files = tempfile::tempdir().unwrap();
    let in_files = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
    let put = |folder: &str, cert: &[u8], key: &[u8]| {
        fs::create_dir(in_files(folder)).unwrap();
        fs::write(in_files(&format!("{folder}/tls.crt")), cert).unwrap();
        fs::write(in_files(&format!("{folder}/tls.key")), key).unwrap();
        symlink(folder, in_files("..data_tmp")).unwrap();
        fs::rename(in_files("..data_tmp"), in_files("..data")).unwrap();
    };
    put("..1", &certificates.read("server.pem"), &certificates.read("server.key"));
    for name in ["tls.crt", "tls.key"] {
        symlink(format!("..data/{name}"), in_files(name)).unwrap();
    }
    let (cert, key) = (in_files("tls.crt"), in_files("tls.key"));
    let process = Process::start(&["--tls-cert-file", &cert, "--tls-key-file", &key]);

    // One connection that stays, and new ones all the time.
    let end = Arc::new(AtomicBool::new(false));
    let trusted = certificates.client(&["ca", "later"], None);
    let open = connect(&process, trusted.clone()).await.unwrap();
    let calls = async {
        let mut calls = 0;
        while !end.load(Ordering::Relaxed) {
            let new = connect(&process, trusted.clone()).await.unwrap();
            for channel in [open.clone(), new] {
                RetryServiceClient::new(channel).decide(context("t")).await.unwrap();
                calls += 1;
            }
        }
        calls
    };
    let changes = async {
        // Half of it: what is refused changes nothing.
        put("..2", &certificates.read("successor.pem"), &certificates.read("server.key"));
        process.metric_reaches("retryd_tls_reloads_total{outcome=\"refused\"}", 1).await;
        assert!(process.logged("the last ones stay").contains("it is not the key of"));
        connect(&process, certificates.client(&["ca"], None)).await.unwrap();
        fs::remove_file(in_files("..data")).unwrap();
        process.metric_reaches("retryd_tls_reloads_total{outcome=\"refused\"}", 2).await;
        put("..3", &certificates.read("successor.pem"), &certificates.read("successor.key"));
        process.metric_reaches("retryd_tls_reloads_total{outcome=\"applied\"}", 1).await;
        connect(&process, certificates.client(&["later"], None)).await.unwrap();
        assert!(connect(&process, certificates.client(&["ca"], None)).await.is_err());
        end.store(true, Ordering::Relaxed);
    };
    let (calls, ()) = tokio::join!(calls, changes);
    assert!(100 <= calls, "{calls}");
    process.metric_is("retryd_tls_reloads_total{outcome=\"refused\"}", 2).await;
}

/// Also those of callers: what was trusted is so no longer for connections that begin later.
#[tokio::test]
async fn other_authorities_of_callers_take_hold() {
    let certificates = Certificates::make();
    certificates.authority("callers");
    certificates.sign("before", "ca", OWN_NAME);
    certificates.sign("after", "callers", OWN_NAME);
    let policy = policy_file("tls-authorities.yaml", CALLERS);
    fs::copy(certificates.path("ca.pem"), certificates.path("trusted.pem")).unwrap();
    let (tls, trusted) = (certificates.tls(), certificates.path("trusted.pem"));
    let mutual = ["--tls-client-ca-file", &trusted, "--policy", &policy];
    let process = Process::start(&[&borrowed(&tls)[..], &mutual].concat());
    for (trusted, good, bad) in [("ca", "before", "after"), ("callers", "after", "before")] {
        fs::write(certificates.path("trusted.pem"), certificates.read(&format!("{trusted}.pem")))
            .unwrap();
        let applied = u64::from(trusted == "callers");
        process.metric_reaches("retryd_tls_reloads_total{outcome=\"applied\"}", applied).await;
        assert!(decides(&process, &certificates, Some(good)).await, "{good}");
        assert!(!decides(&process, &certificates, Some(bad)).await, "{bad}");
    }
}

#[test]
fn what_cannot_be_served_is_told_with_its_file() {
    let certificates = Certificates::make();
    certificates.sign("other", "ca", "subjectAltName=IP:127.0.0.1");
    fs::write(certificates.path("empty.pem"), "").unwrap();
    fs::write(certificates.path("broken.pem"), "-----BEGIN CERTIFICATE-----\n%\n").unwrap();
    let file = |name: &str| certificates.path(name);
    for (cert, key, named, told) in [
        ("missing.pem", "server.key", "missing.pem", "it cannot be read"),
        ("empty.pem", "server.key", "empty.pem", "there is no certificate in it"),
        ("server.key", "server.key", "server.key", "there is no certificate in it"),
        ("broken.pem", "server.key", "broken.pem", "it is no PEM file"),
        ("server.pem", "server.pem", "server.pem", "there is no private key in it"),
        ("server.pem", "other.key", "other.key", "it is not the key of the certificate in"),
    ] {
        let (cert, key) = (file(cert), file(key));
        let (code, said) = refused_start(&["--tls-cert-file", &cert, "--tls-key-file", &key]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(&format!("`{}`: {told}", file(named))), "{said}");
    }
    let (tls, empty) = (certificates.tls(), file("empty.pem"));
    let callers = policy_file("tls-refused.yaml", CALLERS);
    let mutual = ["--tls-client-ca-file", &empty, "--policy", &callers];
    let (code, said) = refused_start(&[&borrowed(&tls)[..], &mutual].concat());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&format!("`{empty}`: there is no certificate in it")), "{said}");
    // One without the other.
    for half in [&tls[..2], &tls[2..]] {
        assert_eq!(refused_start(&borrowed(half)).0, Some(2));
    }
}

/// Nothing may look like a protection that is none.
#[test]
fn callers_and_client_certificates_go_together() {
    let certificates = Certificates::make();
    let (tls, mutual) = (certificates.tls(), certificates.mutual());
    let with_callers = policy_file("tls-callers.yaml", CALLERS);
    let operators = CALLERS.replace("callers: [{identity: 'spiffe", "operators: ['spiffe");
    let operators = operators.replace(", tenants: ['*']}]", "]");
    let operators = policy_file("tls-operators.yaml", &operators);
    for (options, policy, told) in [
        (&[][..], Some(&with_callers), "nobody proves who they are"),
        (&tls[..], Some(&with_callers), "nobody proves who they are"),
        (&tls[..], Some(&operators), "nobody proves who they are"),
        (&mutual[..], Some(&operators), "has no `callers`"),
        (&mutual[..], None, "has no `callers`"),
    ] {
        let policy = policy.map(|path| ["--policy", path]);
        let policy = policy.iter().flatten().copied();
        let arguments: Vec<&str> = borrowed(options).into_iter().chain(policy).collect();
        let (code, said) = refused_start(&arguments);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(told), "{said}");
    }
}

#[tokio::test]
async fn an_expired_certificate_is_served_and_warned_about() {
    let certificates = Certificates::make();
    certificates.sign_expired("old", "subjectAltName=IP:127.0.0.1");
    let (cert, key) = (certificates.path("old.pem"), certificates.path("old.key"));
    let process = Process::start(&["--tls-cert-file", &cert, "--tls-key-file", &key]);
    process.logged("the server's certificate has expired");
    // 2020-02-01T00:00:00Z
    let expiry = process.metric("retryd_tls_certificate_expiry_timestamp_seconds").await;
    assert_eq!(expiry, 1_580_515_200);
}

#[tokio::test]
async fn tls_is_enough_to_listen_everywhere() {
    let certificates = Certificates::make();
    let tls = certificates.tls();
    let process = Process::start(&[&borrowed(&tls)[..], &["--listen", "0.0.0.0:0"]].concat());
    process.logged("0.0.0.0:");
    process.logged("ready");
}

fn healthcheck(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_retryd"))
        .arg("healthcheck")
        .args(arguments)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test]
async fn healthcheck_asks_over_tls() {
    let certificates = Certificates::make();
    certificates.authority("elsewhere");
    certificates.sign("prober", "ca", "subjectAltName=DNS:prober");
    let process = certificates
        .start_with(&policy_file("tls-health.yaml", CALLERS), &["--probe-listen", "127.0.0.1:0"]);
    let file = |name: &str| certificates.path(name);
    let (calls, probe) = (process.calls.to_string(), process.probe.unwrap().to_string());
    let [ca, elsewhere, cert, key] =
        ["ca.pem", "elsewhere.pem", "prober.pem", "prober.key"].map(file);
    let shown = ["--tls-cert-file", &cert, "--tls-key-file", &key];
    let by = |authority| [&[&*calls, "--tls-ca-file", authority][..], &shown].concat();
    assert_eq!(healthcheck(&[&probe]).0, Some(0));
    assert_eq!(healthcheck(&by(&ca)).0, Some(0));
    assert_eq!(healthcheck(&by(&elsewhere)).0, Some(1));
    let other_name = [&by(&ca)[..], &["--tls-server-name", "retryd.example"]].concat();
    assert_eq!(healthcheck(&other_name).0, Some(1));
    assert_eq!(healthcheck(&[&calls, "--tls-ca-file", &ca]).0, Some(1), "without a certificate");
    assert_eq!(healthcheck(&[&calls]).0, Some(1), "in plaintext");
    assert_eq!(healthcheck(&[&calls, "--tls-ca-file", "/missing"]).0, Some(2));
    assert_eq!(healthcheck(&["unix:/x", "--tls-ca-file", &ca]).0, Some(2));
}

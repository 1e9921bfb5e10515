//! The testbed: started once, and ended with the tests by the end of its standard input.
use std::{
    collections::HashMap,
    env, fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// What it tells about itself.
#[derive(Deserialize)]
pub(crate) struct Testbed {
    control: String,
    pub(crate) retryd: HashMap<String, String>,
    pub(crate) grpc: HashMap<String, String>,
    pub(crate) http: HashMap<String, String>,
}

/// What was seen of a run.
#[derive(Debug, Deserialize)]
pub(crate) struct Play {
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) questions: Vec<Question>,
    pub(crate) releases: Vec<Value>,
    pub(crate) usage: Value,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Arrival {
    pub(crate) at_ms: f64,
    pub(crate) headers: HashMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Question {
    pub(crate) context: Value,
    #[serde(default)]
    pub(crate) decision: Value,
}

impl Testbed {
    pub(crate) fn get() -> &'static Testbed {
        static STARTED: OnceLock<(Testbed, Child)> = OnceLock::new();
        let (testbed, _child) = STARTED.get_or_init(start);
        testbed
    }

    pub(crate) async fn play(&self, name: &str) -> Play {
        let (status, text) = self.ask("GET", &format!("/plays/{name}"), String::new()).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// A retryd of its own, with this policy file. Tells its address.
    pub(crate) async fn start_retryd(&self, policy: String) -> String {
        let (status, text) = self.ask("POST", "/retryds", policy).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        serde_json::from_str::<Value>(&text).unwrap()["address"].as_str().unwrap().to_owned()
    }

    async fn ask(&self, method: &str, path: &str, body: String) -> (StatusCode, String) {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let uri = format!("{}{path}", self.control);
        let body = Full::new(Bytes::from(body));
        let request = Request::builder().method(method).uri(uri).body(body).unwrap();
        let response = client.request(request).await.expect("the testbed's control answers");
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }
}

fn start() -> (Testbed, Child) {
    let python = from_env("TESTBED_PYTHON", "target/clients/venv/bin/python");
    let retryd = from_env("RETRYD_BIN", "target/debug/retryd");
    for path in [&python, &retryd] {
        assert!(path.exists(), "{} is missing: run `clients/run rust`", path.display());
    }
    let mut child = Command::new(python)
        .args(["-m", "testbed", "--retryd"])
        .arg(retryd)
        .env("PYTHONPATH", repository().join("clients"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let testbed = serde_json::from_str(&line)
        .unwrap_or_else(|error| panic!("the testbed did not start: {error} in {line:?}"));
    (testbed, child)
}

fn from_env(variable: &str, default: &str) -> PathBuf {
    env::var_os(variable).map_or_else(|| repository().join(default), PathBuf::from)
}

pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> T {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

//! A redis-server of this test's own.
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::{Client, Connection};

/// Ends with its value.
pub(crate) struct Server {
    process: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start() -> Server {
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let dir = tempfile::tempdir().unwrap();
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string(), "--dir"])
            .arg(dir.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("`redis-server` is installed");
        Server { process, port, _dir: dir }
    }

    /// Waits until it answers.
    pub(crate) fn connect(&self) -> Connection {
        let client = Client::open(("127.0.0.1", self.port)).unwrap();
        for _ in 0..200 {
            if let Ok(connection) = client.get_connection() {
                return connection;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("redis-server does not answer on port {}", self.port);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! A certificate for 127.0.0.1, and the authority that signed it.
use std::{path::PathBuf, process::Command};

use tempfile::TempDir;

pub(crate) struct Certificates {
    folder: TempDir,
}

impl Certificates {
    pub(crate) fn make() -> Certificates {
        let certificates = Certificates { folder: tempfile::tempdir().unwrap() };
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        let run = |arguments: &[&str]| {
            let output = Command::new("openssl")
                .args(["req", "-x509", "-days", "30"])
                .args(key)
                .args(arguments)
                .current_dir(certificates.folder.path())
                .output()
                .expect("openssl; `tests/run tools` installs it");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        run(&["-subj", "/CN=Authority of a test", "-keyout", "ca.key", "-out", "ca.pem"]);
        run(&[
            "-subj",
            "/CN=A store",
            "-keyout",
            "store.key",
            "-out",
            "store.pem",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=CA:FALSE",
        ]);
        certificates
    }

    /// The authority's certificate.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    pub(super) fn options(&self) -> Vec<String> {
        let file = |name: &str| self.folder.path().join(name).to_str().unwrap().to_owned();
        [
            ("--tls-cert-file", file("store.pem")),
            ("--tls-key-file", file("store.key")),
            ("--tls-ca-cert-file", file("ca.pem")),
            ("--tls-auth-clients", "no".to_owned()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
    }
}

//! The files of TLS: read as they are, and made into a configuration, whole or not at all.
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    Error, InconsistentKeys, RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{NoServerSessionStorage, WebPkiClientVerifier},
};
use sha2::{Digest as _, Sha256};

use super::certificate::{self, Validity};

/// Bytes of one file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// gRPC is HTTP/2.
const ALPN: &[u8] = b"h2";

/// The files, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and those between it and its authority.
    pub cert: PathBuf,
    /// The key of the server's certificate.
    pub key: PathBuf,
    /// The authorities of callers. If it is there, each caller must show a certificate.
    pub client_ca: Option<PathBuf>,
}

/// What is wrong with one of the files.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {wrong}", path.display())]
pub struct TlsError {
    path: PathBuf,
    wrong: String,
}

/// What stands in the files.
pub(super) struct Contents {
    cert: io::Result<Vec<u8>>,
    key: io::Result<Vec<u8>>,
    client_ca: Option<io::Result<Vec<u8>>>,
}

/// Tells contents apart without holding a key in memory.
pub(super) type Digest = [u8; 32];

/// A configuration, and what is to be told of it.
pub(super) struct Loaded {
    pub(super) config: Arc<ServerConfig>,
    pub(super) validity: Validity,
}

impl Contents {
    pub(super) fn of(files: &TlsFiles) -> Contents {
        Contents {
            cert: bytes(&files.cert),
            key: bytes(&files.key),
            client_ca: files.client_ca.as_deref().map(bytes),
        }
    }

    pub(super) fn digest(&self) -> Digest {
        let mut all = Sha256::new();
        for file in [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()] {
            match file {
                Some(Ok(bytes)) => {
                    all.update([0]);
                    all.update(Sha256::digest(bytes));
                }
                Some(Err(error)) => {
                    all.update([1]);
                    all.update(Sha256::digest(error.to_string()));
                }
                None => all.update([2]),
            }
        }
        all.finalize().into()
    }

    /// Makes a configuration of them.
    pub(super) fn load(&self, files: &TlsFiles) -> Result<Loaded, TlsError> {
        let of_cert = |wrong| TlsError { path: files.cert.clone(), wrong };
        let of_key = |wrong| TlsError { path: files.key.clone(), wrong };
        let chain = certificates(&self.cert).map_err(of_cert)?;
        let key = key(&self.key).map_err(of_key)?;
        let validity = chain.first().and_then(|leaf| certificate::validity(leaf));
        let validity =
            validity.ok_or_else(|| of_cert("its first certificate cannot be read".to_owned()))?;

        // Named, so that nothing hangs on what other crates have made the default.
        let provider = Arc::new(ring::default_provider());
        let versions = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| of_cert(error.to_string()))?;
        let builder = match (&files.client_ca, &self.client_ca) {
            (Some(path), Some(authorities)) => {
                let of_authority = |wrong| TlsError { path: path.clone(), wrong };
                let roots = roots(authorities).map_err(of_authority)?;
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                let verifier = verifier.build().map_err(|error| of_authority(error.to_string()))?;
                versions.with_client_cert_verifier(verifier)
            }
            _ => versions.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => of_key(format!(
                "it is not the key of the certificate in `{}`",
                files.cert.display()
            )),
            Error::InvalidCertificate(error) => of_cert(error.to_string()),
            error => of_key(error.to_string()),
        })?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Loaded { config: Arc::new(config), validity })
    }
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Whoever opens a pipe may wait for ever.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if FILE_BYTES_MAX < u64::try_from(bytes.len()).unwrap_or(u64::MAX) {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(bytes)
}

fn read(file: &io::Result<Vec<u8>>) -> Result<&[u8], String> {
    file.as_deref().map_err(|error| format!("it cannot be read: {error}"))
}

fn certificates(file: &io::Result<Vec<u8>>) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(read(file)?).collect();
    let found = found.map_err(|error| format!("it is no PEM file: {error}"))?;
    if found.is_empty() { Err("there is no certificate in it".to_owned()) } else { Ok(found) }
}

fn key(file: &io::Result<Vec<u8>>) -> Result<PrivateKeyDer<'static>, String> {
    use rustls::pki_types::pem::Error;
    PrivateKeyDer::from_pem_slice(read(file)?).map_err(|error| match error {
        Error::NoItemsFound => "there is no private key in it, or an encrypted one".to_owned(),
        error => format!("it is no PEM file: {error}"),
    })
}

fn roots(file: &io::Result<Vec<u8>>) -> Result<Arc<RootCertStore>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| format!("a certificate in it: {error}"))?;
    }
    Ok(Arc::new(roots))
}

//! TLS on the listeners for calls: what the server shows, and what callers prove.
//!
//! Without resumption: each connection proves anew who is there, by the files of now. Connections of
//! calls live long, so a whole handshake for each costs nothing that shows.
mod certificate;
mod files;
mod watch;

pub use self::files::{TlsError, TlsFiles};

use std::{io, sync::Arc};

use arc_swap::ArcSwap;
use rustls::{CertificateError, Error, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use self::files::{Contents, Digest, Loaded};
use super::Peer;
use crate::{
    admin::tls::{HandshakeFailure, TlsMetrics},
    clock::Clock,
};

/// TLS by a few files, which are read again when they change. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    files: TlsFiles,
    /// What handshakes go by that begin now.
    config: ArcSwap<ServerConfig>,
    /// Of the files, as they were read first.
    digest: Digest,
    metrics: TlsMetrics,
    clock: Clock,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// [`TlsError`] names the file, and says what is wrong with it.
    pub fn load(files: TlsFiles, metrics: TlsMetrics, clock: Clock) -> Result<Tls, TlsError> {
        let contents = Contents::of(&files);
        let loaded = contents.load(&files)?;
        metrics.begin();
        let tls = Tls(Arc::new(Shared {
            files,
            config: ArcSwap::from(Arc::clone(&loaded.config)),
            digest: contents.digest(),
            metrics,
            clock,
        }));
        tls.tell(&loaded);
        Ok(tls)
    }

    /// Whether callers must show a certificate.
    pub fn is_mutual(&self) -> bool {
        self.0.files.client_ca.is_some()
    }

    /// The server's part of the handshake. Whoever calls it bounds its time.
    pub(super) async fn accept<IO>(&self, io: IO) -> Result<(TlsStream<IO>, Peer), ()>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        let acceptor = TlsAcceptor::from(self.0.config.load_full());
        match acceptor.accept(io).await {
            Ok(stream) => {
                let (_, session) = stream.get_ref();
                let leaf = session.peer_certificates().and_then(|chain| chain.first());
                let peer = leaf.map(|leaf| Peer::named(certificate::names(leaf)));
                Ok((stream, peer.unwrap_or_default()))
            }
            Err(error) => {
                // What one client does wrong is not worth a line of everybody's log.
                tracing::debug!(%error, "a TLS handshake failed");
                self.0.metrics.failed(failure(&error));
                Err(())
            }
        }
    }

    /// Counts a handshake that was not over in time.
    pub(super) fn was_too_slow(&self) {
        self.0.metrics.failed(HandshakeFailure::TooSlow);
    }

    /// Says until when the server's certificate is good. A bad one is served all the same: clients
    /// say so clearly, and an old one is better than none for those that do not look.
    fn tell(&self, loaded: &Loaded) {
        let shared = &*self.0;
        let file = shared.files.cert.display();
        let now_s = i64::try_from(shared.clock.now().unix_ms / 1_000).unwrap_or(i64::MAX);
        let validity = loaded.validity;
        shared.metrics.set_expiry(validity.not_after_s);
        if validity.not_after_s < now_s {
            tracing::warn!(%file, "the server's certificate has expired");
        } else if now_s < validity.not_before_s {
            tracing::warn!(%file, "the server's certificate is not valid yet");
        }
    }
}

fn failure(error: &io::Error) -> HandshakeFailure {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        None => HandshakeFailure::Closed,
        Some(Error::InvalidMessage(_)) => HandshakeFailure::NotTls,
        Some(Error::NoCertificatesPresented) => HandshakeFailure::NoCertificate,
        Some(Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        )) => HandshakeFailure::ExpiredCertificate,
        Some(Error::InvalidCertificate(_)) => HandshakeFailure::UntrustedCertificate,
        Some(Error::AlertReceived(_)) => HandshakeFailure::RefusedByClient,
        Some(_) => HandshakeFailure::Incompatible,
    }
}

//! The files of TLS, read again when they change.
use std::{sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};

use super::{Contents, Tls, TlsError, files::Digest};

/// Time between two looks at the files. What has changed is taken when it looks the same twice, so
/// that a certificate does not meet the key before it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// After this long a look is told of: the disk may be lost.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// What was seen of the files.
#[derive(Clone, Copy)]
struct Seen {
    /// When they were taken, or refused, last.
    judged: Digest,
    /// At the look before.
    before: Digest,
}

impl Tls {
    /// Reads the files from time to time, as long as the process lives. By their content: Kubernetes
    /// changes them by a link in the path. What cannot be used changes nothing, and is told.
    pub async fn watch(self) {
        let mut seen = Seen { judged: self.0.digest, before: self.0.digest };
        loop {
            sleep(LOOK_EVERY).await;
            let tls = self.clone();
            let mut look = tokio::task::spawn_blocking(move || tls.look(seen));
            let ended = match timeout(LOOK_MAX, &mut look).await {
                Ok(ended) => ended,
                Err(_) => {
                    tracing::error!(
                        "no answer from the disk with the files of TLS: the last ones stay"
                    );
                    look.await
                }
            };
            match ended {
                Ok(now) => seen = now,
                Err(error) => tracing::error!(%error, "reading the files of TLS ended early"),
            }
        }
    }

    fn look(&self, Seen { judged, before }: Seen) -> Seen {
        let contents = Contents::of(&self.0.files);
        let digest = contents.digest();
        let is_at_rest = digest == before;
        if digest == judged || !is_at_rest {
            return Seen { judged, before: digest };
        }
        let taken = self.take(&contents);
        self.0.metrics.reloaded(taken.is_ok());
        match taken {
            Ok(()) => tracing::info!("the files of TLS have changed, and are in force"),
            Err(error) => {
                tracing::error!(%error, "the files of TLS have changed, and are refused: the last ones stay");
            }
        }
        Seen { judged: digest, before: digest }
    }

    fn take(&self, contents: &Contents) -> Result<(), TlsError> {
        let loaded = contents.load(&self.0.files)?;
        self.0.config.store(Arc::clone(&loaded.config));
        self.tell(&loaded);
        Ok(())
    }
}

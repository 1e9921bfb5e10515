//! The files of TLS, read again when they change.
use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use super::{Contents, Tls, TlsError, files::Digest};
use crate::watched::{Then, Watched};

/// Time between two looks at the files. What has changed is taken when it looks the same twice, so
/// that a certificate does not meet the key before it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// After this long a look is told of: the disk may be lost.
const LOOK_MAX: Duration = Duration::from_secs(10);

impl Tls {
    /// Reads the files from time to time, as long as the process lives. By their content: Kubernetes
    /// changes them by a link in the path. What cannot be used changes nothing, and is told.
    pub async fn watch(self) {
        let mut watched = Watched::new();
        watched.take(&self.0.digest);
        let watched = Arc::new(Mutex::new(watched));
        loop {
            sleep(LOOK_EVERY).await;
            let (tls, watched) = (self.clone(), Arc::clone(&watched));
            let mut look = tokio::task::spawn_blocking(move || tls.look(&mut watched.lock()));
            let ended = match timeout(LOOK_MAX, &mut look).await {
                Ok(ended) => ended,
                Err(_) => {
                    tracing::error!(
                        "no answer from the disk with the files of TLS: the last ones stay"
                    );
                    look.await
                }
            };
            if let Err(error) = ended {
                tracing::error!(%error, "reading the files of TLS ended early");
            }
        }
    }

    fn look(&self, watched: &mut Watched<Digest>) {
        let contents = Contents::of(&self.0.files);
        match watched.notice(&contents.digest()) {
            Then::Nothing | Then::LookAgain => return,
            Then::Take => {}
        }
        let taken = self.take(&contents);
        self.0.metrics.reloaded(taken.is_ok());
        match taken {
            Ok(()) => tracing::info!("the files of TLS have changed, and are in force"),
            Err(error) => {
                tracing::error!(%error, "the files of TLS have changed, and are refused: the last ones stay");
            }
        }
    }

    fn take(&self, contents: &Contents) -> Result<(), TlsError> {
        let loaded = contents.load(&self.0.files)?;
        self.0.config.store(Arc::clone(&loaded.config));
        self.tell(&loaded);
        Ok(())
    }
}

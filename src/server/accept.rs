//! The accept loop: it never ends by itself, never spins, and never holds more than its share.
use std::{future::Future, io, pin::Pin, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Sleep, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connection::ConnectInfo,
    limits::{ACCEPT_PAUSE, BACKLOG},
    listen::{Bound, Socket},
    sites::{Site, SitePlace, Sites},
    slots::{Slot, Slots},
};
use crate::admin::ports::ConnectionCounts;

/// What is done with an accepted connection.
pub(crate) trait Serve: Clone + Send + 'static {
    /// Serves one connection to its end.
    fn serve<IO>(self, io: IO, info: ConnectInfo) -> impl Future<Output = ()> + Send
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static;
}

/// Accepts the connections of one listener. Those with the same `slots` share them.
#[derive(Debug)]
pub(crate) struct Acceptor<S> {
    pub(crate) serve: S,
    pub(crate) slots: Arc<Slots>,
    /// So that one site has not all of them.
    pub(crate) sites: Arc<Sites>,
    pub(crate) counts: ConnectionCounts,
    pub(crate) connections: TaskTracker,
}

impl<S: Serve> Acceptor<S> {
    /// Accepts until `stop`; then the listener is closed. Connections go on, and those that the
    /// system has already taken are served: closing would reset them.
    pub(crate) async fn run(self, bound: Bound, stop: CancellationToken) {
        let mut failing = Trouble::default();
        let mut full = Trouble::default();
        let mut crowded = Trouble::default();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return self.admit_waiting(&bound).await,
                () = failing.gone() => {
                    tracing::info!(listen = %bound.local(), "connections can be accepted again");
                    continue;
                }
                () = full.gone() => {
                    tracing::info!(listen = %bound.local(), "below the limit of connections again");
                    continue;
                }
                () = crowded.gone() => {
                    tracing::info!(listen = %bound.local(), "no peer has too many connections any more");
                    continue;
                }
                accepted = bound.accept() => accepted,
            };
            match accepted {
                Ok(socket) => match self.admit(socket) {
                    Ok(()) => {}
                    Err(NoPlace::Full) => {
                        if full.came() {
                            tracing::warn!(listen = %bound.local(), "limit of connections reached: closing new ones");
                        }
                    }
                    Err(NoPlace::Crowded(site)) => {
                        if crowded.came() {
                            tracing::warn!(listen = %bound.local(), peer = %site, "limit of connections of one peer reached: closing its new ones");
                        }
                    }
                },
                Err(error) => {
                    self.counts.accept_errors.inc();
                    if is_of_the_peer(&error) {
                        continue;
                    }
                    if failing.came() {
                        tracing::error!(listen = %bound.local(), %error, "connections cannot be accepted");
                    }
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = sleep(ACCEPT_PAUSE) => {}
                    }
                }
            }
        }
    }

    async fn admit_waiting(&self, bound: &Bound) {
        for _ in 0..BACKLOG {
            match timeout(Duration::ZERO, bound.accept()).await {
                Ok(Ok(socket)) => {
                    self.admit(socket).ok();
                }
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    fn admit(&self, socket: Socket) -> Result<(), NoPlace> {
        self.counts.accepted.inc();
        let places = match self.places(Site::of(socket.info())) {
            Ok(places) => places,
            Err(no_place) => {
                match no_place {
                    NoPlace::Full => self.counts.refused_full.inc(),
                    NoPlace::Crowded(_) => self.counts.refused_peer.inc(),
                };
                return Err(no_place);
            }
        };
        let (serve, info) = (self.serve.clone(), socket.info());
        match socket {
            Socket::Tcp(stream, _) => self.connections.spawn(async move {
                serve.serve(stream, info).await;
                drop(places);
            }),
            Socket::Unix(stream) => self.connections.spawn(async move {
                serve.serve(stream, info).await;
                drop(places);
            }),
        };
        Ok(())
    }

    /// A place among all connections, and one among those of its site.
    fn places(&self, site: Option<Site>) -> Result<(Slot, Option<SitePlace>), NoPlace> {
        let of_site = match site {
            Some(site) => Some(self.sites.take(site).ok_or(NoPlace::Crowded(site))?),
            None => None,
        };
        Ok((self.slots.take().ok_or(NoPlace::Full)?, of_site))
    }
}

/// Why a connection is closed at once.
enum NoPlace {
    Full,
    Crowded(Site),
}

/// Errors of one connection that was gone before it was accepted: no reason to pause.
fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// A trouble is over when it has not come for this long, so that one that comes and goes does not
/// fill the log.
const TROUBLE_OVER: Duration = Duration::from_secs(10);

/// Whether a trouble is on. Its begin and its end are worth one line each.
#[derive(Default)]
struct Trouble(Option<Pin<Box<Sleep>>>);

impl Trouble {
    /// Notes that it came. True if it was not on before.
    fn came(&mut self) -> bool {
        self.0.replace(Box::pin(sleep(TROUBLE_OVER))).is_none()
    }

    /// Waits until it is over; for ever, if it is not on.
    async fn gone(&mut self) {
        match &mut self.0 {
            Some(over) => {
                over.await;
                self.0 = None;
            }
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_trouble_that_comes_and_goes_is_one_trouble() {
        let mut trouble = Trouble::default();
        assert!(trouble.came());
        for _ in 0..5 {
            sleep(TROUBLE_OVER / 2).await;
            assert!(!trouble.came());
        }
        trouble.gone().await;
        assert!(trouble.came());
    }
}

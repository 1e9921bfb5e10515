//! The client of retryd, as an application and the layer see it.
use std::{
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use tokio_util::sync::DropGuard;
use tonic::{
    Code,
    transport::{Channel, Endpoint},
};

use crate::{
    Operation, RetryLayer, Settings, SettingsError,
    lease::Leases,
    link::Link,
    pb::{self, release_retries_request::Grant},
    usage::{Names, Usage},
};

/// A client of retryd, cheap to clone. It ends with its last clone and layer.
#[derive(Clone)]
pub struct Client {
    link: Arc<Link>,
    _reporting: Arc<DropGuard>,
}

impl Client {
    /// A client that connects when it first has something to say.
    ///
    /// # Errors
    /// Everything that is wrong with the settings, at once.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn new(settings: Settings) -> Result<Client, SettingsError> {
        let endpoint = Endpoint::from(settings.check()?)
            .connect_timeout(Duration::from_secs(1))
            // A retryd that went without a word is noticed within seconds.
            .http2_keep_alive_interval(Duration::from_secs(10))
            .keep_alive_timeout(Duration::from_secs(1))
            .keep_alive_while_idle(true);
        Ok(Client::start(settings, endpoint.connect_lazy()))
    }

    /// A client that asks over a channel of yours, such as one with TLS. It connects anew at each
    /// question as long as it has no connection.
    ///
    /// # Errors
    /// Everything that is wrong with the settings, at once.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn over(channel: Channel, settings: Settings) -> Result<Client, SettingsError> {
        settings.check()?;
        Ok(Client::start(settings, channel))
    }

    fn start(settings: Settings, channel: Channel) -> Client {
        let link = Arc::new(Link::new(settings, channel));
        link.spawn(Arc::clone(&link).report_on_time());
        let _reporting = Arc::new(link.stop.clone().drop_guard());
        let client = Client { link, _reporting };
        for name in client.link.settings.operations.keys() {
            let tenant = client.link.settings.tenant.clone();
            client.take_ahead(&Names { tenant, operation: name.clone() });
        }
        client
    }

    /// The layer that brings failed calls to retryd. Each has throttles of its own.
    pub fn layer(&self) -> RetryLayer {
        RetryLayer::new(self.clone())
    }

    /// Says that your process is about to stop: nothing is repeated from now on.
    pub fn drain(&self) {
        self.link.draining.store(true, Relaxed);
    }

    /// Waits for what runs in the background, reports the rest of the usage and gives leases back.
    /// Call it when your calls have ended; later ones are not reported on time.
    pub async fn close(&self) {
        let link = &self.link;
        link.stop.cancel();
        link.tasks.close();
        link.tasks.wait().await;
        link.report().await;
        for (names, lease) in link.leases.take_all() {
            let grant = Grant::Lease(lease.name);
            link.release(&names, lease.left, grant).await;
        }
    }

    /// Retries at hand that were taken ahead for an operation.
    pub fn leased(&self, tenant: &str, operation: &str) -> u32 {
        self.link.leases.left(&Names { tenant: tenant.into(), operation: operation.into() })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.link.settings
    }

    pub(crate) fn operation(&self, name: &str) -> Option<&Operation> {
        self.link.settings.operations.get(name)
    }

    pub(crate) fn usage(&self) -> &Usage {
        &self.link.usage
    }

    pub(crate) fn leases(&self) -> &Leases {
        &self.link.leases
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.link.draining.load(Relaxed)
    }

    /// Asks once. An error is the code that the question ended with: UNAVAILABLE if nobody could
    /// be reached, DEADLINE_EXCEEDED after `limit`.
    pub(crate) async fn ask(
        &self,
        context: pb::RetryContext,
        limit: Duration,
    ) -> Result<pb::Decision, Code> {
        self.link.ask(context, limit).await
    }

    /// Asks in the background, where nobody needs the answer.
    pub(crate) fn tell(&self, context: pb::RetryContext) {
        if self.link.stop.is_cancelled() {
            // Calls that go on must not keep `close` from its end.
            return;
        }
        let link = Arc::clone(&self.link);
        self.link.spawn(async move {
            // What it ended with changes nothing any more.
            let _ = link.ask(context, link.settings.ask_timeout).await;
        });
    }

    /// Gives back one retry, in the background.
    pub(crate) fn release(&self, names: Names, grant: Grant) {
        let link = Arc::clone(&self.link);
        self.link.spawn(async move { link.release(&names, 1, grant).await });
    }

    /// Takes the lease of an operation in the background, if it has one and that is due.
    pub(crate) fn take_ahead(&self, names: &Names) {
        let wanted = self.operation(&names.operation).map_or(0, |operation| operation.lease);
        if wanted == 0 || self.link.stop.is_cancelled() || !self.link.leases.is_due(names) {
            return;
        }
        let (link, names) = (Arc::clone(&self.link), names.clone());
        self.link.spawn(async move { link.acquire(names, wanted).await });
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("settings", &self.link.settings).finish_non_exhaustive()
    }
}

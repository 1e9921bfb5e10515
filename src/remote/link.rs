//! The connection to the store: dropped when it fails, made anew beside the calls.
use std::{fmt, sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::batch::{self, Task};
use super::place::{Connection, Place};
use super::script::Script;
use crate::clock::Dice;

/// How long connecting may take, the way over a sentinel included.
const CONNECT_MAX: Duration = Duration::from_millis(500);
/// Pauses between attempts to connect: from the first to the longest.
const PAUSE_MIN_MS: u32 = 50;
const PAUSE_MAX_MS: u32 = 1_000;

pub(super) struct Link {
    place: Arc<Place>,
    dice: Dice,
    up: Option<Connection>,
    /// The one attempt to connect that may be on its way.
    attempt: Option<AbortOnDropHandle<Result<Connection, String>>>,
    attempts: usize,
    /// Attempts and calls that failed, without one that succeeded since.
    failures: u32,
    /// Why there is no connection, if there was an attempt.
    trouble: Option<String>,
}

impl Link {
    pub(super) fn new(place: Place, dice: Dice) -> Link {
        Link {
            place: Arc::new(place),
            dice,
            up: None,
            attempt: None,
            attempts: 0,
            failures: 0,
            trouble: None,
        }
    }

    /// Sends the tasks. Whoever stops waiting for it drops the connection with it: its answers
    /// would come too late, and what waits in it would pile up.
    pub(super) async fn run(&mut self, script: &Script, tasks: &mut [Task]) {
        let Some(mut connection) = self.take().await else {
            if let Some(trouble) = &self.trouble {
                tasks.iter_mut().for_each(|task| task.not_sent(trouble));
            }
            return;
        };
        // Holds until there is an answer.
        self.failures = self.failures.saturating_add(1);
        self.trouble = Some(format!("connecting anew to {}", self.place));
        match &mut connection {
            Connection::Server(server) => batch::to_server(server, script, tasks).await,
            Connection::Cluster(cluster) => batch::to_cluster(cluster, script, tasks).await,
        }
        let spoilt = tasks.iter().filter(|task| task.spoils()).count();
        if spoilt == 0 {
            self.up = Some(connection);
            (self.failures, self.trouble) = (0, None);
            return;
        }
        // The other nodes of a cluster are served until there is a new connection to all.
        if matches!(connection, Connection::Cluster(_)) && spoilt < tasks.len() {
            self.up = Some(connection);
        }
        self.begin();
    }

    /// The connection, if there is one now.
    async fn take(&mut self) -> Option<Connection> {
        if self.up.is_none() {
            self.begin();
        }
        if let Some(attempt) = &mut self.attempt {
            // Only the first connection is waited for. The later ones have their pauses.
            let is_first = self.up.is_none() && self.trouble.is_none();
            if is_first || attempt.is_finished() {
                let ended = attempt.await.unwrap_or_else(|error| Err(error.to_string()));
                self.attempt = None;
                match ended {
                    Ok(connection) => self.up = Some(connection),
                    Err(error) => {
                        self.failures = self.failures.saturating_add(1);
                        self.trouble = Some(format!("cannot connect to {}: {error}", self.place));
                        self.begin();
                    }
                }
            }
        }
        self.up.take()
    }

    /// Begins to connect, unless that is going on.
    fn begin(&mut self) {
        if self.attempt.is_some() {
            return;
        }
        let place = Arc::clone(&self.place);
        let pause = pause(self.failures, self.dice.roll());
        let turn = self.attempts;
        self.attempts = self.attempts.wrapping_add(1);
        self.attempt = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            sleep(pause).await;
            match timeout(CONNECT_MAX, place.connect(turn)).await {
                Ok(connected) => connected.map_err(|error| error.to_string()),
                Err(_) => Err(format!("no answer within {} ms", CONNECT_MAX.as_millis())),
            }
        })));
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("place", &self.place)
            .field("is_up", &self.up.is_some())
            .field("failures", &self.failures)
            .field("trouble", &self.trouble)
            .finish_non_exhaustive()
    }
}

/// Doubles with each failure, and is never the same for all replicas.
fn pause(failures: u32, draw: u32) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    let longest_ms = PAUSE_MIN_MS.saturating_mul(1 << doublings.min(8)).min(PAUSE_MAX_MS);
    let shortest_ms = longest_ms / 2;
    let more_ms = u64::from(draw) * u64::from(longest_ms - shortest_ms) / u64::from(u32::MAX);
    Duration::from_millis(u64::from(shortest_ms) + more_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let ms = |failures, draw| pause(failures, draw).as_millis();
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 6, 7].map(|n| ms(n, u32::MAX)),
            [0, 50, 100, 200, 400, 800, 1_000, 1_000]
        );
        assert_eq!([0, 1, 6, u32::MAX].map(|n| ms(n, 0)), [0, 25, 500, 500]);
    }
}

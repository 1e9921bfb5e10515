//! Sends what belongs together, and keeps apart what becomes of each.
use futures_util::future::join_all;
use redis::{
    Cmd, ErrorKind, RedisError, RedisResult, Value,
    aio::{ConnectionLike as _, MultiplexedConnection},
    cluster_async::ClusterConnection,
    cluster_routing::{
        MultipleNodeRoutingInfo, ResponsePolicy, RoutingInfo, SingleNodeRoutingInfo,
    },
};

use super::script::Script;
use crate::budget::shared::pools::Failure;

/// One command, and how far it came. So a batch that is cut short still tells what is known.
pub(super) struct Task {
    command: Cmd,
    outcome: Outcome,
}

enum Outcome {
    NotSent(String),
    Sent,
    Said(Value),
    Refused(RedisError),
    Broken(String),
}

/// Answers of a server that may be another one by now, or serves nobody for a while.
const LEAVE_IT: [&str; 4] = ["READONLY", "LOADING", "MASTERDOWN", "NOAUTH"];

/// Commands that are answered together.
const PIPELINE_MAX: usize = 32;

/// Refused by the node that had the slot, then by one that does not know the script.
const REPEATS_MAX: usize = 2;

impl Task {
    pub(super) fn new(command: Cmd) -> Task {
        Task {
            command,
            outcome: Outcome::NotSent("the store cannot be reached in time".to_owned()),
        }
    }

    pub(super) fn not_sent(&mut self, why: &str) {
        self.outcome = Outcome::NotSent(why.to_owned());
    }

    /// What it came to.
    pub(super) fn answer(self) -> Result<Value, Failure> {
        match self.outcome {
            Outcome::Said(value) => Ok(value),
            Outcome::NotSent(text) => Err(Failure::Refused(text)),
            Outcome::Refused(error) => Err(Failure::Refused(error.to_string())),
            Outcome::Sent => Err(Failure::Unknown("the store did not answer in time".to_owned())),
            Outcome::Broken(text) => Err(Failure::Unknown(text)),
        }
    }

    /// Whether its connection should not be used again.
    pub(super) fn spoils(&self) -> bool {
        match &self.outcome {
            Outcome::Sent | Outcome::Broken(_) => true,
            Outcome::Refused(error) => error.code().is_some_and(|code| LEAVE_IT.contains(&code)),
            Outcome::NotSent(_) | Outcome::Said(_) => false,
        }
    }

    fn is_refused_with(&self, codes: &[&str]) -> bool {
        matches!(&self.outcome, Outcome::Refused(error)
            if error.code().is_some_and(|code| codes.contains(&code)))
    }
}

impl Outcome {
    fn of(result: RedisResult<Value>) -> Outcome {
        match result.and_then(Value::extract_error) {
            Ok(value) => Outcome::Said(value),
            Err(error) => match error.kind() {
                ErrorKind::Server(_) | ErrorKind::Extension => Outcome::Refused(error),
                // Nothing has left yet.
                ErrorKind::ClusterConnectionNotFound => Outcome::NotSent(error.to_string()),
                _ => Outcome::Broken(error.to_string()),
            },
        }
    }
}

/// Sends all of them at once. A script that the server does not know is loaded once.
pub(super) async fn to_server(
    connection: &mut MultiplexedConnection,
    script: &Script,
    tasks: &mut [Task],
) {
    pipelines(connection, tasks.iter_mut().collect()).await;
    let unknown: Vec<&mut Task> =
        tasks.iter_mut().filter(|task| task.is_refused_with(&["NOSCRIPT"])).collect();
    if !unknown.is_empty() {
        // If that did not work, the next refusal tells.
        let _ = connection.send_packed_command(&script.load()).await;
        pipelines(connection, unknown).await;
    }
}

/// Several, one behind the other: when time is up, what the first ones said is not lost.
async fn pipelines(connection: &MultiplexedConnection, mut tasks: Vec<&mut Task>) {
    let parts = tasks.chunks_mut(PIPELINE_MAX);
    join_all(parts.map(|part| pipeline(connection.clone(), part))).await;
}

async fn pipeline(mut connection: MultiplexedConnection, tasks: &mut [&mut Task]) {
    let mut pipeline = redis::Pipeline::with_capacity(tasks.len());
    for task in tasks.iter_mut() {
        pipeline.add_command(task.command.clone());
        task.outcome = Outcome::Sent;
    }
    match connection.send_packed_commands(&pipeline, 0, pipeline.len()).await {
        Ok(values) => {
            for (task, value) in tasks.iter_mut().zip(values) {
                task.outcome = Outcome::of(Ok(value));
            }
        }
        Err(error) => {
            for task in tasks {
                task.outcome = Outcome::Broken(error.to_string());
            }
        }
    }
}

/// Sends each to the node that has its key. The client does not repeat anything by itself: it
/// would repeat after a cut connection, too, what may have been done.
pub(super) async fn to_cluster(
    connection: &ClusterConnection,
    script: &Script,
    tasks: &mut [Task],
) {
    join_all(tasks.iter_mut().map(|task| ask(connection.clone(), task))).await;
    for _ in 0..REPEATS_MAX {
        if tasks.iter().any(|task| task.is_refused_with(&["NOSCRIPT"])) {
            let masters = MultipleNodeRoutingInfo::AllMasters;
            let everywhere = RoutingInfo::MultiNode((masters, Some(ResponsePolicy::AllSucceeded)));
            // Where it did not work, the next refusal tells.
            let _ = connection.clone().route_command(script.load(), everywhere).await;
        }
        // After `MOVED` the client has learned by itself where the slot is.
        let again =
            tasks.iter_mut().filter(|task| task.is_refused_with(&["NOSCRIPT", "MOVED", "ASK"]));
        join_all(again.map(|task| ask(connection.clone(), task))).await;
    }
}

async fn ask(mut connection: ClusterConnection, task: &mut Task) {
    let before = std::mem::replace(&mut task.outcome, Outcome::Sent);
    let result = match migrating_to(&before) {
        None => connection.req_packed_command(&task.command).await,
        Some(node) => {
            let mut pipeline = redis::Pipeline::with_capacity(2);
            pipeline.cmd("ASKING").add_command(task.command.clone());
            let values = connection.route_pipeline(pipeline, 0, 2, node).await;
            values.map(|mut values| values.pop().unwrap_or_default())
        }
    };
    task.outcome = Outcome::of(result);
}

/// The node that is taking over the key's slot.
fn migrating_to(outcome: &Outcome) -> Option<SingleNodeRoutingInfo> {
    let Outcome::Refused(error) = outcome else { return None };
    let (node, _) = error.redirect_node().filter(|_| error.code() == Some("ASK"))?;
    let (host, port) = node.rsplit_once(':')?;
    Some(SingleNodeRoutingInfo::ByAddress { host: host.to_owned(), port: port.parse().ok()? })
}

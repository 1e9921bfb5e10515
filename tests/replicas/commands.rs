//! What the store has to do is bounded, whatever callers do.
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use retryd::wire::pb;
use tokio::time::{sleep, timeout};

use crate::load::{Load, Tenant};
use crate::scene::{MACHINE, POLICY, REPLICAS, replicas};
use crate::servers::{Flavour, Server};
use crate::support::{Process, SOON, context, policy_file};

/// Rounds and exchanges at a time, as the exchange is built.
const ROUNDS_PER_SECOND: f64 = 1.0 / 0.09;
const EXCHANGES_MAX: f64 = 1_000.0;

fn scripts_run(server: &Server) -> u64 {
    let line = server.info("commandstats", "cmdstat_evalsha").unwrap();
    line.split(',').find_map(|part| part.strip_prefix("calls=")).unwrap().parse().unwrap()
}

/// Scripts a second and replica while callers go on.
async fn scripts_per_second(server: &Server) -> f64 {
    let (before, start) = (scripts_run(server), Instant::now());
    sleep(Duration::from_secs(3)).await;
    let seconds = start.elapsed().as_secs_f64();
    (scripts_run(server) - before) as f64 / seconds / REPLICAS as f64
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_runs_as_many_scripts_whatever_the_rate_of_one_tenant() {
    let _beside_others = MACHINE.read().await;
    let server = Server::start(Flavour::Redis7);
    let url = server.url();
    let replicas =
        replicas(&policy_file("replicas-commands.yaml", POLICY), &[url.as_str(); REPLICAS]);
    for rate in [20.0, 400.0] {
        let load = Load::start(&replicas, 12, vec![Tenant::new("a", rate, 1)]).await;
        sleep(Duration::from_millis(500)).await;
        let scripts = scripts_per_second(&server).await;
        println!("{rate} asks a second: {scripts:.1} scripts a second and replica");
        // One that says "here", one exchange, and one more where somebody asks for the first time.
        assert!(scripts <= 3.0 * ROUNDS_PER_SECOND, "{scripts}");
        load.end().await;
    }
}

/// One question for each of so many tenants, over and over.
struct Round<'a> {
    names: &'a [String],
    next: usize,
}

impl Round<'_> {
    fn questions(&mut self, count: usize) -> Vec<pb::RetryContext> {
        let from = self.next;
        self.next += count;
        let usage = Some(pb::Usage { requests: 1, ..Default::default() });
        let question = |place: usize| {
            let name = &self.names[place % self.names.len()];
            pb::RetryContext { usage, ..context(name) }
        };
        (from..from + count).map(question).collect()
    }
}

async fn ask(process: &Process, questions: Vec<pb::RetryContext>) {
    let count = questions.len();
    let questions = tokio_stream::iter(questions);
    let mut answers = process.client().await.decide_stream(questions).await.unwrap().into_inner();
    for _ in 0..count {
        timeout(SOON, answers.message()).await.unwrap().unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b49_five_thousand_tenants_cost_a_bounded_number_of_scripts_and_no_key_stays() {
    let _alone = MACHINE.write().await;
    let server = Server::start(Flavour::Valkey8);
    let url = server.url();
    let replicas =
        replicas(&policy_file("replicas-commands.yaml", POLICY), &[url.as_str(); REPLICAS]);
    let names: Vec<String> = (0..5_000).map(|place| format!("tenant-{place}")).collect();
    let mut round = Round { names: &names, next: 0 };
    let start = Instant::now();
    let measured = async {
        sleep(Duration::from_millis(1_500)).await;
        scripts_per_second(&server).await
    };
    let asking = async {
        while start.elapsed() < Duration::from_millis(4_700) {
            for process in &replicas {
                ask(process, round.questions(250)).await;
            }
            let lasting: Vec<String> = server.ask(&["EVAL", LASTING, "0"]);
            assert_eq!(lasting, Vec::<String>::new(), "keys without an end");
        }
    };
    let (scripts, ()) = tokio::join!(measured, asking);
    println!("{} asks: {scripts:.0} scripts a second and replica", round.next);
    assert!(scripts <= ROUNDS_PER_SECOND * (EXCHANGES_MAX + 2.0), "{scripts}");
    let keys: HashSet<String> = server.keys().into_iter().collect();
    assert!(keys.len() <= names.len() + 1, "{}", keys.len());
}

/// Keys that have no end, all looked at in one instant.
const LASTING: &str = "local lasting = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('PTTL', key) < 0 then table.insert(lasting, key) end
end
return lasting";

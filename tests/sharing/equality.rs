//! The model of the pool and the real scripts answer the same, in a real server.
use std::collections::BTreeMap;
use std::slice::from_ref;

use fastrand::Rng;
use retryd::budget::shared::exchange::{Call, Reply, Sizes};
use retryd::budget::shared::pools::{Attendance, Errand, Failure, Fleet, Pools as _};
use retryd::budget::{Limits, bucket, ratio, throttle};
use retryd::clock::Dice;
use retryd::remote::{Credentials, RedisPools, Settings};
use retryd::simulate::pool;
use tokio::runtime::Runtime;

use super::servers::{Flavour, SOON, Server};

const PREFIX: &str = "retryd";
const EXCHANGES: u32 = 10_000;
/// Later than any server's clock: so every time is what the test says.
const START_MS: u64 = 4_000_000_000_000;

#[test]
fn the_model_answers_as_the_scripts_do() {
    let seed = std::env::var("SEED").map_or_else(|_| Rng::new().get_seed(), |s| s.parse().unwrap());
    println!("reproduce: SEED={seed} cargo test --test sharing the_model_answers -- --nocapture");
    let mut real = Real::start();
    let mut store = pool::Store::default();
    let mut talk = Talk::new(seed);
    let mut kinds = [0_u32; 8];
    for turn in 0..EXCHANGES {
        talk.time_passes();
        if talk.rng.u32(..50) == 0 {
            let name = talk.pool();
            real.drop_pool(&name);
            store.drop_pool(&name);
            talk.known.retain(|(pool, _)| *pool != name);
        }
        if talk.rng.u32(..10) == 0 {
            let (who, attendance) = talk.attendance();
            let told = real.attend(&who, attendance);
            let modelled = store.attend(0, &who, attendance, false);
            assert_eq!(told, modelled, "turn {turn}: {who} {attendance:?}");
        }
        if talk.rng.u32(..50) == 0 {
            let who = talk.who();
            real.leave(&who);
            store.attend(0, &who, Attendance { now_ms: 0, attended_ms: 0 }, true);
        }
        let (who, errand) = talk.errand();
        let asked = real.exchange(&who, &errand);
        let modelled = store.exchange(0, &who, &errand);
        assert_eq!(asked, modelled, "turn {turn}: {who} {errand:?}");
        let facts = [
            true,
            0 < asked.granted,
            !asked.units.is_empty(),
            0 < asked.debt,
            0 < asked.level,
            0 < asked.units_left,
            2 < asked.active,
            asked.now_ms > errand.now_ms,
        ];
        kinds.iter_mut().zip(facts).for_each(|(kind, fact)| *kind += u32::from(fact));
    }
    // Otherwise the equality says little.
    assert!(kinds.iter().all(|kind| EXCHANGES / 40 < *kind), "{kinds:?}");
}

/// The real scripts in a real server, as replicas reach them.
struct Real {
    server: Server,
    runtime: Runtime,
    replicas: BTreeMap<String, RedisPools>,
}

impl Real {
    fn start() -> Real {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Real { server: Server::start(Flavour::Redis7), runtime, replicas: BTreeMap::new() }
    }

    fn exchange(&mut self, who: &str, errand: &Errand) -> Reply {
        self.ask(who, async |replica| replica.exchange(from_ref(errand)).await.pop().unwrap())
    }

    fn attend(&mut self, who: &str, attendance: Attendance) -> Fleet {
        self.ask(who, async |replica| replica.attend(attendance).await)
    }

    fn leave(&mut self, who: &str) {
        self.ask(who, async |replica| replica.leave().await);
    }

    fn ask<T>(
        &mut self,
        who: &str,
        ask: impl AsyncFnOnce(&mut RedisPools) -> Result<T, Failure>,
    ) -> T {
        let url = self.server.url();
        let replica = || {
            let settings = Settings {
                url: url.parse().unwrap(),
                credentials: Credentials::default(),
                ca_file: None,
                prefix: PREFIX.to_owned(),
                replica: who.to_owned(),
                call_max: SOON,
            };
            RedisPools::new(settings, Dice::fair()).unwrap()
        };
        let replica = self.replicas.entry(who.to_owned()).or_insert_with(replica);
        self.runtime.block_on(ask(replica)).unwrap()
    }

    fn drop_pool(&mut self, name: &str) {
        let () = self.server.ask(&["DEL", &format!("{PREFIX}:pool:{name}")]);
    }
}

/// What many replicas might say, in any order.
struct Talk {
    rng: Rng,
    now_ms: u64,
    sequences: BTreeMap<(String, String), u64>,
    /// Which replicas have exchanged which pool.
    known: Vec<(String, String)>,
}

impl Talk {
    fn new(seed: u64) -> Talk {
        let rng = Rng::with_seed(seed);
        Talk { rng, now_ms: START_MS, sequences: BTreeMap::new(), known: Vec::new() }
    }

    fn time_passes(&mut self) {
        self.now_ms += match self.rng.u32(..100) {
            0 => 65_000,
            1 => 15 * 60_000,
            2..7 => 700,
            7..50 => 0,
            _ => self.rng.u64(..60),
        };
    }

    fn pool(&mut self) -> String {
        format!("pool:{{{}}}", self.rng.u32(..6))
    }

    fn who(&mut self) -> String {
        // A name that is a number is still a name.
        let number = self.rng.u32(..9);
        if number < 3 { number.to_string() } else { format!("replica-{number}") }
    }

    fn attendance(&mut self) -> (String, Attendance) {
        let now_ms = self.now_ms - self.rng.u64(..500);
        // Never, a moment ago, or before the key's life began.
        let before_ms = [0, self.rng.u64(..1_000), self.rng.u64(..1_000_000)];
        let attended_ms = match *self.rng.choice(&before_ms).unwrap() {
            0 => 0,
            before_ms => now_ms - before_ms,
        };
        (self.who(), Attendance { now_ms, attended_ms })
    }

    fn errand(&mut self) -> (String, Errand) {
        let (pool, who) = (self.pool(), self.who());
        let limits = self.limits(&pool);
        let sizes = Sizes::of(&limits);
        let next = self.sequences.entry((pool.clone(), who.clone())).or_default();
        *next += 1;
        let stale = self.rng.u32(..20) == 0;
        let sequence = if stale { next.saturating_sub(self.rng.u64(..3)) } else { *next };
        // A pool that is not there would begin with the server's own time.
        let is_there = self.known.iter().any(|(known, _)| *known == pool);
        let now_ms = match self.rng.u32(..10) {
            0 if is_there => 0,
            1..4 if is_there => self.now_ms - self.rng.u64(..300),
            _ => self.now_ms,
        };
        self.known.push((pool.clone(), who.clone()));
        let start = if self.rng.bool() { sizes.full() } else { self.up_to(sizes.full()) };
        let gives = (0..self.rng.usize(..13)).map(|_| self.gift(&sizes)).collect();
        let call = Call {
            sequence,
            sizes,
            start,
            debt: self.up_to(3),
            gives: if self.rng.bool() { gives } else { Vec::new() },
            wants_units: self.up_to(10_000),
            holds: self.up_to(sizes.tokens / 4),
            wants: self.up_to(sizes.tokens),
            returns: self.up_to(sizes.tokens / 4),
            owes: self.up_to(3),
        };
        (who, Errand { pool: pool.into(), now_ms, call })
    }

    fn gift(&mut self, sizes: &Sizes) -> (u64, u32) {
        let slot = sizes.interval_ms.max(1);
        let current = self.now_ms * 10 / slot;
        let began = (current + 1 - self.rng.u64(..13)) * slot;
        let units = if self.rng.u32(..20) == 0 { u32::MAX } else { self.rng.u32(..400) };
        // Slots of other sizes begin anywhere.
        (if self.rng.u32(..5) == 0 { began + self.rng.u64(..slot) } else { began }, units)
    }

    /// Often nothing, often little, sometimes all.
    fn up_to(&mut self, most: u64) -> u64 {
        match self.rng.u32(..10) {
            0..4 => 0,
            4..7 => self.rng.u64(..5).min(most),
            7..9 => self.rng.u64(..=most),
            _ => most,
        }
    }

    /// Each pool has a budget of its own, and sizes that change now and then.
    fn limits(&mut self, pool: &str) -> Limits {
        let budget = pool.bytes().map(u32::from).sum::<u32>() % 6;
        let edition = self.now_ms / 20_000 + u64::from(self.rng.u32(..30) == 0);
        let ratio = |count, interval_ms, window_ms| {
            let floor = ratio::Floor { count, interval_ms };
            Limits::Ratio(ratio::Limits { percent: 20, interval_ms: window_ms, floor })
        };
        let bucket = |capacity| {
            Limits::TokenBucket(bucket::Limits { capacity, costs: bucket::Costs::AWS_LEGACY })
        };
        match (budget, edition % 3) {
            (0, _) => ratio(10, 1_000, 10_000),
            (1, 0) => ratio(1, 3_600_000, 1_000),
            (1, 1) => ratio(1_000_000, 1_000, 3_600_000),
            (1, _) => ratio(1_000_000, 3_600_000, 1_001),
            (2, 0) => ratio(0, 1_000, 10_000),
            (2, 1) => ratio(7, 1_234, 9_999),
            (2, _) => ratio(30, 2_000, 1_337),
            (3, 0) => {
                Limits::Throttle(throttle::Limits { tokens_max: 1_000, token_ratio_thousandths: 1 })
            }
            (3, _) => {
                Limits::Throttle(throttle::Limits { tokens_max: 3, token_ratio_thousandths: 253 })
            }
            (4, _) => bucket(500),
            (_, 0) => bucket(1_000_000),
            (_, _) => bucket(10),
        }
    }
}

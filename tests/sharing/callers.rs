//! What callers do: they report, ask, give back, all of it at any replica.
use fastrand::Rng;
use retryd::budget::{
    Account, Ask, Budget, BudgetId, Grant, Holder, Limits, Memory, Payers, Purpose, Store, Usage,
};
use retryd::engine::{Class, Coverage};

use super::guarantee::Event;
use super::plan::{Plan, Shape, Traffic};
use super::simulation::Life;

/// A greedy caller takes so much at most.
const GREED: u32 = 200;
/// When all is well again, everybody is fed and asked this often.
const HEALING_MS: u64 = 500;

pub(crate) struct Callers {
    rng: Rng,
    step_ms: u64,
    replicas: usize,
    balances: Vec<Balance>,
    /// One budget for all, that is never apart.
    exact: Option<Memory>,
    /// What may be given back: when, by which life of a replica.
    releases: Vec<(u64, usize, Granted)>,
}

struct Balance {
    budget: Budget,
    payers: Payers,
    traffic: Traffic,
    events: Vec<(u64, Event)>,
    exact: u64,
    /// Which replicas have granted since all is well.
    healed: Vec<bool>,
}

struct Granted {
    balance: usize,
    event: usize,
    cost: u64,
    grant: Grant,
}

impl Callers {
    pub(crate) fn new(plan: &Plan, with_exact: bool) -> Callers {
        let budgets: Vec<Budget> = plan.budgets.iter().map(|(budget, _)| budget.clone()).collect();
        let balance = |(number, (budget, traffic)): (usize, &(Budget, Traffic))| Balance {
            budget: budget.clone(),
            payers: Payers::new(&[BudgetId(number)], &budgets).unwrap(),
            traffic: *traffic,
            events: Vec::new(),
            exact: 0,
            healed: vec![false; plan.replicas],
        };
        Callers {
            rng: Rng::with_seed(plan.seed.wrapping_add(2)),
            step_ms: plan.step_ms,
            replicas: plan.replicas,
            balances: plan.budgets.iter().enumerate().map(balance).collect(),
            exact: with_exact.then(|| Memory::new(&budgets)),
            releases: Vec::new(),
        }
    }

    /// One step of time.
    pub(crate) fn act(&mut self, lives: &[Life], now_ms: u64, calm_ms: u64) {
        self.release(lives, now_ms);
        for number in 0..self.balances.len() {
            let traffic = self.balances[number].traffic;
            for _ in 0..traffic.requests(&mut self.rng, now_ms, self.step_ms) {
                self.request(lives, number, now_ms);
            }
            if let Shape::Storms { period_ms } = traffic.shape
                && now_ms % period_ms < self.step_ms
            {
                for replica in 0..self.replicas {
                    self.ask_for_all(lives, number, replica, now_ms);
                }
            }
        }
        let is_due = now_ms.is_multiple_of(HEALING_MS);
        if calm_ms + HEALING_MS < now_ms && is_due && self.exact.is_none() {
            self.heal(lives, now_ms);
        }
    }

    fn request(&mut self, lives: &[Life], number: usize, now_ms: u64) {
        let traffic = self.balances[number].traffic;
        let fails = self.rng.u32(..100) < traffic.failing;
        let usage = Usage { requests: 1, first_try_successes: u64::from(!fails), ..Usage::NOTHING };
        let reporter = traffic.reports.pick(&mut self.rng, self.replicas);
        self.report(lives, number, reporter, &usage, now_ms);
        if !fails || matches!(traffic.shape, Shape::Storms { .. }) {
            return;
        }
        let asker = traffic.asks.pick(&mut self.rng, self.replicas);
        if self.rng.u32(..100) < traffic.greedy {
            self.ask_for_all(lives, number, asker, now_ms);
        } else {
            self.ask(lives, number, asker, now_ms);
        }
    }

    fn ask_for_all(&mut self, lives: &[Life], number: usize, at: usize, now_ms: u64) {
        for _ in 0..GREED {
            if !self.ask(lives, number, at, now_ms) {
                break;
            }
        }
    }

    fn report(&mut self, lives: &[Life], number: usize, at: usize, usage: &Usage, now_ms: u64) {
        let balance = &mut self.balances[number];
        if let Some(exact) = &self.exact {
            exact.deposit(balance.holder(), usage, now_ms);
        }
        let Some((_, life)) = alive(lives, at) else { return };
        life.store.deposit(balance.holder(), usage, life.clock.now().monotonic_ms);
        let earned = balance.earned(usage);
        balance.events.push((now_ms, Event::Earned { replica: at, number: earned }));
    }

    /// `false` if it was refused.
    fn ask(&mut self, lives: &[Life], number: usize, at: usize, now_ms: u64) -> bool {
        let classes = [Class::Transient, Class::Throttling, Class::Timeout];
        // Retries of one price can be compared.
        let classes = if self.exact.is_some() { &classes[..1] } else { &classes };
        let class = *self.rng.choice(classes).unwrap();
        let wanted = if self.rng.u32(..10) == 0 { self.rng.u32(2..20) } else { 1 };
        let balance = &mut self.balances[number];
        if let Some(exact) = &self.exact {
            let granted = take(exact, balance.holder(), class, 1, now_ms);
            balance.exact += u64::from(granted.retries());
        }
        let Some((life_number, life)) = alive(lives, at) else { return false };
        let wanted = if self.exact.is_some() { 1 } else { wanted };
        let clock_ms = life.clock.now().monotonic_ms;
        let grant = take(&life.store, balance.holder(), class, wanted, clock_ms);
        let retries = grant.retries();
        if retries == 0 {
            return false;
        }
        let class = if wanted == 1 { class } else { Class::Transient };
        let cost = balance.cost(class);
        let event = Event::Granted { replica: at, retries, cost: cost * u64::from(retries) };
        balance.events.push((now_ms, event));
        let event = balance.events.len() - 1;
        if self.rng.u32(..100) < balance.traffic.released {
            let due_ms = now_ms + self.rng.u64(..5_000);
            let granted = Granted { balance: number, event, cost, grant };
            self.releases.push((due_ms, life_number, granted));
        } else if self.rng.u32(..3) == 0 {
            // The retry has worked.
            let usage = match class {
                Class::Transient => Usage { retried_transient: 1, ..RETRIED },
                Class::Throttling => Usage { retried_throttling: 1, ..RETRIED },
                Class::Timeout => Usage { retried_timeout: 1, ..RETRIED },
            };
            self.report(lives, number, at, &usage, now_ms);
        }
        true
    }

    fn release(&mut self, lives: &[Life], now_ms: u64) {
        let due = self.releases.extract_if(.., |(due_ms, ..)| *due_ms <= now_ms);
        for (_, life, Granted { balance, event, cost, mut grant }) in due.collect::<Vec<_>>() {
            let (life, balance) = (&lives[life], &mut self.balances[balance]);
            if life.to_ms.is_some() {
                continue;
            }
            let clock_ms = life.clock.now().monotonic_ms;
            let retries = self.rng.u32(1..=grant.retries());
            let retries = life.store.give_back(balance.holder(), &mut grant, retries, clock_ms);
            let cost = cost * u64::from(retries);
            let released = Event::Released { replica: life.replica, retries, cost, of: event };
            balance.events.push((now_ms, released));
        }
    }

    /// Whoever is fed must grant again.
    fn heal(&mut self, lives: &[Life], now_ms: u64) {
        let usage = Usage { requests: 1_000, first_try_successes: 1_000, ..Usage::NOTHING };
        for number in 0..self.balances.len() {
            for replica in 0..self.replicas {
                self.report(lives, number, replica, &usage, now_ms);
                let is_granted = self.ask(lives, number, replica, now_ms);
                self.balances[number].healed[replica] |= is_granted;
            }
        }
    }

    pub(crate) fn crashed(&mut self, now_ms: u64, replica: usize) {
        for balance in &mut self.balances {
            balance.events.push((now_ms, Event::Crashed { replica }));
        }
    }

    pub(crate) fn not_healed(&self) -> Vec<String> {
        let mut not_healed = Vec::new();
        for balance in self.balances.iter().filter(|balance| balance.heals()) {
            for (replica, is_healed) in balance.healed.iter().enumerate() {
                if !is_healed {
                    not_healed.push(format!("{} at replica {replica}", balance.budget.name));
                }
            }
        }
        not_healed
    }

    pub(crate) fn granted(&self) -> Vec<(u64, u64)> {
        let granted = |balance: &Balance| {
            let retries = balance.events.iter().map(|(_, event)| match event {
                Event::Granted { retries, .. } => u64::from(*retries),
                _ => 0,
            });
            (retries.sum(), balance.exact)
        };
        self.balances.iter().map(granted).collect()
    }

    pub(crate) fn events(&self, number: usize) -> &[(u64, Event)] {
        &self.balances[number].events
    }
}

const RETRIED: Usage = Usage { retried_successes: 1, ..Usage::NOTHING };

impl Balance {
    fn holder(&self) -> Holder<'_> {
        Holder { payers: &self.payers, tenant: "acme", operation: "get", twins: false }
    }

    /// Requests of a ratio, tokens of a token bucket.
    fn earned(&self, usage: &Usage) -> u64 {
        match self.budget.limits {
            Limits::Ratio(_) => usage.requests,
            Limits::TokenBucket(_) => {
                let retried = [
                    (usage.retried_transient, Class::Transient),
                    (usage.retried_throttling, Class::Throttling),
                    (usage.retried_timeout, Class::Timeout),
                ];
                let tokens = retried.map(|(successes, class)| successes * self.cost(class));
                usage.first_try_successes + tokens.iter().sum::<u64>()
            }
            Limits::Throttle(_) => 0,
        }
    }

    fn cost(&self, class: Class) -> u64 {
        let Limits::TokenBucket(bucket) = self.budget.limits else { return 0 };
        let costs = bucket.costs;
        let cost = match class {
            Class::Transient => costs.transient,
            Class::Throttling => costs.throttling,
            Class::Timeout => costs.timeout,
        };
        cost.into()
    }

    /// Whether a thousand successes pay for a retry.
    fn heals(&self) -> bool {
        match self.budget.limits {
            Limits::Ratio(ratio) => 0 < ratio.percent,
            Limits::Throttle(_) | Limits::TokenBucket(_) => true,
        }
    }
}

fn alive(lives: &[Life], replica: usize) -> Option<(usize, &Life)> {
    lives.iter().enumerate().find(|(_, life)| life.replica == replica && life.to_ms.is_none())
}

/// One retry as the decider takes it, or several ahead of failures.
fn take(store: &Memory, holder: Holder<'_>, class: Class, wanted: u32, now_ms: u64) -> Grant {
    if 1 < wanted {
        return store.acquire(holder, wanted, now_ms).0;
    }
    let ask = Ask {
        holder,
        usage: &Usage::NOTHING,
        counts: true,
        purpose: Purpose::Attempt(class),
        dry_run: false,
        now_ms,
    };
    let mut account = store.open(&ask, None);
    let mut grant = Grant::default();
    if matches!(account.coverage(), Coverage::Covered(_)) {
        let _ = account.charge(Some(&mut grant));
    }
    grant
}

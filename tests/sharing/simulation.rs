//! Plays a plan: the real store and the real ticker of each replica, in a network that fails.
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use retryd::budget::shared::{Sharing, Ticker};
use retryd::budget::{BALANCES_MAX, Budget, Memory};
use retryd::clock::{Clock, Dice, Now};
use retryd::simulate::pool;
use tokio_util::sync::CancellationToken;
use turmoil::Sim;

use super::callers::Callers;
use super::guarantee::History;
use super::histories::histories;
use super::network::{Executed, Host, Outcome, Outcomes, POOL_HOST, Remote};
use super::plan::{CALM_MS, Fault, Plan};

/// What came of it.
pub(crate) struct Played {
    pub(crate) histories: Vec<History>,
    pub(crate) executed: Vec<Executed>,
    /// Balances that did not grant again when all was well again.
    pub(crate) not_healed: Vec<String>,
    /// Retries of each balance: granted by all replicas, and by one exact budget.
    pub(crate) granted: Vec<(u64, u64)>,
}

/// One life of a replica.
pub(crate) struct Life {
    pub(crate) replica: usize,
    pub(crate) from_ms: u64,
    pub(crate) to_ms: Option<u64>,
    pub(crate) store: Arc<Memory>,
    pub(crate) clock: Clock,
    outcomes: Outcomes,
    end: CancellationToken,
}

impl Life {
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        self.outcomes.all.lock().unwrap().clone()
    }
}

/// Every life that ever began.
#[derive(Default)]
pub(crate) struct Lives {
    pub(crate) all: RefCell<Vec<Life>>,
    rng: RefCell<Rng>,
}

pub(crate) fn play(plan: &Plan, with_exact: bool) -> Played {
    // Tickers roll their own dice.
    fastrand::seed(plan.seed);
    let rng = RefCell::new(Rng::with_seed(plan.seed.wrapping_add(1)));
    let lives = Rc::new(Lives { rng, ..Lives::default() });
    let host = Host::default();
    host.time_ms.set(1_700_000_000_000);
    let mut sim = network(plan);
    {
        let host = host.clone();
        sim.host(POOL_HOST, move || host.clone().run());
    }
    let budgets: Arc<[Budget]> = plan.budgets.iter().map(|(budget, _)| budget.clone()).collect();
    let now_ms = Arc::new(AtomicU64::new(0));
    for replica in 0..plan.replicas {
        let (lives, budgets) = (Rc::clone(&lives), Arc::clone(&budgets));
        let (now_ms, replicas) = (Arc::clone(&now_ms), plan.replicas);
        sim.host(name(replica), move || begin(&lives, replica, replicas, &budgets, &now_ms));
    }

    let mut callers = Callers::new(plan, with_exact);
    let mut faults = plan.faults.iter().peekable();
    let step = Duration::from_millis(plan.step_ms);
    let calm_ms = plan.until_ms - CALM_MS;
    for at_ms in (0..plan.until_ms).step_by(usize::try_from(plan.step_ms).unwrap()) {
        while let Some((_, fault)) = faults.next_if(|(due_ms, _)| *due_ms <= at_ms) {
            fail(&mut sim, &host, &lives, &mut callers, at_ms, *fault);
        }
        if (calm_ms..calm_ms + plan.step_ms).contains(&at_ms) {
            calm(&mut sim, &host, &lives, &mut callers, plan, at_ms);
        }
        sim.step().unwrap();
        let at_ms = at_ms + plan.step_ms;
        now_ms.store(at_ms, Ordering::Relaxed);
        host.now_ms.set(at_ms);
        host.time_ms.set(host.time_ms.get() + plan.step_ms);
        lives.all.borrow().iter().for_each(|life| life.clock.advance(step));
        callers.act(&lives.all.borrow(), at_ms, calm_ms);
    }

    let executed = host.executed.take();
    let histories = histories(plan, &callers, &lives.all.borrow(), &executed);
    let (not_healed, granted) = (callers.not_healed(), callers.granted());
    Played { histories, executed, not_healed, granted }
}

fn network(plan: &Plan) -> Sim<'static> {
    let (from_ms, to_ms) = plan.network.latency_ms;
    turmoil::Builder::new()
        .tick_duration(Duration::from_millis(plan.step_ms))
        .simulation_duration(Duration::from_millis(plan.until_ms * 2))
        .min_message_latency(Duration::from_millis(from_ms))
        .max_message_latency(Duration::from_millis(to_ms))
        .fail_rate(f64::from(plan.network.lost) / 1e6)
        .udp_capacity(100_000)
        .rng_seed(plan.seed)
        .build()
}

fn name(replica: usize) -> String {
    format!("replica-{replica}")
}

/// A replica starts, and knows nothing of its last life.
fn begin(
    lives: &Lives,
    replica: usize,
    replicas: usize,
    budgets: &[Budget],
    now_ms: &Arc<AtomicU64>,
) -> impl Future<Output = turmoil::Result> + use<> {
    let sharing = Arc::new(Sharing::new(u32::try_from(replicas).unwrap()));
    // Its own clock began whenever its machine did.
    let monotonic_ms = lives.rng.borrow_mut().u64(..100_000_000);
    let clock = Clock::standing_at(Now { monotonic_ms, unix_ms: 0 });
    let outcomes = Outcomes { now_ms: Arc::clone(now_ms), ..Outcomes::default() };
    let end = CancellationToken::new();
    let who = format!("{}.{}", name(replica), lives.all.borrow().len());
    lives.all.borrow_mut().push(Life {
        replica,
        from_ms: now_ms.load(Ordering::Relaxed),
        to_ms: None,
        store: Arc::new(Memory::shared(budgets, BALANCES_MAX, Arc::clone(&sharing))),
        clock: clock.clone(),
        outcomes: outcomes.clone(),
        end: end.clone(),
    });
    async move {
        let remote = Remote::new(who, outcomes).await?;
        Ticker::new(remote, sharing, clock, Dice::fair()).run(end).await;
        Ok(())
    }
}

fn fail(
    sim: &mut Sim<'_>,
    host: &Host,
    lives: &Lives,
    callers: &mut Callers,
    now_ms: u64,
    fault: Fault,
) {
    match fault {
        Fault::Partition(replica) => sim.partition(name(replica), POOL_HOST),
        Fault::Deafen(replica) => sim.partition_oneway(POOL_HOST, name(replica)),
        Fault::Hold(replica) => sim.hold(name(replica), POOL_HOST),
        Fault::Repair(replica) => {
            sim.release(name(replica), POOL_HOST);
            sim.repair(name(replica), POOL_HOST);
        }
        Fault::Crash(replica) => {
            if let Some(number) = living(lives, replica) {
                sim.crash(name(replica));
                lives.all.borrow_mut()[number].to_ms = Some(now_ms);
                callers.crashed(now_ms, replica);
            }
        }
        Fault::Exit(replica) => {
            if let Some(number) = living(lives, replica) {
                let life = &mut lives.all.borrow_mut()[number];
                life.end.cancel();
                life.to_ms = Some(now_ms);
                // What it gives back may be lost on the way, with what it owes.
                callers.crashed(now_ms, replica);
            }
        }
        Fault::Start(replica) => {
            if living(lives, replica).is_none() {
                sim.bounce(name(replica));
            }
        }
        Fault::StopPools { forgets } => {
            sim.crash(POOL_HOST);
            if forgets {
                host.store.replace(pool::Store::default());
            }
        }
        Fault::StartPools => sim.bounce(POOL_HOST),
        Fault::Forget => {
            host.store.replace(pool::Store::default());
        }
        Fault::Refuse(refuses) => host.refuses.set(refuses),
        Fault::SetBack { by_ms } => host.time_ms.set(host.time_ms.get() - by_ms),
    }
}

/// From here on nothing fails.
fn calm(
    sim: &mut Sim<'_>,
    host: &Host,
    lives: &Lives,
    callers: &mut Callers,
    plan: &Plan,
    now_ms: u64,
) {
    sim.set_fail_rate(0.0);
    let (from_ms, to_ms) = plan.network.latency_ms;
    sim.set_max_message_latency(Duration::from_millis(to_ms.min(from_ms + 10)));
    if !sim.is_host_running(POOL_HOST) {
        fail(sim, host, lives, callers, now_ms, Fault::StartPools);
    }
    fail(sim, host, lives, callers, now_ms, Fault::Refuse(false));
    for replica in 0..plan.replicas {
        fail(sim, host, lives, callers, now_ms, Fault::Repair(replica));
        fail(sim, host, lives, callers, now_ms, Fault::Start(replica));
    }
}

fn living(lives: &Lives, replica: usize) -> Option<usize> {
    let lives = lives.all.borrow();
    lives.iter().position(|life| life.replica == replica && life.to_ms.is_none())
}

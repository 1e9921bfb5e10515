//! A network between replicas and the host of the pools, in which anything may be lost, late or
//! held for long: one datagram for each call, and one for each answer.
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use retryd::budget::shared::exchange::{Call, Reply, Sizes};
use retryd::budget::shared::pools::{Attendance, Errand, Failure, Fleet, Pools};
use retryd::simulate::pool;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use turmoil::net::UdpSocket;

pub(crate) const POOL_HOST: &str = "pool";
const PORT: u16 = 6_379;
/// A call about a pool is shorter.
const DATAGRAM_MAX: usize = 4_096;
const CALL_MAX: Duration = Duration::from_millis(50);

/// The host of the pools, as the simulation sees it from outside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    pub(crate) store: Rc<RefCell<pool::Store>>,
    /// Its own time of day, which an operator may set back.
    pub(crate) time_ms: Rc<Cell<u64>>,
    /// Refuses every call, as a server does that is loading or has become a copy.
    pub(crate) refuses: Rc<Cell<bool>>,
    /// The time of the simulation.
    pub(crate) now_ms: Rc<Cell<u64>>,
    pub(crate) executed: Rc<RefCell<Vec<Executed>>>,
}

/// One exchange at the pools.
#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) at_ms: u64,
    pub(crate) pool: Box<str>,
    /// There was no such pool.
    pub(crate) made_it: bool,
    who: String,
    pub(crate) call: Call,
    pub(crate) reply: Reply,
}

impl fmt::Display for Executed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Executed { at_ms, who, call, reply, .. } = self;
        write!(f, "{at_ms:>7}  {who} says {}, hears {}", spoken(call), heard(reply))
    }
}

impl Host {
    pub(crate) async fn run(self) -> turmoil::Result {
        let socket = UdpSocket::bind((IpAddr::from([0, 0, 0, 0]), PORT)).await?;
        let mut datagram = vec![0; DATAGRAM_MAX];
        loop {
            let (length, from) = socket.recv_from(&mut datagram).await?;
            let Asked { id, who, said } = serde_json::from_slice(&datagram[..length])?;
            let told = (!self.refuses.get()).then(|| self.execute(&who, said));
            socket.send_to(&serde_json::to_vec(&(id, told))?, from).await?;
        }
    }

    fn execute(&self, who: &str, said: Said) -> Told {
        let (time_ms, mut store) = (self.time_ms.get(), self.store.borrow_mut());
        match said {
            Said::Attends { now_ms, attended_ms } => {
                let attendance = Attendance { now_ms, attended_ms };
                let fleet = store.attend(time_ms, who, attendance, false);
                Told::Fleet(fleet.now_ms, fleet.replicas, fleet.emptied_ms)
            }
            Said::Exchanges { pool, now_ms, call } => {
                let errand = Errand { pool: pool.into(), now_ms, call: call_of(&call) };
                let made_it = !store.has_pool(time_ms, &errand.pool);
                let reply = store.exchange(time_ms, who, &errand);
                let told = Told::Reply(numbers_of(&reply));
                let (at_ms, who) = (self.now_ms.get(), who.to_owned());
                let Errand { pool, call, .. } = errand;
                let executed = Executed { at_ms, pool, made_it, who, call, reply };
                self.executed.borrow_mut().push(executed);
                told
            }
            Said::Leaves => {
                let last = Attendance { now_ms: 0, attended_ms: 0 };
                store.attend(time_ms, who, last, true);
                Told::Left
            }
        }
    }
}

/// Reaches the pools over the network.
#[derive(Debug)]
pub(crate) struct Remote {
    socket: UdpSocket,
    who: String,
    asked: u64,
    outcomes: Outcomes,
}

/// What became of each call of one replica, in the order in which that was known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) now_ms: Arc<AtomicU64>,
    pub(crate) all: Arc<Mutex<Vec<Outcome>>>,
}

/// What became of one call: of one to a pool, or of attending.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) at_ms: u64,
    pub(crate) pool: Option<String>,
    pub(crate) is_answered: bool,
}

impl Remote {
    pub(crate) async fn new(who: String, outcomes: Outcomes) -> turmoil::Result<Remote> {
        let socket = UdpSocket::bind((IpAddr::from([0, 0, 0, 0]), 0)).await?;
        Ok(Remote { socket, who, asked: 0, outcomes })
    }

    /// Sends all of it, and waits for all answers no longer than one call may take.
    async fn ask(&mut self, all: Vec<Said>) -> Vec<Result<Told, Failure>> {
        let until = Instant::now() + CALL_MAX;
        let first = self.asked;
        let count = all.len();
        for said in all {
            let asked = Asked { id: self.asked, who: self.who.clone(), said };
            self.asked += 1;
            let datagram = serde_json::to_vec(&asked).unwrap();
            // What cannot be sent is lost.
            let _ = self.socket.send_to(&datagram, (POOL_HOST, PORT)).await;
        }
        let mut answers = BTreeMap::new();
        let mut datagram = vec![0; DATAGRAM_MAX];
        while answers.len() < count {
            let received = timeout_at(until, self.socket.recv_from(&mut datagram)).await;
            let Ok(Ok((length, _))) = received else { break };
            let (id, told): (u64, Option<Told>) =
                serde_json::from_slice(&datagram[..length]).unwrap();
            // What comes too late was given up before.
            if first <= id {
                answers.insert(id, told.ok_or_else(|| Failure::Refused("READONLY".to_owned())));
            }
        }
        let missing = || Err(Failure::Unknown("timed out".to_owned()));
        (first..self.asked).map(|id| answers.remove(&id).unwrap_or_else(missing)).collect()
    }

    fn note(&self, pool: Option<&str>, is_answered: bool) {
        let at_ms = self.outcomes.now_ms.load(Ordering::Relaxed);
        let pool = pool.map(str::to_owned);
        self.outcomes.all.lock().unwrap().push(Outcome { at_ms, pool, is_answered });
    }
}

impl Pools for Remote {
    async fn attend(&mut self, attendance: Attendance) -> Result<Fleet, Failure> {
        let Attendance { now_ms, attended_ms } = attendance;
        let told = self.ask(vec![Said::Attends { now_ms, attended_ms }]).await.pop().unwrap();
        self.note(None, told.is_ok());
        match told? {
            Told::Fleet(now_ms, replicas, emptied_ms) => Ok(Fleet { now_ms, replicas, emptied_ms }),
            told => panic!("{told:?}"),
        }
    }

    async fn exchange(&mut self, errands: &[Errand]) -> Vec<Result<Reply, Failure>> {
        let said = |errand: &Errand| Said::Exchanges {
            pool: errand.pool.to_string(),
            now_ms: errand.now_ms,
            call: numbers_said(&errand.call),
        };
        let told = self.ask(errands.iter().map(said).collect()).await;
        let reply = |(errand, told): (&Errand, Result<Told, Failure>)| {
            self.note(Some(&errand.pool), told.is_ok());
            match told? {
                Told::Reply(numbers) => Ok(reply_of(&numbers)),
                told => panic!("{told:?}"),
            }
        };
        errands.iter().zip(told).map(reply).collect()
    }

    async fn leave(&mut self) -> Result<(), Failure> {
        self.ask(vec![Said::Leaves]).await.pop().unwrap().map(|_| ())
    }
}

#[derive(Debug, Deserialize, Serialize)]
struct Asked {
    id: u64,
    who: String,
    said: Said,
}

#[derive(Debug, Deserialize, Serialize)]
enum Said {
    Attends { now_ms: u64, attended_ms: u64 },
    Exchanges { pool: String, now_ms: u64, call: Vec<u64> },
    Leaves,
}

#[derive(Debug, Deserialize, Serialize)]
enum Told {
    Fleet(u64, u32, Option<u64>),
    Reply(Vec<u64>),
    Left,
}

fn numbers_said(call: &Call) -> Vec<u64> {
    let Call { sequence, sizes, start, debt, wants_units, holds, wants, returns, owes, gives } =
        call;
    let Sizes { tokens, parts, refill, interval_ms, price, forgives } = *sizes;
    let numbers = [
        *sequence,
        tokens,
        parts,
        refill,
        interval_ms,
        price,
        forgives.into(),
        *start,
        *debt,
        *wants_units,
        *holds,
        *wants,
        *returns,
        *owes,
    ];
    numbers.into_iter().chain(pairs(gives)).collect()
}

fn call_of(numbers: &[u64]) -> Call {
    let (&[sequence, tokens, parts, refill, interval_ms, price, forgives], rest) =
        numbers.split_first_chunk().unwrap();
    let (&[start, debt, wants_units, holds, wants, returns, owes], gives) =
        rest.split_first_chunk().unwrap();
    let sizes = Sizes { tokens, parts, refill, interval_ms, price, forgives: forgives == 1 };
    let gives = gives.chunks(2).map(pair).collect();
    Call { sequence, sizes, start, debt, wants_units, holds, wants, returns, owes, gives }
}

fn numbers_of(reply: &Reply) -> Vec<u64> {
    let Reply { now_ms, granted, active, debt, level, units_left, units } = reply;
    let numbers = [*now_ms, *granted, *active, *debt, *level, *units_left];
    numbers.into_iter().chain(pairs(units)).collect()
}

fn reply_of(numbers: &[u64]) -> Reply {
    let (&[now_ms, granted, active, debt, level, units_left], units) =
        numbers.split_first_chunk().unwrap();
    let units = units.chunks(2).map(pair).collect();
    Reply { now_ms, granted, active, debt, level, units_left, units }
}

fn pairs(units: &[(u64, u32)]) -> impl Iterator<Item = u64> {
    units.iter().flat_map(|(began, units)| [*began, u64::from(*units)])
}

fn pair(numbers: &[u64]) -> (u64, u32) {
    (numbers[0], u32::try_from(numbers[1]).unwrap())
}

fn spoken(call: &Call) -> String {
    let Call { sequence, start, debt, wants_units, holds, wants, returns, owes, gives, .. } = call;
    format!(
        "#{sequence} start {start} debt {debt} holds {holds} wants {wants} returns {returns} owes {owes} \
         wants_units {wants_units} gives {gives:?}"
    )
}

fn heard(reply: &Reply) -> String {
    let Reply { now_ms, granted, active, debt, level, units_left, units } = reply;
    format!(
        "at {now_ms} granted {granted} active {active} debt {debt} level {level} units {units:?} \
         left {units_left}"
    )
}

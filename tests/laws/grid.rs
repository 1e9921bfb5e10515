//! Every combination of facts at, just below and just above each edge, by number.
use std::{ops::Range, thread};

use retryd::engine::{
    Backoff, Category, Coverage, Evidence, Facts, Failure, GrpcCode, Hint, HttpStatus, Idempotency,
    Jitter, Judged, Purse, Wait,
};

use super::reference::{Policy, backoff_ms};

/// The axes along which facts vary.
pub(crate) struct Grid {
    subjects: Vec<Subject>,
    gauges: Vec<Gauges>,
    repeats: Vec<(Option<Evidence>, Idempotency)>,
}

/// A failure judged by a policy, and the draw that spreads its backoff.
struct Subject {
    failure: Judged,
    policy: Policy,
    draw: u32,
}

/// What the first five blockers look at.
#[derive(Clone, Copy)]
struct Gauges {
    attempts_above_edge: u32,
    budget: Coverage<'static>,
    body_replayable: bool,
    first_byte_delivered: bool,
    runtime_draining: bool,
}

const HINTS: usize = 9;
const DEADLINES: usize = 12;

impl Grid {
    /// Everything, with one draw without jitter and one with it.
    pub(crate) fn full() -> Grid {
        let mut gauges = Vec::new();
        for number in 0..3 * 3 * 8 {
            let n = &mut { number };
            gauges.push(Gauges {
                attempts_above_edge: [0, 1, 2][place(n, 3)],
                budget: BUDGETS[place(n, 3)],
                body_replayable: flag(n),
                first_byte_delivered: flag(n),
                runtime_draining: flag(n),
            });
        }
        let repeats = EVIDENCE.into_iter().flat_map(|e| IDEMPOTENCY.map(|i| (e, i))).collect();
        Grid { subjects: subjects(&DRAWS[..2]), gauges, repeats }
    }

    /// Every draw, but at most one of the first five blockers and one of each grade of evidence:
    /// for laws that ask the engine many times about each combination.
    pub(crate) fn coarse() -> Grid {
        let clear = Gauges {
            attempts_above_edge: 0,
            budget: Coverage::Unbudgeted,
            body_replayable: true,
            first_byte_delivered: false,
            runtime_draining: false,
        };
        let gauges = vec![
            clear,
            Gauges { attempts_above_edge: 1, ..clear },
            Gauges { budget: Coverage::Exhausted(PURSE), ..clear },
            Gauges { body_replayable: false, ..clear },
            Gauges { first_byte_delivered: true, ..clear },
            Gauges { runtime_draining: true, ..clear },
        ];
        let evidence = [None, Some(Evidence::NotSent)];
        let [none, declared, unsent, keyed, ..] = IDEMPOTENCY;
        let repeats = evidence
            .into_iter()
            .flat_map(|e| [none, declared, unsent, keyed].map(|i| (e, i)))
            .collect();
        Grid { subjects: subjects(&DRAWS), gauges, repeats }
    }

    /// Nothing but the failure, the hint and the deadline in the way of a yes.
    pub(crate) fn clear() -> Grid {
        let mut grid = Grid::coarse();
        grid.gauges.truncate(1);
        grid.repeats = vec![(None, IDEMPOTENCY[1])];
        grid
    }

    pub(crate) fn len(&self) -> usize {
        self.subjects.len() * self.gauges.len() * self.repeats.len() * HINTS * DEADLINES
    }

    /// Shows every combination to `visit`, on two threads.
    pub(crate) fn each(&self, visit: impl Fn(&Policy, &Facts<'_>) + Sync) {
        let show = |range: Range<usize>| {
            range.for_each(|number| {
                let (policy, facts) = self.get(number);
                visit(policy, &facts);
            });
        };
        let half = self.len() / 2;
        thread::scope(|scope| {
            scope.spawn(|| show(0..half));
            show(half..self.len());
        });
    }

    /// The combination with this number.
    pub(crate) fn get(&self, number: usize) -> (&Policy, Facts<'_>) {
        let n = &mut { number };
        let Subject { failure, policy, draw } = &self.subjects[place(n, self.subjects.len())];
        let rules = &policy.rules;
        let gauges = self.gauges[place(n, self.gauges.len())];
        let (evidence, idempotency) = self.repeats[place(n, self.repeats.len())];
        let mut facts = Facts {
            rules,
            attempts_made: rules.attempts_max - 1 + gauges.attempts_above_edge,
            budget: gauges.budget,
            body_replayable: gauges.body_replayable,
            first_byte_delivered: gauges.first_byte_delivered,
            runtime_draining: gauges.runtime_draining,
            remaining_ms: None,
            failure: *failure,
            evidence,
            idempotency,
            hint: Hint::default(),
            draw: *draw,
        };
        let b = u64::try_from(backoff_ms(&facts)).unwrap();
        let (wait, h) = hint(place(n, HINTS), b, rules.hint_ms_max);
        facts.hint.wait = wait;
        facts.remaining_ms = deadline(place(n, DEADLINES), b, h, rules.min_attempt_budget_ms);
        (policy, facts)
    }
}

fn hint(place: usize, b: u64, max: u64) -> (Wait, u64) {
    match place {
        0 => (Wait::Unsaid, 0),
        1 => (Wait::Forbidden, 0),
        _ => {
            let h = [0, b - 1, b, b + 1, max - 1, max, max + 1][place - 2];
            (Wait::AtLeast(h), h)
        }
    }
}

fn deadline(place: usize, b: u64, h: u64, min: u64) -> Option<u64> {
    // A delay fits from one millisecond above itself and the minimum attempt budget.
    let fits = |delay| delay + min + 1;
    let edges: [u64; DEADLINES - 1] = [
        0,
        min.saturating_sub(1),
        min,
        min + 1,
        fits(b) - 1,
        fits(b),
        fits(h) - 1,
        fits(h),
        fits(h + b) - 1,
        fits(h + b),
        86_400_000,
    ];
    edges.get(place).copied()
}

const PURSE: Purse<'static> = Purse { budget: "per-tenant", available: 1 };
const BUDGETS: [Coverage<'static>; 4] = [
    Coverage::Unbudgeted,
    Coverage::Covered(PURSE),
    Coverage::Remembered(PURSE),
    Coverage::Exhausted(PURSE),
];
const EVIDENCE: [Option<Evidence>; 5] = [
    None,
    Some(Evidence::NotSent),
    Some(Evidence::Refused),
    Some(Evidence::MaybeProcessed),
    Some(Evidence::Processed),
];
const IDEMPOTENCY: [Idempotency; 8] = [
    idempotency(false, false, false),
    idempotency(true, false, false),
    idempotency(false, true, false),
    idempotency(false, true, true),
    idempotency(false, false, true),
    idempotency(true, true, false),
    idempotency(true, false, true),
    idempotency(true, true, true),
];

const fn idempotency(declared: bool, key_registered: bool, key_sent: bool) -> Idempotency {
    Idempotency { declared, key_registered, key_sent }
}

/// Draws that make a difference: without jitter, none does.
const DRAWS: [(Jitter, u32); 7] = [
    (Jitter::None, u32::MAX / 2),
    (Jitter::Full, u32::MAX / 2),
    (Jitter::Full, 0),
    (Jitter::Full, u32::MAX),
    (Jitter::Equal, 0),
    (Jitter::Equal, u32::MAX / 2),
    (Jitter::Equal, u32::MAX),
];

/// One failure for each way in which a policy can look at one: permanent or not, listed or not,
/// proven unprocessed or not, and the one that is retryable only with a hint.
fn subjects(draws: &[(Jitter, u32)]) -> Vec<Subject> {
    let exhausted = Failure::Grpc(GrpcCode::ResourceExhausted);
    // The longest hint is longer than the longest backoff, which is reached.
    let defaults = Policy::default().backoff_ms_max(150).hint_ms_max(1_000);
    // Here it is shorter.
    let hasty = Policy { refusal_grpc: &[], refusal_http: &[400], ..defaults }
        .min_attempt_budget_ms(0)
        .hint_ms_max(60);
    let closed = Policy { retry_grpc: &[], ..defaults };
    [
        (http(503), defaults),
        (http(404), defaults),
        (http(400), defaults),
        (http(429), defaults),
        (exhausted, defaults),
        (Failure::Category(Category::Connect), defaults),
        (Failure::Category(Category::PoolExhausted), defaults),
        (exhausted, hasty),
        (http(400), hasty),
        (exhausted, closed),
    ]
    .into_iter()
    .flat_map(|(failure, policy)| {
        draws.iter().map(move |(jitter, draw)| {
            let policy = policy.listed().jitter(*jitter);
            Subject { failure: Judged::by(&policy.rules, failure), policy, draw: *draw }
        })
    })
    .collect()
}

pub(crate) fn http(status: u16) -> Failure {
    Failure::Http(HttpStatus::new(status).unwrap())
}

impl Policy {
    pub(crate) fn jitter(mut self, jitter: Jitter) -> Policy {
        self.rules.backoff = Backoff { jitter, ..self.rules.backoff };
        self
    }

    fn backoff_ms_max(mut self, max_ms: u64) -> Policy {
        self.rules.backoff = Backoff { max_ms, ..self.rules.backoff };
        self
    }

    fn hint_ms_max(mut self, hint_ms_max: u64) -> Policy {
        self.rules.hint_ms_max = hint_ms_max;
        self
    }

    fn min_attempt_budget_ms(mut self, min_attempt_budget_ms: u64) -> Policy {
        self.rules.min_attempt_budget_ms = min_attempt_budget_ms;
        self
    }
}

/// One digit of a number whose digits have different bases.
fn place(number: &mut usize, values: usize) -> usize {
    let digit = *number % values;
    *number /= values;
    digit
}

fn flag(number: &mut usize) -> bool {
    place(number, 2) == 1
}

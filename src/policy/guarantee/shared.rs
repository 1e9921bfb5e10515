//! What a budget guarantees that several replicas share.
use super::{
    GRANTS_NOTHING, Gep2257, counted, each_balance, earned_and_floor, floors, from_full,
    token_ratio, upper_half,
};
use crate::budget::{Budget, Limits, OnStoreLoss, bucket, ratio, throttle};

/// What bounds the retries that `replicas` replicas grant together from `budget` while they share
/// it by a store, as `retryd check --replicas` prints it.
///
/// ```
/// use retryd::policy::{Policies, shared_guarantee};
///
/// let policies = Policies::embedded();
/// let text = shared_guarantee(&policies.budgets()[0], 3);
/// assert!(text.contains("+ 10 x (1 + T / 1s) + 3; per tenant, over all 3 replicas"));
/// assert!(text.contains("cut off for a time t of T add 10/3 x (1 + t / 1s)"));
/// ```
pub fn shared_guarantee(budget: &Budget, replicas: u32) -> String {
    let replicas = replicas.max(1);
    let fleet = match replicas {
        1 => "1 replica".to_owned(),
        more => format!("all {more} replicas"),
    };
    let shared = Shared {
        replicas,
        on_store_loss: budget.on_store_loss,
        holds: format!("{}, over {fleet}", each_balance(budget.scope)),
    };
    match &budget.limits {
        Limits::Ratio(limits) => match earned_and_floor(limits) {
            Some(bound) => shared.ratio(limits, &bound, floors(limits, budget.scope)),
            None => GRANTS_NOTHING.to_owned(),
        },
        Limits::Throttle(limits) => shared.throttle(limits),
        Limits::TokenBucket(limits) => shared.token_bucket(limits),
    }
}

struct Shared {
    replicas: u32,
    on_store_loss: OnStoreLoss,
    /// For what the bound holds.
    holds: String,
}

/// When a replica begins to do what `on_store_loss` says.
const CUT_OFF: &str = "A replica that is cut off from the store (four exchanges missed)";

impl Shared {
    fn ratio(&self, limits: &ratio::Limits, bound: &str, floors: &str) -> String {
        let Shared { replicas, holds, .. } = self;
        let outage = self.ratio_in_an_outage(limits);
        let lost_key = match limits.floor.count {
            0 => String::new(),
            count => lost_key(count),
        };
        let counted = counted(limits);
        format!(
            "over any time T, retries granted by Decide and not released <= {bound} + {replicas}; \
             {holds}.{floors} The + {replicas} is one for each replica, which may be one retry \
             ahead of what pays for it; a replica that restarts counts as one more. \
             {outage}{lost_key} {counted}"
        )
    }

    /// What was reported to a replica is its own, so it pays whatever becomes of the store.
    fn ratio_in_an_outage(&self, limits: &ratio::Limits) -> String {
        const EARNED: &str = "what the requests reported to it have earned";
        let floor = match self.on_store_loss {
            OnStoreLoss::LocalShare if 0 < limits.floor.count => Some(&limits.floor),
            OnStoreLoss::LocalShare | OnStoreLoss::Deny => None,
        };
        let spends = match (limits.percent, floor) {
            (0, None) => "grants nothing".to_owned(),
            (0, Some(_)) => "spends its share of the floor".to_owned(),
            (_, None) => format!("spends {EARNED}, and nothing else"),
            (_, Some(_)) => format!("spends {EARNED} and its share of the floor"),
        };
        let word = word(self.on_store_loss);
        match floor {
            None => format!("{CUT_OFF} {spends} ({word}): nothing to add."),
            Some(floor) => format!(
                "{CUT_OFF} {spends}, which refills from empty ({word}): for each that is cut off \
                 for a time t of T add {}.",
                self.share_of_floor(floor)
            ),
        }
    }

    /// No share is smaller than one retry, or it would never grant.
    fn share_of_floor(&self, floor: &ratio::Floor) -> String {
        let (share, interval) = (self.share(floor.count), Gep2257(floor.interval_ms));
        if floor.count < self.replicas {
            format!("1 + {share} x t / {interval}")
        } else {
            format!("{share} x (1 + t / {interval})")
        }
    }

    /// As a fraction, since a decimal that is rounded down bounds nothing.
    fn share(&self, count: u32) -> String {
        match count.checked_rem(self.replicas) {
            Some(0) => (count / self.replicas).to_string(),
            _ => format!("{count}/{}", self.replicas),
        }
    }

    /// Each copy grants as the balance of a single process does; but every success feeds each of
    /// them, at the latest when it is heard of.
    fn throttle(&self, limits: &throttle::Limits) -> String {
        let Shared { replicas, holds, .. } = self;
        let (upper_half, token_ratio) = (upper_half(limits), token_ratio(limits));
        let from_full = from_full(limits);
        let outage = match self.on_store_loss {
            OnStoreLoss::LocalShare => {
                "goes on by its copy, and one that it begins then is half full, which grants \
                 nothing until something succeeds"
            }
            OnStoreLoss::Deny => "grants nothing",
        };
        format!(
            "an estimate and no allotment: each replica goes by its own copy, and hears of the \
             others every 100ms. Until they have heard of each other, each may grant what a single \
             process would: over any time T, retries granted and not released < {replicas} x \
             ({upper_half} + {token_ratio} x successes reported or heard of in T); {holds}. \
             Without a success at most {replicas} x {from_full} = {} from full, then none: time alone heals nothing, but a replica that restarts, or that \
             nobody asked about the balance for 10m, starts with a full copy until it hears of the \
             others (add {upper_half} each time). {CUT_OFF} {outage} ({}).",
            u64::from(*replicas) * u64::from(from_full),
            word(self.on_store_loss)
        )
    }

    fn token_bucket(&self, limits: &bucket::Limits) -> String {
        let Shared { replicas, holds, .. } = self;
        let bucket::Limits { capacity, costs } = limits;
        let bucket::Costs { transient, throttling, timeout } = costs;
        let from_full = capacity / costs.smallest().max(1);
        format!(
            "over any time T, the costs of retries granted and not released <= {capacity} + \
             {replicas} x {dearest} + 1 x first-try successes + the cost of each retried success, \
             both reported in T or not yet told to the store when T began; {holds}. The {replicas} x \
             {dearest} is one retry for each replica, which may be that far ahead of what pays for \
             it; a replica that restarts counts as one more. A retry costs {transient} \
             (transient), {throttling} (throttling) or {timeout} (timeout), so without a success \
             at most {from_full} + {replicas} from full, then none. A retry that succeeds pays for \
             the next: only failing retries drain the bucket. Time alone heals nothing, but a \
             balance that nobody used for 10m starts full again (add {capacity} each time). \
             {outage}{lost_key}",
            dearest = costs.largest(),
            outage = self.bucket_in_an_outage(*capacity),
            lost_key = lost_key(*capacity),
        )
    }

    fn bucket_in_an_outage(&self, capacity: u32) -> String {
        let does = match self.on_store_loss {
            OnStoreLoss::LocalShare => {
                let saved = capacity / self.replicas;
                format!("spends what it earns itself, and saves at most {saved} of it")
            }
            OnStoreLoss::Deny => "grants nothing".to_owned(),
        };
        format!("{CUT_OFF} {does} ({}).", word(self.on_store_loss))
    }
}

/// As a policy file says it.
fn word(on_store_loss: OnStoreLoss) -> &'static str {
    match on_store_loss {
        OnStoreLoss::LocalShare => "`on_store_loss: local_share`",
        OnStoreLoss::Deny => "`on_store_loss: deny`",
    }
}

fn lost_key(size: u32) -> String {
    format!(
        " A store that loses a key adds {size} if a replica that had not used the balance asks first."
    )
}

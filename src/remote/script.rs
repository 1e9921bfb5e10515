//! The scripts that run in the store: their arguments, and their answers.
use redis::{Cmd, FromRedisValue, Value};

use crate::budget::shared::exchange::Reply;
use crate::budget::shared::pools::{Attendance, Errand, Failure, Fleet};

/// Both scripts, with their names in the store.
pub(super) struct Scripts {
    pub(super) exchange: Script,
    pub(super) fleet: Script,
}

/// A script, and the digest that names it once it was loaded.
pub(super) struct Script {
    code: &'static str,
    digest: String,
}

impl Scripts {
    pub(super) fn new() -> Scripts {
        Scripts {
            exchange: Script::new(include_str!("exchange.lua")),
            fleet: Script::new(include_str!("fleet.lua")),
        }
    }

    pub(super) fn exchange(&self, key: &str, replica: &str, errand: &Errand) -> Cmd {
        let call = &errand.call;
        let sizes = &call.sizes;
        let mut command = self.exchange.call(key);
        command.arg(replica);
        let numbers = [
            errand.now_ms,
            call.sequence,
            sizes.life_ms(),
            call.start,
            call.debt,
            sizes.tokens,
            sizes.parts,
            sizes.refill,
            sizes.interval_ms,
            sizes.price,
            sizes.forgives.into(),
            call.holds,
            call.wants,
            call.returns,
            call.owes,
            call.wants_units,
        ];
        command.arg(&numbers);
        for (began, units) in &call.gives {
            command.arg(began).arg(units);
        }
        command
    }

    pub(super) fn fleet(
        &self,
        key: &str,
        replica: &str,
        attendance: &Attendance,
        leaves: bool,
    ) -> Cmd {
        let mut command = self.fleet.call(key);
        command.arg(replica).arg(attendance.now_ms).arg(attendance.attended_ms);
        command.arg(u8::from(leaves));
        command
    }
}

impl Script {
    fn new(code: &'static str) -> Script {
        Script { code, digest: redis::Script::new(code).get_hash().to_owned() }
    }

    /// Makes the script known to the store.
    pub(super) fn load(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(self.code);
        command
    }

    fn call(&self, key: &str) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.digest).arg(1).arg(key);
        command
    }
}

/// What the pool says.
pub(super) fn reply(value: Value) -> Result<Reply, Failure> {
    let numbers = numbers(value)?;
    let [now_ms, granted, active, debt, level, units_left, units @ ..] = numbers.as_slice() else {
        return Err(unreadable());
    };
    let (pairs, []) = units.as_chunks::<2>() else { return Err(unreadable()) };
    let unit = |&[began, units]: &[u64; 2]| u32::try_from(units).ok().map(|units| (began, units));
    Ok(Reply {
        now_ms: *now_ms,
        units: pairs.iter().map(unit).collect::<Option<_>>().ok_or_else(unreadable)?,
        granted: *granted,
        active: *active,
        debt: *debt,
        level: *level,
        units_left: *units_left,
    })
}

/// What the store says of the fleet.
pub(super) fn fleet(value: Value) -> Result<Fleet, Failure> {
    let numbers = numbers(value)?;
    let &[now_ms, replicas, emptied_ms] = numbers.as_slice() else { return Err(unreadable()) };
    Ok(Fleet {
        now_ms,
        replicas: u32::try_from(replicas).map_err(|_| unreadable())?,
        emptied_ms: (emptied_ms != 0).then_some(emptied_ms),
    })
}

fn numbers(value: Value) -> Result<Vec<u64>, Failure> {
    Vec::from_redis_value(value).map_err(|_| unreadable())
}

/// It was done, but nobody knows what.
fn unreadable() -> Failure {
    Failure::Unknown("the store's answer is not one of the script's".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_another_shape_is_of_unknown_fate() {
        let ints =
            |numbers: &[i64]| Value::Array(numbers.iter().copied().map(Value::Int).collect());
        let right = reply(ints(&[7, 1, 2, 0, 5, 9, 100, 3])).unwrap();
        assert_eq!((right.now_ms, right.units), (7, vec![(100, 3)]));
        for wrong in [
            Value::Nil,
            ints(&[7, 1, 2, 0, 5]),
            ints(&[7, 1, 2, 0, 5, 9, 100]),
            ints(&[7, 1, 2, 0, 5, 9, 100, -3]),
            ints(&[7, 1, 2, 0, 5, 9, 100, 1 << 32]),
        ] {
            assert!(matches!(reply(wrong.clone()), Err(Failure::Unknown(_))), "{wrong:?}");
            assert!(matches!(fleet(wrong.clone()), Err(Failure::Unknown(_))), "{wrong:?}");
        }
    }
}

//! What a process remembers for a while, so that a repeat is known for one: attempts, reports and
//! leases.
//!
//! Forgetting is always allowed. It only means that what comes again is charged again.
#[cfg(test)]
mod laws;
mod room;
mod shard;

use std::sync::Arc;

use ahash::RandomState;
use parking_lot::{Mutex, MutexGuard};

use room::Room;
use shard::{Key, Shard};

const SHARDS: usize = 16;

/// Remembers keys for a while from their first ask, and forgets the oldest first.
///
/// There are [`SHARDS`], each behind a lock of its own, and the bounds hold for all of them
/// together. Where there is no room, a shard forgets the oldest that it has, which is about the
/// oldest of all: keys are spread evenly. A shard that has none takes the room of another that
/// nobody is using just then; if there is no such either, the new key is not remembered.
pub(super) struct Recent<V> {
    hasher: RandomState,
    #[cfg(test)]
    room: Arc<Room>,
    last: Mutex<Shard<V>>,
    others: [Mutex<Shard<V>>; SHARDS - 1],
}

/// How much is remembered at once, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Keys.
    pub(super) entries_max: usize,
    /// The most memory that they take, as [`Shard::cost`] estimates it.
    pub(super) bytes_max: usize,
    /// What was first asked at `t` is remembered while `now < t + kept_ms`.
    pub(super) kept_ms: u64,
}

impl<V> Recent<V> {
    /// Remembers nothing yet. The hash is keyed at random, so that nobody can choose keys that
    /// collide.
    pub(super) fn new(bounds: Bounds) -> Recent<V> {
        let room = Arc::new(Room::new(bounds.entries_max, bounds.bytes_max));
        let shard = || Mutex::new(Shard::new(Arc::clone(&room), bounds.kept_ms));
        Recent {
            hasher: RandomState::new(),
            last: shard(),
            others: std::array::from_fn(|_| shard()),
            #[cfg(test)]
            room,
        }
    }

    /// Locks what is remembered of `key`. Whoever holds it while deciding has the next ask of the
    /// same key wait for the answer. A thread must hold one at most.
    pub(super) fn hold<'a>(&'a self, key: &'a [u8]) -> Hold<'a, V> {
        let key = Key { hash: self.hasher.hash_one(key), bytes: key };
        // Of bits by which the tables of the shards do not tell keys apart.
        let [.., middle, _, _, _] = key.hash.to_be_bytes();
        let shard = self.others.get(usize::from(middle) % SHARDS).unwrap_or(&self.last).lock();
        Hold { recent: self, key, shard }
    }

    /// Keys that are remembered, and those whose time is over but that still take room.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.room.entries()
    }

    /// The memory that they take, at most: see [`Shard::cost`].
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.room.bytes()
    }

    /// Forgets the oldest of some shard that nobody has locked. It waits for none, as two that
    /// wait for each other's shards would wait for ever.
    fn forget_elsewhere(&self) -> bool {
        let shards = self.others.iter().chain([&self.last]);
        shards.filter_map(Mutex::try_lock).any(|mut shard| shard.forget_oldest())
    }
}

/// What is remembered of one key, locked until this is dropped.
pub(super) struct Hold<'a, V> {
    recent: &'a Recent<V>,
    key: Key<'a>,
    shard: MutexGuard<'a, Shard<V>>,
}

impl<V> Hold<'_, V> {
    /// What is remembered of the key, if its time is not over.
    pub(super) fn get_mut(&mut self, now_ms: u64) -> Option<&mut V> {
        self.shard.get_mut(self.key, now_ms)
    }

    /// Remembers the key from now on, and forgets others where there is no room.
    ///
    /// For a key that is still remembered this replaces the value only: its time goes on from its
    /// first ask.
    pub(super) fn insert(&mut self, value: V, now_ms: u64) {
        let Hold { recent, key, shard } = self;
        shard.insert(*key, value, now_ms, || recent.forget_elsewhere());
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const AMPLE: Bounds = Bounds { entries_max: 1_000_000, bytes_max: usize::MAX, kept_ms: 10_000 };

    fn keys(bounds: Bounds, keys: impl IntoIterator<Item = u32>) -> Recent<u32> {
        let recent = Recent::new(bounds);
        for key in keys {
            recent.hold(&key.to_be_bytes()).insert(key, 0);
        }
        recent
    }

    fn remembered(recent: &Recent<u32>, key: u32, now_ms: u64) -> bool {
        recent.hold(&key.to_be_bytes()).get_mut(now_ms).is_some_and(|value| *value == key)
    }

    #[test]
    fn every_key_finds_its_own_value_in_its_own_time() {
        let recent = keys(AMPLE, 0..10_000);
        assert!((0..10_000).all(|key| remembered(&recent, key, 9_999)));
        assert!(!(0..10_000).any(|key| remembered(&recent, key, 10_000)));
    }

    #[test]
    fn all_of_the_room_is_used_before_anything_is_forgotten() {
        let recent = keys(Bounds { entries_max: 10_000, ..AMPLE }, 0..10_000);
        assert!((0..10_000).all(|key| remembered(&recent, key, 0)));
        recent.hold(b"one more").insert(0, 0);
        assert_eq!((0..10_000).filter(|key| remembered(&recent, *key, 0)).count(), 9_999);
    }

    #[test]
    fn about_the_oldest_is_forgotten_first() {
        let recent = keys(Bounds { entries_max: 10_000, ..AMPLE }, 0..20_000);
        let found = (0..20_000).filter(|key| remembered(&recent, *key, 0));
        let of_the_older_half = found.filter(|key| *key < 10_000).count();
        assert!(of_the_older_half < 1_000, "{of_the_older_half}");
    }

    #[test]
    fn a_shard_with_nothing_of_its_own_takes_the_room_of_another() {
        let recent = keys(Bounds { entries_max: 1, ..AMPLE }, 0..1_000);
        assert_eq!(recent.len(), 1);
        assert!(remembered(&recent, 999, 0));
    }

    #[test]
    fn what_is_larger_than_all_of_the_room_forgets_nothing() {
        let recent = keys(Bounds { bytes_max: 10_000, ..AMPLE }, 0..10);
        recent.hold(&[0; 10_000]).insert(0, 0);
        assert!(recent.hold(&[0; 10_000]).get_mut(0).is_none());
        assert!((0..10).all(|key| remembered(&recent, key, 0)));
    }

    #[test]
    fn the_bounds_hold_whoever_inserts_at_once() {
        let cost = Shard::<u32>::cost(4);
        for (bounds, entries) in [
            (Bounds { entries_max: 5_000, ..AMPLE }, 5_000),
            (Bounds { bytes_max: 5_000 * cost + 1, ..AMPLE }, 5_000),
            (Bounds { entries_max: 3, ..AMPLE }, 3),
        ] {
            let recent = &Recent::new(bounds);
            thread::scope(|scope| {
                for thread in 0..4 {
                    scope.spawn(move || {
                        for key in thread * 75_000..(thread + 1) * 75_000_u32 {
                            recent.hold(&key.to_be_bytes()).insert(key, u64::from(key % 7));
                            assert!(recent.len() <= bounds.entries_max);
                            assert!(recent.bytes() <= bounds.bytes_max);
                        }
                    });
                }
            });
            // In the last moment two may make room for one key each, and only one of them use it.
            assert!(entries - 3 <= recent.len() && recent.len() <= entries, "{bounds:?}");
            assert_eq!(recent.bytes(), recent.len() * cost);
        }
    }

    #[test]
    fn two_at_once_are_answered_one_after_the_other() {
        let recent = &Recent::new(AMPLE);
        let first = thread::scope(|scope| {
            let asks = [(); 8].map(|()| {
                scope.spawn(|| {
                    let mut hold = recent.hold(b"attempt");
                    let is_first = hold.get_mut(0).is_none();
                    thread::yield_now();
                    if is_first {
                        hold.insert((), 0);
                    }
                    is_first
                })
            });
            asks.into_iter().map(|ask| ask.join().unwrap()).filter(|is_first| *is_first).count()
        });
        assert_eq!(first, 1);
    }
}

//! What holds of one shard, whatever it is asked.
use std::sync::Arc;

use allocation_counter::measure;
use proptest::collection::vec;
use proptest::prelude::*;

use super::room::Room;
use super::shard::{Key, Shard};

const KEPT_MS: u64 = 10;

fn shard<V>(entries_max: usize, bytes_max: usize) -> (Shard<V>, Arc<Room>) {
    let room = Arc::new(Room::new(entries_max, bytes_max));
    (Shard::new(Arc::clone(&room), KEPT_MS), room)
}

fn key(bytes: &[u8]) -> Key<'_> {
    Key { hash: bytes.iter().map(|byte| u64::from(*byte)).sum(), bytes }
}

fn insert<V>(shard: &mut Shard<V>, bytes: &[u8], value: V, now_ms: u64) {
    shard.insert(key(bytes), value, now_ms, || false);
}

fn insert_evenly(shard: &mut Shard<()>, number: u64, now_ms: u64) {
    let hash = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    shard.insert(Key { hash, bytes: &number.to_be_bytes() }, (), now_ms, || false);
}

/// The slow way: everything that was ever inserted, in order.
#[derive(Default)]
struct Reference {
    entries_max: usize,
    bytes_max: usize,
    inserted: Vec<(Vec<u8>, u64, u32)>,
}

impl Reference {
    /// The newest that have room together.
    fn kept(&mut self) -> &mut [(Vec<u8>, u64, u32)] {
        let costs = self.inserted.iter().rev().scan(0, |sum, (key, ..)| {
            *sum += Shard::<u32>::cost(key.len());
            Some(*sum)
        });
        let kept = costs.take(self.entries_max).take_while(|sum| *sum <= self.bytes_max).count();
        let forgotten = self.inserted.len() - kept;
        &mut self.inserted[forgotten..]
    }

    fn get_mut(&mut self, key: &[u8], now_ms: u64) -> Option<&mut u32> {
        let entry = self.kept().iter_mut().rev().find(|(other, ..)| other == key);
        entry.filter(|(_, since_ms, _)| now_ms < since_ms + KEPT_MS).map(|(.., value)| value)
    }

    fn insert(&mut self, key: &[u8], value: u32, now_ms: u64) {
        if let Some(known) = self.get_mut(key, now_ms) {
            *known = value;
        } else if Shard::<u32>::cost(key.len()) <= self.bytes_max {
            self.inserted.push((key.to_vec(), now_ms, value));
        }
    }
}

proptest! {
    /// Keys of few letters in any order: many come again, and many share a hash.
    #[test]
    fn a_shard_remembers_what_the_reference_does(
        (entries_max, costs_max) in (1_usize..30, 1_usize..30),
        steps in vec((any::<bool>(), vec(b'a'..b'd', 0..4), 0_u64..4, any::<u32>()), 1..300),
    ) {
        let bytes_max = costs_max * Shard::<u32>::cost(3);
        let (mut shard, room) = shard(entries_max, bytes_max);
        let mut reference = Reference { entries_max, bytes_max, ..Reference::default() };
        let mut now_ms = 0;
        for (is_insert, bytes, later_ms, value) in steps {
            now_ms += later_ms;
            if is_insert {
                insert(&mut shard, &bytes, value, now_ms);
                reference.insert(&bytes, value, now_ms);
            }
            let found = shard.get_mut(key(&bytes), now_ms);
            prop_assert_eq!(found, reference.get_mut(&bytes, now_ms));
            prop_assert!(room.entries() <= entries_max && room.bytes() <= bytes_max);
        }
    }
}

#[test]
fn a_time_is_over_to_the_millisecond() {
    let (mut shard, _) = shard(10, usize::MAX);
    insert(&mut shard, b"key", 1, 5);
    assert_eq!(shard.get_mut(key(b"key"), 5 + KEPT_MS - 1), Some(&mut 1));
    assert_eq!(shard.get_mut(key(b"key"), 5 + KEPT_MS), None);
}

#[test]
fn a_time_goes_on_from_the_first_ask() {
    let (mut shard, room) = shard(10, usize::MAX);
    insert(&mut shard, b"key", 1, 0);
    insert(&mut shard, b"key", 2, KEPT_MS - 1);
    assert_eq!(shard.get_mut(key(b"key"), KEPT_MS - 1), Some(&mut 2));
    assert_eq!(shard.get_mut(key(b"key"), KEPT_MS), None);
    assert_eq!(room.entries(), 1);
}

#[test]
fn a_key_may_come_again_when_its_time_is_over() {
    let (mut shard, _) = shard(1_000, usize::MAX);
    // More than one insert clears away, so that the old ones are there when the new ones come.
    let all: Vec<[u8; 1]> = (0..100).map(|byte| [byte]).collect();
    for (now_ms, value) in [(0, 1), (KEPT_MS, 2)] {
        for bytes in all.iter().rev() {
            insert(&mut shard, bytes, value, now_ms);
        }
    }
    insert(&mut shard, b"another", 0, KEPT_MS);
    for bytes in &all {
        assert_eq!(shard.get_mut(key(bytes), 2 * KEPT_MS - 1), Some(&mut 2));
    }
}

#[test]
fn keys_with_one_hash_are_told_apart_by_each_byte() {
    let (mut shard, _) = shard(10, usize::MAX);
    let keys: [&[u8]; 5] = [b"ad", b"da", b"bc", b"cb", b"ad\0"];
    for (value, bytes) in keys.iter().enumerate() {
        assert_eq!(key(bytes).hash, key(b"ad").hash);
        insert(&mut shard, bytes, value, 0);
    }
    for (mut value, bytes) in keys.iter().enumerate() {
        assert_eq!(shard.get_mut(key(bytes), 0), Some(&mut value));
    }
}

/// Another thread may have read the clock earlier and come later.
#[test]
fn an_earlier_reading_of_the_clock_takes_nothing_away() {
    let (mut shard, _) = shard(10, usize::MAX);
    insert(&mut shard, b"first", 1, 7);
    insert(&mut shard, b"second", 2, 6);
    for (bytes, mut value) in [(&b"first"[..], 1), (b"second", 2)] {
        assert_eq!(shard.get_mut(key(bytes), 0), Some(&mut value));
        assert_eq!(shard.get_mut(key(bytes), 6 + KEPT_MS), Some(&mut value));
        assert_eq!(shard.get_mut(key(bytes), 7 + KEPT_MS), None);
    }
}

#[test]
fn an_insert_clears_away_more_than_it_adds() {
    let (mut shard, room) = shard(1_000, usize::MAX);
    for byte in 0..100 {
        insert(&mut shard, &[byte], (), 0);
    }
    for byte in 100..115 {
        insert(&mut shard, &[byte], (), KEPT_MS);
    }
    assert_eq!(room.entries(), 15);
}

/// A queue is largest for its entries right after it has grown; and a table after many came and
/// went, each leaving a place that cannot be used before the table is made anew.
#[test]
fn an_entry_takes_no_more_memory_than_it_is_counted_for() {
    let evenly = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // In blocks without a gap, each of them in a random order.
    let densely =
        |number: u64| (number << 57) | (number & !1023) | (number.wrapping_mul(617) & 1023);
    for entries_max in [100, 897, 1_025, 1_793, 1_800, 3_600, 4_097] {
        for hash in [evenly, densely] {
            let (mut shard, room) = shard(entries_max, usize::MAX);
            let allocated = measure(|| {
                for number in 0..4 * 5_000_u64 {
                    let (hash, bytes) = (hash(number), [number.to_be_bytes(); 4].concat());
                    shard.insert(Key { hash, bytes: &bytes }, [0_u64; 4], 0, || false);
                }
            });
            let allocated = usize::try_from(allocated.bytes_current).unwrap();
            assert!(allocated <= room.bytes(), "{entries_max}: {allocated} of {}", room.bytes());
            assert!(room.bytes() < 3 * allocated, "{entries_max}: {allocated} of {}", room.bytes());
        }
    }
}

#[test]
fn memory_is_given_back_after_a_burst() {
    let (mut shard, _) = shard(100_000, usize::MAX);
    let mut insert = |numbers: std::ops::Range<u64>, now_ms| {
        numbers.for_each(|number| insert_evenly(&mut shard, number, now_ms));
    };
    let allocated = measure(|| {
        insert(0..20_000, 0);
        insert(20_000..23_000, KEPT_MS);
    });
    let most = i64::try_from(2 * 3_000 * Shard::<()>::cost(8)).unwrap();
    assert!(allocated.bytes_current < most, "{allocated:?}");
    assert!(u64::try_from(most).unwrap() < allocated.bytes_max, "{allocated:?}");
}

/// Each of them copies all that is left: half must be gone before the next.
#[test]
fn memory_is_given_back_in_few_steps() {
    let (mut shard, _) = shard(100_000, usize::MAX);
    (0..20_000_u64).for_each(|number| insert_evenly(&mut shard, number, 0));
    let allocated = measure(|| while shard.forget_oldest() {});
    // Two for each halving, of the queue and of the table.
    assert!(allocated.count_total < 30, "{allocated:?}");
    assert!(allocated.bytes_current < -20_000 * 40, "{allocated:?}");
}

//! One shard of what is remembered: a queue by age, and a table to find places in it.
use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::room::Room;

/// Remembers keys in the order of their times. They leave at the front only.
pub(super) struct Shard<V> {
    room: Arc<Room>,
    kept_ms: u64,
    queue: VecDeque<Remembered<V>>,
    /// What was inserted is numbered, and this is the number of the front. Numbers may wrap: only
    /// their distance is looked at.
    front: usize,
    numbers: HashTable<usize>,
}

struct Remembered<V> {
    hash: u64,
    since_ms: u64,
    key: Box<[u8]>,
    value: V,
}

/// A key with its hash, which the keys of one shard are told apart by first.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) hash: u64,
    pub(super) bytes: &'a [u8],
}

/// A number in the table and its byte of hash, 9 bytes: the table grows to twice its size when it
/// is half full and has had many removed, so that a quarter of 7/8 of its slots is in use.
const NUMBER_BYTES: usize = 9 * 4 * 8 / 7 + 1;

/// What an allocator needs to keep one key's bytes apart from others'.
const ALLOCATION_BYTES: usize = 16;

/// Forgotten with each insert, if their time is over: more than come in, and few enough for one
/// call.
const OVER_AT_ONCE: usize = 8;

/// Room that is kept however little is in use.
const SPARE: usize = 64;

impl<V> Shard<V> {
    pub(super) fn new(room: Arc<Room>, kept_ms: u64) -> Shard<V> {
        let (queue, numbers) = (VecDeque::new(), HashTable::new());
        Shard { room, kept_ms, queue, front: 0, numbers }
    }

    /// What is remembered of the key, if its time is not over.
    pub(super) fn get_mut(&mut self, key: Key<'_>, now_ms: u64) -> Option<&mut V> {
        let Shard { kept_ms, queue, front, numbers, .. } = self;
        let is_same = |number: &usize| is_key(queue.get(number.wrapping_sub(*front)), key);
        let number = *numbers.find(key.hash, is_same)?;
        let remembered = queue.get_mut(number.wrapping_sub(*front))?;
        (!remembered.is_over(*kept_ms, now_ms)).then_some(&mut remembered.value)
    }

    /// Remembers the key, or replaces its value if it is remembered. Where there is no room it
    /// forgets the oldest, or has something forgotten elsewhere.
    pub(super) fn insert(
        &mut self,
        key: Key<'_>,
        value: V,
        now_ms: u64,
        forget_elsewhere: impl Fn() -> bool,
    ) {
        if let Some(known) = self.get_mut(key, now_ms) {
            *known = value;
            return;
        }
        self.forget_some_that_are_over(now_ms);
        let cost = Shard::<V>::cost(key.bytes.len());
        if !self.room.could_hold(cost) {
            return;
        }
        while !self.room.take(cost) {
            if !self.forget_oldest() && !forget_elsewhere() {
                return;
            }
        }
        self.push(key, value, now_ms);
    }

    /// Forgets one. False if there is none.
    pub(super) fn forget_oldest(&mut self) -> bool {
        let Some(oldest) = self.queue.pop_front() else { return false };
        let number = self.front;
        self.front = number.wrapping_add(1);
        // It has no place any more if it came again when its time was over.
        if let Ok(place) = self.numbers.find_entry(oldest.hash, |other| *other == number) {
            place.remove();
        }
        self.room.give_back(Shard::<V>::cost(oldest.key.len()));
        self.shrink();
        true
    }

    /// The most memory that an entry takes. A queue that has just grown is half full. What `V`
    /// points to is not counted: it should point to nothing.
    pub(super) const fn cost(key_bytes: usize) -> usize {
        2 * size_of::<Remembered<V>>() + NUMBER_BYTES + ALLOCATION_BYTES + key_bytes
    }

    /// Room has been taken for it.
    fn push(&mut self, key: Key<'_>, value: V, now_ms: u64) {
        let Shard { queue, front, numbers, .. } = self;
        let number = front.wrapping_add(queue.len());
        let is_same = |number: &usize| is_key(queue.get(number.wrapping_sub(*front)), key);
        match numbers.entry(key.hash, is_same, hash_in(queue, *front)) {
            // Its time was over. The old one leaves when it gets to the front.
            Entry::Occupied(mut place) => *place.get_mut() = number,
            Entry::Vacant(place) => {
                place.insert(number);
            }
        }
        // Threads read the clock before they wait for each other.
        let since_ms = queue.back().map_or(now_ms, |newest| newest.since_ms.max(now_ms));
        queue.push_back(Remembered { hash: key.hash, since_ms, key: key.bytes.into(), value });
    }

    fn forget_some_that_are_over(&mut self, now_ms: u64) {
        for _ in 0..OVER_AT_ONCE {
            match self.queue.front() {
                Some(oldest) if oldest.is_over(self.kept_ms, now_ms) => self.forget_oldest(),
                Some(_) | None => return,
            };
        }
    }

    /// Gives memory back when three quarters are spare. Half stay spare, so that it takes many
    /// steps to get here again.
    fn shrink(&mut self) {
        let Shard { queue, front, numbers, .. } = self;
        let is_far_too_large = |capacity: usize| SPARE < capacity && queue.len() < capacity / 4;
        if is_far_too_large(numbers.capacity()) {
            numbers.shrink_to(2 * queue.len(), hash_in(queue, *front));
        }
        if is_far_too_large(queue.capacity()) {
            queue.shrink_to(2 * queue.len());
        }
    }
}

impl<V> Remembered<V> {
    fn is_over(&self, kept_ms: u64, now_ms: u64) -> bool {
        self.since_ms.saturating_add(kept_ms) <= now_ms
    }
}

fn is_key<V>(remembered: Option<&Remembered<V>>, key: Key<'_>) -> bool {
    remembered.is_some_and(|remembered| *remembered.key == *key.bytes)
}

/// Every number in the table is of something in the queue.
fn hash_in<V>(queue: &VecDeque<Remembered<V>>, front: usize) -> impl Fn(&usize) -> u64 {
    move |number| queue.get(number.wrapping_sub(front)).map_or(0, |remembered| remembered.hash)
}

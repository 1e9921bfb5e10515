//! Keys and their balances, in shards that are locked one at a time.
use ahash::RandomState;
use hashbrown::HashTable;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use super::kept::Kept;
use super::key::Key;
use super::room::{Room, Search};

/// So many that few callers meet in one, and whoever walks over one of a million balances keeps
/// the others of it waiting for less than a millisecond.
const SHARDS: usize = 256;
/// Entries that an insert looks at, to find one that nobody uses any more.
const LOOKED_AT: usize = 2;
/// Places, empty ones too, that it goes past for that.
const PLACES_PASSED: usize = 16;

/// The balances of one budget.
///
/// A balance has no lock of its own: whoever holds one holds its shard. That costs a balance no
/// memory, and a decision one lock for each budget.
pub(super) struct Table {
    /// There are [`SHARDS`].
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    overflow: Mutex<Option<Kept>>,
}

/// A balance, and its shard locked.
pub(super) type Locked<'t> = MappedMutexGuard<'t, Kept>;

/// What there is for a key.
pub(super) enum Place<'t> {
    Taken(Locked<'t>),
    Free(Vacancy<'t>),
}

/// There is no balance for a key, and its shard is locked: nobody makes one meanwhile.
pub(super) struct Vacancy<'t> {
    shard: MutexGuard<'t, Shard>,
    hasher: &'t RandomState,
}

struct Shard {
    /// Boxed, as half of the places in a table that has just grown are empty.
    entries: HashTable<Box<Entry>>,
    /// Where the search for idle entries goes on.
    hand: usize,
}

struct Entry {
    kept: Kept,
    key: Key,
}

// A million of them are kept, and an allocator rounds 97 bytes up to 112.
const _: () = assert!(size_of::<Entry>() <= 96);

impl Entry {
    fn hash(&self, hasher: &RandomState) -> u64 {
        hasher.hash_one(&*self.key)
    }
}

impl Table {
    pub(super) fn new() -> Table {
        Table {
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::EMPTY)).collect(),
            hasher: RandomState::new(),
            overflow: Mutex::new(None),
        }
    }

    /// Locks whatever there is for a key. A thread must hold one place of a table at most.
    pub(super) fn lock(&self, key: &[u8]) -> Place<'_> {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard(hash).lock();
        match MutexGuard::try_map(shard, |shard| shard.get_mut(hash, key)) {
            Ok(kept) => Place::Taken(kept),
            Err(shard) => Place::Free(Vacancy { shard, hasher: &self.hasher }),
        }
    }

    /// Locks the balance that all keys share for which there was no room.
    pub(super) fn lock_overflow(&self, fresh: impl FnOnce() -> Kept) -> Locked<'_> {
        MutexGuard::map(self.overflow.lock(), |kept| kept.get_or_insert_with(fresh))
    }

    /// The same, if it was ever used.
    pub(super) fn overflow(&self) -> Option<Locked<'_>> {
        MutexGuard::try_map(self.overflow.lock(), Option::as_mut).ok()
    }

    /// Looks at a few entries of one shard, and drops those that are idle. It waits for nobody:
    /// whoever looks may hold other tables, or this one.
    pub(super) fn drop_idle(&self, turn: usize, room: &Room, is_idle: impl Fn(&Kept) -> bool) {
        if let Some(mut shard) = self.shards.get(turn % SHARDS).and_then(Mutex::try_lock) {
            room.searched(shard.drop_idle(is_idle));
        }
    }

    /// Every key and its balance, one shard after the other.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&[u8], &mut Kept)) {
        for shard in &*self.shards {
            shard.lock().entries.iter_mut().for_each(|entry| visit(&entry.key, &mut entry.kept));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().entries.len()).sum()
    }

    /// By bits that the tables inside do not go by.
    #[expect(clippy::indexing_slicing, reason = "the remainder is below the number of shards")]
    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        let [_, _, byte, ..] = hash.to_be_bytes();
        &self.shards[usize::from(byte) % SHARDS]
    }
}

impl<'t> Vacancy<'t> {
    /// Makes the balance of the key that is missing here. `None` if there is no room.
    /// Drops what `is_idle`, of the few entries that it looks at.
    pub(super) fn fill(
        self,
        key: &[u8],
        room: &Room,
        fresh: impl FnOnce() -> Kept,
        is_idle: impl Fn(&Kept) -> bool,
    ) -> Option<Locked<'t>> {
        let Vacancy { mut shard, hasher } = self;
        if !room.take() {
            return None;
        }
        room.searched(shard.drop_idle(is_idle));
        let entry = Box::new(Entry { kept: fresh(), key: key.into() });
        let hash = hasher.hash_one(key);
        Some(MutexGuard::map(shard, |shard| {
            let taken = shard.entries.insert_unique(hash, entry, |entry| entry.hash(hasher));
            &mut taken.into_mut().kept
        }))
    }
}

impl Shard {
    const EMPTY: Shard = Shard { entries: HashTable::new(), hand: 0 };

    fn get_mut(&mut self, hash: u64, key: &[u8]) -> Option<&mut Kept> {
        self.entries.find_mut(hash, |entry| *entry.key == *key).map(|entry| &mut entry.kept)
    }

    /// Looks at a few entries from the hand on, and drops those that are idle.
    fn drop_idle(&mut self, is_idle: impl Fn(&Kept) -> bool) -> Search {
        let mut search = Search::default();
        for _ in 0..PLACES_PASSED.min(self.entries.num_buckets()) {
            if search.looked_at == LOOKED_AT {
                break;
            }
            let place = self.hand;
            self.hand = (place + 1) % self.entries.num_buckets();
            let Ok(entry) = self.entries.get_bucket_entry(place) else { continue };
            search.looked_at += 1;
            if is_idle(&entry.get().kept) {
                entry.remove();
                search.dropped += 1;
            }
        }
        search
    }
}

#[cfg(test)]
mod tests {
    use super::super::balance::Balance;
    use super::super::{Budget, Limits, OnStoreLoss, Scope, kept::Terms, throttle};
    use super::*;

    #[test]
    fn keys_are_spread_over_all_shards() {
        let limits = throttle::Limits { tokens_max: 10, token_ratio_thousandths: 1 };
        let limits = Limits::Throttle(limits);
        let (name, scope, on_store_loss) = ("b".into(), Scope::Tenant, OnStoreLoss::Deny);
        let terms = Terms::new(&Budget { name, scope, limits, on_store_loss });
        let fresh = || Kept::new(Balance::fresh(&limits, 0), &terms, 0);
        let (table, room) = (Table::new(), Room::new(usize::MAX));
        for key in 0..25_600_u32 {
            let key = key.to_be_bytes();
            let Place::Free(vacancy) = table.lock(&key) else { panic!("it is there already") };
            assert!(vacancy.fill(&key, &room, fresh, |_| false).is_some());
        }
        // 100 each, give or take.
        let shards = table.shards.iter().map(|shard| shard.lock().entries.len());
        assert!(
            shards.clone().all(|keys| (30..300).contains(&keys)),
            "{:?}",
            shards.collect::<Vec<_>>()
        );
    }
}

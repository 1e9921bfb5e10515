//! Keys and their balances, in shards that are locked one at a time.
use std::sync::{Arc, OnceLock};

use ahash::RandomState;
use hashbrown::HashTable;
use parking_lot::{Mutex, RwLock};

use super::kept::Kept;
use super::room::{Room, Search};

/// So many that whoever walks over one of them keeps new keys out for about a millisecond.
const SHARDS: usize = 64;
/// Entries that an insert looks at, to find one that nobody uses any more.
const LOOKED_AT: usize = 2;
/// Places, empty ones too, that it goes past for that.
const PLACES_PASSED: usize = 16;

/// One balance. Whoever has cloned it out of the table may lock it and wait.
pub(super) type Cell = Arc<Mutex<Kept>>;

/// The balances of one budget.
pub(super) struct Table {
    shards: Box<[RwLock<Shard>; SHARDS]>,
    hasher: RandomState,
    overflow: OnceLock<Cell>,
}

struct Shard {
    cells: HashTable<(Box<[u8]>, Cell)>,
    /// Where the search for idle entries goes on.
    hand: usize,
}

impl Table {
    pub(super) fn new() -> Table {
        Table {
            shards: Box::new([const { RwLock::new(Shard::EMPTY) }; SHARDS]),
            hasher: RandomState::new(),
            overflow: OnceLock::new(),
        }
    }

    pub(super) fn find(&self, key: &[u8]) -> Option<Cell> {
        let hash = self.hasher.hash_one(key);
        self.shard(hash).read().get(hash, key).map(Arc::clone)
    }

    /// Whether a key has a balance; also yes if that cannot be told without waiting.
    pub(super) fn may_have(&self, key: &[u8]) -> bool {
        let hash = self.hasher.hash_one(key);
        self.shard(hash).try_read().is_none_or(|shard| shard.get(hash, key).is_some())
    }

    /// The balance of a key, made by `fresh` if there is none. `None` if there is no room.
    /// Drops what `is_idle`, of the few entries that it looks at.
    pub(super) fn find_or_insert(
        &self,
        key: &[u8],
        room: &Room,
        fresh: impl FnOnce() -> Kept,
        is_idle: impl Fn(&Kept) -> bool,
    ) -> Option<Cell> {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash).write();
        // Only after the lock: another caller may have been faster.
        if let Some(cell) = shard.get(hash, key) {
            return Some(Arc::clone(cell));
        }
        room.searched(shard.drop_idle(is_idle));
        if !room.take() {
            return None;
        }
        let cell = Arc::new(Mutex::new(fresh()));
        let rehash = |(key, _): &(Box<[u8]>, Cell)| self.hasher.hash_one(&**key);
        shard.cells.insert_unique(hash, (key.into(), Arc::clone(&cell)), rehash);
        Some(cell)
    }

    /// Looks at a few entries of one shard, and drops those that are idle.
    pub(super) fn drop_idle(&self, turn: usize, room: &Room, is_idle: impl Fn(&Kept) -> bool) {
        if let Some(shard) = self.shards.get(turn % SHARDS) {
            room.searched(shard.write().drop_idle(is_idle));
        }
    }

    /// The balance that all keys share for which there was no room.
    pub(super) fn overflow(&self, fresh: impl FnOnce() -> Kept) -> Cell {
        Arc::clone(self.overflow.get_or_init(|| Arc::new(Mutex::new(fresh()))))
    }

    /// Every key and its balance, one shard after the other.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&[u8], &mut Kept)) {
        for shard in &*self.shards {
            // Whoever holds a balance waits for no shard, so this wait ends.
            shard.read().cells.iter().for_each(|(key, cell)| visit(key, &mut cell.lock()));
        }
    }

    /// The overflow balance, if there is one.
    pub(super) fn for_overflow(&self, visit: impl FnOnce(&mut Kept)) {
        if let Some(cell) = self.overflow.get() {
            visit(&mut cell.lock());
        }
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().cells.len()).sum()
    }

    /// By bits that the tables inside do not go by.
    #[expect(clippy::indexing_slicing, reason = "the remainder is below the number of shards")]
    fn shard(&self, hash: u64) -> &RwLock<Shard> {
        let [_, _, byte, ..] = hash.to_be_bytes();
        &self.shards[usize::from(byte) % SHARDS]
    }
}

impl Shard {
    const EMPTY: Shard = Shard { cells: HashTable::new(), hand: 0 };

    fn get(&self, hash: u64, key: &[u8]) -> Option<&Cell> {
        self.cells.find(hash, |(held, _)| **held == *key).map(|(_, cell)| cell)
    }

    /// Looks at a few entries from the hand on, and drops those that are idle.
    fn drop_idle(&mut self, is_idle: impl Fn(&Kept) -> bool) -> Search {
        let mut search = Search::default();
        for _ in 0..PLACES_PASSED.min(self.cells.num_buckets()) {
            if search.looked_at == LOOKED_AT {
                break;
            }
            let place = self.hand;
            self.hand = (place + 1) % self.cells.num_buckets();
            let Ok(entry) = self.cells.get_bucket_entry(place) else { continue };
            search.looked_at += 1;
            let (_, cell) = entry.get();
            // Nobody can clone it out of the table now, so whoever holds it shows in the count.
            if Arc::strong_count(cell) == 1 && is_idle(&cell.lock()) {
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
        for key in 0..6_400_u32 {
            table.find_or_insert(&key.to_be_bytes(), &room, fresh, |_| false).unwrap();
        }
        // 100 each, give or take.
        let shards = table.shards.iter().map(|shard| shard.read().cells.len());
        assert!(
            shards.clone().all(|keys| (30..300).contains(&keys)),
            "{:?}",
            shards.collect::<Vec<_>>()
        );
    }
}

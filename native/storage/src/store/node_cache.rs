//! Cache of trie nodes near the root, by id.
//!
//! A stored node never changes and no id is used twice. So cached nodes stay valid in every block, after
//! reorganisations and for older states. Without the cache, a read at random keys looks up each level of the trie in
//! LMDB.

use std::sync::{PoisonError, RwLock};

use alloy_primitives::map::HashMap;

/// Trie nodes at this depth in nibbles, or deeper, are not cached. At most 4,369 nodes of a trie are cached; they take
/// 3 MB.
pub const MAX_CACHED_DEPTH: usize = 4;
/// Maximum size of all cached nodes in bytes. The upper levels of five large tries fit.
const MAX_CACHED_BYTES: usize = 16 << 20;
const SHARDS: usize = 16;

#[derive(Default)]
struct Shard {
    nodes: HashMap<u64, Box<[u8]>>,
    bytes: usize,
}

/// Cached nodes in their full stored form, in shards by id. A full shard is cleared.
#[derive(Default)]
pub struct NodeCache {
    shards: [RwLock<Shard>; SHARDS],
}

impl NodeCache {
    fn shard(&self, id: u64) -> &RwLock<Shard> {
        &self.shards[id as usize % SHARDS]
    }

    /// Call `read` with a cached node; None if the node is not cached. `read` borrows the node, because a copy or a
    /// counted reference would take longer than most reads. `read` must not use this cache.
    pub fn read<T>(&self, id: u64, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.shard(id).read().unwrap_or_else(PoisonError::into_inner).nodes.get(&id).map(|whole| read(whole))
    }

    pub fn keep(&self, id: u64, whole: &[u8]) {
        let mut shard = self.shard(id).write().unwrap_or_else(PoisonError::into_inner);
        if shard.bytes + whole.len() > MAX_CACHED_BYTES / SHARDS {
            *shard = Shard::default();
        }
        if shard.nodes.insert(id, whole.into()).is_none() {
            shard.bytes += whole.len();
        }
    }

    pub fn clear(&self) {
        for shard in &self.shards {
            *shard.write().unwrap_or_else(PoisonError::into_inner) = Shard::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_until_their_shard_is_full() {
        let cache = NodeCache::default();
        let node = |id: u64| vec![id as u8; 600];
        for id in 0..100_000 {
            cache.keep(id, &node(id));
            cache.keep(id, &node(id));
            assert_eq!(cache.read(id, |whole| *whole == node(id)[..]), Some(true));
        }
        let bytes: usize = cache.shards.iter().map(|shard| shard.read().unwrap().bytes).sum();
        assert!((MAX_CACHED_BYTES / 8..=MAX_CACHED_BYTES).contains(&bytes), "{bytes} bytes");
        for (id, whole) in cache.shards.iter().flat_map(|shard| shard.read().unwrap().nodes.clone()) {
            assert_eq!(*whole, node(id)[..]);
        }
        cache.clear();
        assert_eq!(cache.read(99_999, <[u8]>::len), None);
    }
}

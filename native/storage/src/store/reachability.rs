//! Marks trie nodes reachable from the stored states (pruning).

use ophion_primitives::errors::Result;

use super::records::Nodes;
use crate::trie::{Account, Slot, references};

/// Number of node ids per chunk.
const CHUNK: u64 = 1 << 16;
type Chunk = [u64; CHUNK as usize / 64];

/// A set of node ids with one bit per id, in chunks that are allocated when needed.
#[derive(Default)]
pub struct Marks {
    chunks: Vec<Option<Box<Chunk>>>,
    count: u64,
}

impl Marks {
    /// Add a node id. Returns false if the set already contains it.
    fn insert(&mut self, id: u64) -> bool {
        let at = (id / CHUNK) as usize;
        if at >= self.chunks.len() {
            self.chunks.resize_with(at + 1, || None);
        }
        let chunk = self.chunks[at].get_or_insert_with(|| Box::new([0; CHUNK as usize / 64]));
        let (word, bit) = ((id % CHUNK / 64) as usize, 1u64 << (id % 64));
        let is_new = chunk[word] & bit == 0;
        chunk[word] |= bit;
        self.count += u64::from(is_new);
        is_new
    }

    pub fn contains(&self, id: u64) -> bool {
        let chunk = self.chunks.get((id / CHUNK) as usize).and_then(Option::as_ref);
        chunk.is_some_and(|chunk| chunk[(id % CHUNK / 64) as usize] & 1 << (id % 64) != 0)
    }

    pub fn count(&self) -> u64 {
        self.count
    }
}

#[derive(Clone, Copy)]
enum Kind {
    State,
    Storage,
}

/// Walks all trie nodes below some root nodes and visits each node once.
#[derive(Default)]
pub struct Reach {
    visited: Marks,
    /// Visited trie nodes, and the earlier versions on which their deltas are based.
    pub needed: Marks,
    open: Vec<(u64, Kind)>,
}

impl Reach {
    pub fn add_root(&mut self, id: u64) {
        self.open.push((id, Kind::State));
    }

    /// Return whether all reachable nodes have been visited.
    pub fn is_complete(&self) -> bool {
        self.open.is_empty()
    }

    /// Visit up to `max` trie nodes. Returns false after the last node. If a node cannot be read, the error contains
    /// its id.
    pub fn advance(&mut self, nodes: &Nodes<'_>, max: usize) -> Result<bool> {
        let (mut own, mut below) = (Vec::new(), Vec::new());
        for _ in 0..max {
            let Some((id, kind)) = self.open.pop() else { return Ok(false) };
            if !self.visited.insert(id) {
                continue;
            }
            self.needed.insert(id);
            let earlier = |id| {
                self.needed.insert(id);
            };
            nodes.load_all(id, earlier, |bytes| match kind {
                Kind::State => references::<Account>(bytes, &mut own, &mut below),
                Kind::Storage => references::<Slot>(bytes, &mut own, &mut below),
            })?;
            self.open.extend(own.drain(..).map(|id| (id, kind)));
            self.open.extend(below.drain(..).map(|id| (id, Kind::Storage)));
        }
        Ok(!self.open.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_hold_what_was_put_in() {
        let mut marks = Marks::default();
        let ids = [1, 63, 64, CHUNK - 1, CHUNK, 10 * CHUNK + 5, 1 << 30];
        assert!(ids.iter().all(|id| marks.insert(*id)));
        assert!(ids.iter().all(|id| marks.contains(*id) && !marks.insert(*id)));
        assert!([0, 2, 65, CHUNK + 1, 1 << 40].iter().all(|id| !marks.contains(*id)));
        assert_eq!(marks.count(), ids.len() as u64);
    }
}

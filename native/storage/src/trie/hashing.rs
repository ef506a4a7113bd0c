//! Hashes all changed nodes of a trie together, level by level, so that the processor hashes several at once.

use ophion_primitives::keccak::keccak256_many;

use super::node::{Cell, Child, Node, Value};

/// Number of trie nodes per chunk. Nodes are encoded and hashed chunk by chunk, so that the RLP stays in the
/// processor's cache.
const CHUNK: usize = 256;

/// Hash a node and all nodes below it that have no hash yet. `Cell::reference` gives the same result for one node.
pub(super) fn hash_all<V: Value>(root: &Cell<V>) {
    let mut levels = Vec::new();
    collect(root, &mut levels);
    let (mut rlp, mut scratch) = (Vec::new(), Vec::new());
    let (mut ends, mut hashes) = (Vec::new(), Vec::new());
    for cells in levels.iter().flat_map(|level| level.chunks(CHUNK)) {
        rlp.clear();
        ends.clear();
        hashes.clear();
        for cell in cells {
            cell.encode_with(&mut rlp, &mut scratch);
            ends.push(rlp.len());
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let encoded: Vec<&[u8]> = starts.zip(&ends).map(|(start, end)| &rlp[start..*end]).collect();
        keccak256_many(&encoded, &mut hashes);
        for ((cell, rlp), hash) in cells.iter().zip(encoded).zip(&hashes) {
            cell.set_reference(rlp, *hash);
        }
    }
}

/// Add each node without a hash to the list for its height in the trie. Returns the number of levels without a hash
/// from this node down: 0 if the node has a hash, 1 for a leaf.
fn collect<'a, V: Value>(cell: &'a Cell<V>, levels: &mut Vec<Vec<&'a Cell<V>>>) -> usize {
    if cell.is_hashed() {
        return 0;
    }
    let mut below = |child: &'a Child<V>| match child {
        Child::Live(cell) => collect(cell, levels),
        Child::Stored { .. } => 0,
    };
    let height = match &cell.node {
        Node::Leaf { .. } => 0,
        Node::Extension { child, .. } => below(child),
        Node::Branch { children, .. } => children.iter().map(below).max().unwrap_or(0),
    };
    if levels.len() <= height {
        levels.resize_with(height + 1, Vec::new);
    }
    levels[height].push(cell);
    height + 1
}

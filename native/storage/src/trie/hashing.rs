//! Hashes all changed nodes of a trie together, level by level, so that the processor hashes several at once.

use alloy_primitives::B256;
use ophion_primitives::keccak::keccak256_many;

use super::node::{Cell, Child, Node, Reference, Value, encode_held};

/// Number of trie nodes per chunk. Nodes are encoded and hashed chunk by chunk, so that the RLP stays in the
/// processor's cache.
const CHUNK: usize = 256;

/// Hash a node and all nodes below it that have no hash yet. `Cell::reference` gives the same result for one node.
pub(super) fn hash_all<V: Value>(root: &Cell<V>) {
    let mut levels = Vec::new();
    collect(root, &mut levels);
    let (mut rlp, mut scratch) = (Vec::new(), Vec::new());
    let (mut ends, mut hashes, mut held) = (Vec::new(), Vec::new(), Vec::new());
    for cells in levels.iter().flat_map(|level| level.chunks(CHUNK)) {
        rlp.clear();
        ends.clear();
        for leaf in cells.iter().flat_map(|cell| cell.held_leaves()) {
            encode_held::<V>(leaf, &mut rlp, &mut scratch);
            ends.push(rlp.len());
        }
        hash_each(&rlp, &ends, &mut hashes, |_, rlp, hash| held.push(Reference::of(rlp, || hash)));
        rlp.clear();
        ends.clear();
        let mut rest = &held[..];
        for cell in cells {
            let (own, others) = rest.split_at(cell.held_leaves().count());
            cell.encode_with(own, &mut rlp, &mut scratch);
            ends.push(rlp.len());
            rest = others;
        }
        hash_each(&rlp, &ends, &mut hashes, |index, rlp, hash| cells[index].set_reference(rlp, hash));
        held.clear();
    }
}

/// Hash parts of a buffer, which are one after the other. `ends` has the end of each part. Calls `visit` with the
/// index, the bytes and the hash of each part.
fn hash_each(rlp: &[u8], ends: &[usize], hashes: &mut Vec<B256>, mut visit: impl FnMut(usize, &[u8], B256)) {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let parts: Vec<&[u8]> = starts.zip(ends).map(|(start, end)| &rlp[start..*end]).collect();
    hashes.clear();
    keccak256_many(&parts, hashes);
    for (index, (part, hash)) in parts.into_iter().zip(hashes).enumerate() {
        visit(index, part, *hash);
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
        Child::Stored { .. } | Child::Held(_) => 0,
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

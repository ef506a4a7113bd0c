//! Verifies a range proof: that a list holds all entries of a trie in a range of keys (snap/1).
//!
//! The proof holds the trie nodes on the paths of the first and the last key of the range. The verification builds a
//! partial trie from these nodes, removes all entries between both keys, inserts the listed entries and compares the
//! root. Subtrees outside of the range stay as hashes. If the root is equal, no entry of the range is missing or wrong.

use std::cmp::Ordering;
use std::sync::Arc;

use alloy_primitives::map::B256Map;
use alloy_primitives::{B256, keccak256};
use alloy_trie::Nibbles;
use ophion_primitives::errors::{Error, Result};

use super::memory_trie::Plain;
use super::node::{Cell, Child, Node, Trie};
use super::node_rlp::{KEY_NIBBLES, RlpChild, RlpNode};
use super::node_storage::NoSource;

/// Position of a subtree relative to the range of keys.
enum Place {
    Before,
    /// The subtree contains the first or the last key of the range.
    Boundary,
    Inside,
    After,
}

struct Range<'a> {
    nodes: B256Map<&'a [u8]>,
    first: Nibbles,
    last: Nibbles,
    /// Whether the trie has entries with keys after the range.
    has_more: bool,
}

/// Verify that `entries` (key and RLP of the value, in order) are all entries of the trie from `origin` up to the last
/// listed key. With an empty proof, they must be all entries of the trie. Returns whether the trie has entries after
/// them.
pub fn verify_range(root: B256, origin: B256, entries: &[(B256, &[u8])], proof: &[&[u8]]) -> Result<bool> {
    if entries.windows(2).any(|pair| pair[0].0 >= pair[1].0) || entries.first().is_some_and(|(key, _)| *key < origin) {
        return Err(wrong("the keys are not in order"));
    }
    if proof.is_empty() {
        return if filled(Trie::default(), entries)?.hash() == root { Ok(false) } else { Err(wrong("another root")) };
    }
    let last = entries.last().map_or(origin, |(key, _)| *key);
    let mut range = Range {
        nodes: proof.iter().map(|node| (keccak256(node), *node)).collect(),
        first: Nibbles::unpack(origin),
        last: Nibbles::unpack(last),
        has_more: false,
    };
    let outside = range.outside(&RlpChild::Hash(root), Nibbles::new())?;
    if filled(Trie { root: outside }, entries)?.hash() != root {
        return Err(wrong("another root"));
    }
    if entries.is_empty() && range.has_more {
        return Err(wrong("no entries, but the trie has some"));
    }
    Ok(range.has_more)
}

fn filled(mut trie: Trie<Plain>, entries: &[(B256, &[u8])]) -> Result<Trie<Plain>> {
    for (key, value) in entries {
        if value.is_empty() {
            return Err(wrong("an empty value"));
        }
        trie.insert(Nibbles::unpack(key), Plain(value.to_vec()), &NoSource)
            .map_err(|_| wrong("an entry below a node that the proof lacks"))?;
    }
    Ok(trie)
}

impl Range<'_> {
    fn place(&self, prefix: &Nibbles) -> Place {
        let length = prefix.len();
        match (prefix.cmp(&self.first.slice(..length)), prefix.cmp(&self.last.slice(..length))) {
            (Ordering::Less, _) => Place::Before,
            (_, Ordering::Greater) => Place::After,
            (Ordering::Greater, Ordering::Less) => Place::Inside,
            _ => Place::Boundary,
        }
    }

    /// Remove the entries of the range from a subtree. Returns the rest of the subtree; None if no entries remain.
    fn outside(&mut self, child: &RlpChild, prefix: Nibbles) -> Result<Option<Child<Plain>>> {
        match self.place(&prefix) {
            Place::Inside => return Ok(None),
            Place::Before => return whole(child, &prefix).map(Some),
            Place::After => {
                self.has_more = true;
                return whole(child, &prefix).map(Some);
            }
            Place::Boundary => {}
        }
        let node = match child {
            RlpChild::Inline(rlp) => RlpNode::decode(rlp)?,
            RlpChild::Hash(hash) => RlpNode::decode(self.nodes.get(hash).ok_or_else(|| wrong("a node is missing"))?)?,
        };
        let node = match node {
            RlpNode::Leaf { path, value } => {
                let key = joined(&prefix, &path)?;
                if key.len() != KEY_NIBBLES {
                    return Err(wrong("a key of another length"));
                }
                self.has_more |= key > self.last;
                (key < self.first || key > self.last).then_some(Node::Leaf { path, value: Plain(value) })
            }
            RlpNode::Extension { path, child } => {
                let child = self.outside(&child, joined(&prefix, &path)?)?;
                child.map(|child| Node::Extension { path, child })
            }
            RlpNode::Branch { children } => {
                let (mut mask, mut kept) = (0, Vec::new());
                for (nibble, child) in (0u8..).zip(&children) {
                    let Some(child) = child else { continue };
                    if let Some(child) = self.outside(child, pushed(&prefix, nibble)?)? {
                        mask |= 1 << nibble;
                        kept.push(child);
                    }
                }
                (mask != 0).then_some(Node::Branch { mask, children: kept, value: None })
            }
        };
        Ok(node.map(|node| Child::Live(Arc::new(Cell::new(node)))))
    }
}

/// Convert a subtree outside of the range: a hash stays a hash, and a node inlined in its parent is decoded.
fn whole(child: &RlpChild, prefix: &Nibbles) -> Result<Child<Plain>> {
    let rlp = match child {
        RlpChild::Hash(hash) => return Ok(Child::Stored { hash: *hash, id: 0 }),
        RlpChild::Inline(rlp) => rlp,
    };
    let node = match RlpNode::decode(rlp)? {
        RlpNode::Leaf { path, value } => Node::Leaf { path, value: Plain(value) },
        RlpNode::Extension { path, child } => Node::Extension { path, child: whole(&child, &joined(prefix, &path)?)? },
        RlpNode::Branch { children } => {
            let (mut mask, mut kept) = (0, Vec::new());
            for (nibble, child) in (0u8..).zip(&children) {
                if let Some(child) = child {
                    mask |= 1 << nibble;
                    kept.push(whole(child, &pushed(prefix, nibble)?)?);
                }
            }
            Node::Branch { mask, children: kept, value: None }
        }
    };
    Ok(Child::Live(Arc::new(Cell::new(node))))
}

/// Join two trie paths. Fails if the result is longer than a key.
pub fn joined(prefix: &Nibbles, path: &Nibbles) -> Result<Nibbles> {
    if prefix.len() + path.len() > KEY_NIBBLES { Err(wrong("a key is too long")) } else { Ok(prefix.join(path)) }
}

/// Return the path of a branch's child: the branch's path plus one nibble.
pub fn pushed(prefix: &Nibbles, nibble: u8) -> Result<Nibbles> {
    joined(prefix, &Nibbles::from_nibbles([nibble]))
}

fn wrong(why: &str) -> Error {
    Error::Decode(format!("range proof: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trie::proof;

    fn key(index: u64) -> B256 {
        keccak256(index.to_be_bytes())
    }

    /// Make a trie of `count` entries. Some are so short that their leaves are part of their parents.
    fn example(count: u64) -> (Trie<Plain>, Vec<(B256, Vec<u8>)>) {
        let mut entries: Vec<(B256, Vec<u8>)> =
            (0..count).map(|index| (key(index), vec![1 + (index % 100) as u8; 1 + (index % 40) as usize])).collect();
        entries.sort();
        let mut trie = Trie::default();
        for (key, value) in &entries {
            trie.insert(Nibbles::unpack(key), Plain(value.clone()), &NoSource).unwrap();
        }
        (trie, entries)
    }

    fn proof_of(trie: &Trie<Plain>, keys: &[B256]) -> Vec<Vec<u8>> {
        keys.iter().flat_map(|key| proof(trie, &Nibbles::unpack(key), &NoSource).unwrap()).collect()
    }

    fn verified(root: B256, origin: B256, entries: &[(B256, Vec<u8>)], proof: &[Vec<u8>]) -> Result<bool> {
        let entries: Vec<(B256, &[u8])> = entries.iter().map(|(key, value)| (*key, &value[..])).collect();
        let proof: Vec<&[u8]> = proof.iter().map(Vec::as_slice).collect();
        verify_range(root, origin, &entries, &proof)
    }

    fn before(key: B256) -> B256 {
        B256::from(alloy_primitives::U256::from_be_bytes(key.0) - alloy_primitives::U256::from(1))
    }

    #[test]
    fn every_range_of_a_trie_is_accepted() {
        for count in [1, 2, 3, 17, 60] {
            let (trie, entries) = example(count);
            let root = trie.hash();
            for start in 0..entries.len() {
                for end in start + 1..=entries.len() {
                    let last = entries[end - 1].0;
                    for origin in [entries[start].0, before(entries[start].0)] {
                        let proof = proof_of(&trie, &[origin, last]);
                        let more = verified(root, origin, &entries[start..end], &proof).unwrap();
                        assert_eq!(more, end < entries.len(), "{count} {start} {end}");
                    }
                }
            }
            assert!(!verified(root, B256::ZERO, &entries, &[]).unwrap());
        }
    }

    #[test]
    fn a_missing_added_or_changed_entry_is_rejected() {
        let (trie, entries) = example(60);
        let root = trie.hash();
        for (start, end) in [(0, 60), (0, 20), (13, 41), (50, 60), (7, 8)] {
            let origin = before(entries[start].0);
            let proof = proof_of(&trie, &[origin, entries[end - 1].0]);
            let range = &entries[start..end];
            for place in 0..range.len() {
                let mut fewer = range.to_vec();
                fewer.remove(place);
                // without its last entry, the range ends earlier; the proof may also be valid for this shorter range
                let is_shorter = place + 1 == range.len();
                let found = verified(root, origin, &fewer, &proof);
                assert!(found.is_err() || (is_shorter && found.unwrap()), "{start} {end} {place}");
                let mut changed = range.to_vec();
                changed[place].1[0] ^= 0x80;
                assert!(verified(root, origin, &changed, &proof).is_err());
                let mut more = range.to_vec();
                more.insert(place, (before(range[place].0), vec![9]));
                assert!(verified(root, origin, &more, &proof).is_err());
                let mut disordered = range.to_vec();
                disordered.swap(0, place);
                assert!(place == 0 || verified(root, origin, &disordered, &proof).is_err());
            }
            for missing in 0..proof.len() {
                let mut less = proof.clone();
                let gone = less.remove(missing);
                assert!(less.contains(&gone) || verified(root, origin, range, &less).is_err());
            }
        }
    }

    #[test]
    fn the_end_of_a_trie_needs_a_proof() {
        let (trie, entries) = example(30);
        let (root, last) = (trie.hash(), entries[29].0);
        let after = B256::from(alloy_primitives::U256::from_be_bytes(last.0) + alloy_primitives::U256::from(1));
        assert!(!verified(root, after, &[], &proof_of(&trie, &[after])).unwrap());
        assert!(verified(root, last, &[], &proof_of(&trie, &[last])).is_err());
        let middle = before(entries[15].0);
        assert!(verified(root, middle, &[], &proof_of(&trie, &[middle])).is_err());
        assert!(verified(root, B256::ZERO, &[], &[]).is_err());
    }

    #[test]
    fn malformed_nodes_are_errors() {
        let (trie, entries) = example(40);
        let proof = proof_of(&trie, &[entries[3].0, entries[20].0]);
        for node in &proof {
            for place in 0..node.len() {
                for flip in [0x01, 0x80, 0xff] {
                    let mut changed = node.clone();
                    changed[place] ^= flip;
                    let _ = RlpNode::decode(&changed);
                    let _ = RlpNode::decode(&changed[..place]);
                    // verify against the hash of the changed node, so that the verification decodes this node as the
                    // root
                    let root = keccak256(&changed);
                    let _ = verified(root, entries[3].0, &entries[3..21], &[changed]);
                }
            }
        }
    }
}

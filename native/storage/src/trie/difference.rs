//! Finds the differences between a stored trie and the trie of a peer, from the root down.
//!
//! ```text
//! root ─▶ wanted ──requests──▶ received node: equal children are skipped, others become wanted
//!                                             leaves become changes, absent subtrees become removals
//! ```
//! A received node must have the hash that its parent contains, so it belongs to the other trie. Only subtrees whose
//! hashes differ are requested. Changes can be applied at any time: a new search finds the remaining differences.

use alloy_primitives::{B256, keccak256};
use alloy_trie::Nibbles;
use ophion_primitives::errors::{Error, Result};

use super::node::{Node, Trie, Value, rank};
use super::node_rlp::{KEY_NIBBLES, RlpChild, RlpNode};
use super::node_storage::Source;
use super::range_proof::{joined, pushed};

/// Path and hash of a node of the other trie.
type Wanted = (Nibbles, B256);

/// A search for the differences between a stored trie and the trie of a peer.
pub struct Difference {
    /// Trie nodes to request; the last one is requested next. The search goes depth first, so that the number of nodes
    /// in memory does not grow with the number of differences.
    wanted: Vec<Wanted>,
    /// Trie nodes that were requested, in the order of the request.
    requested: Vec<Wanted>,
    /// Entries of the other trie (key and RLP of the value) that the stored trie lacks or has with another value.
    pub changed: Vec<(B256, Vec<u8>)>,
    /// Keys that the stored trie has and the other trie lacks.
    pub removed: Vec<B256>,
}

impl Difference {
    /// Start a search for the differences from the trie with this root.
    pub fn to(root: B256) -> Self {
        Difference {
            wanted: vec![(Nibbles::new(), root)],
            requested: Vec::new(),
            changed: Vec::new(),
            removed: Vec::new(),
        }
    }

    pub fn is_complete(&self) -> bool {
        self.wanted.is_empty() && self.requested.is_empty()
    }

    /// Return the paths of up to `max` trie nodes to request. Nodes of an unanswered request are requested again.
    pub fn next_paths(&mut self, max: usize) -> Vec<Nibbles> {
        self.wanted.extend(self.requested.drain(..).rev());
        let first = self.wanted.len().saturating_sub(max);
        self.requested = self.wanted.drain(first..).rev().collect();
        self.requested.iter().map(|(path, _)| *path).collect()
    }

    /// Compare received nodes with the stored trie. `nodes` answer the first paths of the last request. Fails if the
    /// hash of a node differs from the hash in its parent. Returns the number of nodes.
    pub fn receive<V: Value>(&mut self, nodes: &[&[u8]], trie: &Trie<V>, source: &impl Source) -> Result<usize> {
        if nodes.len() > self.requested.len() {
            return Err(Error::Decode("trie nodes: more nodes than requested".into()));
        }
        let decoded = nodes.iter().zip(&self.requested).map(|(rlp, (_, hash))| match keccak256(rlp) == *hash {
            true => RlpNode::decode(rlp),
            false => Err(Error::Decode("trie nodes: a node has another hash".into())),
        });
        let decoded = decoded.collect::<Result<Vec<_>>>()?;
        let received: Vec<Wanted> = self.requested.drain(..decoded.len()).collect();
        for ((path, _), node) in received.into_iter().zip(decoded) {
            self.compare(path, node, trie, source)?;
        }
        Ok(nodes.len())
    }

    fn compare<V: Value>(&mut self, path: Nibbles, node: RlpNode, trie: &Trie<V>, source: &impl Source) -> Result<()> {
        match node {
            RlpNode::Leaf { path: rest, value } => {
                let key = joined(&path, &rest)?;
                if key.len() != KEY_NIBBLES {
                    return Err(Error::Decode("trie nodes: a key of another length".into()));
                }
                self.remove_below(&path, Some(&key), trie, source)?;
                let mut known = Vec::new();
                if let Some(found) = trie.get(&key, source)? {
                    found.encode(&mut known);
                }
                if known != value {
                    self.changed.push((B256::from_slice(&key.pack()), value));
                }
            }
            RlpNode::Extension { path: rest, child } => {
                let below = joined(&path, &rest)?;
                self.remove_below(&path, Some(&below), trie, source)?;
                self.descend(below, child, trie, source)?;
            }
            RlpNode::Branch { children } => {
                for (nibble, child) in (0u8..).zip(children) {
                    let below = pushed(&path, nibble)?;
                    match child {
                        Some(child) => self.descend(below, child, trie, source)?,
                        None => self.remove_below(&below, None, trie, source)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn descend<V: Value>(
        &mut self,
        path: Nibbles,
        child: RlpChild,
        trie: &Trie<V>,
        source: &impl Source,
    ) -> Result<()> {
        match child {
            RlpChild::Inline(rlp) => self.compare(path, RlpNode::decode(&rlp)?, trie, source),
            RlpChild::Hash(hash) => {
                if hash_at(trie, &path, source)? != Some(hash) {
                    self.wanted.push((path, hash));
                }
                Ok(())
            }
        }
    }

    /// Add all keys below `prefix` to `removed`, except the keys below `kept`.
    fn remove_below<V: Value>(
        &mut self,
        prefix: &Nibbles,
        kept: Option<&Nibbles>,
        trie: &Trie<V>,
        source: &impl Source,
    ) -> Result<()> {
        trie.walk(prefix, source, &mut |key, _| {
            if !key.starts_with(prefix) {
                return Ok(false);
            }
            if kept.is_none_or(|kept| !key.starts_with(kept)) {
                self.removed.push(B256::from_slice(&key.pack()));
            }
            Ok(true)
        })
    }
}

/// Return the hash of the node at `path` in the stored trie; None if no node has this path.
fn hash_at<V: Value>(trie: &Trie<V>, path: &Nibbles, source: &impl Source) -> Result<Option<B256>> {
    let Some(root) = &trie.root else { return Ok(None) };
    if path.is_empty() {
        return Ok(Some(root.root_hash()));
    }
    let mut cell = root.open(source)?;
    let mut at = 0;
    loop {
        let child = match &cell.node {
            Node::Leaf { .. } => return Ok(None),
            Node::Extension { path: shared, child } => {
                if !path.slice(at..).starts_with(shared) {
                    return Ok(None);
                }
                at += shared.len();
                child
            }
            Node::Branch { mask, children, .. } => {
                let nibble = path.get_unchecked(at);
                if mask & (1 << nibble) == 0 {
                    return Ok(None);
                }
                at += 1;
                &children[rank(*mask, nibble)]
            }
        };
        if at == path.len() {
            return Ok(Some(child.root_hash()));
        }
        let next = child.open(source)?;
        cell = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trie::memory_trie::Plain;
    use crate::trie::{NoSource, node_at};

    fn trie_of(entries: impl Iterator<Item = (u64, u8)>) -> Trie<Plain> {
        let mut trie = Trie::default();
        for (index, value) in entries {
            let length = 1 + (index % 50) as usize;
            trie.insert(Nibbles::unpack(keccak256(index.to_be_bytes())), Plain(vec![value; length]), &NoSource)
                .unwrap();
        }
        trie
    }

    /// Make `stored` equal to `other` and return the number of nodes that were requested.
    fn healed(mut stored: Trie<Plain>, other: &Trie<Plain>, at_a_time: usize) -> usize {
        let mut difference = Difference::to(other.hash());
        let mut requested = 0;
        while !difference.is_complete() {
            let paths = difference.next_paths(at_a_time);
            let nodes: Vec<Vec<u8>> =
                paths.iter().map(|path| node_at(other, path, &NoSource).unwrap().unwrap()).collect();
            let nodes: Vec<&[u8]> = nodes.iter().map(Vec::as_slice).collect();
            requested += difference.receive(&nodes, &stored, &NoSource).unwrap();
            for key in difference.removed.drain(..) {
                assert!(stored.remove(&Nibbles::unpack(key), &NoSource).unwrap());
            }
            for (key, value) in difference.changed.drain(..) {
                stored.insert(Nibbles::unpack(key), Plain(value), &NoSource).unwrap();
            }
        }
        assert_eq!(stored.hash(), other.hash());
        requested
    }

    #[test]
    fn a_trie_becomes_another() {
        let other = trie_of((0..500).map(|index| (index, 1)));
        for at_a_time in [1, 7, 1000] {
            for stored in [
                Trie::default(),
                trie_of((0..1).map(|index| (index, 1))),
                trie_of((0..500).map(|index| (index, 2))),
                trie_of((300..700).map(|index| (index, 1))),
                trie_of((0..800).map(|index| (index, 1 + u8::from(index % 50 == 0)))),
            ] {
                healed(stored, &other, at_a_time);
            }
        }
        for count in [1, 2, 3] {
            healed(trie_of((0..500).map(|index| (index, 1))), &trie_of((0..count).map(|index| (index, 1))), 5);
        }
    }

    #[test]
    fn few_nodes_wait_in_memory() {
        let other = trie_of((0..5000).map(|index| (index, 1)));
        let mut difference = Difference::to(other.hash());
        let mut most = 0;
        while !difference.is_complete() {
            let paths = difference.next_paths(1);
            let node = node_at(&other, &paths[0], &NoSource).unwrap().unwrap();
            difference.receive(&[&node], &Trie::<Plain>::default(), &NoSource).unwrap();
            most = most.max(difference.wanted.len());
        }
        assert_eq!(difference.changed.len(), 5000);
        assert!(most < 100, "{most}");
    }

    #[test]
    fn only_differences_are_requested() {
        let other = trie_of((0..5000).map(|index| (index, 1)));
        let stored = trie_of((0..5000).map(|index| (index, 1 + u8::from(index == 49))));
        assert!(healed(stored, &other, 100) < 10);
    }

    #[test]
    fn a_wrong_node_is_rejected_and_requested_again() {
        let (stored, other) = (trie_of((0..50).map(|index| (index, 1))), trie_of((0..60).map(|index| (index, 1))));
        let mut difference = Difference::to(other.hash());
        assert_eq!(difference.next_paths(5), [Nibbles::new()]);
        let wrong = node_at(&stored, &Nibbles::new(), &NoSource).unwrap().unwrap();
        assert!(difference.receive(&[&wrong], &stored, &NoSource).is_err());
        let right = node_at(&other, &Nibbles::new(), &NoSource).unwrap().unwrap();
        assert!(difference.receive(&[&right, &right], &stored, &NoSource).is_err());
        assert_eq!(difference.receive(&[], &stored, &NoSource).unwrap(), 0);
        assert_eq!(difference.next_paths(5), [Nibbles::new()]);
        assert_eq!(difference.receive(&[&right], &stored, &NoSource).unwrap(), 1);
    }
}

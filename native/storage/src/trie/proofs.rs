//! Proofs, and iteration in key order.

use alloy_trie::Nibbles;
use ophion_primitives::errors::Result;

use super::node::{Child, Node, Reference, Trie, Value, rank};
use super::node_storage::Source;

/// Return the RLP of the nodes from the root towards `key`. The last node shows the value or its absence. Nodes shorter
/// than a hash are part of their parent and not listed.
pub fn proof<V: Value>(trie: &Trie<V>, key: &Nibbles, source: &impl Source) -> Result<Vec<Vec<u8>>> {
    let mut nodes = Vec::new();
    let Some(root) = &trie.root else { return Ok(nodes) };
    let mut cell = root.open(source)?;
    let mut at = 0;
    loop {
        if nodes.is_empty() || matches!(cell.reference(), Reference::Hash(_)) {
            let mut rlp = Vec::new();
            cell.encode(&mut rlp);
            nodes.push(rlp);
        }
        let next = match &cell.node {
            Node::Leaf { .. } => return Ok(nodes),
            Node::Extension { path, child } => {
                if !key.slice(at..).starts_with(path) {
                    return Ok(nodes);
                }
                at += path.len();
                child.open(source)?
            }
            Node::Branch { mask, children, .. } => {
                if at == key.len() {
                    return Ok(nodes);
                }
                let nibble = key.get_unchecked(at);
                if mask & (1 << nibble) == 0 {
                    return Ok(nodes);
                }
                at += 1;
                children[rank(*mask, nibble)].open(source)?
            }
        };
        cell = next;
    }
}

impl<V: Value> Trie<V> {
    /// Visit trie entries with keys from `start` on, in order, until `visit` returns false.
    pub fn walk(
        &self,
        start: &Nibbles,
        source: &impl Source,
        visit: &mut dyn FnMut(Nibbles, &V) -> Result<bool>,
    ) -> Result<()> {
        match &self.root {
            None => Ok(()),
            Some(root) => walk(root, Nibbles::new(), start, source, visit).map(drop),
        }
    }
}

/// Visit the trie entries below a child node. Returns false when `visit` has stopped the walk.
fn walk<V: Value>(
    child: &Child<V>,
    prefix: Nibbles,
    start: &Nibbles,
    source: &impl Source,
    visit: &mut dyn FnMut(Nibbles, &V) -> Result<bool>,
) -> Result<bool> {
    let cell = child.open(source)?;
    match &cell.node {
        Node::Leaf { path, value } => {
            let key = prefix.join(path);
            if key < *start { Ok(true) } else { visit(key, value) }
        }
        Node::Extension { path, child } => {
            let prefix = prefix.join(path);
            if ends_before(&prefix, start) { Ok(true) } else { walk(child, prefix, start, source, visit) }
        }
        Node::Branch { mask, children, value } => {
            if let Some(value) = value
                && prefix >= *start
                && !visit(prefix, value)?
            {
                return Ok(false);
            }
            let mut next = children.iter();
            for nibble in (0..16u8).filter(|nibble| mask & (1 << nibble) != 0) {
                let child = next.next().expect("one child for each bit of the mask");
                let mut below = prefix;
                below.push(nibble);
                if !ends_before(&below, start) && !walk(child, below, start, source, visit)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Return whether every key below `prefix` is smaller than `start`.
fn ends_before(prefix: &Nibbles, start: &Nibbles) -> bool {
    let length = prefix.len().min(start.len());
    prefix.slice(..length) < start.slice(..length)
}

//! Finds trie nodes by their path from the root.

use alloy_trie::Nibbles;
use ophion_primitives::errors::Result;

use super::node::{Node, Reference, Trie, Value, rank};
use super::node_storage::Source;

/// Return the RLP of the node at `path`; None if no node begins there. A node shorter than a hash also gives None,
/// because it is part of its parent.
pub fn node_at<V: Value>(trie: &Trie<V>, path: &Nibbles, source: &impl Source) -> Result<Option<Vec<u8>>> {
    let Some(root) = &trie.root else { return Ok(None) };
    let mut cell = root.open(source)?;
    let mut at = 0;
    while at < path.len() {
        let next = match &cell.node {
            Node::Leaf { .. } => return Ok(None),
            Node::Extension { path: shared, child } => {
                if !path.slice(at..).starts_with(shared) {
                    return Ok(None);
                }
                at += shared.len();
                child.open(source)?
            }
            Node::Branch { mask, children, .. } => {
                let nibble = path.get_unchecked(at);
                if mask & (1 << nibble) == 0 {
                    return Ok(None);
                }
                at += 1;
                children[rank(*mask, nibble)].open(source)?
            }
        };
        cell = next;
    }
    if !path.is_empty() && matches!(cell.reference(), Reference::Inline(_)) {
        return Ok(None);
    }
    let mut rlp = Vec::new();
    cell.encode(&mut rlp);
    Ok(Some(rlp))
}

//! Key lookup, first in memory, then in stored nodes without decoding them.
//!
//! A stored branch holds up to sixteen children, including whole small leaves. A lookup reads only one child and skips
//! the others by length.

use alloy_trie::Nibbles;
use ophion_primitives::bytes::Reader;
use ophion_primitives::errors::{Error, Result};

use super::node::{Child, Node, Trie, Value, rank};
use super::node_parts::{child_id, decode_path, held, mask, skip_child};
use super::node_storage::Source;

impl<V: Value> Trie<V> {
    pub fn get(&self, key: &Nibbles, source: &impl Source) -> Result<Option<V>> {
        let Some(mut child) = self.root.as_ref() else { return Ok(None) };
        let mut at = 0;
        let mut id = loop {
            let cell = match child {
                Child::Live(cell) => cell,
                Child::Stored { id, .. } => break *id,
                Child::Held(leaf) => {
                    return match seek(leaf.stored(), key, at)? {
                        Found::Value(value) => Ok(Some(value)),
                        _ => Ok(None),
                    };
                }
            };
            child = match &cell.node {
                Node::Leaf { path, value } => return Ok((key.slice(at..) == *path).then(|| value.clone())),
                Node::Extension { path, child } => {
                    if !key.slice(at..).starts_with(path) {
                        return Ok(None);
                    }
                    at += path.len();
                    child
                }
                Node::Branch { value, .. } if at == key.len() => return Ok(value.clone()),
                Node::Branch { mask, children, .. } => {
                    let nibble = key.get_unchecked(at);
                    if mask & (1 << nibble) == 0 {
                        return Ok(None);
                    }
                    at += 1;
                    &children[rank(*mask, nibble)]
                }
            };
        };
        loop {
            match source.load_at(id, at, |bytes| seek(bytes, key, at))? {
                Found::Value(value) => return Ok(Some(value)),
                Found::Nothing => return Ok(None),
                Found::Below { id: next, at: reached } => (id, at) = (next, reached),
            }
        }
    }
}

enum Found<V> {
    Value(V),
    Nothing,
    /// The lookup continues in the stored node with this id. `at` nibbles of the key are consumed.
    Below {
        id: u64,
        at: usize,
    },
}

/// Follow a key from nibble `at` through a stored node and the children that are stored inside it.
fn seek<V: Value>(bytes: &[u8], key: &Nibbles, mut at: usize) -> Result<Found<V>> {
    let mut reader = Reader(bytes);
    loop {
        match reader.byte()? {
            0 => {
                let is_here = decode_path(&mut reader)? == key.slice(at..);
                return Ok(if is_here { Found::Value(V::restore(reader.rest())?) } else { Found::Nothing });
            }
            1 => {
                let path = decode_path(&mut reader)?;
                if !key.slice(at..).starts_with(&path) {
                    return Ok(Found::Nothing);
                }
                at += path.len();
            }
            2 => {
                let mask = mask(&mut reader)?;
                if at == key.len() {
                    skip_children(&mut reader, mask.count_ones() as usize)?;
                    let rest = reader.rest();
                    return Ok(if rest.is_empty() { Found::Nothing } else { Found::Value(V::restore(rest)?) });
                }
                let nibble = key.get_unchecked(at);
                if mask & (1 << nibble) == 0 {
                    return Ok(Found::Nothing);
                }
                skip_children(&mut reader, rank(mask, nibble))?;
                at += 1;
            }
            tag => return Err(Error::damaged(format!("unknown trie node kind {tag}"))),
        }
        match reader.byte()? {
            0 => return Ok(Found::Below { id: child_id(&mut reader)?, at }),
            1 => reader = Reader(held(&mut reader)?),
            tag => return Err(Error::damaged(format!("unknown trie reference kind {tag}"))),
        }
    }
}

fn skip_children(reader: &mut Reader<'_>, count: usize) -> Result<()> {
    (0..count).try_for_each(|_| skip_child(reader))
}

//! Stored form of nodes, and saving of tries.
//!
//! ```text
//! leaf       00 | nibbles | packed path | value
//! extension  01 | nibbles | packed path | child
//! branch     02 | mask (2) | child ... | value, if any
//! child      00 | id (6) | hash (32)            a separate node
//!            01 | length (2) | stored form      a node stored verbatim in its parent
//! ```
//! A branch may also be stored as a delta (branch_delta.rs); this module handles the full form. Integers are
//! big-endian. Parents hold the hashes of their children, so hashing and proofs do not load siblings. Nodes without a
//! hash (RLP shorter than 32 bytes) and small leaves are stored in their parents. For example, the leaf of an account
//! without code takes about as many bytes as a reference to it.

use std::sync::Arc;

use alloy_primitives::B256;
use alloy_trie::Nibbles;
use ophion_primitives::bytes::Reader;
use ophion_primitives::errors::{Error, Result};

use super::branch_delta;
use super::node::{Cell, Child, HeldLeaf, MAX_INLINE_BYTES, Node, Reference, Value};
use super::node_parts::{child_id, decode_path, held, mask, put_reference, skip_path, stored_id};
use super::node_storage::Saver;

/// Return whether a node is stored in the row of its parent instead of a row of its own.
fn is_held<V: Value>(cell: &Cell<V>) -> bool {
    match &cell.node {
        Node::Leaf { path, value } if 2 + path.len().div_ceil(2) + value.stored_length() <= MAX_INLINE_BYTES => true,
        _ => matches!(cell.reference(), Reference::Inline(_)),
    }
}

/// Return whether a child, or a node below it, may have to be written.
fn has_unsaved<V: Value>(child: &Child<V>) -> bool {
    match child {
        Child::Live(cell) => match &cell.node {
            Node::Leaf { value, .. } => !is_held(cell) || value.below().is_some(),
            _ => cell.id() == 0,
        },
        Child::Stored { .. } | Child::Held(_) => false,
    }
}

/// Write every new node of a trie to the database. Returns the id of the root. To write branches as deltas, pass the
/// root of the previous state as `before`.
pub fn save_root<V: Value>(child: &Child<V>, before: Option<u64>, saver: &mut dyn Saver) -> Result<u64> {
    match child {
        Child::Stored { id, .. } => Ok(*id),
        Child::Held(_) => Err(Error::damaged("a trie begins inside another node")),
        Child::Live(cell) => save(cell, before, saver),
    }
}

fn save<V: Value>(cell: &Arc<Cell<V>>, before: Option<u64>, saver: &mut dyn Saver) -> Result<u64> {
    if cell.id() != 0 {
        return Ok(cell.id());
    }
    let before = before.map(|id| saver.version(id)).transpose()?;
    save_below(&cell.node, before.as_ref().map(|version| &version.whole[..]), saver)?;
    let id = saver.next();
    let out = saver.out();
    let start = out.len();
    encode(&cell.node, out);
    if let Some(version) = before
        && let Some(change) = version.change_to(&out[start..], id)?
    {
        out.truncate(start);
        out.extend_from_slice(&change);
    }
    saver.put()?;
    cell.set_id(id);
    Ok(id)
}

/// Write the new nodes below a node. `before` is the full form of the node at this position in the previous state.
fn save_below<V: Value>(node: &Node<V>, before: Option<&[u8]>, saver: &mut dyn Saver) -> Result<()> {
    let mut child = |child: &Child<V>, before: Option<u64>| -> Result<()> {
        let Child::Live(cell) = child else { return Ok(()) };
        if is_held(cell) { save_below(&cell.node, None, saver) } else { save(cell, before, saver).map(drop) }
    };
    match node {
        Node::Leaf { value, .. } => {
            let below = before.map(|bytes| below_leaf::<V>(bytes)).transpose()?;
            value.save(below.flatten(), saver)
        }
        Node::Extension { path, child: below } => {
            let under = before.map(|bytes| under_extension(bytes, path)).transpose()?;
            child(below, under.flatten())
        }
        Node::Branch { mask, children, value } => {
            let earlier = before.map(branch_delta::children).transpose()?.flatten().unwrap_or_default();
            // Most children have nothing to save. Look at all children first, so that the processor loads them at the
            // same time.
            let unsaved = children.iter().enumerate().filter(|(_, child)| has_unsaved(child));
            let unsaved = unsaved.fold(0u16, |found, (place, _)| found | 1 << place);
            let nibbles = (0..16).filter(|nibble| mask & 1 << nibble != 0);
            for (place, (nibble, below)) in nibbles.zip(children).enumerate() {
                if unsaved & 1 << place != 0 {
                    child(below, earlier[nibble].and_then(stored_id))?;
                }
            }
            value.as_ref().map_or(Ok(()), |value| value.save(None, saver))
        }
    }
}

/// Read a stored leaf of the state trie. Returns the id of the root node of the account's storage trie; None if the
/// account has no storage.
fn below_leaf<V: Value>(bytes: &[u8]) -> Result<Option<u64>> {
    let mut reader = Reader(bytes);
    if reader.byte()? != 0 {
        return Ok(None);
    }
    skip_path(&mut reader)?;
    Ok(V::restore(reader.rest())?.below())
}

/// Return the id of an extension's child; None if the node is not an extension with this path.
fn under_extension(bytes: &[u8], path: &Nibbles) -> Result<Option<u64>> {
    let mut reader = Reader(bytes);
    if reader.byte()? != 1 || decode_path(&mut reader)? != *path {
        return Ok(None);
    }
    Ok(stored_id(reader.rest()))
}

fn encode<V: Value>(node: &Node<V>, out: &mut Vec<u8>) {
    match node {
        Node::Leaf { path, value } => {
            out.push(0);
            encode_path(path, out);
            value.store(out);
        }
        Node::Extension { path, child } => {
            out.push(1);
            encode_path(path, out);
            encode_child(child, out);
        }
        Node::Branch { mask, children, value } => {
            out.push(2);
            out.extend_from_slice(&mask.to_be_bytes());
            children.iter().for_each(|child| encode_child(child, out));
            if let Some(value) = value {
                value.store(out);
            }
        }
    }
}

fn encode_path(path: &Nibbles, out: &mut Vec<u8>) {
    out.push(path.len() as u8);
    out.extend_from_slice(&path.pack());
}

fn encode_child<V: Value>(child: &Child<V>, out: &mut Vec<u8>) {
    let (hash, id) = match child {
        Child::Stored { hash, id } => (*hash, *id),
        Child::Held(leaf) => {
            out.push(1);
            out.extend_from_slice(&(leaf.stored().len() as u16).to_be_bytes());
            out.extend_from_slice(leaf.stored());
            return;
        }
        Child::Live(cell) if is_held(cell) => {
            out.push(1);
            let at = out.len();
            out.extend_from_slice(&[0, 0]);
            encode(&cell.node, out);
            let length = (out.len() - at - 2) as u16;
            out[at..at + 2].copy_from_slice(&length.to_be_bytes());
            return;
        }
        Child::Live(cell) => (cell.root_hash(), cell.id()),
    };
    put_reference(id, hash.as_slice(), out);
}

pub fn decode<V: Value>(bytes: &[u8]) -> Result<Node<V>> {
    let mut reader = Reader(bytes);
    let node = match reader.byte()? {
        0 => Node::Leaf { path: decode_path(&mut reader)?, value: V::restore(reader.rest())? },
        1 => Node::Extension { path: decode_path(&mut reader)?, child: decode_child(&mut reader)? },
        2 => {
            let mask = mask(&mut reader)?;
            let count = mask.count_ones() as usize;
            // reserve the memory for all children: collecting into a Result would not know their number
            let mut children = Vec::with_capacity(count);
            for _ in 0..count {
                children.push(decode_child(&mut reader)?);
            }
            let rest = reader.rest();
            Node::Branch { mask, children, value: if rest.is_empty() { None } else { Some(V::restore(rest)?) } }
        }
        tag => return Err(Error::damaged(format!("unknown trie node kind {tag}"))),
    };
    Ok(node)
}

fn decode_child<V: Value>(reader: &mut Reader<'_>) -> Result<Child<V>> {
    match reader.byte()? {
        0 => Ok(Child::Stored { id: child_id(reader)?, hash: B256::from_slice(reader.take(32)?) }),
        1 => {
            let stored = held(reader)?;
            match held_leaf::<V>(stored)? {
                Some(leaf) => Ok(Child::Held(leaf)),
                None => Ok(Child::Live(Arc::new(Cell::new(decode(stored)?)))),
            }
        }
        tag => Err(Error::damaged(format!("unknown trie reference kind {tag}"))),
    }
}

/// Check a node that is stored in its parent. Returns the node if it is a small leaf, else None.
fn held_leaf<V: Value>(stored: &[u8]) -> Result<Option<HeldLeaf>> {
    let mut reader = Reader(stored);
    if reader.byte()? != 0 {
        return Ok(None);
    }
    skip_path(&mut reader)?;
    V::restore(reader.rest())?;
    Ok(HeldLeaf::new(stored))
}

/// Hash and database id of a node.
pub type Link = (B256, u64);

/// Return the RLP of a stored node, and hash and id of each node that it refers to. Integrity checks use this.
pub fn stored_children<V: Value>(bytes: &[u8]) -> Result<(Vec<u8>, Vec<Link>)> {
    let cell = Cell::<V>::new(decode(bytes)?);
    let mut rlp = Vec::new();
    cell.encode(&mut rlp);
    let mut found = Vec::new();
    gather(&cell.node, &mut found);
    Ok((rlp, found))
}

/// Collect the ids to which a stored node refers: nodes of the same trie, and roots of the storage tries of the node's
/// accounts. The function builds no `Node`, because pruning calls it for every node.
pub fn references<V: Value>(bytes: &[u8], own: &mut Vec<u64>, below: &mut Vec<u64>) -> Result<()> {
    let mut reader = Reader(bytes);
    match reader.byte()? {
        0 => {
            skip_path(&mut reader)?;
            below.extend(V::restore(reader.rest())?.below());
        }
        1 => {
            skip_path(&mut reader)?;
            refer::<V>(&mut reader, own, below)?;
        }
        2 => {
            let mask = mask(&mut reader)?;
            for _ in 0..mask.count_ones() {
                refer::<V>(&mut reader, own, below)?;
            }
            if !reader.0.is_empty() {
                below.extend(V::restore(reader.rest())?.below());
            }
        }
        tag => return Err(Error::damaged(format!("unknown trie node kind {tag}"))),
    }
    Ok(())
}

fn refer<V: Value>(reader: &mut Reader<'_>, own: &mut Vec<u64>, below: &mut Vec<u64>) -> Result<()> {
    match reader.byte()? {
        0 => {
            own.push(child_id(reader)?);
            reader.take(32).map(drop)
        }
        1 => references::<V>(held(reader)?, own, below),
        tag => Err(Error::damaged(format!("unknown trie reference kind {tag}"))),
    }
}

fn gather<V>(node: &Node<V>, found: &mut Vec<Link>) {
    let mut child = |child: &Child<V>| match child {
        Child::Stored { hash, id } => found.push((*hash, *id)),
        Child::Held(_) => {}
        Child::Live(cell) => gather(&cell.node, found),
    };
    match node {
        Node::Leaf { .. } => {}
        Node::Extension { child: below, .. } => child(below),
        Node::Branch { children, .. } => children.iter().for_each(child),
    }
}

//! The stored form of nodes, and saving a trie.
//!
//! ```text
//! leaf       00 | nibbles | packed path | value
//! extension  01 | nibbles | packed path | child
//! branch     02 | mask (2) | child ... | value when there is one
//! child      00 | id (6) | hash (32)            a node of its own
//!            01 | length (2) | stored form      a node that its parent holds verbatim
//! ```
//! Integers are big-endian. The hash of a child is kept with its parent: neither hashing a changed parent nor
//! proving anything has to load the siblings.

use std::sync::Arc;

use alloy_primitives::B256;
use alloy_trie::Nibbles;
use ophion_primitives::bytes::Reader;
use ophion_primitives::errors::{Error, Result};

use super::node::{Cell, Child, Node, Reference, Value};
use super::source::Saver;

/// Write every node of the trie below `child` that is not in the database yet; id of the root.
pub fn save_root<V: Value>(child: &Child<V>, saver: &mut dyn Saver) -> Result<u64> {
    match child {
        Child::Stored { id, .. } => Ok(*id),
        Child::Live(cell) => save(cell, saver),
    }
}

fn save<V: Value>(cell: &Arc<Cell<V>>, saver: &mut dyn Saver) -> Result<u64> {
    if cell.id() != 0 {
        return Ok(cell.id());
    }
    save_below(&cell.node, saver)?;
    let mut stored = Vec::with_capacity(128);
    encode(&cell.node, &mut stored);
    let id = saver.put(&stored)?;
    cell.set_id(id);
    Ok(id)
}

fn save_below<V: Value>(node: &Node<V>, saver: &mut dyn Saver) -> Result<()> {
    let mut child = |child: &Child<V>| -> Result<()> {
        let Child::Live(cell) = child else { return Ok(()) };
        match cell.reference() {
            Reference::Hash(_) => save(cell, saver).map(drop),
            Reference::Inline(_) => save_below(&cell.node, saver),
        }
    };
    match node {
        Node::Leaf { value, .. } => value.save(saver),
        Node::Extension { child: below, .. } => child(below),
        Node::Branch { children, value, .. } => {
            children.iter().try_for_each(&mut child)?;
            value.as_ref().map_or(Ok(()), |value| value.save(saver))
        }
    }
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
        Child::Live(cell) => match cell.reference() {
            Reference::Hash(hash) => (*hash, cell.id()),
            Reference::Inline(_) => {
                out.push(1);
                let at = out.len();
                out.extend_from_slice(&[0, 0]);
                encode(&cell.node, out);
                let length = (out.len() - at - 2) as u16;
                out[at..at + 2].copy_from_slice(&length.to_be_bytes());
                return;
            }
        },
    };
    out.push(0);
    out.extend_from_slice(&id.to_be_bytes()[2..]);
    out.extend_from_slice(hash.as_slice());
}

pub fn decode<V: Value>(bytes: &[u8]) -> Result<Node<V>> {
    let mut reader = Reader(bytes);
    let node = match reader.byte()? {
        0 => Node::Leaf { path: decode_path(&mut reader)?, value: V::restore(reader.rest())? },
        1 => Node::Extension { path: decode_path(&mut reader)?, child: decode_child(&mut reader)? },
        2 => {
            let mask = u16::from_be_bytes(reader.take(2)?.try_into().expect("two bytes"));
            let children = (0..mask.count_ones()).map(|_| decode_child(&mut reader)).collect::<Result<_>>()?;
            let rest = reader.rest();
            Node::Branch { mask, children, value: if rest.is_empty() { None } else { Some(V::restore(rest)?) } }
        }
        tag => return Err(Error::damaged(format!("unknown trie node kind {tag}"))),
    };
    Ok(node)
}

fn decode_path(reader: &mut Reader<'_>) -> Result<Nibbles> {
    let length = reader.byte()? as usize;
    if length > 64 {
        return Err(Error::damaged("a trie path is too long"));
    }
    let mut path = Nibbles::unpack(reader.take(length.div_ceil(2))?);
    path.truncate(length);
    Ok(path)
}

fn decode_child<V: Value>(reader: &mut Reader<'_>) -> Result<Child<V>> {
    match reader.byte()? {
        0 => {
            let mut id = [0u8; 8];
            id[2..].copy_from_slice(reader.take(6)?);
            Ok(Child::Stored { id: u64::from_be_bytes(id), hash: B256::from_slice(reader.take(32)?) })
        }
        1 => {
            let length = u16::from_be_bytes(reader.take(2)?.try_into().expect("two bytes")) as usize;
            Ok(Child::Live(Arc::new(Cell::new(decode(reader.take(length)?)?))))
        }
        tag => Err(Error::damaged(format!("unknown trie reference kind {tag}"))),
    }
}

/// Hash and id of a node.
pub type Link = (B256, u64);

/// RLP of a stored node, and hash and id of every node that it refers to; for checks that trust nothing.
pub fn stored_children<V: Value>(bytes: &[u8]) -> Result<(Vec<u8>, Vec<Link>)> {
    let cell = Cell::<V>::new(decode(bytes)?);
    let mut rlp = Vec::new();
    cell.encode(&mut rlp);
    let mut found = Vec::new();
    gather(&cell.node, &mut found);
    Ok((rlp, found))
}

/// Ids of the nodes that a stored node refers to: in its own trie, and as roots of tries that hang below its values.
pub fn references<V: Value>(bytes: &[u8], own: &mut Vec<u64>, below: &mut Vec<u64>) -> Result<()> {
    refer(&decode::<V>(bytes)?, own, below);
    Ok(())
}

fn refer<V: Value>(node: &Node<V>, own: &mut Vec<u64>, below: &mut Vec<u64>) {
    let mut child = |child: &Child<V>, below: &mut Vec<u64>| match child {
        Child::Stored { id, .. } => own.push(*id),
        Child::Live(cell) => refer(&cell.node, own, below),
    };
    match node {
        Node::Leaf { value, .. } => below.extend(value.below()),
        Node::Extension { child: only, .. } => child(only, below),
        Node::Branch { children, value, .. } => {
            children.iter().for_each(|one| child(one, below));
            below.extend(value.as_ref().and_then(Value::below));
        }
    }
}

fn gather<V>(node: &Node<V>, found: &mut Vec<Link>) {
    let mut child = |child: &Child<V>| match child {
        Child::Stored { hash, id } => found.push((*hash, *id)),
        Child::Live(cell) => gather(&cell.node, found),
    };
    match node {
        Node::Leaf { .. } => {}
        Node::Extension { child: below, .. } => child(below),
        Node::Branch { children, .. } => children.iter().for_each(child),
    }
}

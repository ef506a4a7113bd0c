//! Inserts into and removes from a trie.

use std::sync::Arc;

use alloy_primitives::B256;
use alloy_trie::Nibbles;
use ophion_primitives::errors::Result;

use super::codec::decode;
use super::hashing::hash_all;
use super::node::{Cell, Child, EMPTY_ROOT, Node, Trie, Value, rank};
use super::node_storage::Source;

impl<V: Value> Child<V> {
    /// Return the trie node of this child. A node that is not in memory is loaded but not cached.
    pub fn open(&self, source: &impl Source) -> Result<Arc<Cell<V>>> {
        match self {
            Child::Live(cell) => Ok(cell.clone()),
            Child::Held(leaf) => Ok(Arc::new(Cell::new(decode(leaf.stored())?))),
            Child::Stored { hash, id } => {
                source.load(*id, |bytes| Ok(Arc::new(Cell::loaded(decode(bytes)?, *hash, *id))))
            }
        }
    }

    /// Return the trie node of this child as a mutable node. A shared node is copied first.
    fn own(&mut self, source: &impl Source) -> Result<&mut Cell<V>> {
        if !matches!(self, Child::Live(_)) {
            *self = Child::Live(self.open(source)?);
        }
        let Child::Live(cell) = self else { unreachable!("loaded above") };
        if Arc::get_mut(cell).is_none() {
            cell.node.touch();
            *cell = Arc::new(Cell::new(cell.node.clone()));
        }
        let cell = Arc::get_mut(cell).expect("just made unique");
        cell.invalidate();
        Ok(cell)
    }

    fn of(node: Node<V>) -> Self {
        Child::Live(Arc::new(Cell::new(node)))
    }
}

impl<V: Value> Trie<V> {
    /// Return the root hash of the trie, after hashing all changed nodes.
    pub fn hash(&self) -> B256 {
        if let Some(Child::Live(cell)) = &self.root {
            hash_all(cell);
        }
        self.root.as_ref().map_or(EMPTY_ROOT, Child::root_hash)
    }

    /// Insert the value that `make` computes from the previous value.
    pub fn upsert(
        &mut self,
        key: Nibbles,
        source: &impl Source,
        make: impl FnOnce(Option<V>) -> Result<V>,
    ) -> Result<()> {
        match &mut self.root {
            None => self.root = Some(Child::of(Node::Leaf { path: key, value: make(None)? })),
            Some(root) => upsert(root, key, source, make)?,
        }
        Ok(())
    }

    pub fn insert(&mut self, key: Nibbles, value: V, source: &impl Source) -> Result<()> {
        self.upsert(key, source, |_| Ok(value))
    }

    /// Remove a key from the trie. Returns false if the trie does not have the key.
    pub fn remove(&mut self, key: &Nibbles, source: &impl Source) -> Result<bool> {
        // look up the key before changing nodes, because removing an absent key must not change any node
        if self.get(key, source)?.is_none() {
            return Ok(false);
        }
        let Some(root) = &mut self.root else { return Ok(false) };
        if remove(root, *key, source)? == Left::Nothing {
            self.root = None;
        }
        Ok(true)
    }
}

fn upsert<V: Value>(
    child: &mut Child<V>,
    key: Nibbles,
    source: &impl Source,
    make: impl FnOnce(Option<V>) -> Result<V>,
) -> Result<()> {
    let cell = child.own(source)?;
    match &mut cell.node {
        Node::Leaf { path, value } => {
            if *path == key {
                *value = make(Some(value.clone()))?;
                return Ok(());
            }
            let shared = path.common_prefix_length(&key);
            let mut branch = Fork::default();
            branch.put(path.slice(shared..), value.clone());
            branch.put(key.slice(shared..), make(None)?);
            cell.node = branch.under(key.slice(..shared));
        }
        Node::Extension { path, child: below } => {
            let shared = path.common_prefix_length(&key);
            if shared == path.len() {
                return upsert(below, key.slice(shared..), source, make);
            }
            let rest = path.slice(shared + 1..);
            let old = if rest.is_empty() {
                below.clone()
            } else {
                Child::of(Node::Extension { path: rest, child: below.clone() })
            };
            let mut branch = Fork::default();
            branch.hang(path.get_unchecked(shared), old);
            branch.put(key.slice(shared..), make(None)?);
            cell.node = branch.under(key.slice(..shared));
        }
        Node::Branch { mask, children, value } => {
            if key.is_empty() {
                *value = Some(make(value.take())?);
                return Ok(());
            }
            let nibble = key.get_unchecked(0);
            let position = rank(*mask, nibble);
            let rest = key.slice(1..);
            if *mask & (1 << nibble) != 0 {
                return upsert(&mut children[position], rest, source, make);
            }
            let leaf = Child::of(Node::Leaf { path: rest, value: make(None)? });
            *mask |= 1 << nibble;
            children.insert(position, leaf);
        }
    }
    Ok(())
}

/// A new branch at the nibble where the paths of two entries diverge.
struct Fork<V> {
    mask: u16,
    children: Vec<Child<V>>,
    value: Option<V>,
}

impl<V> Default for Fork<V> {
    fn default() -> Self {
        Fork { mask: 0, children: Vec::with_capacity(2), value: None }
    }
}

impl<V: Value> Fork<V> {
    fn hang(&mut self, nibble: u8, child: Child<V>) {
        self.children.insert(rank(self.mask, nibble), child);
        self.mask |= 1 << nibble;
    }

    fn put(&mut self, path: Nibbles, value: V) {
        if path.is_empty() {
            self.value = Some(value);
        } else {
            self.hang(path.get_unchecked(0), Child::of(Node::Leaf { path: path.slice(1..), value }));
        }
    }

    fn under(self, path: Nibbles) -> Node<V> {
        let branch = Node::Branch { mask: self.mask, children: self.children, value: self.value };
        if path.is_empty() { branch } else { Node::Extension { path, child: Child::of(branch) } }
    }
}

/// The remainder of a subtree after an entry was removed.
#[derive(PartialEq)]
enum Left {
    Something,
    Nothing,
}

fn remove<V: Value>(child: &mut Child<V>, key: Nibbles, source: &impl Source) -> Result<Left> {
    let cell = child.own(source)?;
    match &mut cell.node {
        Node::Leaf { .. } => return Ok(Left::Nothing),
        Node::Extension { path, child: below } => {
            if remove(below, key.slice(path.len()..), source)? == Left::Nothing {
                return Ok(Left::Nothing);
            }
            let path = *path;
            if let Some(node) = prefixed(&path, below, source)? {
                cell.node = node;
            }
        }
        Node::Branch { mask, children, value } => {
            if key.is_empty() {
                *value = None;
            } else {
                let nibble = key.get_unchecked(0);
                let position = rank(*mask, nibble);
                if remove(&mut children[position], key.slice(1..), source)? == Left::Nothing {
                    children.remove(position);
                    *mask &= !(1 << nibble);
                }
            }
            match (children.len(), value.take()) {
                (0, None) => return Ok(Left::Nothing),
                (0, Some(last)) => cell.node = Node::Leaf { path: Nibbles::new(), value: last },
                (1, None) => {
                    let path = Nibbles::from_nibbles([mask.trailing_zeros() as u8]);
                    let only = children.pop().expect("one child");
                    cell.node = match prefixed(&path, &only, source)? {
                        Some(node) => node,
                        None => Node::Extension { path, child: only },
                    };
                }
                (_, kept) => *value = kept,
            }
        }
    }
    Ok(Left::Something)
}

/// Prepend `path` to a leaf or an extension, and return the merged node; None if the child is a branch.
fn prefixed<V: Value>(path: &Nibbles, child: &Child<V>, source: &impl Source) -> Result<Option<Node<V>>> {
    Ok(match &child.open(source)?.node {
        Node::Leaf { path: tail, value } => Some(Node::Leaf { path: path.join(tail), value: value.clone() }),
        Node::Extension { path: tail, child } => Some(Node::Extension { path: path.join(tail), child: child.clone() }),
        Node::Branch { .. } => None,
    })
}

//! Evicts trie nodes from memory. The nodes can be read again from the database.

use std::sync::Arc;

use super::node::{Child, Node, Reference, Trie, Value};

impl<V: Value> Trie<V> {
    /// Evict trie nodes with an id up to `last`, together with the subtrees below these nodes. A node without an id
    /// stays, because it is not in the database yet.
    pub fn evict(&mut self, last: u64) {
        if let Some(root) = &mut self.root {
            root.evict(last);
        }
    }
}

impl<V: Value> Child<V> {
    fn evict(&mut self, last: u64) {
        let Child::Live(cell) = self else { return };
        let id = cell.id();
        if id != 0 {
            // do not evict a node without a hash, because it is stored in its parent's row
            if id <= last
                && let Reference::Hash(hash) = *cell.reference()
            {
                *self = Child::Stored { hash, id };
            }
            return;
        }
        match Arc::get_mut(cell).map(|cell| &mut cell.node) {
            Some(Node::Leaf { value, .. }) => value.evict(last),
            Some(Node::Extension { child, .. }) => child.evict(last),
            Some(Node::Branch { children, value, .. }) => {
                children.iter_mut().for_each(|child| child.evict(last));
                if let Some(value) = value {
                    value.evict(last);
                }
            }
            None => {}
        }
    }

    /// Return the number of nodes of the trie that are in memory.
    #[cfg(test)]
    pub fn live(&self) -> usize {
        let Child::Live(cell) = self else { return 0 };
        1 + match &cell.node {
            Node::Leaf { .. } => 0,
            Node::Extension { child, .. } => child.live(),
            Node::Branch { children, .. } => children.iter().map(Child::live).sum(),
        }
    }
}

//! Letting go of nodes that can be read again.

use std::sync::Arc;

use super::node::{Child, Node, Reference, Trie, Value};

impl<V: Value> Trie<V> {
    /// Let go of all nodes up to an id, which whoever goes on with this trie finds in the database. What changed since
    /// stays, and so does what somebody else has changed who has not written it yet: it gets its ids from him.
    pub fn cool(&mut self, last: u64) {
        if let Some(root) = &mut self.root {
            root.cool(last);
        }
    }
}

impl<V: Value> Child<V> {
    fn cool(&mut self, last: u64) {
        let Child::Live(cell) = self else { return };
        let id = cell.id();
        if id != 0 {
            // one without a hash stands in its parent
            if id <= last
                && let Reference::Hash(hash) = *cell.reference()
            {
                *self = Child::Stored { hash, id };
            }
            return;
        }
        match Arc::get_mut(cell).map(|cell| &mut cell.node) {
            Some(Node::Leaf { value, .. }) => value.cool(last),
            Some(Node::Extension { child, .. }) => child.cool(last),
            Some(Node::Branch { children, value, .. }) => {
                children.iter_mut().for_each(|child| child.cool(last));
                if let Some(value) = value {
                    value.cool(last);
                }
            }
            None => {}
        }
    }

    /// How many nodes are in memory.
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

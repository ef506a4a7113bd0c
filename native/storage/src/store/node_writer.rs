//! Writes trie nodes with sequential ids, and loads earlier versions for deltas.

use heed::{RoTxn, RwTxn};
use ophion_primitives::errors::Result;

use super::records::Nodes;
use super::tables::Table;
use crate::trie::{Saver, Version, version};

/// Collects new trie nodes and appends them to the table later, so that the table can be read while a trie is saved.
pub(super) struct NodeWriter {
    table: Table,
    pub(super) next: u64,
    /// Stored forms of the new nodes, one after the other, and where each of them ends. A block of 4,000 transfers has
    /// 8,000 nodes, so that memory for each of them costs page faults.
    rows: Vec<u8>,
    ends: Vec<usize>,
}

impl NodeWriter {
    pub(super) fn new(table: Table, next: u64) -> Self {
        NodeWriter { table, next, rows: Vec::new(), ends: Vec::new() }
    }

    /// Return a `Saver` that adds new trie nodes here and can also read stored nodes.
    pub(super) fn beside<'a>(&'a mut self, txn: &'a RoTxn<'a>) -> impl Saver + 'a {
        NodeSaver { nodes: Nodes::new(self.table, txn), writer: self }
    }

    fn first(&self) -> u64 {
        self.next - self.ends.len() as u64
    }

    /// Return the row of a new node; None if the node is in the table already.
    fn row(&self, id: u64) -> Option<&[u8]> {
        let at = usize::try_from(id.checked_sub(self.first())?).ok()?;
        let end = *self.ends.get(at)?;
        Some(&self.rows[at.checked_sub(1).map_or(0, |before| self.ends[before])..end])
    }

    pub(super) fn flush(&mut self, txn: &mut RwTxn<'_>) -> Result<()> {
        for id in self.first()..self.next {
            self.table.append(txn, &id.to_be_bytes(), self.row(id).expect("each id has a row"))?;
        }
        self.rows.clear();
        self.ends.clear();
        Ok(())
    }
}

struct NodeSaver<'a> {
    nodes: Nodes<'a>,
    writer: &'a mut NodeWriter,
}

impl Saver for NodeSaver<'_> {
    fn put(&mut self, stored: &[u8]) -> Result<u64> {
        let id = self.next();
        self.writer.next += 1;
        self.writer.rows.extend_from_slice(stored);
        self.writer.ends.push(self.writer.rows.len());
        Ok(id)
    }

    fn next(&self) -> u64 {
        self.writer.next
    }

    fn version(&self, id: u64) -> Result<Version> {
        version(id, |id| self.writer.row(id).map_or_else(|| self.nodes.row(id), Ok))
    }
}

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
    buffer: Vec<Vec<u8>>,
}

impl NodeWriter {
    pub(super) fn new(table: Table, next: u64) -> Self {
        NodeWriter { table, next, buffer: Vec::new() }
    }

    /// Return a `Saver` that adds new trie nodes here and can also read stored nodes.
    pub(super) fn beside<'a>(&'a mut self, txn: &'a RoTxn<'a>) -> impl Saver + 'a {
        NodeSaver { nodes: Nodes::new(self.table, txn), writer: self }
    }

    fn first(&self) -> u64 {
        self.next - self.buffer.len() as u64
    }

    pub(super) fn flush(&mut self, txn: &mut RwTxn<'_>) -> Result<()> {
        let first = self.first();
        for (id, stored) in (first..).zip(self.buffer.drain(..)) {
            self.table.append(txn, &id.to_be_bytes(), &stored)?;
        }
        Ok(())
    }
}

struct NodeSaver<'a> {
    nodes: Nodes<'a>,
    writer: &'a mut NodeWriter,
}

impl Saver for NodeSaver<'_> {
    fn put(&mut self, stored: Vec<u8>) -> Result<u64> {
        let id = self.next();
        self.writer.next += 1;
        self.writer.buffer.push(stored);
        Ok(id)
    }

    fn next(&self) -> u64 {
        self.writer.next
    }

    fn version(&self, id: u64) -> Result<Version> {
        let first = self.writer.first();
        version(id, |id| match id.checked_sub(first).and_then(|at| self.writer.buffer.get(at as usize)) {
            Some(row) => Ok(&row[..]),
            None => self.nodes.row(id),
        })
    }
}

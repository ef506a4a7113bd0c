//! Writes trie nodes with sequential ids, and loads earlier versions for deltas.

use heed::RwTxn;
use ophion_primitives::errors::Result;

use super::packed_nodes::{NodeTable, PENDING_BYTES};
use super::records::Nodes;
use crate::trie::{Saver, Version, version};

/// Assigns ids to new trie nodes and appends the nodes to their table. The last nodes wait here until they fill rows.
pub(super) struct NodeWriter {
    table: NodeTable,
    pub(super) next: u64,
    /// Stored forms of the nodes that wait, one after the other, and where each of them ends.
    waiting: Vec<u8>,
    ends: Vec<usize>,
}

impl NodeWriter {
    pub(super) fn new(table: NodeTable, next: u64) -> Self {
        NodeWriter { table, next, waiting: Vec::new(), ends: Vec::new() }
    }

    /// Return a `Saver` that adds new trie nodes here and can also read stored nodes.
    pub(super) fn beside<'a>(&'a mut self, txn: &'a mut RwTxn<'_>) -> impl Saver {
        NodeSaver { writer: self, txn }
    }

    /// Return the stored form of a node that waits.
    fn waiting(&self, id: u64) -> Option<&[u8]> {
        let index = usize::try_from(id.checked_sub(self.next - self.ends.len() as u64)?).ok()?;
        let end = *self.ends.get(index)?;
        Some(&self.waiting[index.checked_sub(1).map_or(0, |before| self.ends[before])..end])
    }

    /// Append all nodes that wait.
    pub(super) fn flush(&mut self, txn: &mut RwTxn<'_>) -> Result<()> {
        self.append(txn, true)
    }

    fn append(&mut self, txn: &mut RwTxn<'_>, is_end: bool) -> Result<()> {
        let first = self.next - self.ends.len() as u64;
        let written = self.table.append(txn, first, &self.waiting, &self.ends, is_end)?;
        let bytes = written.checked_sub(1).map_or(0, |last| self.ends[last]);
        self.waiting.drain(..bytes);
        self.ends.drain(..written);
        self.ends.iter_mut().for_each(|end| *end -= bytes);
        Ok(())
    }
}

struct NodeSaver<'a, 't> {
    writer: &'a mut NodeWriter,
    txn: &'a mut RwTxn<'t>,
}

impl Saver for NodeSaver<'_, '_> {
    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.writer.waiting
    }

    fn put(&mut self) -> Result<()> {
        self.writer.next += 1;
        self.writer.ends.push(self.writer.waiting.len());
        if self.writer.waiting.len() >= PENDING_BYTES {
            self.writer.append(self.txn, false)?;
        }
        Ok(())
    }

    fn next(&self) -> u64 {
        self.writer.next
    }

    fn version(&self, id: u64) -> Result<Version> {
        let nodes = Nodes::new(self.writer.table, self.txn);
        version(id, |id| self.writer.waiting(id).map_or_else(|| nodes.row(id), Ok))
    }
}

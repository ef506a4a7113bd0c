//! Trie nodes in rows of about one page.
//!
//! A block of 4,000 token transfers writes up to 15,000 nodes of about 340 bytes. With a row for each node, LMDB would
//! descend the tree of the table once for each node. Node ids are consecutive, so a row holds all nodes that fit into a
//! page. The key of a row is the id of its last node, so a lookup takes the first row whose key is not below the id of
//! the searched node.
//!
//! ```text
//! id of the last node (8) | count (2), then distance (2) and end (2) of each node, then their stored forms
//! ```
//! Numbers in parentheses are sizes in bytes. Nodes are in the order of their ids. A distance is the id of the last
//! node minus the id of the node; an end is the number of bytes of the stored forms up to and including the node. A row
//! never has nodes of two commits, except after pruning.
//!
//! Before layout 9, each node had a row of its own in the table `nodes`. These nodes stay there.

use heed::{RoTxn, RwTxn};
use ophion_primitives::errors::{Error, Result};

use super::tables::{Table, Tables};

/// Number of bytes of a row that fills one page. LMDB stores such a row in a page of its own, and splits no other page.
const ROW_BYTES: usize = 4_080;
/// Maximum number of bytes of a row that shares a page with other rows.
const SMALL_ROW_BYTES: usize = 1_000;
/// If fewer bytes are left, they go into small rows, because a single row would leave too much of its page empty.
const MIN_PAGE_BYTES: usize = 3_500;
/// When this many bytes of new nodes wait, they are written to rows before the end of the commit.
pub(super) const PENDING_BYTES: usize = 4 * ROW_BYTES;
const WRONG_KEY: &str = "a key of the trie nodes is not eight bytes long";
const COUNT: usize = 2;
const ENTRY: usize = 4;

/// The tables of one kind of trie nodes.
#[derive(Clone, Copy)]
pub struct NodeTable {
    /// Nodes with a row each, by id.
    single: Table,
    /// Nodes in rows of about one page, and the lowest id of such a node. Lower ids are in the table `single`.
    packed: Option<(Table, u64)>,
}

impl NodeTable {
    pub fn single(single: Table) -> Self {
        NodeTable { single, packed: None }
    }

    pub fn packed(single: Table, packed: Table, first: u64) -> Self {
        NodeTable { single, packed: Some((packed, first)) }
    }

    /// Return the stored form of a node; None if the node is not in the table.
    pub fn get<'t>(&self, txn: &'t RoTxn<'_>, id: u64) -> Result<Option<&'t [u8]>> {
        match self.packed {
            Some((table, first)) if id >= first => {
                let found = table.at_or_after(txn, &id.to_be_bytes())?;
                found.map_or(Ok(None), |(last, row)| Row::of(last, row)?.find(id))
            }
            _ => self.single.get(txn, &id.to_be_bytes()),
        }
    }

    /// Append nodes with consecutive ids. `first`, the id of the first node, must be greater than all ids in the table.
    /// The nodes are in `stored`, one after the other, and `ends` has the end of each node. Without `is_end`, the last
    /// nodes may be left for the next call. Returns the number of appended nodes.
    pub fn append(
        &self,
        txn: &mut RwTxn<'_>,
        first: u64,
        stored: &[u8],
        ends: &[usize],
        is_end: bool,
    ) -> Result<usize> {
        let id = |index: usize| first + index as u64;
        let node = |index: usize| &stored[index.checked_sub(1).map_or(0, |before| ends[before])..ends[index]];
        let Some((table, _)) = self.packed else {
            let mut each = 0..ends.len();
            each.try_for_each(|index| self.single.append(txn, &id(index).to_be_bytes(), node(index)))?;
            return Ok(ends.len());
        };
        let put = |last: u64, row: &[u8]| table.append(txn, &last.to_be_bytes(), row);
        pack(ends.len(), |index| (id(index), node(index)), is_end, put)
    }

    /// Visit at least `max` nodes from `start` up to, but not including, `end`, if there are as many. `end` must be the
    /// first id of a commit. Delete the nodes that `keep` rejects, and write the other nodes again, so that they fill
    /// their pages. Nothing changes unless at least 1/`worth` of the bytes is deleted. Returns the number of deleted
    /// nodes, and the next id, or None at the end. Rows whose nodes are not in the order of their ids are damage: after
    /// a rewrite of such rows, `get` could return another node.
    pub fn repack(
        &self,
        txn: &mut RwTxn<'_>,
        start: u64,
        end: u64,
        max: usize,
        worth: usize,
        keep: impl Fn(u64) -> bool,
    ) -> Result<(usize, Option<u64>)> {
        match self.packed {
            Some((table, first)) if start >= first => repack(table, txn, start, end, max, worth, keep),
            packed => {
                let stop = packed.map_or(end, |(_, first)| end.min(first));
                let (start, until) = (start.to_be_bytes(), stop.to_be_bytes());
                let keep_key = |key: &[u8]| number(key).is_none_or(&keep);
                let (freed, next) = self.single.repack(txn, &start, &until, max, worth, keep_key)?;
                let next = next.map(|key| number(&key).ok_or_else(|| Error::damaged(WRONG_KEY))).transpose()?;
                Ok((freed, next.or((stop < end).then_some(stop))))
            }
        }
    }
}

impl Tables {
    /// Return the tables of the nodes of public states.
    pub fn state_nodes(&self) -> NodeTable {
        NodeTable::packed(self.nodes, self.node_rows, self.first_packed)
    }
}

fn number(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

fn repack(
    table: Table,
    txn: &mut RwTxn<'_>,
    start: u64,
    end: u64,
    max: usize,
    worth: usize,
    keep: impl Fn(u64) -> bool,
) -> Result<(usize, Option<u64>)> {
    let (mut rows, mut kept, mut next) = (Vec::new(), Vec::new(), None);
    let (mut deleted, mut kept_bytes, mut deleted_bytes) = (0, 0, 0);
    let mut least = start;
    for entry in table.from(txn, &start.to_be_bytes())? {
        let (key, row) = entry?;
        let row = Row::of(key, row)?;
        if row.last >= end {
            break;
        }
        if kept.len() + deleted >= max {
            next = rows.last().map(|last| last + 1);
            break;
        }
        rows.push(row.last);
        for index in 0..row.entries.len() {
            let (id, node) = (row.id(index), row.node(index)?);
            if id < least || id > row.last {
                return Err(damaged(row.last));
            }
            least = id + 1;
            if keep(id) {
                kept_bytes += ENTRY + node.len();
                kept.push((id, node));
            } else {
                deleted_bytes += ENTRY + node.len();
                deleted += 1;
            }
        }
    }
    if deleted == 0 || deleted_bytes * worth < deleted_bytes + kept_bytes {
        return Ok((0, next));
    }
    let mut packed: Vec<(u64, Vec<u8>)> = Vec::new();
    pack(
        kept.len(),
        |index| kept[index],
        true,
        |last, row| {
            packed.push((last, row.to_vec()));
            Ok(())
        },
    )?;
    for last in rows {
        table.delete(txn, &last.to_be_bytes())?;
    }
    packed.iter().try_for_each(|(last, row)| table.put(txn, &last.to_be_bytes(), row))?;
    Ok((deleted, next))
}

/// Divide nodes, which are in the order of their ids, into rows. Calls `put` with the last id of each row and the row.
/// Without `is_end`, nodes that do not fill a row are left. Returns the number of nodes in the rows.
fn pack<'n>(
    count: usize,
    node: impl Fn(usize) -> (u64, &'n [u8]),
    is_end: bool,
    mut put: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<usize> {
    let bytes_of = |index| ENTRY + node(index).1.len();
    let mut left: usize = (0..count).map(bytes_of).sum();
    let (mut start, mut row) = (0, Vec::with_capacity(ROW_BYTES));
    while start < count && (is_end || left >= ROW_BYTES) {
        let limit = if COUNT + left < MIN_PAGE_BYTES { SMALL_ROW_BYTES } else { ROW_BYTES };
        let first = node(start).0;
        let (mut end, mut bytes) = (start + 1, COUNT + bytes_of(start));
        while end < count && bytes + bytes_of(end) <= limit && node(end).0 - first <= u64::from(u16::MAX) {
            bytes += bytes_of(end);
            end += 1;
        }
        row.clear();
        row.extend_from_slice(&((end - start) as u16).to_be_bytes());
        let (last, mut length) = (node(end - 1).0, 0);
        for index in start..end {
            let (id, stored) = node(index);
            length += stored.len();
            let ends = u16::try_from(length).map_err(|_| Error::Storage(format!("trie node {id} is too long")))?;
            row.extend_from_slice(&((last - id) as u16).to_be_bytes());
            row.extend_from_slice(&ends.to_be_bytes());
        }
        (start..end).for_each(|index| row.extend_from_slice(node(index).1));
        put(last, &row)?;
        left -= bytes - COUNT;
        start = end;
    }
    Ok(start)
}

/// A row of the table, with its nodes in the order of their ids.
struct Row<'t> {
    /// Id of the last node.
    last: u64,
    entries: &'t [[u8; ENTRY]],
    nodes: &'t [u8],
}

impl<'t> Row<'t> {
    fn of(key: &[u8], row: &'t [u8]) -> Result<Self> {
        let last = number(key).ok_or_else(|| Error::damaged(WRONG_KEY))?;
        let parts = row.split_first_chunk().and_then(|(count, rest)| {
            let (entries, nodes) = rest.split_at_checked(usize::from(u16::from_be_bytes(*count)) * ENTRY)?;
            Some((entries.as_chunks().0, nodes))
        });
        let (entries, nodes) = parts.ok_or_else(|| damaged(last))?;
        Ok(Row { last, entries, nodes })
    }

    fn distance(&self, index: usize) -> u64 {
        let [high, low, ..] = self.entries[index];
        u64::from(u16::from_be_bytes([high, low]))
    }

    fn end(&self, index: usize) -> usize {
        let [.., high, low] = self.entries[index];
        usize::from(u16::from_be_bytes([high, low]))
    }

    fn id(&self, index: usize) -> u64 {
        self.last.saturating_sub(self.distance(index))
    }

    fn node(&self, index: usize) -> Result<&'t [u8]> {
        let start = index.checked_sub(1).map_or(0, |before| self.end(before));
        self.nodes.get(start..self.end(index)).ok_or_else(|| damaged(self.last))
    }

    fn find(&self, id: u64) -> Result<Option<&'t [u8]>> {
        // without a gap, the distance is the position counted from the end
        let behind = self.last.checked_sub(id).and_then(|behind| usize::try_from(behind).ok());
        let place = behind.and_then(|behind| self.entries.len().checked_sub(1)?.checked_sub(behind));
        if let Some(index) = place.filter(|index| self.id(*index) == id) {
            return self.node(index).map(Some);
        }
        let (mut low, mut high) = (0, self.entries.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.id(middle) < id { low = middle + 1 } else { high = middle }
        }
        if low < self.entries.len() && self.id(low) == id { self.node(low).map(Some) } else { Ok(None) }
    }
}

fn damaged(last: u64) -> Error {
    Error::damaged(format!("the row of trie nodes up to {last} cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::opening;

    fn node(id: u64) -> Vec<u8> {
        let length = if id.is_multiple_of(1_000) { 5_000 } else { 40 + id * 7_919 % 601 };
        id.to_be_bytes().iter().copied().cycle().take(length as usize).collect()
    }

    fn append(table: NodeTable, txn: &mut RwTxn<'_>, first: u64, count: u64) {
        let (mut stored, mut ends) = (Vec::new(), Vec::new());
        for id in first..first + count {
            stored.extend_from_slice(&node(id));
            ends.push(stored.len());
        }
        assert_eq!(table.append(txn, first, &stored, &ends, true).unwrap(), ends.len());
    }

    fn database(name: &str) -> (std::path::PathBuf, opening::Opened) {
        let path = std::env::temp_dir().join(format!("ophion-packed-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let opened = opening::open(&path, true, false, false).unwrap();
        (path, opened)
    }

    #[test]
    fn nodes_of_both_tables_are_found() {
        let (path, (env, tables, _)) = database("found");
        let mut txn = env.write_txn().unwrap();
        append(NodeTable::single(tables.nodes), &mut txn, 1, 300);
        let table = NodeTable::packed(tables.nodes, tables.node_rows, 301);
        let mut next = 301;
        for count in [1, 2, 0, 7, 11, 5_000, 3, 1] {
            append(table, &mut txn, next, count);
            next += count;
        }
        for id in 1..next {
            assert_eq!(table.get(&txn, id).unwrap(), Some(&node(id)[..]), "{id}");
        }
        for id in [0, next, next + 1, u64::MAX] {
            assert_eq!(table.get(&txn, id).unwrap(), None);
        }
        let (rows, bytes) = tables.node_rows.usage(&txn).unwrap();
        let needed: usize = (301..next).map(|id| node(id).len()).sum();
        assert!(rows < next / 8, "{rows} rows");
        assert!(bytes as usize * 8 < needed * 9, "{bytes} bytes for {needed}");
        drop(txn);
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn repacked_nodes_are_found_and_fill_their_pages() {
        let (path, (env, tables, _)) = database("repacked");
        let table = NodeTable::packed(tables.nodes, tables.node_rows, 2_001);
        let mut txn = env.write_txn().unwrap();
        append(NodeTable::single(tables.nodes), &mut txn, 1, 2_000);
        let mut next = 2_001;
        while next < 40_000 {
            append(table, &mut txn, next, 1 + next % 97);
            next += 1 + next % 97;
        }
        let (end, far) = (next, 300_000);
        append(table, &mut txn, end, 50);
        append(table, &mut txn, far, 3);
        txn.commit().unwrap();
        let is_kept = |kept: u64| move |id: u64| id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 31 < kept;
        for kept in [10, 30, 5, 0] {
            let (mut start, mut freed) = (Some(0), 0);
            while let Some(from) = start {
                let mut txn = env.write_txn().unwrap();
                let done = table.repack(&mut txn, from, end, 500, 8, is_kept(kept)).unwrap();
                (freed, start) = (freed + done.0, done.1);
                txn.commit().unwrap();
            }
            assert_eq!(freed == 0, kept == 30, "{freed} nodes");
            let txn = env.read_txn().unwrap();
            for id in 1..end {
                let expected = is_kept(kept.min(10))(id).then(|| node(id));
                assert_eq!(table.get(&txn, id).unwrap(), expected.as_deref(), "{id}");
            }
            for id in (end..end + 50).chain(far..far + 3) {
                assert_eq!(table.get(&txn, id).unwrap(), Some(&node(id)[..]), "{id}");
            }
            assert_eq!(table.get(&txn, far - 1).unwrap(), None);
            if kept == 5 {
                let needed: usize = (2_001..end).filter(|id| is_kept(5)(*id)).map(|id| node(id).len()).sum();
                let (_, bytes) = tables.node_rows.usage(&txn).unwrap();
                assert!(bytes as usize * 3 < needed * 4, "{bytes} bytes for {needed}");
            }
        }
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn damaged_rows_give_an_error_or_no_node() {
        let (path, (env, tables, _)) = database("damaged");
        let table = NodeTable::packed(tables.nodes, tables.node_rows, 1);
        let mut txn = env.write_txn().unwrap();
        append(table, &mut txn, 1, 3);
        let (key, row) = tables.node_rows.at_or_after(&txn, &[0; 8]).unwrap().unwrap();
        let (key, row) = (key.to_vec(), row.to_vec());
        for length in 0..row.len() {
            tables.node_rows.put(&mut txn, &key, &row[..length]).unwrap();
            assert!(!matches!(table.get(&txn, 3), Ok(Some(_))), "{length}");
        }
        for at in 0..COUNT + 3 * ENTRY {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = row.clone();
                changed[at] = value;
                tables.node_rows.put(&mut txn, &key, &changed).unwrap();
                (0..5).for_each(|id| drop(table.get(&txn, id)));
                let _ = table.repack(&mut txn, 0, 4, 10, 8, |_| true);
                let _ = table.repack(&mut txn, 0, 4, 10, 1_000, |id| id != 2);
                tables.node_rows.put(&mut txn, &key, &changed).unwrap();
            }
        }
        drop(txn);
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn overlapping_rows_are_damage() {
        let (path, (env, tables, _)) = database("overlapping");
        let table = NodeTable::packed(tables.nodes, tables.node_rows, 1);
        let mut txn = env.write_txn().unwrap();
        append(table, &mut txn, 1, 5);
        append(table, &mut txn, 6, 5);
        let row = |from: u64, to: u64, byte: u8| {
            let mut row = Vec::new();
            let nodes: Vec<_> = (from..=to).map(|id| (id, vec![byte; 40])).collect();
            pack(
                nodes.len(),
                |at| (nodes[at].0, &nodes[at].1[..]),
                true,
                |_, bytes| {
                    row = bytes.to_vec();
                    Ok(())
                },
            )
            .unwrap();
            row
        };
        // a second copy of nodes 8 to 10 in the row behind them
        tables.node_rows.put(&mut txn, &12u64.to_be_bytes(), &row(8, 12, 7)).unwrap();
        assert_eq!(table.get(&txn, 9).unwrap(), Some(&node(9)[..]));
        let refused = table.repack(&mut txn, 1, 100, 1_000, 8, |id| id > 5).unwrap_err().to_string();
        assert!(refused.contains("up to 12"), "{refused}");
        assert_eq!(table.get(&txn, 9).unwrap(), Some(&node(9)[..]), "nothing has changed");
        drop(txn);
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_key_of_another_length_is_damage() {
        let (path, (env, tables, _)) = database("key");
        let table = NodeTable::packed(tables.nodes, tables.node_rows, 10);
        for (stored, first) in [(tables.nodes, 1u64), (tables.node_rows, 10)] {
            let mut txn = env.write_txn().unwrap();
            append(NodeTable::single(tables.nodes), &mut txn, 1, 1);
            append(table, &mut txn, 10, 1);
            stored.put(&mut txn, &[&first.to_be_bytes()[..], &[0]].concat(), &[1, 2, 3]).unwrap();
            let refused = table.repack(&mut txn, first, 20, 1, 8, |_| true).unwrap_err().to_string();
            assert!(refused.contains("eight bytes"), "{refused}");
        }
        std::fs::remove_dir_all(&path).unwrap();
    }
}

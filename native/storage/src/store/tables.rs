//! All LMDB tables: name, key, value. Numbers are big-endian, so keys sort numerically.
//!
//! | table         | key                                             | value                                                                |
//! |---------------|-------------------------------------------------|----------------------------------------------------------------------|
//! | meta          | name                                            | named values: head, its root, next node id, values of the node       |
//! | headers       | block hash                                      | number (8), total difficulty (32), blob price (16), header           |
//! | bodies        | block hash                                      | hash and sender of each transaction, see records.rs, then RLP        |
//! | receipts      | block hash                                      | receipts, see receipts.rs                                            |
//! | canonical     | number                                          | block hash                                                           |
//! | positions     | first bytes of a transaction's hash             | block and index, see tx_index.rs                                     |
//! | logs          | fold of address or topic (8), number (8)        | nothing: this block may hold a matching log. Written before layout 5 |
//! | log_sections  | section (5), fold (8), block in the section (1) | the same, see log_index.rs                                           |
//! | nodes         | id                                              | trie node, see trie/codec.rs. Written before layout 9                |
//! | node_rows     | id of the last node in the row                  | the same, several in a row, see packed_nodes.rs                      |
//! | roots         | state root                                      | last block with it, id of the root node, see state_roots.rs          |
//! | code          | code hash                                       | contract code                                                        |
//! | accounts      | keccak(address)                                 | an outdated account with its address. Written before layout 5        |
//! | storage       | keccak(address), keccak(slot)                   | nothing: cleared in layout 5                                         |
//! | preimages     | keccak(x)                                       | x: a slot (32) or an address (20). Written before layout 7           |
//! | preimage_runs | run (8), prefix of keccak(x) (8), and lists     | each x in sorted runs, see preimage_runs.rs                          |
//!
//! Private state has separate tables:
//!
//! | table            | key                                     | value                                                                   |
//! |------------------|-----------------------------------------|-------------------------------------------------------------------------|
//! | private_nodes    | id                                      | trie node                                                               |
//! | private_code     | code hash                               | contract code                                                           |
//! | private_groups   | group (32), number (8), block hash      | id of the last root, then marker and root (32 each) of each transaction |
//! | private_receipts | block hash, marker hash                 | result, see private_results.rs                                          |
//! | private_markers  | payload key (32), number (8), index (4) | hash of the block (32) and of the marker (32)                           |
//! | private_late     | payload key (32)                        | nothing: it arrived after its marker was processed                      |
//!
//! A fold is an eight-byte hash of an address or topic. Numbers in parentheses are sizes in bytes. The file
//! key_value_tables.rs lists the tables of other packages.

use heed::types::Bytes;
use heed::{Database, RoTxn, RwTxn};
use ophion_primitives::errors::Result;

/// Number of bytes that LMDB adds to key and value of a database row.
const ROW_HEADER_BYTES: usize = 8 + 2;

fn row_bytes(key: &[u8], value: &[u8]) -> usize {
    (ROW_HEADER_BYTES + key.len() + value.len()).next_multiple_of(2)
}

/// One table. The handle must not outlive the LMDB environment, so `Database` owns both.
#[derive(Clone, Copy)]
pub struct Table(Database<'static, Bytes, Bytes>);

impl Table {
    pub fn new(database: Database<'static, Bytes, Bytes>) -> Self {
        Table(database)
    }

    pub fn get<'t>(&self, txn: &'t RoTxn<'_>, key: &[u8]) -> Result<Option<&'t [u8]>> {
        Ok(self.0.get(txn, key)?)
    }

    pub fn put(&self, txn: &mut RwTxn<'_>, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.0.put(txn, key, value)?)
    }

    /// Insert a new key into the table. If the key exists, this changes nothing and returns false.
    pub fn put_new(&self, txn: &mut RwTxn<'_>, key: &[u8], value: &[u8]) -> Result<bool> {
        match self.0.put_with_flags(txn, heed::PutFlags::NO_OVERWRITE, key, value) {
            Ok(()) => Ok(true),
            Err(heed::Error::Mdb(heed::MdbError::KeyExist)) => Ok(false),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Insert a key that is greater than all keys of the table. So LMDB fills pages and splits none.
    pub fn append(&self, txn: &mut RwTxn<'_>, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.0.put_with_flags(txn, heed::PutFlags::APPEND, key, value)?)
    }

    pub fn delete(&self, txn: &mut RwTxn<'_>, key: &[u8]) -> Result<bool> {
        Ok(self.0.delete(txn, key)?)
    }

    pub fn clear(&self, txn: &mut RwTxn<'_>) -> Result<()> {
        Ok(self.0.clear(txn)?)
    }

    pub fn delete_prefix(&self, txn: &mut RwTxn<'_>, prefix: &[u8]) -> Result<()> {
        let mut entries = self.0.prefix_iter_mut(txn, prefix)?;
        while entries.next().transpose()?.is_some() {
            // SAFETY: no reference into the deleted entry exists.
            unsafe { entries.del_current()? };
        }
        Ok(())
    }

    /// Visit the first `max` entries from `start` up to, but not including, `end`. Delete the entries that `keep`
    /// rejects. Returns the next key, or None at the end.
    pub fn sweep(
        &self,
        txn: &mut RwTxn<'_>,
        start: &[u8],
        end: &[u8],
        max: usize,
        mut keep: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<Option<Vec<u8>>> {
        let range = (std::ops::Bound::Included(start), std::ops::Bound::Excluded(end));
        let mut entries = self.0.range_mut(txn, &range)?;
        let mut visited = 0;
        while let Some((key, value)) = entries.next().transpose()? {
            if visited == max {
                return Ok(Some(key.to_vec()));
            }
            visited += 1;
            if !keep(key, value)? {
                // SAFETY: no reference into the deleted entry exists.
                unsafe { entries.del_current()? };
            }
        }
        Ok(None)
    }

    /// Visit the first `max` rows from `start` up to, but not including, `end`. Delete the rows that `keep` rejects,
    /// and write the other rows again. Rows written in order fill their pages; after deletions alone, LMDB leaves pages
    /// up to three quarters empty. Nothing changes unless at least 1/`worth` of the bytes is deleted. Returns the
    /// number of deleted rows, and the next key, or None at the end.
    pub fn repack(
        &self,
        txn: &mut RwTxn<'_>,
        start: &[u8],
        end: &[u8],
        max: usize,
        worth: usize,
        keep: impl Fn(&[u8]) -> bool,
    ) -> Result<(usize, Option<Vec<u8>>)> {
        use std::ops::Bound::{Excluded, Included};
        let (mut kept, mut next, mut deleted) = (Vec::with_capacity(max), None, 0);
        let (mut kept_bytes, mut deleted_bytes) = (0, 0);
        for entry in self.0.range(txn, &(Included(start), Excluded(end)))? {
            let (key, value) = entry?;
            if kept.len() + deleted == max {
                next = Some(key.to_vec());
                break;
            }
            if keep(key) {
                kept_bytes += row_bytes(key, value);
                kept.push((key, value));
            } else {
                deleted_bytes += row_bytes(key, value);
                deleted += 1;
            }
        }
        if deleted == 0 || deleted_bytes * worth < deleted_bytes + kept_bytes {
            return Ok((0, next));
        }
        let kept: Vec<_> = kept.into_iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        self.0.delete_range(txn, &(Included(start), Excluded(next.as_deref().unwrap_or(end))))?;
        for (key, value) in &kept {
            self.0.put(txn, key, value)?;
        }
        Ok((deleted, next))
    }

    pub fn prefix<'t>(
        &self,
        txn: &'t RoTxn<'_>,
        prefix: &[u8],
    ) -> Result<impl Iterator<Item = Result<(&'t [u8], &'t [u8])>>> {
        Ok(self.0.prefix_iter(txn, prefix)?.map(|entry| entry.map_err(Into::into)))
    }

    pub fn from<'t>(
        &self,
        txn: &'t RoTxn<'_>,
        start: &[u8],
    ) -> Result<impl Iterator<Item = Result<(&'t [u8], &'t [u8])>>> {
        let range = (std::ops::Bound::Included(start), std::ops::Bound::Unbounded);
        Ok(self.0.range(txn, &range)?.map(|entry| entry.map_err(Into::into)))
    }

    pub fn last_with_prefix<'t>(&self, txn: &'t RoTxn<'_>, prefix: &[u8]) -> Result<Option<(&'t [u8], &'t [u8])>> {
        Ok(self.0.rev_prefix_iter(txn, prefix)?.next().transpose()?)
    }

    /// Return the table entry with the greatest key up to and including `key`.
    pub fn up_to<'t>(&self, txn: &'t RoTxn<'_>, key: &[u8]) -> Result<Option<(&'t [u8], &'t [u8])>> {
        Ok(self.0.get_lower_than_or_equal_to(txn, key)?)
    }

    /// Return the table entry with the lowest key from `key` on.
    pub fn at_or_after<'t>(&self, txn: &'t RoTxn<'_>, key: &[u8]) -> Result<Option<(&'t [u8], &'t [u8])>> {
        Ok(self.0.get_greater_than_or_equal_to(txn, key)?)
    }

    /// Return the table entry with the greatest key below `key`.
    pub fn below<'t>(&self, txn: &'t RoTxn<'_>, key: &[u8]) -> Result<Option<(&'t [u8], &'t [u8])>> {
        Ok(self.0.get_lower_than(txn, key)?)
    }

    /// Return the number of entries and the size in bytes (number of pages times page size).
    pub fn usage(&self, txn: &RoTxn<'_>) -> Result<(u64, u64)> {
        let stat = self.0.stat(txn)?;
        let pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
        Ok((stat.entries as u64, pages as u64 * u64::from(stat.page_size)))
    }
}

macro_rules! tables {
    ($($name:ident),* $(,)?) => {
        /// The open LMDB tables.
        #[derive(Clone, Copy)]
        pub struct Tables {
            $(pub $name: Table,)*
            /// Lowest id of a trie node in the table `node_rows`; `u64::MAX` if there is none yet.
            pub first_packed: u64,
        }

        impl Tables {
            pub const NAMES: [&'static str; [$(stringify!($name)),*].len()] = [$(stringify!($name)),*];
            /// Index of the table `meta` in the list of table names.
            pub const META: usize = 0;
            /// Index of the table `storage`.
            pub const STORAGE: usize = 11;
            /// Index of the table `preimage_runs`.
            pub const PREIMAGE_RUNS: usize = 20;

            /// Index of the table `node_rows`.
            pub const NODE_ROWS: usize = 21;

            /// Create the tables from handles in the order of the table names.
            pub fn of(handles: [Table; Self::NAMES.len()], first_packed: u64) -> Self {
                let [$($name),*] = handles;
                Tables { $($name,)* first_packed }
            }

            pub fn each(&self) -> Vec<(&'static str, Table)> {
                vec![$((stringify!($name), self.$name)),*]
            }
        }
    };
}

tables!(
    meta,
    headers,
    bodies,
    receipts,
    canonical,
    positions,
    logs,
    nodes,
    roots,
    code,
    accounts,
    storage,
    preimages,
    private_nodes,
    private_code,
    private_groups,
    private_receipts,
    private_markers,
    private_late,
    log_sections,
    preimage_runs,
    node_rows,
);

impl Tables {
    /// Number of tables in the first version of the database. Later versions added tables; opening an older database
    /// creates all of them.
    pub const FIRST: usize = 13;
}

/// Names of the tables of other packages.
pub const ROW_TABLES: [&str; 8] =
    ["payloads", "arrivals", "groups", "lookup", "outbox", "cursors", "handed", "unmarked"];

/// The open tables of other packages; None for each table that the database lacks.
pub type RowTables = [Option<Table>; ROW_TABLES.len()];

/// Keys of the meta table. Values of the node have the prefix "node:".
pub mod meta {
    /// Key of the head in the meta table. The value is hash and number (8 bytes).
    pub const HEAD: &[u8] = b"head";
    /// Key of the state root of the head.
    pub const HEAD_ROOT: &[u8] = b"flat root";
    /// Key of the id of the next trie node.
    pub const NEXT_NODE: &[u8] = b"next node";
    /// Key of the lowest id of a trie node in the table `node_rows`. Nodes with lower ids are in the table `nodes`.
    pub const FIRST_PACKED: &[u8] = b"first packed node";
    /// Key of the number of trie nodes that pruning has deleted from the table `node_rows`.
    pub const FREED_PACKED: &[u8] = b"freed packed nodes";
    /// Key of the id of the next private trie node.
    pub const NEXT_PRIVATE_NODE: &[u8] = b"next private node";
    /// Key of the last block processed for private transactions. The value is hash and number (8 bytes).
    pub const FOLLOWED: &[u8] = b"private followed";
    /// Key of the lowest block with a body, while lower blocks have headers only. See block_history.rs.
    pub const HISTORY: &[u8] = b"history";
    /// Key of the version of the table layout.
    pub const LAYOUT: &[u8] = b"layout";
    pub const LAYOUT_VERSION: &[u8] = &[9];
    /// Older layouts that can be read. Each entry names what a later layout changed:
    /// - 1: the transaction index has full hashes; bodies contain each sender; accounts lack their address.
    /// - 2: trie nodes have no deltas.
    /// - 3: index rows are not buffered.
    /// - 4: the log index has no sections; the tables `accounts` and `storage` hold a copy of the head's state.
    /// - 5: all preimages are keyed by hash.
    /// - 6: like 5, in a database whose blocks below the record `history` have no bodies.
    /// - 7: each trie node has a row of its own.
    /// - 8: like 7, in a database whose blocks below the record `history` have no bodies.
    pub const OLDER_LAYOUTS: [&[u8]; 8] = [&[1], &[2], &[3], &[4], &[5], &[6], &[7], &[8]];
    /// Layout while blocks below the record `history` have no bodies. Its tables are those of `LAYOUT_VERSION`.
    pub const LAYOUT_WITHOUT_BODIES: &[u8] = &[10];
    /// Key under which the number of tables is stored, as one byte; absent in databases of the first version.
    pub const TABLES: &[u8] = b"tables";

    /// Return the key of the meta table for a value that the node defines.
    pub fn own(key: &str) -> Vec<u8> {
        format!("node:{key}").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::opening;

    #[test]
    fn repacked_rows_fill_their_pages() {
        let path = std::env::temp_dir().join(format!("ophion-tables-{}", std::process::id()));
        let (env, tables, _) = opening::open(&path, true, false, false).unwrap();
        let (table, end) = (tables.nodes, [0xff; 8]);
        let mut txn = env.write_txn().unwrap();
        for id in 1..60_000u64 {
            table.append(&mut txn, &id.to_be_bytes(), &vec![7; 60 + (id * 7919 % 97) as usize]).unwrap();
        }
        txn.commit().unwrap();
        // each round deletes another part of the entries, so that later deletions are near earlier deletions
        for kept in [10, 30, 5] {
            let keep = |key: &[u8]| {
                u64::from_be_bytes(key.try_into().unwrap()).wrapping_mul(0x9e3779b97f4a7c15) >> 32 & 31 < kept
            };
            let mut next = Some(vec![0]);
            while let Some(start) = next {
                let mut txn = env.write_txn().unwrap();
                next = table.repack(&mut txn, &start, &end, 500, 8, keep).unwrap().1;
                txn.commit().unwrap();
            }
        }
        let txn = env.read_txn().unwrap();
        let rows = table.from(&txn, &[0]).unwrap().map(Result::unwrap);
        let needed: usize = rows.map(|(key, value)| row_bytes(key, value)).sum();
        let (rows, bytes) = table.usage(&txn).unwrap();
        assert!((5_000..15_000).contains(&rows), "{rows} rows");
        assert!(bytes as usize * 3 < needed * 4, "{bytes} bytes for {needed}");
        drop(txn);
        std::fs::remove_dir_all(&path).unwrap();
    }
}

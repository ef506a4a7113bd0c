//! Every LMDB table: name, key, value. Numbers are big-endian so that keys sort as numbers do.
//!
//! | table      | key                          | value                                                        |
//! |------------|------------------------------|--------------------------------------------------------------|
//! | meta       | name                         | small named values: head, flat root, next node id, node's own |
//! | headers    | block hash                   | number (8), total difficulty (32), blob price (16), header   |
//! | bodies     | block hash                   | hash and sender of each transaction, see records.rs, then RLP |
//! | receipts   | block hash                   | our form of the receipts, see receipts.rs                    |
//! | canonical  | number                       | block hash                                                   |
//! | positions  | first bytes of a transaction's hash | block and index, see positions.rs                     |
//! | logs       | fold of address or topic (8), number (8) | nothing: which blocks may hold a matching log    |
//! | nodes      | id                           | trie node, see trie/codec.rs                                 |
//! | roots      | state root                   | last block with it, id of the root node, see roots.rs        |
//! | code       | code hash                    | contract code                                                |
//! | accounts   | keccak(address)              | account of the head's state, and its address                 |
//! | storage    | keccak(address), keccak(slot)| storage value of the head's state, without leading zeros     |
//! | preimages  | keccak(x)                    | x: a slot (32), or an address (20) that is not in accounts   |
//!
//! Private state lies in tables of its own, so that what is public never holds anything of it:
//!
//! | table            | key                                   | value                                          |
//! |------------------|---------------------------------------|------------------------------------------------|
//! | private_nodes    | id                                    | trie node                                      |
//! | private_code     | code hash                             | contract code                                  |
//! | private_groups   | group (32), number (8), block hash    | id of the last root, then marker and root (32 each) of each transaction |
//! | private_receipts | block hash, marker hash               | what became of it, see private.rs              |
//! | private_markers  | payload key (32), number (8), index (4) | hash of the block (32) and of the marker (32) |
//! | private_late     | payload key (32)                      | nothing: it came after its marker was passed   |
//!
//! Tables that other rooms fill with rows of their own: rows.rs.

use heed::types::Bytes;
use heed::{Database, RoTxn, RwTxn};
use ophion_primitives::errors::Result;

/// One table. The handle is a number; it must not outlive the environment, which `Database` sees to.
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

    /// Put a key that is not there yet; false, and nothing is changed, where it is.
    pub fn put_new(&self, txn: &mut RwTxn<'_>, key: &[u8], value: &[u8]) -> Result<bool> {
        match self.0.put_with_flags(txn, heed::PutFlags::NO_OVERWRITE, key, value) {
            Ok(()) => Ok(true),
            Err(heed::Error::Mdb(heed::MdbError::KeyExist)) => Ok(false),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Put a key that is greater than every other key of the table: fills pages instead of splitting them.
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
            // SAFETY: no reference into the deleted entry is kept.
            unsafe { entries.del_current()? };
        }
        Ok(())
    }

    /// Visit up to `most` entries from `start` to before `end` and delete those that `keep` refuses; the key to go on
    /// from, None when there are no more.
    pub fn sweep(
        &self,
        txn: &mut RwTxn<'_>,
        start: &[u8],
        end: &[u8],
        most: usize,
        mut keep: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<Option<Vec<u8>>> {
        let range = (std::ops::Bound::Included(start), std::ops::Bound::Excluded(end));
        let mut entries = self.0.range_mut(txn, &range)?;
        let mut visited = 0;
        while let Some((key, value)) = entries.next().transpose()? {
            if visited == most {
                return Ok(Some(key.to_vec()));
            }
            visited += 1;
            if !keep(key, value)? {
                // SAFETY: no reference into the deleted entry is kept.
                unsafe { entries.del_current()? };
            }
        }
        Ok(None)
    }

    /// The same, and what stays of entries next to deleted ones is put anew: in order it fills its pages, which deletions
    /// alone would leave three quarters empty.
    pub fn repack(
        &self,
        txn: &mut RwTxn<'_>,
        start: &[u8],
        end: &[u8],
        most: usize,
        mut keep: impl FnMut(&[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>> {
        let (mut visited, mut next, mut staying) = (0, None, Vec::with_capacity(most));
        for entry in self.0.range(txn, &(std::ops::Bound::Included(start), std::ops::Bound::Excluded(end)))? {
            let (key, value) = entry?;
            if visited == most {
                next = Some(key.to_vec());
                break;
            }
            visited += 1;
            if keep(key) {
                staying.push((key.to_vec(), value.to_vec()));
            }
        }
        if staying.len() < visited {
            let end = next.as_deref().unwrap_or(end);
            self.0.delete_range(txn, &(std::ops::Bound::Included(start), std::ops::Bound::Excluded(end)))?;
            for (key, value) in &staying {
                self.0.put(txn, key, value)?;
            }
        }
        Ok(next)
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

    /// The greatest entry whose key is not above this one.
    pub fn up_to<'t>(&self, txn: &'t RoTxn<'_>, key: &[u8]) -> Result<Option<(&'t [u8], &'t [u8])>> {
        Ok(self.0.get_lower_than_or_equal_to(txn, key)?)
    }

    /// The greatest entry whose key is below this one.
    pub fn below<'t>(&self, txn: &'t RoTxn<'_>, key: &[u8]) -> Result<Option<(&'t [u8], &'t [u8])>> {
        Ok(self.0.get_lower_than(txn, key)?)
    }

    /// Entries and bytes (pages times their size).
    pub fn usage(&self, txn: &RoTxn<'_>) -> Result<(u64, u64)> {
        let stat = self.0.stat(txn)?;
        let pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
        Ok((stat.entries as u64, pages as u64 * u64::from(stat.page_size)))
    }
}

macro_rules! tables {
    ($($name:ident),* $(,)?) => {
        /// The open tables.
        #[derive(Clone, Copy)]
        pub struct Tables { $(pub $name: Table,)* }

        impl Tables {
            pub const NAMES: [&'static str; [$(stringify!($name)),*].len()] = [$(stringify!($name)),*];
            /// Position of the table `meta` among the names.
            pub const META: usize = 0;

            /// From handles in the order of the names.
            pub fn of(handles: [Table; Self::NAMES.len()]) -> Self {
                let [$($name),*] = handles;
                Tables { $($name),* }
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
);

impl Tables {
    /// Tables that every database has had from the beginning; later ones are made in a database that lacks them all.
    pub const FIRST: usize = 13;
}

/// Names of the tables that other rooms fill.
pub const ROW_TABLES: [&str; 7] = ["payloads", "arrivals", "groups", "lookup", "outbox", "cursors", "handed"];

/// Those tables, open; None where the database has none yet.
pub type RowTables = [Option<Table>; ROW_TABLES.len()];

/// Keys of the meta table that the engine itself uses; the node's own are put behind "node:".
pub mod meta {
    /// Hash and number (8) of the head.
    pub const HEAD: &[u8] = b"head";
    /// State root that the tables `accounts` and `storage` show.
    pub const FLAT_ROOT: &[u8] = b"flat root";
    /// Id that the next trie node gets.
    pub const NEXT_NODE: &[u8] = b"next node";
    /// Id that the next node of a private trie gets.
    pub const NEXT_PRIVATE_NODE: &[u8] = b"next private node";
    /// Hash and number (8) of the block up to which private transactions have been run.
    pub const FOLLOWED: &[u8] = b"private followed";
    /// Layout of this file's tables.
    pub const LAYOUT: &[u8] = b"layout";
    pub const LAYOUT_VERSION: &[u8] = &[3];
    /// Whose rows are read as they are. 1: transactions by their whole hash, bodies with each sender, accounts without address.
    /// 2: trie nodes are whole.
    pub const OLDER_LAYOUTS: [&[u8]; 2] = [&[1], &[2]];
    /// How many of the tables were made (1); absent in a database that has the first ones alone.
    pub const TABLES: &[u8] = b"tables";

    /// Key of a value of the node's own.
    pub fn own(key: &str) -> Vec<u8> {
        format!("node:{key}").into_bytes()
    }
}

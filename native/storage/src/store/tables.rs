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

/// What a page has for rows, and for itself; what a row takes besides key and value.
const PAGE: usize = 4096 - HEAD;
const HEAD: usize = 16;
const ROW: usize = 8 + 2;

/// Rows put into pages one after the other.
#[derive(Default)]
struct Filling {
    full: usize,
    last: usize,
}

impl Filling {
    /// Whether it begins a page.
    fn add(&mut self, key: &[u8], value: &[u8]) -> bool {
        let size = (ROW + key.len() + value.len()).next_multiple_of(2);
        let is_first = self.last == 0 || self.last + size > PAGE;
        if is_first {
            self.full += usize::from(self.last > 0);
            self.last = 0;
        }
        self.last += size;
        is_first
    }

    fn bytes(&self) -> usize {
        self.full * PAGE + self.last
    }
}

/// Where putting anew goes on.
pub struct Stretch {
    /// Where the last page begins that was filled so far: its rows are taken along, or every stretch would leave a page half
    /// empty, and few rows of a stretch may stay.
    filling: Vec<u8>,
    from: Vec<u8>,
}

impl Stretch {
    pub fn at(from: Vec<u8>) -> Self {
        Stretch { filling: from.clone(), from }
    }
}

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

    /// Look at `most` entries from `place` to before `end`, and the rest of a page. Where that gives one of `worth` pages back,
    /// those that `keep` refuses go, and the others are put anew: in order they fill their pages, which deletions alone would
    /// leave three quarters empty. How many went, and the place to go on from, None when there are no more.
    pub fn repack(
        &self,
        txn: &mut RwTxn<'_>,
        place: &Stretch,
        end: &[u8],
        most: usize,
        worth: usize,
        keep: impl Fn(&[u8]) -> bool,
    ) -> Result<(usize, Option<Stretch>)> {
        use std::ops::Bound::{Excluded, Included};
        let (mut seen, mut after, mut going) = (Vec::with_capacity(most), None, 0);
        let (mut pages, mut page, mut needed) = (0, 0, Filling::default());
        for entry in self.0.range(txn, &(Included(&place.from[..]), Excluded(end)))? {
            let (key, value) = entry?;
            // Rows stand where their page is mapped to. A stretch ends with a page: put before what is left of one, rows would
            // split it over and over, and leave halves behind.
            let at = value.as_ptr() as usize / (PAGE + HEAD);
            if at != page {
                if seen.len() >= most {
                    after = Some(key.to_vec());
                    break;
                }
                (page, pages) = (at, pages + 1);
            }
            if keep(key) {
                needed.add(key, value);
            } else {
                going += 1;
            }
            seen.push((key, value));
        }
        let gained = (pages * PAGE).saturating_sub(needed.bytes());
        if gained * worth < pages * PAGE || pages == 0 {
            return Ok((0, after.map(Stretch::at)));
        }
        let mut staying = Vec::with_capacity(seen.len() - going + 64);
        for entry in self.0.range(txn, &(Included(&place.filling[..]), Excluded(&place.from[..])))? {
            let (key, value) = entry?;
            staying.push((key.to_vec(), value.to_vec()));
        }
        let seen = seen.into_iter().filter(|(key, _)| keep(key));
        staying.extend(seen.map(|(key, value)| (key.to_vec(), value.to_vec())));
        let until = after.as_deref().unwrap_or(end);
        self.0.delete_range(txn, &(Included(&place.filling[..]), Excluded(until)))?;
        let (mut filling, mut filled) = (until, Filling::default());
        for (key, value) in &staying {
            self.0.put(txn, key, value)?;
            if filled.add(key, value) {
                filling = key;
            }
        }
        let filling = filling.to_vec();
        Ok((going, after.map(|from| Stretch { filling, from })))
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
pub const ROW_TABLES: [&str; 8] =
    ["payloads", "arrivals", "groups", "lookup", "outbox", "cursors", "handed", "unmarked"];

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
    pub const LAYOUT_VERSION: &[u8] = &[4];
    /// Whose rows are read as they are. 1: transactions by their whole hash, bodies with each sender, accounts without address.
    /// 2: trie nodes are whole. 3: the index has the transactions of every block.
    pub const OLDER_LAYOUTS: [&[u8]; 3] = [&[1], &[2], &[3]];
    /// How many of the tables were made (1); absent in a database that has the first ones alone.
    pub const TABLES: &[u8] = b"tables";

    /// Key of a value of the node's own.
    pub fn own(key: &str) -> Vec<u8> {
        format!("node:{key}").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::opening;

    #[test]
    fn what_stays_fills_its_pages() {
        let path = std::env::temp_dir().join(format!("ophion-tables-{}", std::process::id()));
        let (env, tables, _) = opening::open(&path, true, false, false).unwrap();
        let (table, end) = (tables.nodes, [0xff; 8]);
        let mut txn = env.write_txn().unwrap();
        for id in 1..60_000u64 {
            table.append(&mut txn, &id.to_be_bytes(), &vec![7; 60 + (id * 7919 % 97) as usize]).unwrap();
        }
        txn.commit().unwrap();
        // as it is in life: a part goes in each round, most of it where others went before
        for kept in [10, 30, 5] {
            let keep = |key: &[u8]| {
                u64::from_be_bytes(key.try_into().unwrap()).wrapping_mul(0x9e3779b97f4a7c15) >> 32 & 31 < kept
            };
            let mut place = Some(Stretch::at(vec![0]));
            while let Some(here) = place {
                let mut txn = env.write_txn().unwrap();
                place = table.repack(&mut txn, &here, &end, 500, 8, keep).unwrap().1;
                txn.commit().unwrap();
            }
        }
        let txn = env.read_txn().unwrap();
        let mut needed = Filling::default();
        for row in table.from(&txn, &[0]).unwrap() {
            let (key, value) = row.unwrap();
            needed.add(key, value);
        }
        let (rows, bytes) = table.usage(&txn).unwrap();
        assert!((5_000..15_000).contains(&rows), "{rows} rows");
        assert!(bytes as usize * 3 < needed.bytes() * 4, "{bytes} bytes for {}", needed.bytes());
        drop(txn);
        std::fs::remove_dir_all(&path).unwrap();
    }
}

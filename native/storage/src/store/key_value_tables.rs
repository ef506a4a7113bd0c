//! Tables whose rows other packages define, in the same file and behind the same writer lock.
//!
//! | table    | key                                   | value                                                      |
//! |----------|---------------------------------------|------------------------------------------------------------|
//! | payloads | key of the payload                    | sealed record, see the crate `enclave`                     |
//! | arrivals | enclave key (32), number (8)          | kind (1) and id, in order of arrival                       |
//! | groups   | group id                              | group record (`ophion/enclave/group_record.py`)            |
//! | lookup   | id of a set of members (32), group id | nothing                                                    |
//! | outbox   | enclave key (32), number (8)          | kind (1) and id of an unacknowledged message               |
//! | cursors  | node id (64), enclave key (32)        | number (8) up to which its arrivals were read              |
//! | handed   | key of a payload                      | payload handed over to a new member of a flexible group    |
//! | unmarked | kind (1), id or enclave key           | items without a marker, and known senders (`payload_quota.py`) |
//!
//! Numbers in parentheses are sizes in bytes. The tables are created when a database is opened for writing. A database
//! of an older version lacks them; reads of these tables then return no rows.

use alloy_primitives::B256;
use heed::{RoTxn, RwTxn};
use ophion_primitives::errors::{Error, Result};

use super::database::Database;
use super::private_results::note_late;
use super::read_snapshot::Snapshot;
use super::tables::ROW_TABLES;

/// Indices of the two payload tables in `ROW_TABLES`. A payload that arrives after its marker was processed is recorded
/// as late, for the private transaction processor.
const LATE: [usize; 2] = [0, 6];

/// A change of a database row: table, key and value. The value None deletes the row.
pub type Change<'a> = (&'a str, &'a [u8], Option<&'a [u8]>);

/// A database row: key and value.
pub type Row<'t> = (&'t [u8], &'t [u8]);

fn place(name: &str) -> Result<usize> {
    let found = ROW_TABLES.iter().position(|known| *known == name);
    found.ok_or_else(|| Error::Storage(format!("there is no table '{name}'")))
}

impl Database {
    /// Change rows of key-value tables in one database transaction.
    pub fn write_rows(&self, changes: &[Change<'_>]) -> Result<()> {
        self.write_alone(|txn, _| self.put_rows(txn, changes))
    }

    /// Delete all rows of some tables.
    pub fn clear_rows(&self, names: &[String]) -> Result<()> {
        self.write_alone(|txn, _| {
            for name in names {
                if let Some(table) = self.row_tables[place(name)?] {
                    table.clear(txn)?;
                }
            }
            Ok(())
        })
    }

    /// Change rows of key-value tables as part of a larger database transaction.
    pub(super) fn put_rows(&self, txn: &mut RwTxn<'_>, changes: &[Change<'_>]) -> Result<()> {
        for (name, key, value) in changes {
            let place = place(name)?;
            let table = self.row_tables[place];
            let table = table.ok_or_else(|| Error::Storage("the database is open for reading only".into()))?;
            match value {
                Some(value) => {
                    table.put(txn, key, value)?;
                    if LATE.contains(&place)
                        && let Ok(key) = B256::try_from(*key)
                    {
                        note_late(&self.tables, txn, &key)?;
                    }
                }
                None => {
                    table.delete(txn, key)?;
                }
            }
        }
        Ok(())
    }

    /// Return whether one of the two payload tables holds this payload.
    pub(super) fn has_payload(&self, txn: &RoTxn<'_>, key: &B256) -> Result<bool> {
        for table in LATE.iter().filter_map(|place| self.row_tables[*place]) {
            if table.get(txn, key.as_slice())?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Snapshot {
    pub fn row(&self, table: &str, key: &[u8]) -> Result<Option<&[u8]>> {
        match self.inner.row_tables[place(table)?] {
            Some(table) => table.get(self.txn(), key),
            None => Ok(None),
        }
    }

    /// Return up to `limit` rows in key order. Their keys start with `prefix` and are greater than `after`.
    pub fn rows(&self, table: &str, prefix: &[u8], after: &[u8], limit: usize) -> Result<Vec<Row<'_>>> {
        let Some(table) = self.inner.row_tables[place(table)?] else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        // the start key has at least one byte, because LMDB rejects empty keys
        for row in table.from(self.txn(), prefix.max(after).max(&[0]))? {
            let (key, value) = row?;
            if found.len() >= limit || !key.starts_with(prefix) {
                break;
            }
            if key != after {
                found.push((key, value));
            }
        }
        Ok(found)
    }

    /// Return the last row whose key starts with `prefix`.
    pub fn last_row(&self, table: &str, prefix: &[u8]) -> Result<Option<Row<'_>>> {
        match self.inner.row_tables[place(table)?] {
            Some(table) => table.last_with_prefix(self.txn(), prefix),
            None => Ok(None),
        }
    }

    /// Return name, number of entries and bytes of each non-empty table.
    pub(super) fn rows_usage(&self) -> Result<Vec<(String, u64, u64)>> {
        let mut used = Vec::new();
        for (name, table) in ROW_TABLES.iter().zip(self.inner.row_tables) {
            let Some(table) = table else { continue };
            let (entries, bytes) = table.usage(self.txn())?;
            if entries > 0 {
                used.push(((*name).to_string(), entries, bytes));
            }
        }
        Ok(used)
    }
}

//! Memory addresses of the trie nodes that a snapshot has read.
//!
//! A block reads a node to execute transactions, and again to change the node. The second read uses the address,
//! because in a large state the lookup of a node id in LMDB takes more than half of the time of a read.

use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::map::HashMap;

/// Maximum number of known rows. A full table is cleared.
const MAX_ROWS: usize = 65_536;

/// Addresses and lengths of rows by node id.
#[derive(Default)]
pub struct KnownRows(Mutex<HashMap<u64, Row>>);

#[derive(Clone, Copy)]
struct Row {
    start: *const u8,
    length: usize,
}

// SAFETY: a row is read-only memory, and `KnownRows::get` demands that the read transaction of the row is open.
unsafe impl Send for Row {}

impl KnownRows {
    fn rows(&self) -> MutexGuard<'_, HashMap<u64, Row>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Return a row that `keep` has stored.
    ///
    /// # Safety
    ///
    /// The read transaction of all rows passed to `keep` must be open for `'t`.
    pub unsafe fn get<'t>(&self, id: u64) -> Option<&'t [u8]> {
        let row = self.rows().get(&id).copied()?;
        // SAFETY: `keep` stored start and length of a slice, and the caller guarantees that this memory is still valid.
        Some(unsafe { std::slice::from_raw_parts(row.start, row.length) })
    }

    pub fn keep(&self, id: u64, row: &[u8]) {
        let mut rows = self.rows();
        if rows.len() >= MAX_ROWS {
            rows.clear();
        }
        rows.insert(id, Row { start: row.as_ptr(), length: row.len() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_known_until_there_are_too_many() {
        let (known, row) = (KnownRows::default(), [1, 2, 3]);
        for id in 0..MAX_ROWS as u64 {
            known.keep(id, &row[..(id % 4) as usize]);
        }
        // SAFETY: `row` is alive.
        let get = |id| unsafe { known.get(id) };
        assert_eq!((get(2), get(7), get(1 << 40)), (Some(&row[..2]), Some(&row[..]), None));
        known.keep(1 << 40, &row);
        assert_eq!((get(2), get(1 << 40)), (None, Some(&row[..])));
    }
}

//! Preimages in sorted runs, written in order.
//!
//! In a table that is ordered by hash, nearly every new row changes another page, and the cost of a block grows with
//! the table. A commit therefore appends one sorted run with its preimages. When there are `FAN` runs of one level,
//! they are merged into a run of the next level. If a merge has `PARTED_ENTRIES` entries or more, it divides the hashes
//! into `PARTS` parts, and writes a run for each part. Each commit with preimages also merges the runs of one part. So
//! the number of runs that a lookup reads grows with the logarithm of the number of entries, and no commit has to merge
//! all runs.
//!
//! ```text
//! 00                                    | next run (8), next part to merge (1), recent runs, oldest first
//! 01 | part (1)                         | runs of a part, oldest first
//! 02 | run (8) | prefix (8)             | entries from this prefix on, in order
//!
//! run in a list    level (1), number (8), count of entries (8)
//! entry            prefix (8), preimage (32)
//! ```
//! Numbers in parentheses are sizes in bytes. The prefix is the start of the hash. Its lowest bit is 1 if the preimage
//! is an address; zeros on the left extend the address to 32 bytes. Different runs may hold the same preimage until
//! they are merged.

use alloy_primitives::{Address, B256};
use heed::{RoTxn, RwTxn};
use ophion_primitives::bytes::Reader;
use ophion_primitives::errors::{Error, Result};

use super::tables::Table;

/// Number of runs of one level that are merged. A greater number makes writes faster and lookups slower.
const FAN: usize = 4;
/// Number of parts of large runs, by the highest bits of the hash.
const PARTS: u8 = 64;
/// Number of entries from which a run is divided into parts.
const PARTED_ENTRIES: usize = 1 << 16;
/// Maximum number of entries of a merged run in a part. It bounds the time of a merge.
const MAX_MERGED_ENTRIES: u64 = 1 << 18;
const PREFIX: usize = 8;
pub(super) const ENTRY: usize = PREFIX + B256::len_bytes();
/// Number of entries in a row. The row fills one page of the database.
const ROW_ENTRIES: usize = 4_080 / ENTRY;
const RUN_RECORD: usize = 1 + 8 + 8;

pub(super) const RECENT: &[u8] = &[0];
const PART: u8 = 1;
const ROWS: u8 = 2;

pub(super) type Entry = [u8; ENTRY];

/// A sorted list of entries in rows of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    level: u8,
    pub number: u64,
    pub entries: u64,
}

/// Return the key of the list of runs in a part.
fn part_key(part: u8) -> [u8; 2] {
    [PART, part]
}

/// Return the part of entries that begin with this byte.
fn part_of(first: u8) -> u8 {
    first / (u8::MAX / PARTS + 1)
}

/// Return the first bytes of a hash as a number, without the bit that marks addresses.
pub(super) fn prefix_of(hash: &B256) -> u64 {
    prefix(hash.as_slice()) & !1
}

/// Return the prefix at the start of an entry or a hash.
pub(super) fn prefix(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(*bytes.first_chunk().expect("entries are longer"))
}

fn row_key(number: u64, prefix: u64) -> [u8; 17] {
    let mut key = [ROWS; 17];
    key[1..9].copy_from_slice(&number.to_be_bytes());
    key[9..].copy_from_slice(&prefix.to_be_bytes());
    key
}

/// Return the entry of a preimage: a slot (32 bytes) or an address (20 bytes).
fn entry(hash: &B256, preimage: &[u8]) -> Entry {
    let is_address = preimage.len() == Address::len_bytes();
    let mut entry = [0; ENTRY];
    entry[..PREFIX].copy_from_slice(&(prefix_of(hash) | u64::from(is_address)).to_be_bytes());
    entry[ENTRY - preimage.len()..].copy_from_slice(preimage);
    entry
}

/// Return the preimage in an entry.
pub(super) fn preimage_in(entry: &[u8]) -> &[u8] {
    let is_address = prefix(entry) & 1 == 1;
    &entry[if is_address { ENTRY - Address::len_bytes() } else { PREFIX }..]
}

fn restore_runs(bytes: &[u8]) -> Result<Vec<Run>> {
    let (records, rest) = bytes.as_chunks::<RUN_RECORD>();
    if !rest.is_empty() {
        return Err(Error::damaged("a list of preimage runs cannot be read"));
    }
    let run = |record: &[u8; RUN_RECORD]| Run {
        level: record[0],
        number: prefix(&record[1..]),
        entries: prefix(&record[9..]),
    };
    Ok(records.iter().map(run).collect())
}

fn store_runs(runs: &[Run], out: &mut Vec<u8>) {
    for run in runs {
        out.push(run.level);
        out.extend_from_slice(&run.number.to_be_bytes());
        out.extend_from_slice(&run.entries.to_be_bytes());
    }
}

/// The record of the recent runs.
struct Recent {
    next_run: u64,
    next_part: u8,
    runs: Vec<Run>,
}

impl Recent {
    fn read(table: Table, txn: &RoTxn<'_>) -> Result<Self> {
        let Some(record) = table.get(txn, RECENT)? else {
            return Ok(Recent { next_run: 1, next_part: 0, runs: Vec::new() });
        };
        let mut reader = Reader(record);
        let (next_run, next_part) = (prefix(reader.take(8)?), reader.byte()?);
        Ok(Recent { next_run, next_part, runs: restore_runs(reader.rest())? })
    }

    fn store(&self) -> Vec<u8> {
        let mut record = self.next_run.to_be_bytes().to_vec();
        record.push(self.next_part);
        store_runs(&self.runs, &mut record);
        record
    }
}

/// Return the recent runs, which have entries of all parts.
pub(super) fn recent_runs(table: Table, txn: &RoTxn<'_>) -> Result<Vec<Run>> {
    Ok(Recent::read(table, txn)?.runs)
}

/// Return the runs of the part that holds hashes with this first byte. The recent runs may hold such hashes too.
pub(super) fn parted_runs(table: Table, txn: &RoTxn<'_>, first: u8) -> Result<Vec<Run>> {
    restore_runs(table.get(txn, &part_key(part_of(first)))?.unwrap_or_default())
}

/// Return the row of a run that may hold entries with this prefix.
pub(super) fn row_at<'t>(table: Table, txn: &'t RoTxn<'_>, number: u64, prefix: u64) -> Result<Option<&'t [u8]>> {
    let found = table.up_to(txn, &row_key(number, prefix | 1))?;
    Ok(found.filter(|(key, _)| key.starts_with(&row_key(number, 0)[..9])).map(|(_, row)| row))
}

/// Write preimages, in any order, and merge earlier runs.
pub(super) fn add<'a>(
    table: Table,
    txn: &mut RwTxn<'_>,
    preimages: impl Iterator<Item = &'a (B256, Vec<u8>)>,
) -> Result<()> {
    let mut entries: Vec<Entry> = preimages.map(|(hash, preimage)| entry(hash, preimage)).collect();
    if entries.is_empty() {
        return Ok(());
    }
    entries.sort();
    entries.dedup();
    let mut recent = Recent::read(table, txn)?;
    if entries.len() >= PARTED_ENTRIES {
        divide(table, txn, &mut recent.next_run, &entries)?;
    } else {
        let run = append(table, txn, &mut recent.next_run, 0, &entries)?;
        recent.runs.push(run);
        merge_recent(table, txn, &mut recent)?;
    }
    merge_part(table, txn, &mut recent.next_run, recent.next_part)?;
    recent.next_part = (recent.next_part + 1) % PARTS;
    table.put(txn, RECENT, &recent.store())
}

/// Append a run to the table.
fn append(table: Table, txn: &mut RwTxn<'_>, next: &mut u64, level: u8, entries: &[Entry]) -> Result<Run> {
    let run = Run { level, number: *next, entries: entries.len() as u64 };
    *next += 1;
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let mut end = rest.len().min(ROW_ENTRIES);
        // a lookup reads one row, so equal prefixes stay together
        while end < rest.len() && prefix(&rest[end]) >> 1 == prefix(&rest[end - 1]) >> 1 {
            end += 1;
        }
        let (row, after) = rest.split_at(end);
        table.append(txn, &row_key(run.number, prefix(first)), row.as_flattened())?;
        rest = after;
    }
    Ok(run)
}

fn merge_recent(table: Table, txn: &mut RwTxn<'_>, recent: &mut Recent) -> Result<()> {
    while let Some(full) = take_full(&mut recent.runs, u64::MAX) {
        let entries = take_entries(table, txn, &full)?;
        if entries.len() >= PARTED_ENTRIES {
            divide(table, txn, &mut recent.next_run, &entries)?;
        } else {
            let run = append(table, txn, &mut recent.next_run, full[0].level.saturating_add(1), &entries)?;
            recent.runs.push(run);
        }
    }
    Ok(())
}

/// Add a run to each part that has some of these entries.
fn divide(table: Table, txn: &mut RwTxn<'_>, next: &mut u64, entries: &[Entry]) -> Result<()> {
    for of_part in entries.chunk_by(|one, other| part_of(one[0]) == part_of(other[0])) {
        let run = append(table, txn, next, 0, of_part)?;
        let key = part_key(part_of(of_part[0][0]));
        let mut record = table.get(txn, &key)?.unwrap_or_default().to_vec();
        store_runs(&[run], &mut record);
        table.put(txn, &key, &record)?;
    }
    Ok(())
}

fn merge_part(table: Table, txn: &mut RwTxn<'_>, next: &mut u64, part: u8) -> Result<()> {
    let Some(record) = table.get(txn, &part_key(part))? else { return Ok(()) };
    let mut runs = restore_runs(record)?;
    let before = runs.len();
    while let Some(full) = take_full(&mut runs, MAX_MERGED_ENTRIES) {
        let entries = take_entries(table, txn, &full)?;
        runs.push(append(table, txn, next, full[0].level.saturating_add(1), &entries)?);
    }
    if runs.len() < before {
        let mut record = Vec::new();
        store_runs(&runs, &mut record);
        table.put(txn, &part_key(part), &record)?;
    }
    Ok(())
}

/// Remove from the list, and return, the `FAN` oldest runs of the lowest level with at least `FAN` runs; None if no
/// level has so many. Runs with more than 1/`FAN` of `max` entries do not count, and are never merged again.
fn take_full(runs: &mut Vec<Run>, max: u64) -> Option<Vec<Run>> {
    let is_of = |run: &Run, level: u8| run.level == level && run.entries <= max / FAN as u64;
    let highest = runs.iter().map(|run| run.level).max()?;
    let level = (0..=highest).find(|level| runs.iter().filter(|run| is_of(run, *level)).count() >= FAN)?;
    Some(runs.extract_if(.., |run| is_of(run, level)).take(FAN).collect())
}

/// Delete runs. Returns their entries in order.
fn take_entries(table: Table, txn: &mut RwTxn<'_>, runs: &[Run]) -> Result<Vec<Entry>> {
    // in a damaged list, the number of entries may be anything
    let expected = runs.iter().fold(0u64, |sum, run| sum.saturating_add(run.entries));
    let mut entries = Vec::with_capacity(expected.min(MAX_MERGED_ENTRIES) as usize);
    for run in runs {
        let rows = &row_key(run.number, 0)[..9];
        for row in table.prefix(txn, rows)? {
            entries.extend_from_slice(row?.1.as_chunks::<ENTRY>().0);
        }
        table.delete_prefix(txn, rows)?;
    }
    // each run is in order: the stable sort detects such runs and only merges them
    entries.sort();
    entries.dedup();
    Ok(entries)
}

/// Return findings about the table, at most one for each row. `visit` gets the number of entries of each row, and
/// returns false to stop.
pub(super) fn check(table: Table, txn: &RoTxn<'_>, mut visit: impl FnMut(u64, Option<String>) -> bool) -> Result<()> {
    let mut listed = std::collections::BTreeMap::new();
    let mut parts: Vec<(Option<u8>, Vec<Run>)> = vec![(None, recent_runs(table, txn)?)];
    for row in table.prefix(txn, &[PART])? {
        let (key, record) = row?;
        parts.push((key.get(1).copied(), restore_runs(record)?));
    }
    for (part, runs) in parts {
        listed.extend(runs.into_iter().map(|run| (run.number, (part, run.entries))));
    }
    for row in table.from(txn, &[ROWS])? {
        let (key, row) = row?;
        let number = if key.len() == row_key(0, 0).len() { prefix(&key[1..]) } else { 0 };
        let finding = match listed.get_mut(&number) {
            None => Some("a row of preimages is in no run".to_string()),
            Some((part, left)) => {
                *left = left.wrapping_sub((row.len() / ENTRY) as u64);
                wrong_row(key, *part, row).map(|what| format!("a preimage of run {number} {what}"))
            }
        };
        if !visit((row.len() / ENTRY) as u64, finding) {
            return Ok(());
        }
    }
    for (number, (_, left)) in listed {
        if left != 0 && !visit(0, Some(format!("the run {number} of preimages is not complete"))) {
            return Ok(());
        }
    }
    Ok(())
}

/// Return what is wrong with a row of a run; None if the row is valid.
fn wrong_row(key: &[u8], part: Option<u8>, row: &[u8]) -> Option<&'static str> {
    let (entries, rest) = row.as_chunks::<ENTRY>();
    let is_placed = entries.first().is_some_and(|first| key.ends_with(&first[..PREFIX])) && rest.is_empty();
    if !is_placed || !entries.is_sorted() || part.is_some_and(|part| entries.iter().any(|one| part_of(one[0]) != part))
    {
        return Some("is out of order");
    }
    let is_wrong = |one: &Entry| entry(&alloy_primitives::keccak256(preimage_in(one)), preimage_in(one)) != *one;
    entries.iter().any(is_wrong).then_some("is wrong")
}

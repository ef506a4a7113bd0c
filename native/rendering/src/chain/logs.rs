//! Log search: the index finds candidate blocks, the receipts decide.

use std::time::Instant;

use alloy_primitives::{Address, B256, Log};
use ophion_primitives::deadline;
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::receipts::{self, StoredLog};
use ophion_storage::store::{Snapshot, decode_header, fold};

use crate::objects::{self, LogPlace};

pub struct LogFilter {
    /// Addresses of contracts whose logs match; an empty list matches all.
    pub addresses: Vec<Address>,
    /// Topics that match, by position. If None, any topic matches, but the log must have a topic at this position.
    pub topics: Vec<Option<Vec<B256>>>,
}

impl LogFilter {
    pub fn matches(&self, log: &Log) -> bool {
        let topics = log.data.topics();
        (self.addresses.is_empty() || self.addresses.contains(&log.address))
            && topics.len() >= self.topics.len()
            && self
                .topics
                .iter()
                .zip(topics)
                .all(|(filter_topics, topic)| filter_topics.as_ref().is_none_or(|any| any.contains(topic)))
    }

    /// Return whether a log of a stored record matches, as `matches` does.
    pub fn matches_stored(&self, log: &StoredLog<'_>) -> bool {
        let (topics, _) = log.topics.as_chunks::<32>();
        (self.addresses.is_empty() || self.addresses.iter().any(|address| address == log.address))
            && topics.len() >= self.topics.len()
            && self.topics.iter().zip(topics).all(|(filter_topics, topic)| {
                filter_topics.as_ref().is_none_or(|any| any.iter().any(|one| one == topic))
            })
    }

    /// Return the log index values of each filter condition. A block can match only if the index lists it for at least
    /// one value of every condition.
    fn conditions(&self) -> Vec<Vec<u64>> {
        let mut conditions = Vec::new();
        if !self.addresses.is_empty() {
            conditions.push(self.addresses.iter().map(|address| fold(address.as_slice())).collect());
        }
        for filter_topics in self.topics.iter().flatten() {
            conditions.push(filter_topics.iter().map(|topic| fold(topic.as_slice())).collect());
        }
        conditions
    }
}

/// Limits of a log search.
pub struct Limits {
    pub max_results: usize,
    pub max_bytes: usize,
    pub deadline: Instant,
}

/// Return the logs of canonical blocks as a JSON array.
pub fn search(snapshot: &Snapshot, first: u64, last: u64, filter: &LogFilter, limits: &Limits) -> Result<Vec<u8>> {
    let head = snapshot.head()?.map_or(0, |(_, number)| number);
    let mut writer = LogWriter { out: vec![b'['], count: 0, filter, removed: false };
    let mut blocks = Candidates::new(first, last.min(head));
    while let Some(number) = blocks.next(snapshot, filter, limits)? {
        limits.check_time()?;
        let Some(hash) = snapshot.canonical_hash(number)? else { continue };
        writer.write_block(snapshot, &hash)?;
        limits.check_size(&writer)?;
    }
    writer.out.push(b']');
    Ok(writer.out)
}

/// Return the logs of one block on any branch; None if the block is unknown.
pub fn of_block(snapshot: &Snapshot, hash: &B256, filter: &LogFilter, removed: bool) -> Result<Option<Vec<u8>>> {
    if snapshot.header(hash)?.is_none() {
        return Ok(None);
    }
    let mut writer = LogWriter { out: vec![b'['], count: 0, filter, removed };
    writer.write_block(snapshot, hash)?;
    writer.out.push(b']');
    Ok(Some(writer.out))
}

impl Limits {
    /// Return an error if the response is too large or has too many logs. The search checks after each block; within a
    /// block, the gas limit bounds the logs.
    fn check_size(&self, written: &LogWriter<'_>) -> Result<()> {
        self.check_count(written.count)?;
        if written.out.len() > self.max_bytes {
            return Err(Error::Storage(format!("limit: more than {} bytes of logs match", self.max_bytes)));
        }
        Ok(())
    }

    pub(super) fn check_count(&self, count: usize) -> Result<()> {
        if count > self.max_results {
            return Err(Error::Storage(format!("limit: more than {} logs match", self.max_results)));
        }
        Ok(())
    }

    pub(super) fn check_time(&self) -> Result<()> {
        if deadline::is_over(self.deadline) {
            return Err(Error::Storage("limit: the search took too long; ask for fewer blocks".into()));
        }
        Ok(())
    }
}

/// Return the ascending numbers of the blocks that may contain a matching log. Fails if the receipts of a block in the
/// range are not downloaded yet.
pub fn candidates(snapshot: &Snapshot, first: u64, last: u64, filter: &LogFilter, limits: &Limits) -> Result<Vec<u64>> {
    if first > last {
        return Ok(Vec::new());
    }
    snapshot.expect_downloaded(first, last)?;
    let mut result: Option<Vec<u64>> = None;
    for values in filter.conditions() {
        let mut blocks = Vec::new();
        for value in values {
            limits.check_time()?;
            snapshot.listed(value, first, last, &mut blocks)?;
        }
        blocks.sort_unstable();
        blocks.dedup();
        result = Some(match result {
            None => blocks,
            Some(before) => before.into_iter().filter(|number| blocks.binary_search(number).is_ok()).collect(),
        });
        if result.as_ref().is_some_and(Vec::is_empty) {
            break;
        }
    }
    Ok(result.unwrap_or_else(|| (first..=last).collect()))
}

/// Number of blocks whose index rows are read at once, so that a search of the whole chain takes little memory.
const INDEX_BLOCKS: u64 = 65_536;

/// The numbers of the blocks that may contain a matching log, in ascending order. The index is read range by range.
pub(super) struct Candidates {
    ready: std::vec::IntoIter<u64>,
    /// First block whose index rows are not read yet.
    first: u64,
    last: u64,
}

impl Candidates {
    pub(super) fn new(first: u64, last: u64) -> Self {
        Candidates { ready: Vec::new().into_iter(), first, last }
    }

    /// Leave out the blocks after `last`.
    pub(super) fn end_at(&mut self, last: u64) {
        self.last = last;
    }

    /// Return the candidates that are left.
    pub(super) fn rest(&self) -> Self {
        Candidates { ready: self.ready.as_slice().to_vec().into_iter(), ..*self }
    }

    pub(super) fn next(&mut self, snapshot: &Snapshot, filter: &LogFilter, limits: &Limits) -> Result<Option<u64>> {
        loop {
            if let Some(number) = self.ready.next() {
                return Ok(Some(number));
            }
            if self.first > self.last {
                return Ok(None);
            }
            let end = self.last.min(self.first.saturating_add(INDEX_BLOCKS - 1));
            self.ready = candidates(snapshot, self.first, end, filter, limits)?.into_iter();
            self.first = end + 1;
        }
    }
}

fn receipts_record<'a>(snapshot: &'a Snapshot, hash: &B256) -> Result<&'a [u8]> {
    snapshot.receipts_record(hash)?.ok_or_else(|| incomplete(hash))
}

fn incomplete(hash: &B256) -> Error {
    Error::damaged(format!("block {hash} is incomplete"))
}

/// Return the number of matching logs of a block.
pub(super) fn count_block(snapshot: &Snapshot, hash: &B256, filter: &LogFilter) -> Result<usize> {
    let mut count = 0;
    receipts::visit_logs(receipts_record(snapshot, hash)?, |log| count += usize::from(filter.matches_stored(&log)))?;
    Ok(count)
}

/// Writes logs as members of a JSON array.
pub(super) struct LogWriter<'a> {
    pub(super) out: Vec<u8>,
    /// Number of logs written so far.
    pub(super) count: usize,
    pub(super) filter: &'a LogFilter,
    pub(super) removed: bool,
}

impl LogWriter<'_> {
    pub(super) fn write_block(&mut self, snapshot: &Snapshot, hash: &B256) -> Result<()> {
        // read the header and the body of a block only after a matching log, because most candidate blocks have no
        // match
        if count_block(snapshot, hash, self.filter)? == 0 {
            return Ok(());
        }
        let (number, _, header) = snapshot.header(hash)?.ok_or_else(|| incomplete(hash))?;
        let timestamp = decode_header(header)?.timestamp;
        let (known, _) = snapshot.stored_body(hash)?.ok_or_else(|| incomplete(hash))?;
        let mut block = objects::Place { block_hash: *hash, number, index: 0, base_fee: None, timestamp };
        receipts::visit_logs(receipts_record(snapshot, hash)?, |log| {
            // a damaged record may have more receipts than the body has transactions
            let Some(known) = known.get(log.transaction).filter(|_| self.filter.matches_stored(&log)) else { return };
            if self.count > 0 {
                self.out.push(b',');
            }
            self.count += 1;
            block.index = log.transaction as u64;
            let place = LogPlace { block: &block, transaction: &known.hash, index: log.index, removed: self.removed };
            objects::write_stored_log(&mut self.out, &log, place);
        })
    }
}

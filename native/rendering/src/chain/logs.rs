//! Log search: the index finds candidate blocks, the receipts decide.

use std::time::Instant;

use alloy_primitives::{Address, B256, Log};
use ophion_primitives::deadline;
use ophion_primitives::errors::{Error, Result};
use ophion_storage::store::{Snapshot, decode_header, fold};

use crate::objects;

pub struct LogFilter {
    /// Addresses of contracts whose logs match; an empty list matches all.
    pub addresses: Vec<Address>,
    /// Topics that match, by position. None matches any topic, but the log must have a topic at this position.
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
    let mut writer = Writer { out: vec![b'['], count: 0, filter, removed: false };
    let last = last.min(head);
    for number in candidates(snapshot, first, last, filter, limits)? {
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
    let mut writer = Writer { out: vec![b'['], count: 0, filter, removed };
    writer.write_block(snapshot, hash)?;
    writer.out.push(b']');
    Ok(Some(writer.out))
}

impl Limits {
    /// Return an error if the response is too large. The search checks after each block; within a block, the gas limit
    /// bounds the logs.
    fn check_size(&self, written: &Writer<'_>) -> Result<()> {
        if written.count > self.max_results {
            return Err(Error::Storage(format!("limit: more than {} logs match", self.max_results)));
        }
        if written.out.len() > self.max_bytes {
            return Err(Error::Storage(format!("limit: more than {} bytes of logs match", self.max_bytes)));
        }
        Ok(())
    }

    fn check_time(&self) -> Result<()> {
        if deadline::is_over(self.deadline) {
            return Err(Error::Storage("limit: the search took too long; ask for fewer blocks".into()));
        }
        Ok(())
    }
}

/// Return the ascending numbers of the blocks that may contain a matching log.
pub fn candidates(snapshot: &Snapshot, first: u64, last: u64, filter: &LogFilter, limits: &Limits) -> Result<Vec<u64>> {
    if first > last {
        return Ok(Vec::new());
    }
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

struct Writer<'a> {
    out: Vec<u8>,
    count: usize,
    filter: &'a LogFilter,
    removed: bool,
}

impl Writer<'_> {
    fn write_block(&mut self, snapshot: &Snapshot, hash: &B256) -> Result<()> {
        let missing = || Error::damaged(format!("block {hash} is incomplete"));
        let receipts = snapshot.receipts(hash)?.ok_or_else(missing)?;
        // read the header and the body of a block only after a matching log, because most candidate blocks have no
        // match
        if !receipts.iter().flat_map(|receipt| &receipt.logs).any(|log| self.filter.matches(log)) {
            return Ok(());
        }
        let (number, _, header) = snapshot.header(hash)?.ok_or_else(missing)?;
        let timestamp = decode_header(header)?.timestamp;
        let (known, _) = snapshot.stored_body(hash)?.ok_or_else(missing)?;
        let mut log_index = 0;
        for (index, (receipt, known)) in receipts.iter().zip(&known).enumerate() {
            let place = objects::Place { block_hash: *hash, number, index: index as u64, base_fee: None, timestamp };
            for log in &receipt.logs {
                if self.filter.matches(log) {
                    if self.count > 0 {
                        self.out.push(b',');
                    }
                    self.count += 1;
                    objects::write_log(&mut self.out, log, log_index, &known.hash, &place, self.removed);
                }
                log_index += 1u64;
            }
        }
        Ok(())
    }
}

//! The conditions by which a scan selects rows.

use std::time::Instant;

use alloy_primitives::{Address, B256};
use ophion_primitives::deadline;
use ophion_primitives::errors::Result;
use ophion_rendering::chain::logs::{Limits, LogFilter, candidates};
use ophion_storage::store::Snapshot;

/// Conditions that select rows. An empty list sets no condition.
#[derive(Default)]
pub struct Filter {
    /// Addresses of contracts that emit the logs.
    pub addresses: Vec<Address>,
    /// Topics of logs by position. If None, any topic matches, but the log must have a topic at this position.
    pub topics: Vec<Option<Vec<B256>>>,
    /// Senders of transactions and calls.
    pub from: Vec<Address>,
    /// Recipients of transactions and calls.
    pub to: Vec<Address>,
}

/// Time limit in seconds of a lookup in the log index.
const INDEX_TIMEOUT_S: f64 = 600.0;

impl Filter {
    /// Return whether the filter selects a log. `topics` is the concatenation of the topics of the log, 32 bytes each.
    #[inline]
    pub fn selects_log(&self, address: &[u8], topics: &[u8]) -> bool {
        (self.addresses.is_empty() || self.addresses.iter().any(|one| one == address))
            && self.topics.iter().enumerate().all(|(position, any)| {
                let topic = topics.get(32 * position..32 * (position + 1));
                topic.is_some_and(|topic| any.as_ref().is_none_or(|any| any.iter().any(|one| one == topic)))
            })
    }

    pub fn selects_parties(&self, from: Option<Address>, to: Option<Address>) -> bool {
        let is_among =
            |any: &[Address], one: Option<Address>| any.is_empty() || one.is_some_and(|one| any.contains(&one));
        is_among(&self.from, from) && is_among(&self.to, to)
    }

    /// Return the ascending numbers of the blocks that may hold a selected log; None means all blocks.
    pub fn log_blocks(&self, snapshot: &Snapshot, first: u64, last: u64) -> Result<Option<Vec<u64>>> {
        if self.addresses.is_empty() && self.topics.iter().all(Option::is_none) {
            return Ok(None);
        }
        let filter = LogFilter { addresses: self.addresses.clone(), topics: self.topics.clone() };
        let deadline: Instant = deadline::after(INDEX_TIMEOUT_S);
        let limits = Limits { max_results: usize::MAX, max_bytes: usize::MAX, deadline };
        candidates(snapshot, first, last, &filter, &limits).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_must_have_every_named_topic() {
        let (a, b) = (B256::repeat_byte(1), B256::repeat_byte(2));
        let filter = Filter { topics: vec![Some(vec![a]), None, Some(vec![a, b])], ..Filter::default() };
        let topics = |all: &[B256]| all.iter().flat_map(|one| one.0).collect::<Vec<u8>>();
        assert!(filter.selects_log(&[0; 20], &topics(&[a, b, b])));
        assert!(!filter.selects_log(&[0; 20], &topics(&[a, b])));
        assert!(!filter.selects_log(&[0; 20], &topics(&[b, b, b])));
        assert!(Filter::default().selects_log(&[0; 20], &[]));
    }
}

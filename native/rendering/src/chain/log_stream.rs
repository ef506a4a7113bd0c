//! A log search whose result is produced in pieces, so that a large result takes little memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use ophion_primitives::errors::{Error, Result};
use ophion_storage::store::{Database, Snapshot};

use super::logs::{Candidates, Limits, LogFilter, LogWriter, count_block};

/// Size in bytes at which a piece is complete. A piece can be larger by the logs of one block.
const PIECE_BYTES: usize = 512 * 1024;

/// A search in the blocks that were canonical when it began. Between two pieces, no snapshot of the database is open:
/// the client may read slowly, and LMDB cannot reuse freed pages while a snapshot is open.
pub struct LogStream {
    database: Arc<Database>,
    filter: LogFilter,
    blocks: Candidates,
    last: u64,
    /// Hash of the last block; None before the first piece.
    last_hash: Option<B256>,
    count: usize,
    max_results: usize,
    /// Time that the search may still take, without the time between two pieces.
    time_left: Duration,
    is_complete: bool,
}

impl LogStream {
    /// Make a search in the canonical blocks from `first` to `last`. The first piece fails if more than `max_results`
    /// logs match.
    pub fn new(
        database: Arc<Database>,
        first: u64,
        last: u64,
        filter: LogFilter,
        max_results: usize,
        time: Duration,
    ) -> Self {
        LogStream {
            database,
            filter,
            blocks: Candidates::new(first, last),
            last,
            last_hash: None,
            count: 0,
            max_results,
            time_left: time,
            is_complete: false,
        }
    }

    /// Return the next piece of a JSON array; None after the last piece. After an error, the stream is at its end.
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>> {
        if self.is_complete {
            return Ok(None);
        }
        let began = Instant::now();
        // an error ends the stream, so set `is_complete` first; `piece` overwrites it on success
        self.is_complete = true;
        let piece = self.piece(began)?;
        self.time_left = self.time_left.saturating_sub(began.elapsed());
        Ok(Some(piece))
    }

    fn piece(&mut self, began: Instant) -> Result<Vec<u8>> {
        let snapshot = self.database.snapshot()?;
        let limits = Limits { max_results: self.max_results, max_bytes: usize::MAX, deadline: began + self.time_left };
        let is_first = self.last_hash.is_none();
        if is_first {
            self.begin(&snapshot)?;
        } else if self.has_changed(&snapshot)? {
            return Err(Error::Storage("the chain was reorganised while its logs were read".into()));
        }
        let out = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4);
        let mut writer = LogWriter { out, count: self.count, filter: &self.filter, removed: false };
        if is_first {
            writer.out.push(b'[');
        }
        let mut is_complete = false;
        while writer.out.len() < PIECE_BYTES && !is_complete {
            limits.check_time()?;
            match self.blocks.next(&snapshot, &self.filter, &limits)? {
                Some(number) => {
                    if let Some(hash) = snapshot.canonical_hash(number)? {
                        writer.write_block(&snapshot, &hash)?;
                        limits.check_count(writer.count)?;
                    }
                }
                None => is_complete = true,
            }
        }
        let LogWriter { mut out, count, .. } = writer;
        self.count = count;
        if is_complete {
            out.push(b']');
        } else if is_first && self.max_results < usize::MAX {
            self.check_rest(&snapshot, &limits)?;
        }
        self.is_complete = is_complete;
        Ok(out)
    }

    /// Return whether the last block is no longer canonical. A head below the last block means that a development chain
    /// was reverted.
    fn has_changed(&self, snapshot: &Snapshot) -> Result<bool> {
        let (_, head) = snapshot.head()?.unwrap_or_default();
        Ok(head < self.last || snapshot.canonical_hash(self.last)? != self.last_hash)
    }

    /// Limit the search to the blocks that are canonical now.
    fn begin(&mut self, snapshot: &Snapshot) -> Result<()> {
        let (head_hash, head) = snapshot.head()?.unwrap_or_default();
        if self.last >= head {
            (self.last, self.last_hash) = (head, Some(head_hash));
        } else {
            self.last_hash = Some(snapshot.canonical_hash(self.last)?.unwrap_or_default());
        }
        self.blocks.end_at(self.last);
        Ok(())
    }

    /// Count the matching logs after the first piece now. If a later piece exceeded the limit, its error would cut off
    /// a response that has begun.
    fn check_rest(&self, snapshot: &Snapshot, limits: &Limits) -> Result<()> {
        let (mut rest, mut count) = (self.blocks.rest(), self.count);
        while let Some(number) = rest.next(snapshot, &self.filter, limits)? {
            limits.check_time()?;
            if let Some(hash) = snapshot.canonical_hash(number)? {
                count += count_block(snapshot, &hash, &self.filter)?;
                limits.check_count(count)?;
            }
        }
        Ok(())
    }
}

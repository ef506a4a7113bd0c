//! Decodes transactions and recovers their senders on a separate thread
//! (docs/decisions/0090-transaction-decoding-thread.md).
//!
//! ```text
//! submit ──▶ held ──start──▶ channel ──▶ worker: decode, recover ──▶ finished ──▶ one byte wakes the loop ──▶ collect
//! ```
//!
//! A Python thread would block the event loop for as long as the recovery takes. Here a submission is a push to a list,
//! and one wake-up collects all finished results. One worker preserves the order of arrival and distributes long lists
//! over all cores. Blobs have a second worker: each blob takes milliseconds, and the first blob loads the trusted
//! setup, which takes seconds.
//!
//! Recovering eight signers takes only two to three times as long as recovering one. So the decoder holds submissions
//! until they fill a SIMD group. The submitter calls `start` when no more submissions have arrived.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{mem, thread};

use alloy_primitives::{Address, Bytes};
use ophion_primitives::errors::Result;
use ophion_primitives::memory::note_heap;
use ophion_primitives::signers::{TASK, recovered_at_once};
use rayon::prelude::*;

use super::body::{BLOB_TYPE, Known, Tx, decode_submitted};

/// A transaction with its sender.
pub struct Decoded {
    pub tx: Arc<Tx>,
    pub known: Known,
}

/// A raw transaction, and the sender that it is expected to have.
type Hinted<R> = (R, Option<Address>);

/// Decode submitted transactions with their senders. Known senders come from the sender cache.
fn decode_some<R: AsRef<[u8]>>(raws: &[Hinted<R>]) -> Vec<Result<Decoded>> {
    let txs: Vec<Result<Tx>> = raws.iter().map(|(raw, _)| decode_submitted(raw.as_ref())).collect();
    let (valid, hints): (Vec<&Tx>, Vec<Option<Address>>) =
        txs.iter().zip(raws).filter_map(|(tx, (_, hint))| Some((tx.as_ref().ok()?, *hint))).unzip();
    let mut known = Known::with_hints(&valid, &hints).into_iter();
    let with_sender = |tx: Result<Tx>| {
        let tx = tx?;
        let known = known.next().expect("one for each that is a transaction")?;
        Ok(Decoded { known, tx: Arc::new(tx) })
    };
    txs.into_iter().map(with_sender).collect()
}

/// Decode one transaction.
pub fn decode(raw: &[u8]) -> Result<Decoded> {
    decode_some(&[(raw, None)]).pop().expect("one for one")
}

/// Decode many transactions in order. Above a threshold, the work runs on all cores.
pub fn decode_all<R: AsRef<[u8]> + Sync>(raws: &[R]) -> Vec<Result<Decoded>> {
    decode_hinted(&raws.iter().map(|raw| (raw, None)).collect::<Vec<_>>())
}

/// Decode many transactions in order, as `decode_all` does. A wrong hint costs time, and changes no result.
fn decode_hinted<R: AsRef<[u8]> + Sync>(raws: &[Hinted<R>]) -> Vec<Result<Decoded>> {
    if raws.len() <= TASK { decode_some(raws) } else { raws.par_chunks(TASK).flat_map_iter(decode_some).collect() }
}

/// Results of one submission, with the tag of the submitter.
pub type Finished<T> = (T, Vec<Result<Decoded>>);

struct Job<T> {
    tag: T,
    raws: Vec<Bytes>,
    /// Expected sender of each transaction; empty if nothing is expected.
    senders: Vec<Address>,
}

impl<T> Job<T> {
    fn hinted(&self) -> impl Iterator<Item = Hinted<&Bytes>> {
        self.raws.iter().enumerate().map(|(at, raw)| (raw, self.senders.get(at).copied()))
    }

    fn has_blobs(&self) -> bool {
        self.raws.iter().any(|raw| raw.first() == Some(&BLOB_TYPE))
    }
}

/// A group of submissions that a worker processes together, and the number of their transactions.
struct Round<T> {
    jobs: Vec<Job<T>>,
    weight: usize,
}

impl<T> Default for Round<T> {
    fn default() -> Self {
        Round { jobs: Vec::new(), weight: 0 }
    }
}

/// Queue of submitted transactions for the worker threads.
pub struct Decoder<T> {
    rounds: Sender<Round<T>>,
    /// Channel to the blob worker, which starts with the first blob transaction.
    with_blobs: OnceLock<Sender<Round<T>>>,
    held: Mutex<Round<T>>,
    shared: Arc<Shared<T>>,
    bell: UnixStream,
}

struct Shared<T> {
    finished: Mutex<Vec<Finished<T>>>,
    ringer: UnixStream,
}

impl<T: Send + 'static> Decoder<T> {
    pub fn new() -> io::Result<Self> {
        let (bell, ringer) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ringer.set_nonblocking(true)?;
        let shared = Arc::new(Shared { finished: Mutex::default(), ringer });
        let rounds = worker("decode", shared.clone())?;
        Ok(Decoder { rounds, with_blobs: OnceLock::new(), held: Mutex::default(), shared, bell })
    }

    /// Return a file descriptor that is readable when results are ready.
    pub fn fd(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// Submit transactions. Returns true if the decoder holds them until more transactions arrive. The worker starts
    /// when enough transactions are held, or when `start` is called.
    pub fn submit(&self, tag: T, raws: Vec<Bytes>) -> bool {
        self.submit_with_senders(tag, raws, Vec::new())
    }

    /// Submit transactions with their expected senders, which need not be right. Returns the same as `submit`.
    pub fn submit_with_senders(&self, tag: T, raws: Vec<Bytes>, senders: Vec<Address>) -> bool {
        let job = Job { tag, raws, senders };
        let weight = job.raws.len();
        if job.has_blobs() {
            give(self.blob_worker(), Round { jobs: vec![job], weight });
            return false;
        }
        let mut held = self.held();
        if !held.jobs.is_empty() && held.weight + weight > recovered_at_once() {
            // start the worker on the held submissions: they and the new submission do not fit into one SIMD group
            give(&self.rounds, mem::take(&mut *held));
        }
        held.weight += weight;
        held.jobs.push(job);
        if held.weight < recovered_at_once() {
            return true;
        }
        give(&self.rounds, mem::take(&mut *held));
        false
    }

    /// Let the worker process all held submissions.
    pub fn start(&self) {
        let mut held = self.held();
        if !held.jobs.is_empty() {
            give(&self.rounds, mem::take(&mut *held));
        }
    }

    /// Return the channel to the blob worker. If the thread of this worker cannot be started, the first worker
    /// processes blobs too.
    fn blob_worker(&self) -> &Sender<Round<T>> {
        self.with_blobs.get_or_init(|| worker("blobs", self.shared.clone()).unwrap_or_else(|_| self.rounds.clone()))
    }

    fn held(&self) -> MutexGuard<'_, Round<T>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Return up to `max` results in order of submission; results with blobs may come later. If more results are ready,
    /// the descriptor stays readable.
    pub fn collect(&self, max: usize) -> Vec<Finished<T>> {
        let mut finished = self.shared.lock();
        if finished.len() > max {
            return finished.drain(..max).collect();
        }
        // empty the wake-up pipe while the results are locked: a result that comes after the unlock writes its own byte
        let mut rung = [0; 64];
        while matches!((&self.bell).read(&mut rung), Ok(count) if count == rung.len()) {}
        mem::take(&mut *finished)
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Vec<Finished<T>>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Start a worker thread, which ends when the last `Sender` of its channel is dropped.
fn worker<T: Send + 'static>(name: &str, shared: Arc<Shared<T>>) -> io::Result<Sender<Round<T>>> {
    let (rounds, submissions) = channel();
    thread::Builder::new().name(name.into()).spawn(move || work(&submissions, &shared))?;
    Ok(rounds)
}

fn give<T>(worker: &Sender<Round<T>>, round: Round<T>) {
    // `send` cannot fail here, because the worker thread lives as long as the decoder
    let _ = worker.send(round);
}

fn work<T>(submissions: &Receiver<Round<T>>, shared: &Shared<T>) {
    note_heap();
    let mut next = None;
    while let Some(Round { mut jobs, mut weight }) = next.take().or_else(|| submissions.recv().ok()) {
        // combine submissions until one SIMD group is full, because a partly filled group takes as long as a full group
        while weight < recovered_at_once()
            && let Ok(round) = submissions.try_recv()
        {
            weight += round.weight;
            if weight > recovered_at_once() {
                next = Some(round);
            } else {
                jobs.extend(round.jobs);
            }
        }
        let raws: Vec<Hinted<&Bytes>> = jobs.iter().flat_map(Job::hinted).collect();
        let mut decoded = decode_hinted(&raws).into_iter();
        let is_first = {
            let mut finished = shared.lock();
            let is_first = finished.is_empty();
            finished.extend(jobs.into_iter().map(|job| (job.tag, decoded.by_ref().take(job.raws.len()).collect())));
            is_first
        };
        // write one wake-up byte for all results; if the pipe is full, earlier bytes wake the event loop
        if is_first {
            let _ = (&shared.ringer).write(&[1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn submissions_come_back_under_their_tags_in_order() {
        let decoder = Decoder::new().expect("a pair of sockets");
        for tag in 0..20 {
            decoder.submit(tag, vec![Bytes::from_static(b"nonsense"); 1 + tag]);
        }
        decoder.start();
        let mut seen = Vec::new();
        let start = Instant::now();
        while seen.len() < 20 {
            assert!(start.elapsed() < Duration::from_secs(60), "the worker answers");
            let some = decoder.collect(3);
            assert!(some.len() <= 3);
            seen.extend(some);
        }
        for (index, (tag, decoded)) in seen.iter().enumerate() {
            assert_eq!(*tag, index);
            assert_eq!(decoded.len(), 1 + index);
            assert!(decoded.iter().all(std::result::Result::is_err));
        }
    }

    #[test]
    fn submissions_are_held_until_there_are_enough_or_until_start() {
        let decoder = Decoder::new().expect("a pair of sockets");
        let held: Vec<bool> = (0..20).map(|tag| decoder.submit(tag, vec![Bytes::from_static(b"x")])).collect();
        let at_once = recovered_at_once();
        assert_eq!(held, (1..=20).map(|count| count % at_once != 0).collect::<Vec<_>>());
        decoder.start();
        decoder.start();
        let start = Instant::now();
        let mut seen = Vec::new();
        while seen.len() < 20 {
            assert!(start.elapsed() < Duration::from_secs(60), "the worker answers");
            seen.extend(decoder.collect(32).into_iter().map(|(tag, _)| tag));
        }
        assert_eq!(seen, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn blobs_and_others_do_not_wait_for_each_other() {
        let decoder = Decoder::new().expect("a pair of sockets");
        assert!(recovered_at_once() == 1 || decoder.submit("held", vec![Bytes::from_static(b"x")]));
        assert!(!decoder.submit("blobs", vec![Bytes::from_static(b"x"), Bytes::from_static(&[BLOB_TYPE, 0xc0])]));
        let next = || {
            let start = Instant::now();
            loop {
                assert!(start.elapsed() < Duration::from_secs(60), "the worker answers");
                if let Some((tag, decoded)) = decoder.collect(1).pop() {
                    return (tag, decoded.len());
                }
            }
        };
        assert_eq!(next(), ("blobs", 2), "start was not called for the one before");
        if recovered_at_once() > 1 {
            decoder.start();
            assert_eq!(next(), ("held", 1));
        }
    }
}

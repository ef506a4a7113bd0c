//! Transactions decoded and their senders recovered by a thread of our own, while the event loop goes on.
//!
//! ```text
//! submit ──▶ held ──start──▶ channel ──▶ worker: decode, recover ──▶ finished ──▶ one byte wakes the loop ──▶ collect
//! ```
//!
//! Handing a recovery to a Python thread and back costs the loop as much as the recovery itself. Here a submission is a
//! push, and one wake-up collects everything that is ready by then. One worker keeps the order of arrival; what arrives
//! as a long list is spread over all cores inside it. Blobs take milliseconds, and the first ones seconds, in which what
//! they are held against is loaded: they have a worker of their own, and nobody else waits for them.
//!
//! Eight signers take two or three times as long as one, so those that come together go together: a submission is held until
//! there are as many as the processor recovers at once, or until the submitter has seen all that has come by now and says
//! so (`start`). Nobody waits for somebody who is not there yet.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{mem, thread};

use alloy_primitives::Bytes;
use ophion_primitives::errors::Result;
use ophion_primitives::memory::note_heap;
use ophion_primitives::signers::{TASK, recovered_at_once};
use rayon::prelude::*;

use super::body::{BLOB_TYPE, Known, Tx, decode_submitted};

/// A transaction whose sender is known.
pub struct Decoded {
    pub tx: Arc<Tx>,
    pub known: Known,
}

/// Decode transactions as they were submitted, with their senders: a remembered one is not recovered again.
fn decode_some<R: AsRef<[u8]>>(raws: &[R]) -> Vec<Result<Decoded>> {
    let txs: Vec<Result<Tx>> = raws.iter().map(|raw| decode_submitted(raw.as_ref())).collect();
    let mut known = Known::of(&txs.iter().flatten().collect::<Vec<_>>()).into_iter();
    let with_sender = |tx: Result<Tx>| {
        let tx = tx?;
        let known = known.next().expect("one for each that is a transaction")?;
        Ok(Decoded { known, tx: Arc::new(tx) })
    };
    txs.into_iter().map(with_sender).collect()
}

/// One transaction.
pub fn decode(raw: &[u8]) -> Result<Decoded> {
    decode_some(&[raw]).pop().expect("one for one")
}

/// Many at once, in their order; on all cores where there are more than a few.
pub fn decode_all<R: AsRef<[u8]> + Sync>(raws: &[R]) -> Vec<Result<Decoded>> {
    if raws.len() <= TASK { decode_some(raws) } else { raws.par_chunks(TASK).flat_map_iter(decode_some).collect() }
}

/// What one submission has become, and what its submitter gave along to know it by.
pub type Finished<T> = (T, Vec<Result<Decoded>>);

struct Job<T> {
    tag: T,
    raws: Vec<Bytes>,
}

impl<T> Job<T> {
    fn has_blobs(&self) -> bool {
        self.raws.iter().any(|raw| raw.first() == Some(&BLOB_TYPE))
    }
}

/// Submissions that the worker gets in one go, and how many transactions they are.
struct Round<T> {
    jobs: Vec<Job<T>>,
    weight: usize,
}

impl<T> Default for Round<T> {
    fn default() -> Self {
        Round { jobs: Vec::new(), weight: 0 }
    }
}

/// The desk in front of the workers.
pub struct Decoder<T> {
    rounds: Sender<Round<T>>,
    /// To the worker that looks at blobs, which is there from the first of them on.
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

    /// Readable when something is finished.
    pub fn fd(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// Whether it is held: then the worker begins with it when there are enough, or with `start`.
    pub fn submit(&self, tag: T, raws: Vec<Bytes>) -> bool {
        let job = Job { tag, raws };
        let weight = job.raws.len();
        if job.has_blobs() {
            give(self.blob_worker(), Round { jobs: vec![job], weight });
            return false;
        }
        let mut held = self.held();
        if !held.jobs.is_empty() && held.weight + weight > recovered_at_once() {
            give(&self.rounds, mem::take(&mut *held)); // not together with much that came later
        }
        held.weight += weight;
        held.jobs.push(job);
        if held.weight < recovered_at_once() {
            return true;
        }
        give(&self.rounds, mem::take(&mut *held));
        false
    }

    /// Nothing more comes for now: the worker begins with what is held.
    pub fn start(&self) {
        let mut held = self.held();
        if !held.jobs.is_empty() {
            give(&self.rounds, mem::take(&mut *held));
        }
    }

    /// Where no further thread can be had, blobs wait among the others.
    fn blob_worker(&self) -> &Sender<Round<T>> {
        self.with_blobs.get_or_init(|| worker("blobs", self.shared.clone()).unwrap_or_else(|_| self.rounds.clone()))
    }

    fn held(&self) -> MutexGuard<'_, Round<T>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is finished, and `most` of it: the bell goes on ringing for the rest. In the order of submission, but for
    /// blobs.
    pub fn collect(&self, most: usize) -> Vec<Finished<T>> {
        let mut finished = self.shared.lock();
        if finished.len() > most {
            return finished.drain(..most).collect();
        }
        // before the list is let go of: what is finished from then on rings again
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

/// A thread that works until nobody can give it anything any more.
fn worker<T: Send + 'static>(name: &str, shared: Arc<Shared<T>>) -> io::Result<Sender<Round<T>>> {
    let (rounds, waiting) = channel();
    thread::Builder::new().name(name.into()).spawn(move || work(&waiting, &shared))?;
    Ok(rounds)
}

fn give<T>(worker: &Sender<Round<T>>, round: Round<T>) {
    // the worker ends with the desk and not before
    let _ = worker.send(round);
}

fn work<T>(waiting: &Receiver<Round<T>>, shared: &Shared<T>) {
    note_heap();
    let mut next = None;
    while let Some(Round { mut jobs, mut weight }) = next.take().or_else(|| waiting.recv().ok()) {
        // what waits goes along as far as it is recovered at once: the first waits up to twice as long as alone, the
        // last a fraction
        while weight < recovered_at_once()
            && let Ok(round) = waiting.try_recv()
        {
            weight += round.weight;
            if weight > recovered_at_once() {
                next = Some(round);
            } else {
                jobs.extend(round.jobs);
            }
        }
        let raws: Vec<&Bytes> = jobs.iter().flat_map(|job| &job.raws).collect();
        let mut decoded = decode_all(&raws).into_iter();
        let is_first = {
            let mut finished = shared.lock();
            let is_first = finished.is_empty();
            finished.extend(jobs.into_iter().map(|job| (job.tag, decoded.by_ref().take(job.raws.len()).collect())));
            is_first
        };
        // one ring for all that waits; a bell that is full has been heard of
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
    fn those_that_come_together_wait_for_each_other_and_no_longer_than_until_somebody_says_so() {
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
        assert_eq!(next(), ("blobs", 2), "nobody has said yet that nothing comes with the one before");
        if recovered_at_once() > 1 {
            decoder.start();
            assert_eq!(next(), ("held", 1));
        }
    }
}

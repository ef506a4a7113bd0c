//! Transactions decoded and their senders recovered by a thread of our own, while the event loop goes on.
//!
//! ```text
//! submit ──▶ channel ──▶ worker: decode, recover ──▶ finished ──▶ one byte wakes the loop ──▶ collect
//! ```
//!
//! Handing a recovery to a Python thread and back costs the loop as much as the recovery itself. Here a submission is a
//! push, and one wake-up collects everything that is ready by then; nobody waits for the last of a batch. One worker
//! keeps the order of arrival; what arrives as a long list is spread over all cores inside it.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

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

/// What one submission has become, under the number its submitter gave it.
pub type Finished = (u64, Vec<Result<Decoded>>);

struct Job {
    number: u64,
    raws: Vec<Bytes>,
}

/// The desk in front of the worker.
pub struct Decoder {
    jobs: Sender<Job>,
    shared: Arc<Shared>,
    bell: UnixStream,
}

struct Shared {
    finished: Mutex<Vec<Finished>>,
}

impl Decoder {
    pub fn new() -> io::Result<Self> {
        let (bell, ringer) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ringer.set_nonblocking(true)?;
        let (jobs, waiting) = channel();
        let shared = Arc::new(Shared { finished: Mutex::default() });
        let seen = shared.clone();
        thread::Builder::new().name("decode".into()).spawn(move || work(&waiting, &seen, &ringer))?;
        Ok(Decoder { jobs, shared, bell })
    }

    /// Readable when something is finished.
    pub fn fd(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    pub fn submit(&self, number: u64, raws: Vec<Bytes>) {
        // the worker ends with this desk and not before
        let _ = self.jobs.send(Job { number, raws });
    }

    /// Everything that is finished, in the order of submission.
    pub fn collect(&self) -> Vec<Finished> {
        // first the bell, then the list: what is finished in between rings again
        let mut rung = [0; 64];
        while matches!((&self.bell).read(&mut rung), Ok(count) if count == rung.len()) {}
        std::mem::take(&mut *self.shared.lock())
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Finished>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn work(waiting: &Receiver<Job>, shared: &Shared, mut ringer: &UnixStream) {
    note_heap();
    while let Ok(job) = waiting.recv() {
        let decoded = decode_all(&job.raws);
        let is_first = {
            let mut finished = shared.lock();
            finished.push((job.number, decoded));
            finished.len() == 1
        };
        // one ring for all that waits; a bell that is full has been heard of
        if is_first {
            let _ = ringer.write(&[1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn submissions_come_back_under_their_numbers_in_order() {
        let decoder = Decoder::new().expect("a pair of sockets");
        for number in 0..20 {
            decoder.submit(number, vec![Bytes::from_static(b"nonsense"); 1 + number as usize]);
        }
        let mut seen = Vec::new();
        let start = Instant::now();
        while seen.len() < 20 {
            assert!(start.elapsed() < Duration::from_secs(60), "the worker answers");
            seen.extend(decoder.collect());
        }
        for (index, (number, decoded)) in seen.iter().enumerate() {
            assert_eq!(*number, index as u64);
            assert_eq!(decoded.len(), 1 + index);
            assert!(decoded.iter().all(std::result::Result::is_err));
        }
    }
}

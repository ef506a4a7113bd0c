//! Reader side of a trace: a thread fills a bounded channel, and `next` empties it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ophion_primitives::errors::{Error, Result};

use super::sink::{Message, Sink};

/// Maximum number of chunks in the channel. `next` returns all of them at once, because a call of `next` takes longer
/// than filling a chunk.
const MAX_CHUNKS: usize = 4;
/// Stack size in bytes of the tracing thread. revm has its frames on the heap, but the default stack is too small.
const STACK_BYTES: usize = 8 * 1024 * 1024;

pub struct Stream {
    /// Channel from the tracing thread; None after the last message or after `close`.
    channel: Mutex<Option<Channel>>,
    is_closed: Arc<AtomicBool>,
}

struct Channel {
    receiver: Receiver<Message>,
    /// The end message of the trace, if it was received together with the last chunks.
    last: Option<Message>,
}

impl Stream {
    /// Run a trace job on a new thread. Returns the stream of the job's output.
    pub fn start(deadline: Instant, job: impl FnOnce(&mut Sink) -> Result<()> + Send + 'static) -> Result<Self> {
        let (sender, receiver) = sync_channel(MAX_CHUNKS);
        let is_closed = Arc::new(AtomicBool::new(false));
        let mut sink = Sink::new(sender, is_closed.clone(), deadline);
        std::thread::Builder::new()
            .name("trace".into())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let outcome = job(&mut sink);
                sink.finish(outcome);
            })
            .map_err(|cause| Error::Storage(format!("no thread for a trace: {cause}")))?;
        Ok(Stream { channel: Mutex::new(Some(Channel { receiver, last: None })), is_closed })
    }

    /// Wait for the next chunks of the trace. Returns None after the last chunk.
    pub fn next(&self) -> Result<Option<Vec<Vec<u8>>>> {
        let chunks = self.receive();
        // A `close` during `receive` could not drop the channel, because `receive` held the lock. Drop the channel now,
        // or the tracing thread would block.
        if self.is_closed.load(Ordering::SeqCst) {
            self.close();
        }
        chunks
    }

    /// Stop the trace. The thread ends soon.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // if `next` holds the lock, `next` itself drops the channel after reading
        if let Ok(mut channel) = self.channel.try_lock() {
            *channel = None;
        }
    }

    fn receive(&self) -> Result<Option<Vec<Vec<u8>>>> {
        let mut open = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(channel) = open.as_mut() else { return Ok(None) };
        let first = channel.last.take().map_or_else(|| channel.receiver.recv(), Ok);
        match first {
            Ok(Message::Chunk(chunk)) => {
                let mut chunks = vec![chunk];
                while chunks.len() < MAX_CHUNKS {
                    match channel.receiver.try_recv() {
                        Ok(Message::Chunk(chunk)) => chunks.push(chunk),
                        Ok(last) => {
                            channel.last = Some(last);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                return Ok(Some(chunks));
            }
            Ok(Message::End) => *open = None,
            Ok(Message::Failed(cause)) => {
                *open = None;
                return Err(cause);
            }
            Err(_) => {
                *open = None;
                return Err(Error::Storage("the trace ended unexpectedly".into()));
            }
        }
        Ok(None)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::output::sink::CHUNK;

    fn streamed(count: usize, outcome: Result<()>) -> Stream {
        let job = move |sink: &mut Sink| {
            for number in 0..count {
                sink.out.resize(CHUNK, number as u8);
                sink.settle();
            }
            outcome
        };
        Stream::start(Instant::now() + Duration::from_secs(60), job).unwrap()
    }

    /// Return the bytes of all chunks, and the result of the trace.
    fn read(stream: &Stream) -> (Vec<u8>, Result<()>) {
        let mut bytes = Vec::new();
        loop {
            match stream.next() {
                Ok(Some(chunks)) => bytes.extend(chunks.concat()),
                Ok(None) => return (bytes, Ok(())),
                Err(cause) => return (bytes, Err(cause)),
            }
        }
    }

    fn expected(count: usize) -> Vec<u8> {
        (0..count).flat_map(|number| [number as u8; CHUNK]).collect()
    }

    #[test]
    fn chunks_arrive_in_order_and_once_however_many_wait() {
        for count in [0, 1, MAX_CHUNKS, MAX_CHUNKS + 1, 5 * MAX_CHUNKS + 2] {
            let stream = streamed(count, Ok(()));
            let (bytes, end) = read(&stream);
            assert!(bytes == expected(count) && end.is_ok());
            assert!(stream.next().unwrap().is_none());
        }
    }

    #[test]
    fn an_error_comes_after_what_was_written_before_it() {
        for count in [0, 1, MAX_CHUNKS, 2 * MAX_CHUNKS + 1] {
            let (bytes, end) = read(&streamed(count, Err(Error::Storage("gone".into()))));
            assert!(bytes == expected(count) && end.is_err());
        }
    }
}

//! A trace as its reader sees it: a thread of its own fills a bounded channel, `next` empties it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ophion_primitives::errors::{Error, Result};

use super::sink::{Message, Sink};

/// Chunks that wait for the reader.
const WAITING: usize = 4;
/// Deep call chains need no stack of ours (revm keeps its frames on the heap), but a thread's default is little.
const STACK_BYTES: usize = 8 * 1024 * 1024;

pub struct Stream {
    /// None once the trace has ended or was closed.
    channel: Mutex<Option<Receiver<Message>>>,
    is_closed: Arc<AtomicBool>,
}

impl Stream {
    /// Run a job that writes into a sink, in a thread of its own.
    pub fn start(deadline: Instant, job: impl FnOnce(&mut Sink) -> Result<()> + Send + 'static) -> Result<Self> {
        let (sender, receiver) = sync_channel(WAITING);
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
        Ok(Stream { channel: Mutex::new(Some(receiver)), is_closed })
    }

    /// Wait for the next piece; None after the last.
    pub fn next(&self) -> Result<Option<Vec<u8>>> {
        let chunk = self.receive();
        // Closed meanwhile: whoever did so could not take the channel, and the worker would wait for room in it.
        if self.is_closed.load(Ordering::SeqCst) {
            self.close();
        }
        chunk
    }

    /// Nobody reads any more: the thread ends soon.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // Somebody in `next` may hold the lock, and looks at the flag after it.
        if let Ok(mut channel) = self.channel.try_lock() {
            *channel = None;
        }
    }

    fn receive(&self) -> Result<Option<Vec<u8>>> {
        let mut channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(receiver) = channel.as_ref() else { return Ok(None) };
        match receiver.recv() {
            Ok(Message::Chunk(chunk)) => return Ok(Some(chunk)),
            Ok(Message::End) => *channel = None,
            Ok(Message::Failed(cause)) => {
                *channel = None;
                return Err(cause);
            }
            Err(_) => {
                *channel = None;
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

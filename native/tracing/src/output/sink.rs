//! Output of a running trace: chunks of JSON text for the reader.
//!
//! ```text
//! tracer -> Sink (one chunk being filled) -> bounded channel -> TraceStream.next() -> socket
//! ```
//! A full channel blocks the EVM, so a slow reader uses no extra memory. The sink stops when the reader disconnects or
//! the deadline passes. Tracers check the sink at every step and end the run when the sink stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Instant;

use ophion_primitives::deadline;
use ophion_primitives::errors::{Error, Result};
use revm::interpreter::interpreter_types::LoopControl;
use revm::interpreter::{InstructionResult, Interpreter, InterpreterAction, InterpreterTypes};

/// Chunk size in bytes. Several chunks exist at once: in the channel, in Python and in the socket's buffer.
pub const CHUNK: usize = 256 * 1024;
/// Number of traced instructions between two checks of the deadline.
const STEPS_PER_LOOK: u32 = 4096;
/// Number of instructions that `check` counts for a transaction, so that transactions without code also lead to clock
/// checks.
const STEPS_PER_TRANSACTION: u32 = 256;

/// A message from the tracing thread to the reader.
pub enum Message {
    Chunk(Vec<u8>),
    /// The trace is complete. If the channel closes without this message, the tracing thread has panicked.
    End,
    Failed(Error),
}

pub struct Sink {
    /// Buffer to which tracers append their output. Tracers call `settle` regularly, so that a full chunk is sent.
    pub out: Vec<u8>,
    channel: SyncSender<Message>,
    is_closed: Arc<AtomicBool>,
    deadline: Instant,
    steps: u32,
    is_late: bool,
    is_too_large: bool,
    is_stopped: bool,
}

impl Sink {
    pub fn new(channel: SyncSender<Message>, is_closed: Arc<AtomicBool>, deadline: Instant) -> Self {
        Sink {
            out: Vec::with_capacity(CHUNK + CHUNK / 4),
            channel,
            is_closed,
            deadline,
            steps: STEPS_PER_LOOK,
            is_late: false,
            is_too_large: false,
            is_stopped: false,
        }
    }

    /// Make the sink of a tracer that writes no text. The sink stops when `is_closed` is set.
    pub fn without_reader(is_closed: Arc<AtomicBool>) -> Self {
        Sink {
            out: Vec::new(),
            channel: sync_channel(1).0,
            is_closed,
            deadline: deadline::after(f64::INFINITY),
            steps: STEPS_PER_LOOK,
            is_late: false,
            is_too_large: false,
            is_stopped: false,
        }
    }

    /// Send the current chunk to the reader if it is large enough.
    #[inline]
    pub fn settle(&mut self) {
        if self.out.len() >= CHUNK {
            self.flush();
        }
    }

    #[cold]
    fn flush(&mut self) {
        let chunk = std::mem::replace(&mut self.out, Vec::with_capacity(CHUNK + CHUNK / 4));
        if self.is_stopped {
            return;
        }
        match self.channel.try_send(Message::Chunk(chunk)) {
            Ok(()) => {}
            Err(TrySendError::Full(message)) => {
                // measure how long this thread waits for the reader, because this time does not count towards the
                // deadline
                let before = Instant::now();
                self.is_stopped = self.channel.send(message).is_err();
                self.deadline += before.elapsed();
            }
            Err(TrySendError::Disconnected(_)) => self.is_stopped = true,
        }
    }

    /// Return whether the traced run must end: the reader is gone or the deadline has passed. Tracers call this at
    /// every step.
    #[inline]
    pub fn tick(&mut self) -> bool {
        self.steps += 1;
        if self.steps >= STEPS_PER_LOOK {
            self.look();
        }
        self.is_stopped
    }

    #[cold]
    fn look(&mut self) {
        self.steps = 0;
        if self.is_closed.load(Ordering::Relaxed) {
            self.is_stopped = true;
        } else if Instant::now() >= self.deadline {
            self.is_late = true;
            self.is_stopped = true;
        }
    }

    /// End the traced run with an error, because the record of a transaction is too large.
    pub fn stop_as_too_large(&mut self) {
        self.is_too_large = true;
        self.is_stopped = true;
    }

    /// Fail if the reader is gone or the deadline has passed. Callers use this between transactions.
    pub fn check(&mut self) -> Result<()> {
        self.steps += STEPS_PER_TRANSACTION;
        if self.steps >= STEPS_PER_LOOK {
            self.look();
        }
        match self.is_stopped {
            true => Err(self.reason()),
            false => Ok(()),
        }
    }

    fn reason(&self) -> Error {
        if self.is_too_large {
            Error::Storage("limit: the calls of a transaction have too much input and output for a trace".into())
        } else if self.is_late {
            Error::Timeout("the trace took too long".into())
        } else {
            Error::Timeout("the reader of the trace is gone".into())
        }
    }

    /// Send the last message to the reader: the end of the trace, or its error.
    pub fn finish(mut self, outcome: Result<()>) {
        let last = match outcome {
            Ok(()) if self.is_stopped => Message::Failed(self.reason()),
            Ok(()) => {
                if !self.out.is_empty() {
                    self.flush();
                }
                Message::End
            }
            Err(cause) => Message::Failed(cause),
        };
        // sending fails only if the reader is gone, so ignore the error
        let _ = self.channel.send(last);
    }
}

/// End the running EVM frame. The callers of the frame end at their next step.
#[cold]
pub fn halt<W: InterpreterTypes>(interpreter: &mut Interpreter<W>) {
    interpreter.bytecode.set_action(InterpreterAction::new_halt(InstructionResult::OutOfGas, interpreter.gas));
}

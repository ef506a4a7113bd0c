//! Tracers that record a transaction and write their output after the transaction has ended.

use alloy_primitives::Log;
use ophion_execution::evm::context::EvmContext;
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use revm::context::TxEnv;
use revm::inspector::Inspector;
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter};

use super::block::{Ran, Tracer};
use crate::output::sink::{Sink, halt};

/// Maximum size in bytes of the inputs and outputs of one recorded transaction. Gas does not limit this size: a loop
/// may pass the same memory to thousands of calls, and each record has a copy.
pub const MAX_RECORD_BYTES: usize = 256 * 1024 * 1024;

/// An inspector that records a transaction.
pub trait Recorder: Inspector<EvmContext> {
    /// Discard the record of the previous transaction.
    fn clear(&mut self);

    /// Return the size of the recorded inputs and outputs, in bytes.
    fn held_bytes(&self) -> usize;
}

/// Writes the trace of a recorded transaction.
pub trait Report {
    type Recorder: Recorder;

    fn write(&mut self, sink: &mut Sink, recorder: &mut Self::Recorder, ran: &Ran);

    /// Write the state changes of the transaction. The database argument still shows the state before the transaction.
    fn write_changes(&mut self, _: &mut ExecDb, _: &Ran) -> Result<()> {
        Ok(())
    }
}

/// A tracer made of a recorder of transactions and a writer of the records.
pub struct Recording<'s, R: Report> {
    sink: &'s mut Sink,
    recorder: R::Recorder,
    report: R,
}

impl<'s, R: Report> Recording<'s, R> {
    pub fn new(sink: &'s mut Sink, recorder: R::Recorder, report: R) -> Self {
        Recording { sink, recorder, report }
    }

    pub fn report(&mut self) -> &mut R {
        &mut self.report
    }

    /// Fail if the output has stopped: the reader is gone, the deadline has passed, or a record is too large.
    pub fn check(&mut self) -> Result<()> {
        self.sink.check()
    }

    fn check_size(&mut self) {
        if self.recorder.held_bytes() > MAX_RECORD_BYTES {
            self.sink.stop_as_too_large();
        }
    }
}

/// Forwards every hook to the recorder, and stops the run when the output sink stops.
impl<R: Report> Inspector<EvmContext> for Recording<'_, R> {
    fn initialize_interp(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        self.recorder.initialize_interp(interpreter, context);
    }

    #[inline]
    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        if self.sink.tick() {
            halt(interpreter);
            return;
        }
        self.recorder.step(interpreter, context);
    }

    #[inline]
    fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        self.recorder.step_end(interpreter, context);
    }

    fn log(&mut self, context: &mut EvmContext, log: Log) {
        self.recorder.log(context, log);
    }

    fn call(&mut self, context: &mut EvmContext, inputs: &mut CallInputs) -> Option<CallOutcome> {
        self.check_size();
        self.recorder.call(context, inputs)
    }

    fn call_end(&mut self, context: &mut EvmContext, inputs: &CallInputs, outcome: &mut CallOutcome) {
        self.recorder.call_end(context, inputs, outcome);
    }

    fn create(&mut self, context: &mut EvmContext, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        self.check_size();
        self.recorder.create(context, inputs)
    }

    fn create_end(&mut self, context: &mut EvmContext, inputs: &CreateInputs, outcome: &mut CreateOutcome) {
        self.recorder.create_end(context, inputs, outcome);
    }
}

impl<R: Report> Tracer for Recording<'_, R> {
    fn sink(&mut self) -> &mut Sink {
        self.sink
    }

    fn begin(&mut self, _: &TxEnv) {
        self.recorder.clear();
    }

    fn finish(&mut self, db: &mut ExecDb, ran: &Ran) -> Result<()> {
        self.report.write(self.sink, &mut self.recorder, ran);
        self.report.write_changes(db, ran)?;
        self.sink.settle();
        Ok(())
    }
}

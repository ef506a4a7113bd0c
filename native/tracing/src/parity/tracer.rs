//! trace_replay* and trace_call*: flat traces, vmTrace and stateDiff of one transaction (json-rpc.md 7.3).

use ophion_execution::evm::context::EvmContext;
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use ophion_primitives::json::{data, raw};
use revm::context::TxEnv;
use revm::context_interface::result::ExecutionResult;
use revm::inspector::Inspector;
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter};
use revm::primitives::hardfork::SpecId;

use super::state_diff::write_state_diff;
use crate::flat::besu_flat_traces::list;
use crate::flat::call_events::{CallEvents, precompile_price};
use crate::flat::entries::write_list;
use crate::output::sink::{Sink, halt};
use crate::parity::vm_trace::VmWriter;
use crate::replay::block::{Ran, Tracer};
use crate::replay::recording::Recorder;

#[derive(Clone, Copy)]
pub struct ParityOptions {
    pub with_trace: bool,
    pub with_vm_trace: bool,
    pub with_state_diff: bool,
}

pub struct ParityTracer<'s> {
    sink: &'s mut Sink,
    events: Option<CallEvents>,
    vm: Option<VmWriter>,
    is_surveying: bool,
    pub options: ParityOptions,
}

impl<'s> ParityTracer<'s> {
    pub fn new(sink: &'s mut Sink, options: ParityOptions, spec: SpecId) -> Self {
        let mut tracer = ParityTracer { sink, events: None, vm: None, is_surveying: false, options };
        tracer.change(options, spec);
        tracer
    }

    /// Set the options of trace_replay* for the next transaction.
    pub fn change(&mut self, options: ParityOptions, spec: SpecId) {
        self.events = options.with_trace.then(CallEvents::default);
        self.vm = options.with_vm_trace.then(|| VmWriter::new(spec));
        self.options = options;
    }

    /// Return the recorder of call events. Returns None if no flat traces are selected, and during the first of two
    /// runs, which writes nothing.
    fn events(&mut self) -> Option<&mut CallEvents> {
        self.events.as_mut().filter(|_| !self.is_surveying)
    }
}

impl Inspector<EvmContext> for ParityTracer<'_> {
    fn initialize_interp(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        if let Some(vm) = &mut self.vm {
            vm.open(interpreter);
        }
        if let Some(events) = self.events() {
            events.initialize_interp(interpreter, context);
        }
    }

    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        if self.sink.tick() {
            halt(interpreter);
            return;
        }
        if let Some(events) = self.events() {
            events.step(interpreter, context);
        }
        if let Some(vm) = &mut self.vm {
            vm.step(interpreter, context);
        }
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        if let Some(events) = self.events() {
            events.step_end(interpreter, context);
        }
        if let Some(vm) = &mut self.vm {
            vm.step_end(self.sink, interpreter);
        }
    }

    fn call(&mut self, context: &mut EvmContext, inputs: &mut CallInputs) -> Option<CallOutcome> {
        if let Some(vm) = &mut self.vm {
            vm.enter(None);
        }
        self.events().and_then(|events| events.call(context, inputs))
    }

    fn call_end(&mut self, context: &mut EvmContext, inputs: &CallInputs, outcome: &mut CallOutcome) {
        if let Some(vm) = &mut self.vm {
            vm.leave(&outcome.result, precompile_price(context, inputs, outcome), false);
        }
        if let Some(events) = self.events() {
            events.call_end(context, inputs, outcome);
        }
    }

    fn create(&mut self, context: &mut EvmContext, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        if let Some(vm) = &mut self.vm {
            vm.enter(Some(inputs.init_code()));
        }
        self.events().and_then(|events| events.create(context, inputs))
    }

    fn create_end(&mut self, context: &mut EvmContext, inputs: &CreateInputs, outcome: &mut CreateOutcome) {
        if let Some(vm) = &mut self.vm {
            vm.leave(&outcome.result, None, true);
        }
        if let Some(events) = self.events() {
            events.create_end(context, inputs, outcome);
        }
    }
}

impl Tracer for ParityTracer<'_> {
    fn sink(&mut self) -> &mut Sink {
        self.sink
    }

    fn begin_survey(&mut self) -> bool {
        self.is_surveying = self.vm.is_some();
        if let Some(vm) = &mut self.vm {
            vm.begin_survey();
        }
        self.is_surveying
    }

    fn begin(&mut self, tx: &TxEnv) {
        self.is_surveying = false;
        if let Some(events) = &mut self.events {
            events.clear();
        }
        match &mut self.vm {
            Some(vm) => vm.begin(self.sink, tx.kind.is_create().then_some(&tx.data)),
            None => raw(&mut self.sink.out, "{\"vmTrace\":null"),
        }
    }

    fn finish(&mut self, db: &mut ExecDb, ran: &Ran) -> Result<()> {
        if let Some(vm) = &mut self.vm {
            vm.finish(self.sink);
        }
        raw(&mut self.sink.out, ",\"trace\":");
        let entries = self.events.as_ref().map(|events| list(events, &ran.tx, &ran.result)).unwrap_or_default();
        write_list(self.sink, &entries, ran.place.is_some());
        let out = &mut self.sink.out;
        let output = ran.result.output().cloned().unwrap_or_default();
        match (&ran.place, ran.result.is_success()) {
            // the trace of a mined transaction shows no revert data as output, but the trace of a call does
            (Some(place), false) => {
                data(out, ",\"output\":\"0x\",\"transactionHash\":", place.hash);
                if matches!(ran.result, ExecutionResult::Revert { .. }) {
                    data(out, ",\"revertReason\":", output);
                }
            }
            (Some(place), true) => {
                data(out, ",\"transactionHash\":", place.hash);
                data(out, ",\"output\":", output);
            }
            (None, _) => data(out, ",\"output\":", output),
        }
        raw(out, ",\"stateDiff\":");
        if self.options.with_state_diff {
            write_state_diff(self.sink, db, &ran.changes)?;
        } else {
            raw(out, "null");
        }
        raw(&mut self.sink.out, "}");
        self.sink.settle();
        Ok(())
    }
}

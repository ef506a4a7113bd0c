//! trace_replay* and trace_call*: flat traces, vmTrace and stateDiff of one transaction (json-rpc.md 7.3).

use std::collections::BTreeMap;

use alloy_primitives::{Address, KECCAK256_EMPTY};
use revm::context::TxEnv;
use revm::inspector::Inspector;
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter};
use revm::primitives::hardfork::SpecId;
use revm::state::{Account, AccountInfo, EvmState};

use crate::errors::Result;
use crate::evm::EvmContext;
use crate::exec_db::ExecDb;
use crate::json_text::{data, quantity, raw, wide};
use crate::trace_flat;
use crate::trace_frames::FrameRecorder;
use crate::trace_geth::code_of;
use crate::trace_replay::{Ran, Tracer};
use crate::trace_sink::{Sink, halt};
use crate::trace_vm::VmWriter;

#[derive(Clone, Copy)]
pub struct ParityOptions {
    pub with_trace: bool,
    pub with_vm_trace: bool,
    pub with_state_diff: bool,
}

pub struct ParityTracer<'s> {
    sink: &'s mut Sink,
    recorder: FrameRecorder,
    vm: Option<VmWriter>,
    pub options: ParityOptions,
}

impl<'s> ParityTracer<'s> {
    pub fn new(sink: &'s mut Sink, options: ParityOptions, spec: SpecId) -> Self {
        let vm = options.with_vm_trace.then(|| VmWriter::new(spec));
        ParityTracer { sink, recorder: FrameRecorder::new(false, false), vm, options }
    }

    /// The next transaction is traced in another way.
    pub fn change(&mut self, options: ParityOptions, spec: SpecId) {
        self.vm = options.with_vm_trace.then(|| VmWriter::new(spec));
        self.options = options;
    }
}

impl Inspector<EvmContext> for ParityTracer<'_> {
    fn initialize_interp(&mut self, interpreter: &mut Interpreter, _: &mut EvmContext) {
        if let Some(vm) = &mut self.vm {
            vm.open(self.sink, interpreter);
        }
    }

    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        if self.sink.tick() {
            halt(interpreter);
            return;
        }
        self.recorder.step(interpreter, context);
        if let Some(vm) = &mut self.vm {
            vm.step(self.sink, interpreter, context);
        }
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        self.recorder.step_end(interpreter, context);
        if let Some(vm) = &mut self.vm {
            vm.step_end(self.sink, interpreter);
        }
    }

    fn call(&mut self, context: &mut EvmContext, inputs: &mut CallInputs) -> Option<CallOutcome> {
        if let Some(vm) = &mut self.vm {
            vm.enter();
        }
        self.recorder.call(context, inputs)
    }

    fn call_end(&mut self, context: &mut EvmContext, inputs: &CallInputs, outcome: &mut CallOutcome) {
        if let Some(vm) = &mut self.vm {
            vm.leave(self.sink, &outcome.result, outcome.was_precompile_called);
        }
        self.recorder.call_end(context, inputs, outcome);
    }

    fn create(&mut self, context: &mut EvmContext, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        if let Some(vm) = &mut self.vm {
            vm.enter();
        }
        self.recorder.create(context, inputs)
    }

    fn create_end(&mut self, context: &mut EvmContext, inputs: &CreateInputs, outcome: &mut CreateOutcome) {
        if let Some(vm) = &mut self.vm {
            vm.leave(self.sink, &outcome.result, false);
        }
        self.recorder.create_end(context, inputs, outcome);
    }
}

impl Tracer for ParityTracer<'_> {
    fn sink(&mut self) -> &mut Sink {
        self.sink
    }

    fn begin(&mut self, _: &TxEnv) {
        self.recorder.clear();
        match &mut self.vm {
            Some(vm) => vm.begin(self.sink),
            None => raw(&mut self.sink.out, "{\"vmTrace\":null"),
        }
    }

    fn finish(&mut self, db: &mut ExecDb, ran: &Ran) -> Result<()> {
        raw(&mut self.sink.out, ",\"trace\":");
        let frames = if self.options.with_trace { &self.recorder.frames[..] } else { &[] };
        trace_flat::write_list(self.sink, frames, false, None)?;
        let out = &mut self.sink.out;
        let output = ran.result.output().cloned().unwrap_or_default();
        data(out, ",\"output\":", output);
        if let Some(place) = &ran.place {
            data(out, ",\"transactionHash\":", place.hash);
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

/// What a transaction changed, account by account; accounts that stayed as they were are left out.
fn write_state_diff(sink: &mut Sink, db: &mut ExecDb, changes: &EvmState) -> Result<()> {
    let accounts: BTreeMap<&Address, &Account> = changes.iter().filter(|(_, account)| account.is_touched()).collect();
    let mut comma = "";
    raw(&mut sink.out, "{");
    for (address, account) in accounts {
        let before = db.info(address)?;
        let is_gone = account.is_selfdestructed() || (account.info.is_empty() && !account.is_created());
        let after = (!is_gone).then_some(&account.info);
        let changed_slots = account.storage.values().any(|slot| slot.is_changed());
        if !differ(before.as_ref(), after) && (is_gone || !changed_slots) {
            continue;
        }
        let out = &mut sink.out;
        data(out, comma, address);
        comma = ",";
        raw(out, ":{\"balance\":");
        let balance = |info: &AccountInfo, out: &mut Vec<u8>| wide(out, "", info.balance);
        delta(out, before.as_ref(), after, |a, b| a.balance == b.balance, balance);
        raw(out, ",\"nonce\":");
        let nonce = |info: &AccountInfo, out: &mut Vec<u8>| quantity(out, "", info.nonce);
        delta(out, before.as_ref(), after, |a, b| a.nonce == b.nonce, nonce);
        raw(out, ",\"code\":");
        let code_before = before.as_ref().map(|info| code_text(db, info)).transpose()?;
        let code_after = after.map(|info| code_text(db, info)).transpose()?;
        delta(out, code_before.as_ref(), code_after.as_ref(), |a, b| a == b, |code, out| out.extend_from_slice(code));
        raw(out, ",\"storage\":{");
        if after.is_some() {
            write_slots(out, account, before.is_none());
        }
        raw(out, "}}");
        sink.settle();
    }
    raw(&mut sink.out, "}");
    Ok(())
}

fn write_slots(out: &mut Vec<u8>, account: &Account, is_new: bool) {
    let slots: BTreeMap<_, _> = account.storage.iter().filter(|(_, slot)| slot.is_changed()).collect();
    for (at, (key, slot)) in slots.into_iter().enumerate() {
        data(out, if at > 0 { "," } else { "" }, key.to_be_bytes::<32>());
        let value = slot.present_value.to_be_bytes::<32>();
        if is_new {
            data(out, ":{\"+\":", value);
            out.push(b'}');
        } else {
            data(out, ":{\"*\":{\"from\":", slot.original_value.to_be_bytes::<32>());
            data(out, ",\"to\":", value);
            raw(out, "}}");
        }
    }
}

fn differ(before: Option<&AccountInfo>, after: Option<&AccountInfo>) -> bool {
    match (before, after) {
        (Some(a), Some(b)) => a.balance != b.balance || a.nonce != b.nonce || a.code_hash != b.code_hash,
        (None, None) => false,
        _ => true,
    }
}

fn code_text(db: &mut ExecDb, info: &AccountInfo) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match info.code_hash == KECCAK256_EMPTY {
        true => data(&mut out, "", []),
        false => data(&mut out, "", code_of(db, info)?),
    }
    Ok(out)
}

fn delta<T>(
    out: &mut Vec<u8>,
    before: Option<&T>,
    after: Option<&T>,
    is_same: impl Fn(&T, &T) -> bool,
    write: impl Fn(&T, &mut Vec<u8>),
) {
    match (before, after) {
        (Some(a), Some(b)) if is_same(a, b) => raw(out, "\"=\""),
        (Some(a), Some(b)) => {
            raw(out, "{\"*\":{\"from\":");
            write(a, out);
            raw(out, ",\"to\":");
            write(b, out);
            raw(out, "}}");
        }
        (None, Some(b)) => {
            raw(out, "{\"+\":");
            write(b, out);
            raw(out, "}");
        }
        (Some(a), None) => {
            raw(out, "{\"-\":");
            write(a, out);
            raw(out, "}");
        }
        (None, None) => raw(out, "\"=\""),
    }
}

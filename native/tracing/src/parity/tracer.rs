//! trace_replay* and trace_call*: flat traces, vmTrace and stateDiff of one transaction (json-rpc.md 7.3).

use std::collections::BTreeMap;

use alloy_primitives::{Address, KECCAK256_EMPTY};
use ophion_execution::evm::context::EvmContext;
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use ophion_primitives::json::{data, quantity, raw, wide};
use revm::context::TxEnv;
use revm::context_interface::result::ExecutionResult;
use revm::inspector::Inspector;
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter};
use revm::primitives::hardfork::SpecId;
use revm::state::{Account, AccountInfo, EvmState};

use crate::calls::tree::code_of;
use crate::flat::blocks::write_list;
use crate::flat::listing::list;
use crate::flat::turns::{Turns, precompile_price};
use crate::output::sink::{Sink, halt};
use crate::parity::vm::VmWriter;
use crate::replay::block::{Ran, Tracer};

#[derive(Clone, Copy)]
pub struct ParityOptions {
    pub with_trace: bool,
    pub with_vm_trace: bool,
    pub with_state_diff: bool,
}

pub struct ParityTracer<'s> {
    sink: &'s mut Sink,
    turns: Option<Turns>,
    vm: Option<VmWriter>,
    is_surveying: bool,
    pub options: ParityOptions,
}

impl<'s> ParityTracer<'s> {
    pub fn new(sink: &'s mut Sink, options: ParityOptions, spec: SpecId) -> Self {
        let mut tracer = ParityTracer { sink, turns: None, vm: None, is_surveying: false, options };
        tracer.change(options, spec);
        tracer
    }

    /// The next transaction is traced in another way.
    pub fn change(&mut self, options: ParityOptions, spec: SpecId) {
        self.turns = options.with_trace.then(Turns::default);
        self.vm = options.with_vm_trace.then(|| VmWriter::new(spec));
        self.options = options;
    }

    /// Who records the turns of the run that is written.
    fn turns(&mut self) -> Option<&mut Turns> {
        self.turns.as_mut().filter(|_| !self.is_surveying)
    }
}

impl Inspector<EvmContext> for ParityTracer<'_> {
    fn initialize_interp(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        if let Some(vm) = &mut self.vm {
            vm.open(interpreter);
        }
        if let Some(turns) = self.turns() {
            turns.initialize_interp(interpreter, context);
        }
    }

    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        if self.sink.tick() {
            halt(interpreter);
            return;
        }
        if let Some(turns) = self.turns() {
            turns.step(interpreter, context);
        }
        if let Some(vm) = &mut self.vm {
            vm.step(interpreter, context);
        }
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        if let Some(turns) = self.turns() {
            turns.step_end(interpreter, context);
        }
        if let Some(vm) = &mut self.vm {
            vm.step_end(self.sink, interpreter);
        }
    }

    fn call(&mut self, context: &mut EvmContext, inputs: &mut CallInputs) -> Option<CallOutcome> {
        if let Some(vm) = &mut self.vm {
            vm.enter(None);
        }
        self.turns().and_then(|turns| turns.call(context, inputs))
    }

    fn call_end(&mut self, context: &mut EvmContext, inputs: &CallInputs, outcome: &mut CallOutcome) {
        if let Some(vm) = &mut self.vm {
            vm.leave(&outcome.result, precompile_price(context, inputs, outcome), false);
        }
        if let Some(turns) = self.turns() {
            turns.call_end(context, inputs, outcome);
        }
    }

    fn create(&mut self, context: &mut EvmContext, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        if let Some(vm) = &mut self.vm {
            vm.enter(Some(inputs.init_code()));
        }
        self.turns().and_then(|turns| turns.create(context, inputs))
    }

    fn create_end(&mut self, context: &mut EvmContext, inputs: &CreateInputs, outcome: &mut CreateOutcome) {
        if let Some(vm) = &mut self.vm {
            vm.leave(&outcome.result, None, true);
        }
        if let Some(turns) = self.turns() {
            turns.create_end(context, inputs, outcome);
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
        if let Some(turns) = &mut self.turns {
            turns.clear();
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
        let entries = self.turns.as_ref().map(|turns| list(turns, &ran.tx, &ran.result)).unwrap_or_default();
        write_list(self.sink, &entries, ran.place.is_some());
        let out = &mut self.sink.out;
        let output = ran.result.output().cloned().unwrap_or_default();
        match (&ran.place, ran.result.is_success()) {
            // What a mined transaction reverted with is no output of it; a call has no other place for it.
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

//! Struct logs in the form of Besu: one row per instruction, written as it runs (json-rpc.md 5.9).
//!
//! A struct log row shows gas, stack and memory before its instruction, and storage after the instruction. `step`
//! writes the first part of the row before the instruction runs, and `step_end` writes the rest. So the tracer copies
//! neither stack nor memory. It keeps only the storage slots that were written.

use std::collections::BTreeMap;

use alloy_primitives::map::AddressMap;
use alloy_primitives::{Address, U256};
use ophion_execution::evm::context::EvmContext;
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use ophion_primitives::json::{decimal, raw};
use revm::bytecode::opcode::SSTORE;
use revm::context::TxEnv;
use revm::inspector::Inspector;
use revm::interpreter::interpreter_types::{InputsTr, Jumps, RuntimeFlag};
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, InstructionResult, Interpreter};
use revm::primitives::hardfork::SpecId;

use super::instruction_cost::Costs;
use super::rows::{CalleeGas, StepEnd, verdict};
use crate::output::opcode_names::besu_mnemonic;
use crate::output::sink::{Sink, halt};
use crate::output::text::{digits, word};
use crate::output::word_list::Repeated;
use crate::replay::block::{Ran, Tracer};

#[derive(Clone, Copy)]
pub struct StructOptions {
    pub with_storage: bool,
    pub with_memory: bool,
    pub with_stack: bool,
}

pub struct StructTracer<'s> {
    sink: &'s mut Sink,
    options: StructOptions,
    rows: u64,
    frames: Vec<Frame>,
    storage: Storage,
    /// Gas before the instruction whose row is half written.
    gas_before: u64,
    opcode: u8,
    write: Option<(U256, U256)>,
    whole_cost: u64,
    costs: Costs,
    shown_stack: Repeated<U256>,
    shown_memory: Repeated<[u8; 32]>,
}

struct Frame {
    has_rows: bool,
    /// Length of `history` at the start of the frame.
    mark: usize,
}

/// Written storage slots by account, and the cached JSON text of the account written last.
#[derive(Default)]
struct Storage {
    written: AddressMap<BTreeMap<U256, U256>>,
    /// Previous values of slots, which are restored when a frame fails.
    history: Vec<(Address, U256, Option<U256>)>,
    shown: Option<Address>,
    text: Vec<u8>,
}

impl Storage {
    fn write(&mut self, account: Address, slot: U256, value: U256) {
        let before = self.written.entry(account).or_default().insert(slot, value);
        self.history.push((account, slot, before));
        self.shown = None;
    }

    fn undo_to(&mut self, mark: usize) {
        for (account, slot, before) in self.history.drain(mark..).rev() {
            let slots = self.written.entry(account).or_default();
            match before {
                Some(value) => slots.insert(slot, value),
                None => slots.remove(&slot),
            };
            self.shown = None;
        }
    }

    fn text_of(&mut self, account: Address) -> &[u8] {
        if self.shown != Some(account) {
            self.shown = Some(account);
            self.text.clear();
            self.text.push(b'{');
            for (at, (slot, value)) in self.written.get(&account).into_iter().flatten().enumerate() {
                if at > 0 {
                    self.text.push(b',');
                }
                self.text.extend_from_slice(&word(slot.to_be_bytes()));
                self.text.push(b':');
                self.text.extend_from_slice(&word(value.to_be_bytes()));
            }
            self.text.push(b'}');
        }
        &self.text
    }
}

impl<'s> StructTracer<'s> {
    pub fn new(sink: &'s mut Sink, options: StructOptions, spec: SpecId) -> Self {
        StructTracer {
            sink,
            options,
            rows: 0,
            frames: Vec::new(),
            storage: Storage::default(),
            gas_before: 0,
            opcode: 0,
            write: None,
            whole_cost: 0,
            costs: Costs::of(spec),
            shown_stack: Repeated::default(),
            shown_memory: Repeated::default(),
        }
    }

    fn head(&mut self, pc: usize, op: &str, gas: u64, depth: usize) {
        let out = &mut self.sink.out;
        if self.rows > 0 {
            out.push(b',');
        }
        self.rows += 1;
        decimal(out, "{\"pc\":", pc as u64);
        raw(out, ",\"op\":\"");
        raw(out, op);
        decimal(out, "\",\"gas\":", gas);
        decimal(out, ",\"depth\":", depth as u64);
    }

    fn stack(&mut self, stack: &[U256]) {
        let out = &mut self.sink.out;
        if !self.options.with_stack {
            raw(out, ",\"stack\":null");
            return;
        }
        raw(out, ",\"stack\":");
        self.shown_stack.write(out, stack);
    }

    fn memory(&mut self, memory: &[u8]) {
        let out = &mut self.sink.out;
        if !self.options.with_memory {
            raw(out, ",\"memory\":null");
            return;
        }
        raw(out, ",\"memory\":");
        self.shown_memory.write(out, memory.as_chunks().0);
    }

    fn tail(&mut self, account: Address, ended: &StepEnd) {
        let out = &mut self.sink.out;
        decimal(out, ",\"gasCost\":", ended.cost);
        raw(out, ",\"storage\":");
        if self.options.with_storage {
            out.extend_from_slice(self.storage.text_of(account));
        } else {
            raw(out, "null");
        }
        match &ended.reason {
            Some(bytes) => digits(out, ",\"reason\":", bytes),
            None => raw(out, ",\"reason\":null"),
        }
        ended.close(out);
        self.sink.settle();
    }

    fn enter(&mut self) {
        self.frames.push(Frame { has_rows: false, mark: self.storage.history.len() });
    }

    fn leave(&mut self, is_kept: bool) {
        let frame = self.frames.pop().expect("every frame that ends has begun");
        if !is_kept {
            self.storage.undo_to(frame.mark);
        }
    }
}

impl Inspector<EvmContext> for StructTracer<'_> {
    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        if self.sink.tick() {
            halt(interpreter);
            return;
        }
        let depth = self.frames.len();
        if let Some(frame) = self.frames.last_mut() {
            frame.has_rows = true;
        }
        self.opcode = interpreter.bytecode.opcode();
        self.gas_before = interpreter.gas.remaining();
        let name = besu_mnemonic(self.opcode, interpreter.runtime_flag.spec_id());
        self.head(interpreter.bytecode.pc(), name, self.gas_before, depth);
        let stack = interpreter.stack.data();
        self.write = match &stack[..] {
            [.., value, slot] if self.opcode == SSTORE => Some((*slot, *value)),
            _ => None,
        };
        self.whole_cost = self.costs.next(self.opcode, self.gas_before, interpreter, context);
        self.stack(interpreter.stack.data());
        self.memory(&interpreter.memory.context_memory());
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, _: &mut EvmContext) {
        let ended = StepEnd::of(interpreter, self.opcode, self.gas_before, self.whole_cost, CalleeGas::IsApart);
        let account = interpreter.input.target_address();
        if let Some((slot, value)) = self.write.take()
            && ended.error.is_none()
        {
            self.storage.write(account, slot, value);
        }
        self.tail(account, &ended);
    }

    fn call(&mut self, _: &mut EvmContext, _: &mut CallInputs) -> Option<CallOutcome> {
        self.enter();
        None
    }

    fn call_end(&mut self, _: &mut EvmContext, inputs: &CallInputs, outcome: &mut CallOutcome) {
        // Show a call of an account without code as a single STOP instruction.
        let is_bare = outcome.result.result == InstructionResult::Stop && !outcome.was_precompile_called;
        if is_bare && self.frames.last().is_some_and(|frame| !frame.has_rows) {
            self.head(0, "STOP", inputs.gas_limit, self.frames.len());
            self.stack(&[]);
            self.memory(&[]);
            self.tail(inputs.target_address, &StepEnd::default());
        }
        self.leave(outcome.result.is_ok());
    }

    fn create(&mut self, _: &mut EvmContext, _: &mut CreateInputs) -> Option<CreateOutcome> {
        self.enter();
        None
    }

    fn create_end(&mut self, _: &mut EvmContext, _: &CreateInputs, outcome: &mut CreateOutcome) {
        self.leave(outcome.result.is_ok());
    }
}

impl Tracer for StructTracer<'_> {
    fn sink(&mut self) -> &mut Sink {
        self.sink
    }

    fn begin(&mut self, _: &TxEnv) {
        self.rows = 0;
        self.frames.clear();
        self.storage = Storage::default();
        raw(&mut self.sink.out, "{\"structLogs\":[");
    }

    fn finish(&mut self, _: &mut ExecDb, ran: &Ran) -> Result<()> {
        let out = &mut self.sink.out;
        let output = verdict(out, ran);
        digits(out, ",\"returnValue\":", output);
        out.push(b'}');
        self.sink.settle();
        Ok(())
    }
}

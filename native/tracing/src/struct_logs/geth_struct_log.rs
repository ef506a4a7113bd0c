//! Struct logs in the form of geth, selected by geth's options (json-rpc.md 5.9 [M], 9 line 20).
//!
//! The form differs from Besu's (besu_struct_log.rs): empty keys are omitted, stack numbers are short, only rows that
//! access storage show storage, and the cost of a call includes the gas passed to the callee.

use std::collections::BTreeMap;

use alloy_primitives::map::AddressMap;
use alloy_primitives::{Address, U256};
use ophion_execution::evm::context::EvmContext;
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use ophion_primitives::json::{data, decimal, list, raw, wide};
use revm::bytecode::opcode::{OpCode, SLOAD, SSTORE};
use revm::context::TxEnv;
use revm::inspector::Inspector;
use revm::interpreter::interpreter_types::{InputsTr, Jumps, ReturnData, RuntimeFlag};
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, InstructionResult, Interpreter};
use revm::primitives::hardfork::SpecId;

use super::rows::{CalleeGas, StepEnd, verdict};
use crate::output::opcode_names::mnemonic;
use crate::output::sink::{Sink, halt};
use crate::replay::block::{Ran, Tracer};
use crate::struct_logs::instruction_cost::Costs;

#[derive(Clone, Copy)]
pub struct StandardOptions {
    pub with_storage: bool,
    pub with_memory: bool,
    pub with_stack: bool,
    pub with_return_data: bool,
    /// Maximum number of struct log rows.
    pub limit: Option<u64>,
    /// If set, only the row at this position is written. This row shows all slots that the account has accessed so far.
    pub only: Option<u64>,
    pub opcodes: Option<OpcodeSet>,
}

/// A set of opcodes, with one bit per opcode.
#[derive(Clone, Copy, Default)]
pub struct OpcodeSet([u64; 4]);

impl OpcodeSet {
    /// Select instructions by name, case-insensitively; unknown names are ignored.
    pub fn of(names: &[String]) -> Self {
        let mut set = OpcodeSet::default();
        for opcode in 0..=u8::MAX {
            let known = OpCode::new(opcode).map(OpCode::as_str);
            if known.is_some_and(|known| names.iter().any(|name| name.eq_ignore_ascii_case(known))) {
                set.0[usize::from(opcode / 64)] |= 1 << (opcode % 64);
            }
        }
        set
    }

    fn contains(&self, opcode: u8) -> bool {
        self.0[usize::from(opcode / 64)] & 1 << (opcode % 64) != 0
    }
}

pub struct StandardTracer<'s> {
    sink: &'s mut Sink,
    options: StandardOptions,
    costs: Costs,
    rows: u64,
    /// Number of instructions of the transaction so far.
    position: u64,
    is_truncated: bool,
    frames: Vec<Frame>,
    /// Slots read or written so far, by account. They stay even if a frame fails.
    storage: AddressMap<BTreeMap<U256, U256>>,
    /// Whether the previous instruction was selected. If so, the next instruction also gets a row, which shows the
    /// effect of the selected instruction.
    was_selected: bool,
    /// Opcode of the current instruction.
    opcode: u8,
    gas_before: u64,
    whole_cost: u64,
    /// Gas refund of the transaction after the current instruction.
    refund: i64,
    slot: Option<(U256, U256)>,
    is_half_written: bool,
}

struct Frame {
    has_run: bool,
    /// Gas refund that the callers had collected at the start of the frame.
    refund: i64,
}

impl<'s> StandardTracer<'s> {
    pub fn new(sink: &'s mut Sink, options: StandardOptions, spec: SpecId) -> Self {
        StandardTracer {
            sink,
            options,
            costs: Costs::of(spec),
            rows: 0,
            position: 0,
            is_truncated: false,
            frames: Vec::new(),
            storage: AddressMap::default(),
            was_selected: false,
            opcode: 0,
            gas_before: 0,
            whole_cost: 0,
            refund: 0,
            slot: None,
            is_half_written: false,
        }
    }

    /// Count an instruction, and return whether it gets a struct log row.
    fn is_selected(&mut self, opcode: u8) -> bool {
        self.position += 1;
        if let Some(only) = self.options.only {
            return self.position == only.saturating_add(1);
        }
        if let Some(opcodes) = &self.options.opcodes {
            let is_asked_for = opcodes.contains(opcode);
            if !std::mem::replace(&mut self.was_selected, is_asked_for) && !is_asked_for {
                return false;
            }
        }
        if self.options.limit.is_some_and(|limit| self.rows >= limit) {
            self.is_truncated = true;
            return false;
        }
        true
    }

    fn head(&mut self, pc: usize, op: &str, gas: u64) {
        let depth = self.frames.len() as u64;
        let out = &mut self.sink.out;
        raw(out, if self.rows > 0 { "," } else { "" });
        self.rows += 1;
        decimal(out, "{\"pc\":", pc as u64);
        raw(out, ",\"op\":\"");
        raw(out, op);
        decimal(out, "\",\"gas\":", gas);
        decimal(out, ",\"depth\":", depth);
    }

    fn stack(&mut self, stack: &[U256]) {
        if self.options.with_stack {
            list(&mut self.sink.out, ",\"stack\":", stack, |out, item| wide(out, "", *item));
        }
    }

    fn memory(&mut self, memory: &[u8]) {
        if self.options.with_memory && !memory.is_empty() {
            let words: Vec<&[u8]> = memory.chunks_exact(32).collect();
            list(&mut self.sink.out, ",\"memory\":", &words, |out, word| data(out, "", word));
        }
    }

    fn tail(&mut self, account: Address, ended: &StepEnd) {
        let out = &mut self.sink.out;
        decimal(out, ",\"gasCost\":", ended.cost);
        if self.refund > 0 {
            decimal(out, ",\"refund\":", self.refund.unsigned_abs());
        }
        let accessed = self.slot.take().filter(|_| ended.error.is_none());
        if accessed.is_some() || self.options.only.is_some() {
            let slots = self.storage.entry(account).or_default();
            // with the option `only`, the row shows the storage before its instruction, so do not add the accessed slot
            if let (Some((slot, value)), None) = (accessed, self.options.only) {
                slots.insert(slot, value);
            }
            raw(out, ",\"storage\":{");
            for (at, (slot, value)) in slots.iter().enumerate() {
                data(out, if at > 0 { "," } else { "" }, slot.to_be_bytes::<32>());
                data(out, ":", value.to_be_bytes::<32>());
            }
            out.push(b'}');
        }
        if let Some(reason) = &ended.reason {
            data(out, ",\"reason\":", reason);
        }
        ended.close(out);
        self.sink.settle();
    }

    fn enter(&mut self) {
        self.frames.push(Frame { has_run: false, refund: self.refund });
    }
}

impl Inspector<EvmContext> for StandardTracer<'_> {
    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        if self.sink.tick() {
            halt(interpreter);
            return;
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.has_run = true;
        }
        self.opcode = interpreter.bytecode.opcode();
        self.is_half_written = self.is_selected(self.opcode);
        if !self.is_half_written && self.options.only.is_none() {
            return;
        }
        let stack = interpreter.stack.data();
        self.slot = match &stack[..] {
            [.., value, slot] if self.opcode == SSTORE && self.options.with_storage => Some((*slot, *value)),
            [.., slot] if self.opcode == SLOAD && self.options.with_storage => Some((*slot, U256::ZERO)),
            _ => None,
        };
        if !self.is_half_written {
            return;
        }
        self.gas_before = interpreter.gas.remaining();
        self.whole_cost = self.costs.next(self.opcode, self.gas_before, interpreter, context);
        if interpreter.runtime_flag.is_static() {
            // if a static frame rejects this call, geth still logs a cost with the gas for the callee
            self.whole_cost += self.costs.handed_on(self.opcode, self.gas_before, self.whole_cost, interpreter);
        }
        let name = mnemonic(self.opcode, interpreter.runtime_flag.spec_id());
        self.head(interpreter.bytecode.pc(), name, self.gas_before);
        self.stack(interpreter.stack.data());
        self.memory(&interpreter.memory.context_memory());
        let returned = interpreter.return_data.buffer();
        if self.options.with_return_data && !returned.is_empty() {
            data(&mut self.sink.out, ",\"returnData\":", returned);
        }
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, _: &mut EvmContext) {
        if let Some(frame) = self.frames.last() {
            self.refund = frame.refund + interpreter.gas.refunded();
        }
        if let (Some((_, value)), SLOAD) = (&mut self.slot, self.opcode) {
            *value = interpreter.stack.data().last().copied().unwrap_or_default();
        }
        if !std::mem::take(&mut self.is_half_written) {
            // `slot` is set only while the tracer looks for the single row that the option `only` selects
            if let Some((slot, value)) = self.slot.take() {
                self.storage.entry(interpreter.input.target_address()).or_default().insert(slot, value);
            }
            return;
        }
        let ended = StepEnd::of(interpreter, self.opcode, self.gas_before, self.whole_cost, CalleeGas::Counts);
        self.tail(interpreter.input.target_address(), &ended);
    }

    fn call(&mut self, _: &mut EvmContext, _: &mut CallInputs) -> Option<CallOutcome> {
        self.enter();
        None
    }

    fn call_end(&mut self, _: &mut EvmContext, inputs: &CallInputs, outcome: &mut CallOutcome) {
        // Show a call of an account without code as a single STOP, like Besu.
        let is_bare = outcome.result.result == InstructionResult::Stop && !outcome.was_precompile_called;
        if is_bare && self.frames.last().is_some_and(|frame| !frame.has_run) && self.is_selected(OpCode::STOP.get()) {
            self.head(0, OpCode::STOP.as_str(), inputs.gas_limit);
            self.stack(&[]);
            self.tail(inputs.target_address, &StepEnd::default());
        }
        self.frames.pop();
    }

    fn create(&mut self, _: &mut EvmContext, _: &mut CreateInputs) -> Option<CreateOutcome> {
        self.enter();
        None
    }

    fn create_end(&mut self, _: &mut EvmContext, _: &CreateInputs, _: &mut CreateOutcome) {
        self.frames.pop();
    }
}

impl Tracer for StandardTracer<'_> {
    fn sink(&mut self) -> &mut Sink {
        self.sink
    }

    fn begin(&mut self, _: &TxEnv) {
        self.rows = 0;
        self.position = 0;
        self.slot = None;
        self.is_truncated = false;
        self.frames.clear();
        self.storage.clear();
        self.was_selected = false;
        self.refund = 0;
        raw(&mut self.sink.out, "{\"structLogs\":[");
    }

    fn finish(&mut self, _: &mut ExecDb, ran: &Ran) -> Result<()> {
        let out = &mut self.sink.out;
        let output = verdict(out, ran);
        data(out, ",\"returnValue\":", output);
        raw(out, if self.is_truncated { ",\"truncated\":true}" } else { "}" });
        self.sink.settle();
        Ok(())
    }
}

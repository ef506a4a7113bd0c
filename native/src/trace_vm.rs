//! vmTrace: every instruction with its effects, calls nested into the instruction that made them (json-rpc.md 7.3).
//!
//! Written while it runs: an operation is opened when its instruction ends, what it calls is written inside of it, and
//! the effects (`ex`) of a call follow when the caller goes on.

use std::ops::Range;

use alloy_primitives::U256;
use revm::bytecode::opcode::{self as op, OpCode};
use revm::interpreter::interpreter_types::{Jumps, LegacyBytecode, LoopControl, ReturnData};
use revm::interpreter::{FrameInput, InstructionResult, Interpreter, InterpreterAction, InterpreterResult};
use revm::primitives::hardfork::SpecId;

use crate::evm::EvmContext;
use crate::json_text::{data, list, raw, wide};
use crate::trace_cost::Costs;
use crate::trace_sink::Sink;
use crate::trace_struct::CALL_STIPEND;
use crate::trace_text::decimal;

pub struct VmWriter {
    costs: Costs,
    frames: Vec<VmFrame>,
    // of the instruction that runs
    pc: usize,
    opcode: u8,
    gas: u64,
    whole_cost: u64,
    memory: Option<Range<usize>>,
    store: Option<(U256, U256)>,
    is_past_end: bool,
}

#[derive(Default)]
struct VmFrame {
    /// Its code has begun to run.
    is_open: bool,
    ops: u64,
    /// The call of the last operation has not returned yet.
    waiting: Option<Waiting>,
}

struct Waiting {
    /// Where the output goes.
    memory: Option<Range<usize>>,
    /// Cost of the call itself, and gas handed to the callee.
    cost: u64,
    handed: u64,
}

impl VmWriter {
    pub fn new(spec: SpecId) -> Self {
        VmWriter {
            costs: Costs::of(spec),
            frames: Vec::new(),
            pc: 0,
            opcode: 0,
            gas: 0,
            whole_cost: 0,
            memory: None,
            store: None,
            is_past_end: false,
        }
    }

    pub fn begin(&mut self, sink: &mut Sink) {
        self.frames.clear();
        raw(&mut sink.out, "{\"vmTrace\":");
    }

    /// A call or a creation: the frame whose code may run next.
    pub fn enter(&mut self) {
        self.frames.push(VmFrame::default());
    }

    /// The code of the frame begins.
    pub fn open(&mut self, sink: &mut Sink, interpreter: &Interpreter) {
        let is_root = self.frames.len() == 1;
        if let Some(frame) = self.frames.last_mut() {
            frame.is_open = true;
            let out = &mut sink.out;
            raw(out, if is_root { "{" } else { ",\"sub\":{" });
            data(out, "\"code\":", interpreter.bytecode.original_byte_slice());
            raw(out, ",\"ops\":[");
        }
    }

    pub fn leave(&mut self, sink: &mut Sink, result: &InterpreterResult, is_precompile: bool) {
        let Some(frame) = self.frames.pop() else { return };
        let out = &mut sink.out;
        let is_root = self.frames.is_empty();
        if frame.is_open {
            if frame.waiting.is_some() {
                raw(out, ",\"ex\":null}");
            }
            raw(out, "]}");
        } else {
            use InstructionResult as R;
            raw(out, if is_root { "" } else { ",\"sub\":" });
            let was_refused = matches!(result.result, R::CallTooDeep | R::OutOfFunds | R::NonceOverflow);
            raw(out, if was_refused && !is_root { "null" } else { "{\"code\":\"0x\",\"ops\":[]}" });
        }
        // A precompiled contract costs what it uses, any other call what it is handed.
        if let Some(call) = self.frames.last().and_then(|caller| caller.waiting.as_ref()) {
            let spent = if is_precompile { result.gas.total_gas_spent() } else { call.handed };
            decimal(out, ",\"cost\":", call.cost + spent);
        }
    }

    pub fn step(&mut self, sink: &mut Sink, interpreter: &Interpreter, context: &mut EvmContext) {
        self.finish_call(sink, interpreter);
        self.pc = interpreter.bytecode.pc();
        self.opcode = interpreter.bytecode.opcode();
        self.gas = interpreter.gas.remaining();
        self.is_past_end = self.pc >= interpreter.bytecode.bytecode_len();
        self.whole_cost = self.costs.next(self.opcode, self.gas, interpreter, context);
        let stack = interpreter.stack.data();
        self.memory = written(self.opcode, stack);
        self.store = match &stack[..] {
            [.., value, key] if self.opcode == op::SSTORE => Some((*key, *value)),
            _ => None,
        };
    }

    pub fn step_end(&mut self, sink: &mut Sink, interpreter: &mut Interpreter) {
        use InstructionResult as R;
        let result = match interpreter.bytecode.action() {
            Some(InterpreterAction::Return(result)) => Some(result.result),
            _ => None,
        };
        // Instructions that were refused before they began do not show, nor does the end of the code.
        let is_refused = matches!(
            result,
            Some(R::OpcodeNotFound | R::InvalidFEOpcode | R::NotActivated | R::StackUnderflow | R::StackOverflow)
        );
        if is_refused || self.is_past_end {
            return;
        }
        let has_halted = result.is_some_and(|result| !result.is_ok_or_revert());
        let handed = match interpreter.bytecode.action() {
            Some(InterpreterAction::NewFrame(FrameInput::Call(inputs))) => {
                let stipend = if inputs.transfers_value() { CALL_STIPEND } else { 0 };
                Some(inputs.gas_limit.saturating_sub(stipend))
            }
            Some(InterpreterAction::NewFrame(FrameInput::Create(inputs))) => Some(inputs.gas_limit()),
            _ => None,
        };
        let Some(frame) = self.frames.last_mut() else { return };
        let out = &mut sink.out;
        if frame.ops > 0 {
            out.push(b',');
        }
        frame.ops += 1;
        let cost = if has_halted { self.whole_cost } else { self.gas.saturating_sub(interpreter.gas.remaining()) };
        decimal(out, "{\"pc\":", self.pc as u64);
        if let Some(handed) = handed {
            frame.waiting = Some(Waiting { memory: self.memory.take(), cost: cost.saturating_sub(handed), handed });
            return;
        }
        decimal(out, ",\"cost\":", cost);
        if has_halted {
            raw(out, ",\"ex\":null,\"sub\":null}");
        } else {
            let outputs = OpCode::new(self.opcode).map_or(0, |code| code.outputs()) as usize;
            effects(out, interpreter, outputs, self.memory.take(), self.store.take());
            raw(out, ",\"sub\":null}");
        }
        sink.settle();
    }

    /// The caller goes on: now the effects of its call are known.
    fn finish_call(&mut self, sink: &mut Sink, interpreter: &Interpreter) {
        let Some(frame) = self.frames.last_mut() else { return };
        let Some(Waiting { memory, .. }) = frame.waiting.take() else { return };
        let returned = interpreter.return_data.buffer().len();
        let range = memory.map(|range| range.start..range.start + range.len().min(returned));
        effects(&mut sink.out, interpreter, 1, range, None);
        raw(&mut sink.out, "}");
    }
}

fn effects(
    out: &mut Vec<u8>,
    interpreter: &Interpreter,
    outputs: usize,
    memory: Option<Range<usize>>,
    store: Option<(U256, U256)>,
) {
    decimal(out, ",\"ex\":{\"used\":", interpreter.gas.remaining());
    let stack = interpreter.stack.data();
    let pushed = &stack[stack.len().saturating_sub(outputs)..];
    list(out, ",\"push\":", pushed, |out, item| wide(out, "", *item));
    let all = interpreter.memory.context_memory();
    match memory.filter(|range| !range.is_empty()).and_then(|range| Some((range.start, all.get(range)?))) {
        Some((offset, bytes)) => {
            data(out, ",\"mem\":{\"data\":", bytes);
            decimal(out, ",\"off\":", offset as u64);
            out.push(b'}');
        }
        None => raw(out, ",\"mem\":null"),
    }
    match store {
        Some((key, value)) => {
            wide(out, ",\"store\":{\"key\":", key);
            wide(out, ",\"val\":", value);
            out.push(b'}');
        }
        None => raw(out, ",\"store\":null"),
    }
    out.push(b'}');
}

/// Memory that an instruction writes, or that MLOAD reads.
fn written(opcode: u8, stack: &[U256]) -> Option<Range<usize>> {
    let top = |at: usize| usize::try_from(*stack.get(stack.len().checked_sub(at + 1)?)?).ok();
    let (offset, size) = match opcode {
        op::MLOAD | op::MSTORE => (top(0)?, 32),
        op::MSTORE8 => (top(0)?, 1),
        op::CALLDATACOPY | op::CODECOPY | op::RETURNDATACOPY | op::MCOPY => (top(0)?, top(2)?),
        op::EXTCODECOPY => (top(1)?, top(3)?),
        op::CALL | op::CALLCODE => (top(5)?, top(6)?),
        op::DELEGATECALL | op::STATICCALL => (top(4)?, top(5)?),
        _ => return None,
    };
    Some(offset..offset.checked_add(size)?)
}

//! vmTrace: every instruction with its effects; calls nested in their instruction (json-rpc.md 7.3).
//!
//! Besu 21.10 derives the effects of a call from its list of instructions: from the next instruction of the caller, and
//! from the RETURN that ends the caller (docs/decisions/0030-besu-compatible-trace-output.md). Ophion stores no list of
//! instructions. The transaction runs twice: the first run records data that is needed later (`Survey`), and the second
//! run writes each instruction as it runs.

use std::collections::HashMap;
use std::ops::Range;

use alloy_primitives::{Bytes, U256};
use ophion_execution::evm::context::EvmContext;
use ophion_primitives::json::{data, decimal, list, raw, wide};
use revm::bytecode::opcode::{self as op, OpCode};
use revm::interpreter::interpreter_types::{Jumps, LegacyBytecode, LoopControl, ReturnData};
use revm::interpreter::{FrameInput, InstructionResult, Interpreter, InterpreterAction, InterpreterResult};
use revm::primitives::hardfork::SpecId;

use crate::output::sink::Sink;
use crate::output::text::is_lack_of_gas;
use crate::struct_logs::instruction_cost::{CALL_STIPEND, Costs};

/// Memory offset, and the bytes written there.
type Written = (usize, Bytes);

/// State of a caller at its next instruction after a call: gas, stack top, written memory.
struct Continuation {
    index: u64,
    gas: u64,
    top: Option<U256>,
    memory: Option<Written>,
}

/// Result of a call or creation, recorded in the first run.
#[derive(Default)]
struct Called {
    /// Gas price and result, if the callee is a precompiled contract.
    precompiled: Option<(u64, InstructionResult)>,
    /// Whether instructions of the callee are in the trace.
    has_run: bool,
    was_refused: bool,
    has_collided: bool,
    code: Bytes,
}

/// What the first run of a transaction records for the second run, which writes the trace.
#[derive(Default)]
struct Survey {
    /// Number of instructions in the first run.
    count: u64,
    calls: Vec<Called>,
    /// By call depth: instruction index and output of every RETURN.
    returns: Vec<Vec<(u64, Bytes)>>,
    /// States of callers after their calls, by call depth and program counter.
    continuations: HashMap<(usize, usize), Vec<Continuation>>,
    /// Reasons why the code of new contracts was rejected. The key is the index of the instruction that shows the
    /// reason.
    refusals: HashMap<u64, InstructionResult>,
}

impl Survey {
    fn note_return(&mut self, depth: usize, index: u64, output: Bytes) {
        if self.returns.len() <= depth {
            self.returns.resize_with(depth + 1, Vec::new);
        }
        self.returns[depth].push((index, output));
    }

    /// Return the output of the first RETURN at this depth that follows the instruction `index`.
    fn return_after(&self, depth: usize, index: u64) -> Option<&Bytes> {
        let all = self.returns.get(depth)?;
        all.get(all.partition_point(|(at, _)| *at <= index)).map(|(_, output)| output)
    }

    fn continuation_after(&self, depth: usize, pc: usize, index: u64) -> Option<&Continuation> {
        let all = self.continuations.get(&(depth, pc))?;
        all.get(all.partition_point(|one| one.index <= index))
    }
}

#[derive(Default)]
struct VmFrame {
    code: Bytes,
    has_begun: bool,
    has_ended_well: bool,
    /// Index of the call that started this frame; None for the outermost frame.
    call: Option<usize>,
    /// Whether the frame's last instruction was a call.
    is_waiting: bool,
    /// Range of the caller's memory that receives the output of the last call.
    output: Option<Range<usize>>,
}

/// A trace being written: the outermost trace, or the trace of a call inside an operation.
#[derive(Default)]
struct OpenTrace {
    code: Bytes,
    operations: u64,
}

pub struct VmWriter {
    costs: Costs,
    is_surveying: bool,
    survey: Survey,
    frames: Vec<VmFrame>,
    open: Vec<OpenTrace>,
    /// Number of instructions executed so far in this run.
    index: u64,
    /// Number of instructions written to the trace.
    written: u64,
    /// Number of calls and creations so far.
    calls: usize,
    /// Call depth of the last written instruction.
    last_depth: usize,
    last_plain: u64,
    // program counter of the current instruction
    pc: usize,
    opcode: u8,
    gas: u64,
    whole_cost: u64,
    memory: Option<Range<usize>>,
    store: Option<(U256, U256)>,
    is_past_end: bool,
    continuation: Option<Continuation>,
}

impl VmWriter {
    pub fn new(spec: SpecId) -> Self {
        VmWriter {
            costs: Costs::of(spec),
            is_surveying: false,
            survey: Survey::default(),
            frames: Vec::new(),
            open: Vec::new(),
            index: 0,
            written: 0,
            calls: 0,
            last_depth: 0,
            last_plain: 0,
            pc: 0,
            opcode: 0,
            gas: 0,
            whole_cost: 0,
            memory: None,
            store: None,
            is_past_end: false,
            continuation: None,
        }
    }

    /// Start the first run of the transaction. The first run writes nothing.
    pub fn begin_survey(&mut self) {
        self.is_surveying = true;
        self.survey = Survey::default();
        self.rewind();
    }

    /// Start the second run, which writes the trace; `init` is the init code of a creation.
    pub fn begin(&mut self, sink: &mut Sink, init: Option<&Bytes>) {
        self.is_surveying = false;
        self.survey.count = self.index;
        self.rewind();
        raw(&mut sink.out, "{\"vmTrace\":{\"ops\":[");
        self.open.push(OpenTrace { code: init.cloned().unwrap_or_default(), operations: 0 });
    }

    fn rewind(&mut self) {
        self.frames.clear();
        self.open.clear();
        (self.index, self.written, self.calls, self.last_depth, self.last_plain) = (0, 0, 0, 0, 0);
        self.continuation = None;
    }

    /// End the second run and complete the JSON text.
    pub fn finish(&mut self, sink: &mut Sink) {
        while self.open.len() > 1 {
            self.close(sink);
        }
        if let Some(root) = self.open.pop() {
            data(&mut sink.out, "],\"code\":", &root.code);
            raw(&mut sink.out, "}");
        }
    }

    /// Complete the JSON text of the innermost trace and of the operation that contains it.
    fn close(&mut self, sink: &mut Sink) {
        if let Some(trace) = self.open.pop() {
            data(&mut sink.out, "],\"code\":", &trace.code);
            raw(&mut sink.out, "}}");
        }
    }

    /// Record that a call or creation starts, whose code may run next.
    pub fn enter(&mut self, init: Option<&Bytes>) {
        let call = (!self.frames.is_empty()).then(|| self.calls - 1);
        self.frames.push(VmFrame { call, code: init.cloned().unwrap_or_default(), ..VmFrame::default() });
    }

    /// Start to trace the code of the frame that was just entered.
    pub fn open(&mut self, interpreter: &Interpreter) {
        if let Some(frame) = self.frames.last_mut() {
            frame.has_begun = true;
            frame.code = interpreter.bytecode.original_bytes();
        }
    }

    pub fn leave(&mut self, result: &InterpreterResult, precompile_price: Option<u64>, is_creation: bool) {
        use InstructionResult as R;
        let Some(frame) = self.frames.pop() else { return };
        let was_refused =
            matches!(result.result, R::CallTooDeep | R::OutOfFunds | R::OverflowPayment | R::NonceOverflow);
        let has_collided = result.result == R::CreateCollision;
        let has_run = precompile_price.is_none() && !was_refused && !has_collided;
        if has_run && !frame.has_begun {
            // treat a frame without code like a frame with a single STOP
            self.last_plain = self.index;
            self.index += 1;
        }
        if !self.is_surveying {
            return;
        }
        if is_creation && frame.has_ended_well && !result.result.is_ok() {
            self.survey.refusals.insert(self.last_plain, result.result);
        }
        if let Some(call) = frame.call {
            let precompiled = precompile_price.map(|price| (price, result.result));
            self.survey.calls[call] = Called { precompiled, has_run, was_refused, has_collided, code: frame.code };
        }
    }

    pub fn step(&mut self, interpreter: &Interpreter, context: &mut EvmContext) {
        self.pc = interpreter.bytecode.pc();
        self.opcode = interpreter.bytecode.opcode();
        self.gas = interpreter.gas.remaining();
        let stack = interpreter.stack.data();
        if self.is_surveying {
            let is_continuation = self.note_continuation(interpreter);
            self.memory = if is_continuation || is_calling(self.opcode) { written(self.opcode, stack) } else { None };
            return;
        }
        self.memory = written(self.opcode, stack);
        self.is_past_end = self.pc >= interpreter.bytecode.bytecode_len();
        self.whole_cost = self.costs.next(self.opcode, self.gas, interpreter, context);
        self.store = match &stack[..] {
            [.., value, key] if self.opcode == op::SSTORE => Some((*key, *value)),
            _ => None,
        };
    }

    /// Record the caller's memory and stack if the caller continues after a call. Returns whether the caller continues.
    fn note_continuation(&mut self, interpreter: &Interpreter) -> bool {
        let Some(frame) = self.frames.last_mut() else { return false };
        if !std::mem::take(&mut frame.is_waiting) {
            return false;
        }
        let returned = interpreter.return_data.buffer().len();
        let range = frame.output.take().map(|range| range.start..range.start + range.len().min(returned));
        let all = interpreter.memory.context_memory();
        let memory = range.and_then(|range| bytes_at(&all, range)).map(kept);
        let top = interpreter.stack.data().last().copied();
        self.continuation = Some(Continuation { index: self.index, gas: self.gas, top, memory });
        true
    }

    pub fn step_end(&mut self, sink: &mut Sink, interpreter: &mut Interpreter) {
        let (mut result, mut output, mut new_frame) = (None, Bytes::new(), None);
        match interpreter.bytecode.action() {
            Some(InterpreterAction::Return(ended)) => {
                result = Some(ended.result);
                output = ended.output.clone();
            }
            Some(InterpreterAction::NewFrame(FrameInput::Call(inputs))) => {
                let stipend = if inputs.transfers_value() { CALL_STIPEND } else { 0 };
                let gas = inputs.gas_limit;
                new_frame = Some(NewFrame { call: self.calls, gas, handed: gas.saturating_sub(stipend) });
            }
            Some(InterpreterAction::NewFrame(FrameInput::Create(inputs))) => {
                let gas = inputs.gas_limit();
                new_frame = Some(NewFrame { call: self.calls, gas, handed: gas });
            }
            _ => {}
        }
        let halt = result.filter(|result| !result.is_ok_or_revert());
        let range = self.memory.take();
        self.calls += usize::from(new_frame.is_some());
        if self.is_surveying {
            self.note(interpreter, range, result, output, new_frame.is_some());
        } else {
            self.write(sink, interpreter, range, halt, new_frame);
        }
        if self.opcode != op::RETURN {
            self.last_plain = self.index;
        }
        self.index += 1;
        sink.settle();
    }

    fn note(
        &mut self,
        interpreter: &Interpreter,
        range: Option<Range<usize>>,
        result: Option<InstructionResult>,
        output: Bytes,
        is_call: bool,
    ) {
        let depth = self.frames.len() - 1;
        let has_halted = result.is_some_and(|result| !result.is_ok_or_revert());
        if self.opcode == op::RETURN {
            self.survey.note_return(depth, self.index, if has_halted { Bytes::new() } else { output });
        }
        if let Some(mut continuation) = self.continuation.take() {
            if !is_call && !has_halted && (shows_memory(self.opcode) || self.opcode == op::MCOPY) {
                let all = interpreter.memory.context_memory();
                let own = range.clone().and_then(|range| bytes_at(&all, range));
                continuation.memory = own.map(kept).or(continuation.memory);
            }
            self.survey.continuations.entry((depth, self.pc)).or_default().push(continuation);
        }
        let frame = &mut self.frames[depth];
        if is_call {
            self.survey.calls.push(Called::default());
            frame.is_waiting = true;
            frame.output = range;
        } else if let Some(result) = result {
            frame.has_ended_well = result.is_ok();
        }
    }

    fn write(
        &mut self,
        sink: &mut Sink,
        interpreter: &Interpreter,
        range: Option<Range<usize>>,
        halt: Option<InstructionResult>,
        new_frame: Option<NewFrame>,
    ) {
        let depth = self.frames.len() - 1;
        if self.written > 0 && depth < self.last_depth && self.open.len() > 1 {
            self.close(sink);
        }
        let called = new_frame.as_ref().and_then(|frame| self.survey.calls.get(frame.call));
        let handed = new_frame.as_ref().map_or(0, |frame| frame.handed);
        let late = self.survey.refusals.get(&self.index).copied();
        let precompiled = called.and_then(|called| called.precompiled);
        let collision = called.filter(|called| called.has_collided).map(|_| InstructionResult::CreateCollision);
        let failed_callee = precompiled.map(|(_, result)| result).filter(|result| !result.is_ok());
        if !is_shown(self.opcode, self.survey.count, halt.or(late).or(collision).or(failed_callee), self.is_past_end) {
            return;
        }
        let left = interpreter.gas.remaining();
        let cost = match halt {
            Some(InstructionResult::StateChangeDuringStaticCall | InstructionResult::CallNotAllowedInsideStatic) => {
                static_cost(self.opcode, self.gas, self.whole_cost)
            }
            // the gas pays for the storage change, but SSTORE also requires more gas than the call stipend (EIP-2200)
            Some(InstructionResult::ReentrancySentryOOG) if self.gas >= self.whole_cost => CALL_STIPEND,
            Some(_) => self.whole_cost,
            None => self.gas.saturating_sub(left).saturating_sub(handed),
        };
        let outputs = OpCode::new(self.opcode).map_or(0, |code| code.outputs()) as usize;
        let stack = interpreter.stack.data();
        let own_code = &self.frames[depth].code;
        let all = range.as_ref().map(|_| interpreter.memory.context_memory());
        let mut effects = Effects {
            used: self.gas as i64 - cost as i64,
            push: &stack[stack.len().saturating_sub(outputs)..],
            memory: range
                .filter(|_| shows_memory(self.opcode) && halt.is_none())
                .and_then(|range| bytes_at(all.as_ref()?, range)),
            store: self.store.take().filter(|_| halt.is_none()),
        };
        let mut shown_cost = cost;
        let mut sub = Sub::None;
        let mut code = own_code;
        if is_calling(self.opcode) {
            let next = self.survey.continuation_after(depth, self.pc + 1, self.written);
            if matches!(self.opcode, op::CALL | op::DELEGATECALL) {
                effects.memory = self.survey.return_after(depth, self.written).map(|output| (0, &output[..]));
            }
            if let Some(next) = next {
                effects.used = next.gas as i64;
                effects.push = next.top.as_slice();
                if let (Some((offset, bytes)), false) = (&next.memory, matches!(self.opcode, op::CREATE | op::CREATE2))
                {
                    effects.memory = Some((*offset, bytes));
                }
            }
            // show the code of the topmost frame: the frame of the callee, or the current frame if the call was refused
            code = called.filter(|called| !called.was_refused).map_or(own_code, |called| &called.code);
            let has_run = called.is_some_and(|called| called.has_run);
            let gives_gas = matches!(self.opcode, op::CALL | op::STATICCALL);
            let child_gas = new_frame.as_ref().map_or(0, |frame| frame.gas);
            if code.is_empty() {
                shown_cost += match precompiled {
                    Some((price, _)) => price,
                    None if gives_gas && has_run => child_gas,
                    None => 0,
                };
                sub = Sub::Done(code);
            } else if has_run {
                shown_cost += child_gas;
                sub = Sub::Open;
            } else if depth == 0 {
                shown_cost = self.gas.saturating_sub(next.map_or(0, |next| next.gas));
                sub = Sub::Done(code);
            }
        }
        let trace = self.open.last_mut().expect("the outermost trace is open");
        if trace.code.is_empty() {
            trace.code = code.clone();
        }
        let out = &mut sink.out;
        decimal(out, if trace.operations > 0 { ",{\"cost\":" } else { "{\"cost\":" }, shown_cost);
        trace.operations += 1;
        decimal(out, ",\"pc\":", self.pc as u64);
        if halt.is_some_and(is_lack_of_gas) {
            raw(out, ",\"ex\":null");
        } else {
            effects.write(out);
        }
        match sub {
            Sub::None => raw(out, ",\"sub\":null}"),
            Sub::Done(code) => {
                data(out, ",\"sub\":{\"code\":", code);
                raw(out, ",\"ops\":[]}}");
            }
            Sub::Open => {
                raw(out, ",\"sub\":{\"ops\":[");
                self.open.push(OpenTrace::default());
            }
        }
        self.last_depth = depth;
        self.written += 1;
    }
}

/// A call or creation by the current instruction.
struct NewFrame {
    call: usize,
    /// Gas that the callee receives.
    gas: u64,
    /// Gas that the caller pays: the callee's gas without the stipend, which is free.
    handed: u64,
}

enum Sub<'a> {
    None,
    Done(&'a Bytes),
    Open,
}

struct Effects<'a> {
    used: i64,
    push: &'a [U256],
    memory: Option<(usize, &'a [u8])>,
    store: Option<(U256, U256)>,
}

impl Effects<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        raw(out, ",\"ex\":{\"used\":");
        raw(out, if self.used < 0 { "-" } else { "" });
        decimal(out, "", self.used.unsigned_abs());
        list(out, ",\"push\":", self.push, |out, item| wide(out, "", *item));
        match &self.memory {
            Some((offset, bytes)) => {
                data(out, ",\"mem\":{\"data\":", bytes);
                decimal(out, ",\"off\":", *offset as u64);
                out.push(b'}');
            }
            None => raw(out, ",\"mem\":null"),
        }
        match &self.store {
            Some((key, value)) => {
                wide(out, ",\"store\":{\"key\":", *key);
                wide(out, ",\"val\":", *value);
                out.push(b'}');
            }
            None => raw(out, ",\"store\":null"),
        }
        out.push(b'}');
    }
}

fn is_calling(opcode: u8) -> bool {
    matches!(opcode, op::CALL | op::CALLCODE | op::DELEGATECALL | op::STATICCALL | op::CREATE | op::CREATE2)
}

/// Return whether the trace shows an instruction. The trace shows neither the implicit STOP at the end of the code nor
/// a lone STOP. Of the halts, it shows out of gas, bad jumps, address collisions and state changes in a static call.
fn is_shown(opcode: u8, count: u64, halt: Option<InstructionResult>, is_past_end: bool) -> bool {
    use InstructionResult as R;
    match halt {
        _ if opcode == op::STOP && count == 1 => false,
        Some(
            R::InvalidJump
            | R::StateChangeDuringStaticCall
            | R::CallNotAllowedInsideStatic
            | R::CreateCollision
            | R::PrecompileOOG,
        ) => true,
        Some(halt) => is_lack_of_gas(halt),
        None => !is_past_end,
    }
}

/// Return the gas cost that the trace shows for an instruction that a static call rejects.
fn static_cost(opcode: u8, gas: u64, whole: u64) -> u64 {
    match opcode {
        op::SSTORE => gas,
        op::CREATE | op::CREATE2 => 0,
        _ => whole,
    }
}

fn shows_memory(opcode: u8) -> bool {
    matches!(
        opcode,
        op::MLOAD | op::MSTORE | op::MSTORE8 | op::CALLDATACOPY | op::CODECOPY | op::EXTCODECOPY | op::RETURNDATACOPY
    )
}

/// Return a range of the memory as its offset and bytes; None if the range is empty or exceeds the memory.
fn bytes_at(memory: &[u8], range: Range<usize>) -> Option<(usize, &[u8])> {
    let (start, end) = (range.start, range.end);
    if start >= end || end > memory.len() {
        return None;
    }
    Some((start, &memory[range]))
}

fn kept((offset, bytes): (usize, &[u8])) -> Written {
    (offset, Bytes::copy_from_slice(bytes))
}

/// Return the memory range that an instruction writes, or that MLOAD reads.
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

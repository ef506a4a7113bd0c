//! erc7562Tracer: the call tree with the accesses that ERC-7562 restricts during the validation of a user operation.
//!
//! Each call also has the slots, opcodes and contracts that it accesses. The outermost call has all preimages of
//! KECCAK256.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, Log, U256};
use ophion_execution::evm::context::EvmContext;
use ophion_primitives::json::{data, decimal, list, raw};
use revm::bytecode::opcode as op;
use revm::inspector::Inspector;
use revm::interpreter::interpreter_types::{InputsTr, Jumps};
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, InstructionResult, Interpreter};

use super::call_frames::{Frame, FrameRecorder};
use super::call_tracer::write_fields;
use crate::output::sink::Sink;
use crate::replay::block::Ran;
use crate::replay::recording::{Recorder, Recording, Report};

/// Maximum length in bytes of a recorded preimage, as in geth.
const MAX_PREIMAGE_BYTES: usize = 1 << 20;

/// Options of the erc7562Tracer.
#[derive(Clone, Copy)]
pub struct ValidationOptions {
    /// Opcodes that the tracer does not count, with one bit per opcode.
    pub ignored: [u64; 4],
    pub with_log: bool,
}

impl ValidationOptions {
    /// Create options with the opcodes to ignore. With None, the tracer ignores the opcodes that ERC-7562 permits
    /// everywhere.
    pub fn new(ignored: Option<&[u8]>, with_log: bool) -> Self {
        let mut bits = [0; 4];
        let mut ignore = |opcode: u8| bits[usize::from(opcode >> 6)] |= 1 << (opcode & 63);
        match ignored {
            Some(opcodes) => opcodes.iter().copied().for_each(&mut ignore),
            None => {
                (op::PUSH0..=op::SWAP16).for_each(&mut ignore);
                HARMLESS.into_iter().for_each(&mut ignore);
            }
        }
        ValidationOptions { ignored: bits, with_log }
    }

    fn counts(&self, opcode: u8) -> bool {
        self.ignored[usize::from(opcode >> 6)] & (1 << (opcode & 63)) == 0
    }

    pub fn tracer(self, sink: &mut Sink) -> Recording<'_, ValidationTree> {
        let recorder = AccessRecorder {
            frames: FrameRecorder::new(false, self.with_log),
            options: self,
            accesses: Vec::new(),
            preimages: BTreeSet::new(),
            last: None,
        };
        Recording::new(sink, recorder, ValidationTree { with_log: self.with_log })
    }
}

/// Opcodes without effect on validation, which the tracer ignores by default. It also ignores PUSH, DUP and SWAP.
const HARMLESS: [u8; 16] = [
    op::POP,
    op::ADD,
    op::SUB,
    op::MUL,
    op::DIV,
    op::EQ,
    op::LT,
    op::GT,
    op::SLT,
    op::SGT,
    op::SHL,
    op::SHR,
    op::AND,
    op::OR,
    op::NOT,
    op::ISZERO,
];

/// Slots, opcodes, code and contracts that one call accesses.
#[derive(Default)]
struct Access {
    /// Slots that the call reads, with their value at the first read.
    reads: BTreeMap<U256, U256>,
    writes: BTreeMap<U256, u64>,
    transient_reads: BTreeMap<U256, u64>,
    transient_writes: BTreeMap<U256, u64>,
    /// Accounts whose code was read, except by the existence check `EXTCODESIZE ISZERO`.
    code_accesses: Vec<Address>,
    opcodes: BTreeMap<u8, u64>,
    /// Code size of each accessed contract, and the first opcode that accessed the contract.
    contracts: BTreeMap<Address, (usize, u8)>,
}

pub struct AccessRecorder {
    frames: FrameRecorder,
    options: ValidationOptions,
    /// Accesses of each frame, by the index of the frame.
    accesses: Vec<Access>,
    preimages: BTreeSet<Vec<u8>>,
    /// The previous opcode, and the top of the stack before it ran.
    last: Option<(u8, U256)>,
}

fn is_call(opcode: u8) -> bool {
    matches!(opcode, op::CALL | op::CALLCODE | op::DELEGATECALL | op::STATICCALL)
}

fn is_code_access(opcode: u8) -> bool {
    matches!(opcode, op::EXTCODEHASH | op::EXTCODESIZE | op::EXTCODECOPY)
}

/// Return how many stack items of an instruction the recorder reads.
fn items_read(opcode: u8) -> usize {
    match opcode {
        op::SLOAD | op::TLOAD | op::EXTCODEHASH | op::EXTCODESIZE | op::EXTCODECOPY => 1,
        op::SSTORE | op::TSTORE | op::KECCAK256 | op::CALL | op::CALLCODE | op::DELEGATECALL | op::STATICCALL => 2,
        _ => 0,
    }
}

/// Return the code size of an account, without making the account warm.
fn code_size(context: &mut EvmContext, address: &Address) -> usize {
    let journal = &mut context.journaled_state;
    let known = journal.inner.state.get(address).map(|account| account.info.clone());
    let info = match known {
        Some(info) => Some(info),
        None => journal.database.info(address).ok().flatten(),
    };
    let Some(info) = info else { return 0 };
    match &info.code {
        Some(code) => code.original_byte_slice().len(),
        None => journal.database.code_of(&info).map_or(0, |code| code.len()),
    }
}

/// Return the current value of a slot, without making the slot warm.
fn slot_value(context: &mut EvmContext, address: Address, slot: U256) -> U256 {
    let journal = &mut context.journaled_state;
    let known = journal.inner.state.get(&address);
    if let Some(value) = known.and_then(|account| account.storage.get(&slot)) {
        return value.present_value();
    }
    if known.is_some_and(|account| account.is_created()) {
        return U256::ZERO;
    }
    revm::database_interface::Database::storage(&mut journal.database, address, slot).unwrap_or_default()
}

impl AccessRecorder {
    fn note(&mut self, interpreter: &Interpreter, context: &mut EvmContext) {
        let opcode = interpreter.bytecode.opcode();
        let stack = interpreter.stack.data();
        if stack.len() < items_read(opcode) {
            return;
        }
        let top = |at: usize| stack[stack.len() - 1 - at];
        if matches!(opcode, op::REVERT | op::RETURN) {
            self.last = None;
        }
        let Some(access) = self.frames.current().and_then(|index| self.accesses.get_mut(index)) else { return };
        if let Some((before, item)) = self.last {
            if is_code_access(before) && !(before == op::EXTCODESIZE && opcode == op::ISZERO) {
                access.code_accesses.push(Address::from_word(item.into()));
            }
            // the rules permit GAS only directly before a call
            if before == op::GAS && !is_call(opcode) {
                *access.opcodes.entry(op::GAS).or_default() += 1;
            }
        }
        if is_call(opcode) || is_code_access(opcode) {
            let address = Address::from_word(top(usize::from(is_call(opcode))).into());
            access.contracts.entry(address).or_insert_with(|| (code_size(context, &address), opcode));
        }
        if opcode != op::GAS && self.options.counts(opcode) {
            *access.opcodes.entry(opcode).or_default() += 1;
        }
        match opcode {
            op::SLOAD => {
                let slot = top(0);
                if !access.writes.contains_key(&slot) {
                    let contract = interpreter.input.target_address();
                    access.reads.entry(slot).or_insert_with(|| slot_value(context, contract, slot));
                }
            }
            op::SSTORE => *access.writes.entry(top(0)).or_default() += 1,
            op::TLOAD => *access.transient_reads.entry(top(0)).or_default() += 1,
            op::TSTORE => *access.transient_writes.entry(top(0)).or_default() += 1,
            op::KECCAK256 => {
                if let (Ok(start), Ok(length)) = (usize::try_from(top(0)), usize::try_from(top(1)))
                    && length <= MAX_PREIMAGE_BYTES
                {
                    let memory = interpreter.memory.context_memory();
                    let start = start.min(memory.len());
                    let end = start.saturating_add(length).min(memory.len());
                    let mut preimage = memory[start..end].to_vec();
                    preimage.resize(length, 0);
                    self.preimages.insert(preimage);
                }
            }
            _ => {}
        }
        self.last = Some((opcode, if stack.is_empty() { U256::ZERO } else { top(0) }));
    }

    fn entered(&mut self) {
        self.accesses.resize_with(self.frames.frames.len(), Access::default);
    }
}

impl Recorder for AccessRecorder {
    fn clear(&mut self) {
        self.frames.clear();
        self.accesses.clear();
        self.preimages.clear();
        self.last = None;
    }

    fn held_bytes(&self) -> usize {
        self.frames.held_bytes()
    }
}

impl Inspector<EvmContext> for AccessRecorder {
    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        self.note(interpreter, context);
        self.frames.step(interpreter, context);
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        self.frames.step_end(interpreter, context);
    }

    fn log(&mut self, context: &mut EvmContext, log: Log) {
        self.frames.log(context, log);
    }

    fn call(&mut self, context: &mut EvmContext, inputs: &mut CallInputs) -> Option<CallOutcome> {
        let outcome = self.frames.call(context, inputs);
        self.entered();
        outcome
    }

    fn call_end(&mut self, context: &mut EvmContext, inputs: &CallInputs, outcome: &mut CallOutcome) {
        self.frames.call_end(context, inputs, outcome);
    }

    fn create(&mut self, context: &mut EvmContext, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        let outcome = self.frames.create(context, inputs);
        self.entered();
        outcome
    }

    fn create_end(&mut self, context: &mut EvmContext, inputs: &CreateInputs, outcome: &mut CreateOutcome) {
        self.frames.create_end(context, inputs, outcome);
    }
}

pub struct ValidationTree {
    with_log: bool,
}

impl Report for ValidationTree {
    type Recorder = AccessRecorder;

    fn write(&mut self, sink: &mut Sink, recorder: &mut AccessRecorder, ran: &Ran) {
        let frames = recorder.frames.settled(ran);
        if frames.is_empty() {
            raw(&mut sink.out, "null");
            return;
        }
        let tree = Tree { frames, accesses: &recorder.accesses };
        tree.write(&mut sink.out, 0, self.with_log, Some(&recorder.preimages));
    }
}

struct Tree<'a> {
    frames: &'a [Frame],
    accesses: &'a [Access],
}

impl Tree<'_> {
    fn write(&self, out: &mut Vec<u8>, index: usize, keeps_logs: bool, preimages: Option<&BTreeSet<Vec<u8>>>) {
        let (frame, access) = (&self.frames[index], &self.accesses[index]);
        let keeps_logs = write_fields(out, frame, keeps_logs);
        write_access(out, access);
        let is_out_of_gas = index > 0 && is_out_of_gas(frame.result);
        raw(out, if is_out_of_gas { ",\"outOfGas\":true" } else { ",\"outOfGas\":false" });
        if let Some(preimages) = preimages.filter(|preimages| !preimages.is_empty()) {
            let preimages: Vec<&Vec<u8>> = preimages.iter().collect();
            list(out, ",\"keccak\":", &preimages, |out, preimage| data(out, "", preimage));
        }
        if !frame.children.is_empty() {
            list(out, ",\"calls\":", &frame.children, |out, child| self.write(out, *child, keeps_logs, None));
        }
        out.push(b'}');
    }
}

fn is_out_of_gas(result: InstructionResult) -> bool {
    use InstructionResult as R;
    matches!(result, R::OutOfGas | R::MemoryOOG | R::MemoryLimitOOG | R::PrecompileOOG | R::InvalidOperandOOG)
}

fn write_access(out: &mut Vec<u8>, access: &Access) {
    raw(out, ",\"accessedSlots\":{\"reads\":");
    object(
        out,
        &access.reads,
        |slot| B256::from(*slot).to_vec(),
        |out, value| {
            data(out, "[", B256::from(*value));
            out.push(b']');
        },
    );
    for (name, counts) in [
        (",\"writes\":", &access.writes),
        (",\"transientReads\":", &access.transient_reads),
        (",\"transientWrites\":", &access.transient_writes),
    ] {
        raw(out, name);
        object(out, counts, |slot| B256::from(*slot).to_vec(), |out, count| decimal(out, "", *count));
    }
    list(out, "},\"extCodeAccessInfo\":", &access.code_accesses, |out, address| data(out, "", address));
    raw(out, ",\"usedOpcodes\":{");
    for (at, (opcode, count)) in access.opcodes.iter().enumerate() {
        raw(out, if at > 0 { ",\"" } else { "\"" });
        raw(out, &format!("{opcode:#x}\""));
        decimal(out, ":", *count);
    }
    raw(out, "},\"contractSize\":");
    object(
        out,
        &access.contracts,
        |address| address.to_vec(),
        |out, (size, opcode)| {
            decimal(out, "{\"contractSize\":", *size as u64);
            decimal(out, ",\"opcode\":", u64::from(*opcode));
            out.push(b'}');
        },
    );
}

fn object<K, V>(
    out: &mut Vec<u8>,
    entries: &BTreeMap<K, V>,
    key: impl Fn(&K) -> Vec<u8>,
    write: impl Fn(&mut Vec<u8>, &V),
) {
    out.push(b'{');
    for (at, (name, value)) in entries.iter().enumerate() {
        data(out, if at > 0 { "," } else { "" }, key(name));
        out.push(b':');
        write(out, value);
    }
    out.push(b'}');
}

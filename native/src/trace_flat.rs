//! Flat traces: each call, creation and self-destruction as an entry of its own (json-rpc.md 7.3).

use alloy_primitives::map::AddressSet;
use alloy_primitives::{Address, B256};
use revm::context::TxEnv;
use revm::inspector::Inspector;
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, InstructionResult, Interpreter};

use crate::errors::Result;
use crate::evm::EvmContext;
use crate::exec_db::ExecDb;
use crate::json_text::{data, list, quantity, raw, wide};
use crate::trace_frames::{Frame, FrameRecorder, Kind};
use crate::trace_geth::record_frames;
use crate::trace_replay::{Place, Ran, Tracer};
use crate::trace_sink::{Sink, halt};
use crate::trace_text::{decimal, halt_phrase, text};

/// One entry before it is written.
pub enum Entry<'a> {
    Frame(&'a Frame),
    /// (contract, heir, balance)
    End(Address, Address, alloy_primitives::U256),
}

impl Entry<'_> {
    fn from(&self) -> Address {
        match self {
            Entry::Frame(frame) => frame.from,
            Entry::End(contract, ..) => *contract,
        }
    }

    fn to(&self) -> Address {
        match self {
            Entry::Frame(frame) => frame.to,
            Entry::End(_, heir, _) => *heir,
        }
    }
}

/// Whether an entry is listed: neither calls to precompiled contracts nor calls that never began are.
fn is_listed(frame: &Frame, with_precompiles: bool) -> bool {
    frame.was_entered() && (with_precompiles || !frame.is_precompile)
}

/// Visit the entries of a transaction in their order: a call before the calls it makes, its end after them.
pub fn visit(
    frames: &[Frame],
    with_precompiles: bool,
    each: &mut impl FnMut(Entry<'_>, &[usize], usize) -> Result<()>,
) -> Result<()> {
    match frames.is_empty() {
        true => Ok(()),
        false => visit_frame(frames, 0, with_precompiles, &mut Vec::new(), each),
    }
}

fn visit_frame(
    frames: &[Frame],
    index: usize,
    with_precompiles: bool,
    address: &mut Vec<usize>,
    each: &mut impl FnMut(Entry<'_>, &[usize], usize) -> Result<()>,
) -> Result<()> {
    let frame = &frames[index];
    let listed = || frame.children.iter().filter(|child| is_listed(&frames[**child], with_precompiles));
    let count = listed().count();
    each(Entry::Frame(frame), address, count + usize::from(frame.end.is_some()))?;
    for (at, child) in listed().enumerate() {
        address.push(at);
        visit_frame(frames, *child, with_precompiles, address, each)?;
        address.pop();
    }
    if let Some((contract, heir, balance)) = frame.end {
        address.push(count);
        each(Entry::End(contract, heir, balance), address, 0)?;
        address.pop();
    }
    Ok(())
}

pub fn write(out: &mut Vec<u8>, entry: &Entry<'_>, address: &[usize], subtraces: usize, place: Option<&Place>) {
    match entry {
        Entry::Frame(frame) if frame.kind.is_creation() => write_creation(out, frame),
        Entry::Frame(frame) => write_call(out, frame),
        Entry::End(contract, heir, balance) => {
            data(out, "{\"action\":{\"address\":", contract);
            wide(out, ",\"balance\":", *balance);
            data(out, ",\"refundAddress\":", heir);
            raw(out, "},\"result\":null,\"type\":\"suicide\"");
        }
    }
    decimal(out, ",\"subtraces\":", subtraces as u64);
    list(out, ",\"traceAddress\":", address, |out, one| decimal(out, "", *one as u64));
    if let Some(Place { block_hash, block_number, hash, index }) = place {
        data(out, ",\"blockHash\":", block_hash);
        decimal(out, ",\"blockNumber\":", *block_number);
        data(out, ",\"transactionHash\":", hash);
        decimal(out, ",\"transactionPosition\":", *index as u64);
    }
    out.push(b'}');
}

fn write_call(out: &mut Vec<u8>, frame: &Frame) {
    raw(out, "{\"action\":{\"callType\":\"");
    raw(
        out,
        match frame.kind {
            Kind::CallCode => "callcode",
            Kind::DelegateCall => "delegatecall",
            Kind::StaticCall => "staticcall",
            _ => "call",
        },
    );
    data(out, "\",\"from\":", frame.from);
    data(out, ",\"to\":", frame.to);
    quantity(out, ",\"gas\":", frame.gas);
    data(out, ",\"input\":", &frame.input);
    wide(out, ",\"value\":", frame.value);
    raw(out, "},\"type\":\"call\"");
    if frame.is_ok() {
        quantity(out, ",\"result\":{\"gasUsed\":", frame.gas_used);
        data(out, ",\"output\":", &frame.output);
        out.push(b'}');
    } else {
        write_failure(out, frame);
    }
}

fn write_creation(out: &mut Vec<u8>, frame: &Frame) {
    raw(out, "{\"action\":{\"creationMethod\":");
    raw(out, if frame.kind == Kind::Create2 { "\"create2\"" } else { "\"create\"" });
    data(out, ",\"from\":", frame.from);
    quantity(out, ",\"gas\":", frame.gas);
    data(out, ",\"init\":", &frame.input);
    wide(out, ",\"value\":", frame.value);
    raw(out, "},\"type\":\"create\"");
    if frame.is_ok() {
        data(out, ",\"result\":{\"address\":", frame.to);
        data(out, ",\"code\":", &frame.output);
        quantity(out, ",\"gasUsed\":", frame.gas_used);
        out.push(b'}');
    } else {
        write_failure(out, frame);
    }
}

fn write_failure(out: &mut Vec<u8>, frame: &Frame) {
    text(out, ",\"error\":", halt_phrase(frame.result));
    if frame.result == InstructionResult::Revert {
        data(out, ",\"revertReason\":", &frame.output);
    }
}

// --- traces of whole blocks ----------------------------------------------------------------------

/// Which entries are asked for, and how many of them.
pub struct Selection {
    /// Empty: any.
    pub from: AddressSet,
    pub to: AddressSet,
    pub skip: u64,
    pub left: u64,
    /// Only the entry at this address of its transaction.
    pub address: Option<Vec<usize>>,
}

impl Selection {
    pub fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Count an entry that fits; whether it is to be written.
    fn takes(&mut self, fits: bool) -> bool {
        if !fits || self.left == 0 {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.left -= 1;
        true
    }

    fn takes_entry(&mut self, entry: &Entry<'_>, address: &[usize]) -> bool {
        let fits = (self.from.is_empty() || self.from.contains(&entry.from()))
            && (self.to.is_empty() || self.to.contains(&entry.to()))
            && self.address.as_ref().is_none_or(|wanted| wanted == address);
        self.takes(fits)
    }

    /// A reward has a recipient and no sender.
    pub fn takes_reward(&mut self, author: &Address) -> bool {
        let fits = self.from.is_empty() && (self.to.is_empty() || self.to.contains(author)) && self.address.is_none();
        self.takes(fits)
    }
}

/// Writes the entries of many transactions into one list.
pub struct FlatTracer<'s> {
    pub sink: &'s mut Sink,
    recorder: FrameRecorder,
    pub selection: &'s mut Selection,
    pub is_first: &'s mut bool,
}

impl<'s> FlatTracer<'s> {
    pub fn new(sink: &'s mut Sink, selection: &'s mut Selection, is_first: &'s mut bool) -> Self {
        FlatTracer { sink, recorder: FrameRecorder::new(false, false), selection, is_first }
    }
}

record_frames!(FlatTracer<'_>);

impl Tracer for FlatTracer<'_> {
    fn sink(&mut self) -> &mut Sink {
        self.sink
    }

    fn begin(&mut self, _: &TxEnv) {
        self.recorder.clear();
    }

    fn finish(&mut self, _: &mut ExecDb, ran: &Ran) -> Result<()> {
        let FlatTracer { sink, recorder, selection, is_first } = self;
        visit(&recorder.frames, false, &mut |entry, address, subtraces| {
            if selection.takes_entry(&entry, address) {
                separate(sink, is_first);
                write(&mut sink.out, &entry, address, subtraces, ran.place.as_ref());
                sink.settle();
            }
            Ok(())
        })
    }
}

pub fn separate(sink: &mut Sink, is_first: &mut bool) {
    if !std::mem::replace(is_first, false) {
        sink.out.push(b',');
    }
}

/// The reward that ends a block, or that of one of its ommers.
pub fn write_reward(
    out: &mut Vec<u8>,
    author: &Address,
    value: alloy_primitives::U256,
    is_uncle: bool,
    block: (B256, u64),
) {
    data(out, "{\"action\":{\"author\":", author);
    raw(out, if is_uncle { ",\"rewardType\":\"uncle\"" } else { ",\"rewardType\":\"block\"" });
    wide(out, ",\"value\":", value);
    data(out, "},\"blockHash\":", block.0);
    decimal(out, ",\"blockNumber\":", block.1);
    raw(out, ",\"result\":null,\"subtraces\":0,\"traceAddress\":[],\"transactionHash\":null");
    raw(out, ",\"transactionPosition\":null,\"type\":\"reward\"}");
}

/// flatCallTracer: the entries of one transaction as a list.
pub struct FlatCallTracer<'s> {
    sink: &'s mut Sink,
    recorder: FrameRecorder,
    with_precompiles: bool,
}

impl<'s> FlatCallTracer<'s> {
    pub fn new(sink: &'s mut Sink, with_precompiles: bool) -> Self {
        FlatCallTracer { sink, recorder: FrameRecorder::new(false, false), with_precompiles }
    }
}

record_frames!(FlatCallTracer<'_>);

impl Tracer for FlatCallTracer<'_> {
    fn sink(&mut self) -> &mut Sink {
        self.sink
    }

    fn begin(&mut self, _: &TxEnv) {
        self.recorder.clear();
    }

    fn finish(&mut self, _: &mut ExecDb, ran: &Ran) -> Result<()> {
        write_list(self.sink, &self.recorder.frames, self.with_precompiles, ran.place.as_ref())
    }
}

/// All entries of one transaction in brackets.
pub fn write_list(sink: &mut Sink, frames: &[Frame], with_precompiles: bool, place: Option<&Place>) -> Result<()> {
    let mut is_first = true;
    sink.out.push(b'[');
    visit(frames, with_precompiles, &mut |entry, address, subtraces| {
        separate(sink, &mut is_first);
        write(&mut sink.out, &entry, address, subtraces, place);
        sink.settle();
        Ok(())
    })?;
    sink.out.push(b']');
    sink.settle();
    Ok(())
}

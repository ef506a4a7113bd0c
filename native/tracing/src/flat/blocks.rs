//! Flat traces: each call, creation and self-destruction as an entry of its own (json-rpc.md 7.3).

use std::borrow::Cow;

use alloy_primitives::map::AddressSet;
use alloy_primitives::{Address, B256, Bytes, U256};
use ophion_execution::evm::context::EvmContext;
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use ophion_primitives::json::{data, list, quantity, raw, wide};
use revm::context::TxEnv;
use revm::inspector::Inspector;
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, InstructionResult, Interpreter};

use crate::calls::frames::{Frame, FrameRecorder, Kind};
use crate::calls::tree::record_frames;
use crate::flat::listing::list as list_entries;
use crate::flat::turns::Turns;
use crate::output::sink::{Sink, halt};
use crate::output::text::{decimal, text, trace_words};
use crate::replay::block::{Place, Ran, Tracer};

/// What happened.
pub enum Action {
    Call {
        kind: Kind,
        from: Address,
        to: Address,
        input: Bytes,
    },
    Create {
        from: Address,
        init: Bytes,
        address: Address,
        is_create2: bool,
    },
    /// SELFDESTRUCT.
    End {
        contract: Address,
        heir: Address,
        balance: U256,
    },
}

/// What came of it.
pub struct Outcome {
    /// Below zero in entries that nothing closed.
    pub gas_used: i64,
    pub output: Option<Bytes>,
    pub code: Option<Bytes>,
}

impl Default for Outcome {
    fn default() -> Self {
        Outcome { gas_used: 0, output: Some(Bytes::new()), code: None }
    }
}

impl Outcome {
    /// Code stands instead of an output.
    pub fn set_code(&mut self, code: Bytes) {
        self.code = Some(code);
        self.output = None;
    }
}

/// One entry before it is written.
pub struct Entry {
    pub action: Action,
    pub gas: u64,
    pub value: U256,
    pub address: Vec<usize>,
    pub subtraces: usize,
    /// An entry with an error shows no outcome.
    pub error: Option<Cow<'static, str>>,
    pub revert_reason: Option<Bytes>,
    /// None for ends.
    pub outcome: Option<Outcome>,
}

impl Entry {
    pub fn new(action: Action, gas: u64, value: U256, address: Vec<usize>) -> Self {
        Entry { action, gas, value, address, subtraces: 0, error: None, revert_reason: None, outcome: None }
    }

    fn from(&self) -> Option<Address> {
        match self.action {
            Action::Call { from, .. } | Action::Create { from, .. } => Some(from),
            Action::End { .. } => None,
        }
    }

    fn to(&self) -> Option<Address> {
        match self.action {
            Action::Call { to, .. } => Some(to),
            _ => None,
        }
    }
}

/// `names_method`: entries of mined transactions say how a contract was created, those of calls do not.
fn write(out: &mut Vec<u8>, entry: &Entry, place: Option<&Place>, names_method: bool) {
    write_action(out, entry, names_method);
    match (&entry.error, &entry.outcome) {
        (Some(error), _) => text(out, ",\"error\":", error),
        (None, Some(outcome)) => write_outcome(out, &entry.action, outcome),
        (None, None) => raw(out, ",\"result\":null"),
    }
    if let Some(reason) = &entry.revert_reason {
        data(out, ",\"revertReason\":", reason);
    }
    write_address(out, entry);
    if let Some(place) = place {
        write_place(out, place);
    }
    out.push(b'}');
}

fn write_action(out: &mut Vec<u8>, entry: &Entry, names_method: bool) {
    match &entry.action {
        Action::Call { kind, from, to, input } => {
            raw(out, "{\"type\":\"call\",\"action\":{\"callType\":\"");
            raw(out, call_type(*kind));
            data(out, "\",\"from\":", from);
            data(out, ",\"to\":", to);
            data(out, ",\"input\":", input);
        }
        Action::Create { from, init, is_create2, .. } => {
            raw(out, "{\"type\":\"create\",\"action\":{");
            if names_method {
                raw(
                    out,
                    if *is_create2 { "\"creationMethod\":\"create2\"," } else { "\"creationMethod\":\"create\"," },
                );
            }
            data(out, "\"from\":", from);
            data(out, ",\"init\":", init);
        }
        Action::End { contract, heir, balance } => {
            data(out, "{\"type\":\"suicide\",\"action\":{\"address\":", contract);
            wide(out, ",\"balance\":", *balance);
            data(out, ",\"refundAddress\":", heir);
        }
    }
    if !matches!(entry.action, Action::End { .. }) {
        quantity(out, ",\"gas\":", entry.gas);
        wide(out, ",\"value\":", entry.value);
    }
    out.push(b'}');
}

fn write_address(out: &mut Vec<u8>, entry: &Entry) {
    decimal(out, ",\"subtraces\":", entry.subtraces as u64);
    list(out, ",\"traceAddress\":", &entry.address, |out, one| decimal(out, "", *one as u64));
}

fn write_place(out: &mut Vec<u8>, Place { block_hash, block_number, hash, index }: &Place) {
    data(out, ",\"blockHash\":", block_hash);
    decimal(out, ",\"blockNumber\":", *block_number);
    data(out, ",\"transactionHash\":", hash);
    decimal(out, ",\"transactionPosition\":", *index as u64);
}

fn call_type(kind: Kind) -> &'static str {
    match kind {
        Kind::CallCode => "callcode",
        Kind::DelegateCall => "delegatecall",
        Kind::StaticCall => "staticcall",
        _ => "call",
    }
}

fn write_outcome(out: &mut Vec<u8>, action: &Action, outcome: &Outcome) {
    quantity(out, ",\"result\":{\"gasUsed\":", outcome.gas_used as u64);
    if let Action::Create { address, .. } = action {
        data(out, ",\"address\":", address);
    }
    if let Some(code) = &outcome.code {
        data(out, ",\"code\":", code);
    }
    if let Some(output) = &outcome.output {
        data(out, ",\"output\":", output);
    }
    out.push(b'}');
}

/// All entries of one transaction in brackets, without the place that the transaction has.
pub fn write_list(sink: &mut Sink, entries: &[Entry], names_method: bool) {
    let mut is_first = true;
    sink.out.push(b'[');
    for entry in entries {
        separate(sink, &mut is_first);
        write(&mut sink.out, entry, None, names_method);
        sink.settle();
    }
    sink.out.push(b']');
    sink.settle();
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

    fn takes_entry(&mut self, entry: &Entry) -> bool {
        let is_among = |wanted: &AddressSet, found: Option<Address>| {
            wanted.is_empty() || found.is_some_and(|found| wanted.contains(&found))
        };
        let fits = is_among(&self.from, entry.from())
            && is_among(&self.to, entry.to())
            && self.address.as_ref().is_none_or(|wanted| *wanted == entry.address);
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
    recorder: Turns,
    pub selection: &'s mut Selection,
    pub is_first: &'s mut bool,
}

impl<'s> FlatTracer<'s> {
    pub fn new(sink: &'s mut Sink, selection: &'s mut Selection, is_first: &'s mut bool) -> Self {
        FlatTracer { sink, recorder: Turns::default(), selection, is_first }
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
        for entry in list_entries(&self.recorder, &ran.tx, &ran.result) {
            if self.selection.takes_entry(&entry) {
                separate(self.sink, self.is_first);
                write(&mut self.sink.out, &entry, ran.place.as_ref(), true);
                self.sink.settle();
            }
        }
        Ok(())
    }
}

pub fn separate(sink: &mut Sink, is_first: &mut bool) {
    if !std::mem::replace(is_first, false) {
        sink.out.push(b',');
    }
}

/// The reward that ends a block, or that of one of its ommers.
pub fn write_reward(out: &mut Vec<u8>, author: &Address, value: U256, is_uncle: bool, block: (B256, u64)) {
    data(out, "{\"action\":{\"author\":", author);
    raw(out, if is_uncle { ",\"rewardType\":\"uncle\"" } else { ",\"rewardType\":\"block\"" });
    wide(out, ",\"value\":", value);
    data(out, "},\"blockHash\":", block.0);
    decimal(out, ",\"blockNumber\":", block.1);
    raw(out, ",\"result\":null,\"subtraces\":0,\"traceAddress\":[],\"transactionHash\":null");
    raw(out, ",\"transactionPosition\":null,\"type\":\"reward\"}");
}

/// flatCallTracer: what the call tracer shows as a tree, each call before the calls it makes, as one list.
pub struct FlatCallTracer<'s> {
    sink: &'s mut Sink,
    recorder: FrameRecorder,
    options: FlatCallOptions,
}

#[derive(Clone, Copy)]
pub struct FlatCallOptions {
    pub with_precompiles: bool,
    /// Errors in the words of trace_* instead of the call tracer's.
    pub with_trace_errors: bool,
}

impl<'s> FlatCallTracer<'s> {
    pub fn new(sink: &'s mut Sink, options: FlatCallOptions) -> Self {
        FlatCallTracer { sink, recorder: FrameRecorder::new(false, false), options }
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
        self.sink.out.push(b'[');
        if let Some(root) = self.recorder.frames.first_mut() {
            root.gas = ran.tx.gas_limit;
            root.gas_used = ran.result.tx_gas_used();
            self.write_frame(0, &mut Vec::new(), ran.place.as_ref());
        }
        self.sink.out.push(b']');
        self.sink.settle();
        Ok(())
    }
}

impl FlatCallTracer<'_> {
    fn write_frame(&mut self, index: usize, address: &mut Vec<usize>, place: Option<&Place>) {
        let frames = &self.recorder.frames;
        let frame = &frames[index];
        let is_listed = |child: &&usize| {
            let child = &frames[**child];
            let is_plain = matches!(child.kind, Kind::Call | Kind::StaticCall);
            self.options.with_precompiles || !child.is_precompile || !is_plain
        };
        let children: Vec<usize> = frame.children.iter().filter(is_listed).copied().collect();
        let end = frame.end;
        let mut entry = entry_of(frame, address.clone(), self.options.with_trace_errors);
        entry.subtraces = children.len() + usize::from(end.is_some());
        self.write_entry(&entry, place);
        let count = children.len();
        for (at, child) in children.into_iter().enumerate() {
            address.push(at);
            self.write_frame(child, address, place);
            address.pop();
        }
        if let Some((contract, heir, balance)) = end {
            let mut address = address.clone();
            address.push(count);
            self.write_entry(&Entry::new(Action::End { contract, heir, balance }, 0, U256::ZERO, address), place);
        }
    }

    /// A call that stands in no block has the place of nothing.
    fn write_entry(&mut self, entry: &Entry, place: Option<&Place>) {
        let out = &mut self.sink.out;
        if out.last() != Some(&b'[') {
            out.push(b',');
        }
        write_action(out, entry, true);
        if let Some(error) = &entry.error {
            text(out, ",\"error\":", error);
        }
        if let Some(outcome) = &entry.outcome {
            write_outcome(out, &entry.action, outcome);
        }
        write_address(out, entry);
        match place {
            Some(place) => write_place(out, place),
            None => {
                raw(out, ",\"blockHash\":null,\"blockNumber\":0,\"transactionHash\":null,\"transactionPosition\":0")
            }
        }
        out.push(b'}');
        self.sink.settle();
    }
}

fn entry_of(frame: &Frame, address: Vec<usize>, with_trace_errors: bool) -> Entry {
    let mut outcome = Outcome { gas_used: frame.gas_used as i64, ..Outcome::default() };
    let action = if frame.kind.is_creation() {
        outcome.set_code(frame.output.clone());
        Action::Create {
            from: frame.from,
            init: frame.input.clone(),
            address: frame.to,
            is_create2: frame.kind == Kind::Create2,
        }
    } else {
        outcome.output = Some(frame.output.clone());
        Action::Call { kind: frame.kind, from: frame.from, to: frame.to, input: frame.input.clone() }
    };
    let mut entry = Entry::new(action, frame.gas, frame.value, address);
    entry.error = frame.error.clone().map(|words| match with_trace_errors {
        true => trace_words(&words).map_or(words.into(), Cow::Borrowed),
        false => words.into(),
    });
    // What a frame reverted with is worth showing.
    entry.outcome = (frame.is_ok() || frame.result == InstructionResult::Revert).then_some(outcome);
    entry
}

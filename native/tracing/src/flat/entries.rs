//! Entries of flat traces: one per call, creation and self-destruct (json-rpc.md 7.3).

use std::borrow::Cow;

use alloy_primitives::{Address, Bytes, U256};
use ophion_primitives::json::{data, decimal, list, quantity, raw, wide};

use crate::calls::call_frames::Kind;
use crate::output::sink::Sink;
use crate::output::text::text;
use crate::replay::block::Place;

/// The `action` of a flat trace entry.
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
    /// A self-destruct of a contract.
    End {
        contract: Address,
        heir: Address,
        balance: U256,
    },
}

/// The `result` of a flat trace entry.
pub struct Outcome {
    /// Gas used; negative in entries that Besu's algorithm never closes (besu_flat_traces.rs).
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
    /// Make the output of a creation the code of the created contract.
    pub fn set_code(&mut self, code: Bytes) {
        self.code = Some(code);
        self.output = None;
    }
}

/// An entry of a flat trace, before it is written as JSON.
pub struct Entry {
    pub action: Action,
    pub gas: u64,
    pub value: U256,
    pub address: Vec<usize>,
    pub subtraces: usize,
    /// Error text. An entry with an error shows no result.
    pub error: Option<Cow<'static, str>>,
    pub revert_reason: Option<Bytes>,
    /// Result of the trace entry; None for SELFDESTRUCT.
    pub outcome: Option<Outcome>,
}

impl Entry {
    pub fn new(action: Action, gas: u64, value: U256, address: Vec<usize>) -> Self {
        Entry { action, gas, value, address, subtraces: 0, error: None, revert_reason: None, outcome: None }
    }

    pub fn from(&self) -> Option<Address> {
        match self.action {
            Action::Call { from, .. } | Action::Create { from, .. } => Some(from),
            Action::End { .. } => None,
        }
    }

    /// Return the call kind by its name in trace_*; None for other entries.
    pub fn call_type(&self) -> Option<&'static str> {
        match self.action {
            Action::Call { kind, .. } => Some(call_type(kind)),
            _ => None,
        }
    }

    pub fn to(&self) -> Option<Address> {
        match self.action {
            Action::Call { to, .. } => Some(to),
            _ => None,
        }
    }
}

/// Write a flat trace entry for trace_*. With `names_method`, a creation has a `creationMethod`. Only traces of mined
/// transactions have this JSON key.
pub fn write(out: &mut Vec<u8>, entry: &Entry, place: Option<&Place>, names_method: bool) {
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

pub fn write_action(out: &mut Vec<u8>, entry: &Entry, names_method: bool) {
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

pub fn write_address(out: &mut Vec<u8>, entry: &Entry) {
    decimal(out, ",\"subtraces\":", entry.subtraces as u64);
    list(out, ",\"traceAddress\":", &entry.address, |out, one| decimal(out, "", *one as u64));
}

pub fn write_place(out: &mut Vec<u8>, Place { block_hash, block_number, hash, index }: &Place) {
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

pub fn write_outcome(out: &mut Vec<u8>, action: &Action, outcome: &Outcome) {
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

/// Write all trace entries of one transaction in brackets, without the transaction's position.
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

/// Write a comma before every trace entry but the first.
pub fn separate(sink: &mut Sink, is_first: &mut bool) {
    if !std::mem::replace(is_first, false) {
        sink.out.push(b',');
    }
}

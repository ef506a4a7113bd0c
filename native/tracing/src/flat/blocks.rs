//! Flat traces of blocks: trace_block, trace_filter, trace_transaction.

use alloy_primitives::map::AddressSet;
use alloy_primitives::{Address, B256, U256};
use ophion_primitives::json::{data, decimal, raw, wide};

use super::besu_flat_traces::list;
use super::call_events::CallEvents;
use super::entries::{Entry, separate, write};
use crate::output::sink::Sink;
use crate::replay::block::Ran;
use crate::replay::recording::{Recording, Report};

/// Filter and limits of trace entries.
pub struct Selection {
    /// Accepted senders; an empty set accepts any sender.
    pub from: AddressSet,
    pub to: AddressSet,
    pub skip: u64,
    pub left: u64,
    /// If set, only the trace entry with this `traceAddress` is written.
    pub address: Option<Vec<usize>>,
}

impl Selection {
    pub fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Apply `skip` and `left` to a trace entry. Returns whether to write the entry. `fits` says whether the entry
    /// matches the filter.
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
        let is_among = |selected: &AddressSet, found: Option<Address>| {
            selected.is_empty() || found.is_some_and(|found| selected.contains(&found))
        };
        let fits = is_among(&self.from, entry.from())
            && is_among(&self.to, entry.to())
            && self.address.as_ref().is_none_or(|selected| *selected == entry.address);
        self.takes(fits)
    }

    /// Return whether the filter selects the entry of a block reward. The entry has the recipient `author` and no
    /// sender.
    pub fn takes_reward(&mut self, author: &Address) -> bool {
        let fits = self.from.is_empty() && (self.to.is_empty() || self.to.contains(author)) && self.address.is_none();
        self.takes(fits)
    }
}

/// Writes the trace entries of many transactions as one list.
pub struct FlatList<'s> {
    selection: &'s mut Selection,
    is_first: &'s mut bool,
}

impl<'s> FlatList<'s> {
    pub fn tracer(sink: &'s mut Sink, selection: &'s mut Selection, is_first: &'s mut bool) -> Recording<'s, Self> {
        Recording::new(sink, CallEvents::default(), FlatList { selection, is_first })
    }
}

impl Report for FlatList<'_> {
    type Recorder = CallEvents;

    fn write(&mut self, sink: &mut Sink, recorder: &mut CallEvents, ran: &Ran) {
        for entry in list(recorder, &ran.tx, &ran.result) {
            if self.selection.takes_entry(&entry) {
                separate(sink, self.is_first);
                write(&mut sink.out, &entry, ran.place.as_ref(), true);
                sink.settle();
            }
        }
    }
}

/// Write the reward of a block or an ommer.
pub fn write_reward(out: &mut Vec<u8>, author: &Address, value: U256, is_uncle: bool, block: (B256, u64)) {
    data(out, "{\"action\":{\"author\":", author);
    raw(out, if is_uncle { ",\"rewardType\":\"uncle\"" } else { ",\"rewardType\":\"block\"" });
    wide(out, ",\"value\":", value);
    data(out, "},\"blockHash\":", block.0);
    decimal(out, ",\"blockNumber\":", block.1);
    raw(out, ",\"result\":null,\"subtraces\":0,\"traceAddress\":[],\"transactionHash\":null");
    raw(out, ",\"transactionPosition\":null,\"type\":\"reward\"}");
}

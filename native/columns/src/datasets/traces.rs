//! Datasets `traces`, `native_transfers`, `contracts` and `address_appearances`: rows from the flat traces of
//! re-executed blocks.

use alloy_primitives::{Address, B256, Log, U256, keccak256};
use ophion_storage::chain::receipts::StoredLog;
use ophion_tracing::flat::entries::{Action, Entry};
use ophion_tracing::jobs::block_observer::Transfer;
use ophion_tracing::replay::block::Place;

use super::logs::{is_erc20, is_erc721};
use crate::tables::column::Kind::{Binary, Fixed, Text, U32, U64};
use crate::tables::filter::Filter;
use crate::tables::table::{Spec, Table, wide};

pub fn specs() -> Vec<Spec> {
    let mut specs = vec![("action_from", Fixed(20)), ("action_to", Fixed(20)), ("action_value", Text)];
    specs.extend([
        ("action_gas", U32),
        ("action_input", Binary),
        ("action_call_type", Text),
        ("action_init", Binary),
        ("action_reward_type", Text),
        ("action_type", Text),
        ("result_gas_used", U32),
        ("result_output", Binary),
        ("result_code", Binary),
        ("result_address", Fixed(20)),
        ("trace_address", Text),
        ("subtraces", U32),
        ("transaction_index", U32),
        ("transaction_hash", Fixed(32)),
        ("block_number", U32),
        ("block_hash", Fixed(32)),
        ("error", Text),
        ("chain_id", U64),
    ]);
    specs
}

pub fn native_transfer_specs() -> Vec<Spec> {
    let mut specs = vec![
        ("block_number", U32),
        ("block_hash", Fixed(32)),
        ("transaction_index", U32),
        ("transfer_index", U32),
        ("transaction_hash", Fixed(32)),
        ("from_address", Fixed(20)),
        ("to_address", Fixed(20)),
    ];
    specs.extend(wide!("value_binary", "value_string", "value_f64", "value_decimal"));
    specs.push(("chain_id", U64));
    specs
}

pub fn contract_specs() -> Vec<Spec> {
    vec![
        ("block_number", U32),
        ("block_hash", Fixed(32)),
        ("create_index", U32),
        ("transaction_hash", Fixed(32)),
        ("contract_address", Fixed(20)),
        ("deployer", Fixed(20)),
        ("factory", Fixed(20)),
        ("init_code", Binary),
        ("code", Binary),
        ("init_code_hash", Fixed(32)),
        ("n_init_code_bytes", U32),
        ("n_code_bytes", U32),
        ("code_hash", Fixed(32)),
        ("chain_id", U64),
    ]
}

pub fn appearance_specs() -> Vec<Spec> {
    vec![
        ("block_number", U32),
        ("block_hash", Fixed(32)),
        ("transaction_hash", Fixed(32)),
        ("address", Fixed(20)),
        ("relationship", Text),
        ("chain_id", U64),
    ]
}

/// A re-executed block whose trace entries become table rows.
pub struct TracedRows<'a> {
    pub hash: B256,
    pub number: u32,
    /// Beneficiary of the block: the address that earns its fees.
    pub beneficiary: Address,
    pub chain_id: u64,
    pub filter: &'a Filter,
    /// Number of trace entries of the block so far.
    pub entries: u32,
    /// Number of contract creations in the block so far.
    pub creations: u32,
}

/// Return the result of a trace entry; None if the entry has an error.
fn outcome(entry: &Entry) -> Option<&ophion_tracing::flat::entries::Outcome> {
    if entry.error.is_some() { None } else { entry.outcome.as_ref() }
}

/// Return the address of the created contract; None if the trace entry is not a successful creation.
fn created(entry: &Entry) -> Option<Address> {
    match entry.action {
        Action::Create { address, .. } => outcome(entry).map(|_| address),
        _ => None,
    }
}

/// Return sender, recipient and value of a call, a creation or a self-destruct.
fn transfer(entry: &Entry) -> (Address, Option<Address>, U256) {
    match entry.action {
        Action::Call { from, to, .. } => (from, Some(to), entry.value),
        Action::Create { from, .. } => (from, created(entry), entry.value),
        Action::End { contract, heir, balance } => (contract, Some(heir), balance),
    }
}

impl TracedRows<'_> {
    pub fn traces(&mut self, table: &mut Table, place: &Place, entries: &[Entry]) {
        for entry in entries {
            let (from, to, value) = match entry.action {
                Action::Create { from, .. } => (from, None, entry.value),
                _ => transfer(entry),
            };
            if !self.filter.selects_parties(Some(from), to) {
                continue;
            }
            let (input, init, kind) = match &entry.action {
                Action::Call { input, .. } => (Some(input), None, "call"),
                Action::Create { init, .. } => (None, Some(init), "create"),
                Action::End { .. } => (None, None, "suicide"),
            };
            let outcome = outcome(entry);
            let mut row = table.row();
            row.bytes(from);
            row.address(to);
            row.decimal_text(value);
            row.maybe_u32(u32::try_from(entry.gas).ok().filter(|_| kind != "suicide"));
            row.maybe_bytes(input);
            row.maybe_bytes(entry.call_type().map(call_type));
            row.maybe_bytes(init);
            row.maybe_bytes(None::<&str>);
            row.bytes(kind);
            row.maybe_u32(outcome.and_then(|outcome| u32::try_from(outcome.gas_used).ok()));
            row.maybe_bytes(outcome.and_then(|outcome| outcome.output.as_ref()));
            row.maybe_bytes(outcome.and_then(|outcome| outcome.code.as_ref()));
            row.address(created(entry));
            row.with(|column| column.bytes(address_text(&entry.address).as_bytes()));
            row.u32(entry.subtraces as u32);
            row.u32(place.index as u32);
            row.bytes(place.hash);
            row.u32(self.number);
            row.bytes(self.hash);
            row.maybe_bytes(entry.error.as_deref());
            row.u64(self.chain_id);
            row.end();
        }
    }

    pub fn trace_transfer(&mut self, table: &mut Table, place: &Place, transfer: &Transfer) {
        if !self.filter.selects_parties(Some(transfer.from), Some(transfer.to)) {
            return;
        }
        let mut row = table.row();
        row.bytes(transfer.from);
        row.bytes(transfer.to);
        row.decimal_text(transfer.value);
        row.maybe_u32(u32::try_from(transfer.gas).ok());
        row.bytes("");
        row.bytes("call");
        (0..2).for_each(|_| row.maybe_bytes(None::<&str>));
        row.bytes("call");
        row.u32(0);
        row.bytes("");
        row.maybe_bytes(None::<&str>);
        row.address(None);
        row.bytes("");
        row.u32(0);
        row.u32(place.index as u32);
        row.bytes(place.hash);
        row.u32(self.number);
        row.bytes(self.hash);
        row.maybe_bytes(None::<&str>);
        row.u64(self.chain_id);
        row.end();
    }

    pub fn trace_reward(&mut self, table: &mut Table, author: Address, value: U256, is_uncle: bool) {
        if !self.filter.selects_parties(Some(author), None) {
            return;
        }
        let mut row = table.row();
        row.bytes(author);
        row.address(None);
        row.decimal_text(value);
        row.maybe_u32(None);
        (0..3).for_each(|_| row.maybe_bytes(None::<&str>));
        row.bytes(if is_uncle { "uncle" } else { "reward" });
        row.bytes("reward");
        row.maybe_u32(None);
        (0..2).for_each(|_| row.maybe_bytes(None::<&str>));
        row.address(None);
        row.bytes("");
        row.u32(0);
        row.maybe_u32(None);
        row.hash(None);
        row.u32(self.number);
        row.bytes(self.hash);
        row.maybe_bytes(None::<&str>);
        row.u64(self.chain_id);
        row.end();
    }

    pub fn native_transfers(&mut self, table: &mut Table, place: &Place, entries: &[Entry]) {
        for entry in entries {
            let (from, to, value) = transfer(entry);
            self.native_transfer(table, Some(place), from, to.unwrap_or_default(), value);
        }
    }

    pub fn native_transfer(
        &mut self,
        table: &mut Table,
        place: Option<&Place>,
        from: Address,
        to: Address,
        value: U256,
    ) {
        let index = self.entries;
        self.entries += 1;
        if !self.filter.selects_parties(Some(from), Some(to)) {
            return;
        }
        let mut row = table.row();
        row.u32(self.number);
        row.bytes(self.hash);
        row.maybe_u32(place.map(|place| place.index as u32));
        row.u32(index);
        row.hash(place.map(|place| place.hash));
        row.bytes(from);
        row.bytes(to);
        row.wide(value);
        row.u64(self.chain_id);
        row.end();
    }

    pub fn contracts(&mut self, table: &mut Table, place: &Place, entries: &[Entry]) {
        let deployer = entries.first().map(|entry| transfer(entry).0).unwrap_or_default();
        for entry in entries {
            let (Action::Create { from, init, .. }, Some(address)) = (&entry.action, created(entry)) else { continue };
            let index = self.creations;
            self.creations += 1;
            if !self.filter.selects_parties(Some(*from), Some(address)) {
                continue;
            }
            let code = outcome(entry).and_then(|outcome| outcome.code.clone()).unwrap_or_default();
            let mut row = table.row();
            row.u32(self.number);
            row.bytes(self.hash);
            row.u32(index);
            row.bytes(place.hash);
            row.bytes(address);
            row.bytes(deployer);
            row.bytes(from);
            row.bytes(init);
            row.bytes(&code);
            row.with(|column| column.bytes(keccak256(init).as_slice()));
            row.u32(init.len() as u32);
            row.u32(code.len() as u32);
            row.with(|column| column.bytes(keccak256(&code).as_slice()));
            row.u64(self.chain_id);
            row.end();
        }
    }

    pub fn appearances(&mut self, table: &mut Table, place: &Place, logs: &[Log], entries: &[Entry]) {
        self.appear(table, place, self.beneficiary, "miner_fee");
        for log in logs {
            let topics: Vec<u8> = log.data.topics().iter().flat_map(|topic| topic.0).collect();
            let stored = StoredLog {
                transaction: place.index,
                index: 0,
                address: log.address.as_slice(),
                topics: &topics,
                data: &log.data.data,
            };
            let (from, to) = match (is_erc20(&stored), is_erc721(&stored)) {
                (true, _) => ("erc20_transfer_from", "erc20_transfer_to"),
                (_, true) => ("erc721_transfer_from", "erc721_transfer_to"),
                _ => continue,
            };
            self.appear(table, place, Address::from_slice(&topics[44..64]), from);
            self.appear(table, place, Address::from_slice(&topics[76..96]), to);
        }
        if let Some(first) = entries.first() {
            self.appear(table, place, transfer(first).0, "tx_from");
            if let Some(to) = transfer(first).1 {
                self.appear(table, place, to, "tx_to");
            }
        }
        for entry in entries {
            let (from, to, _) = transfer(entry);
            let (sender, recipient) = match entry.action {
                Action::Call { .. } => ("call_from", "call_to"),
                Action::Create { .. } => ("factory", "create"),
                Action::End { .. } => ("suicide", "suicide_refund"),
            };
            self.appear(table, place, from, sender);
            if let Some(to) = to {
                self.appear(table, place, to, recipient);
            }
        }
    }

    pub fn transfer_appearances(&mut self, table: &mut Table, place: &Place, transfer: &Transfer) {
        self.appear(table, place, self.beneficiary, "miner_fee");
        for (from, to) in [("tx_from", "tx_to"), ("call_from", "call_to")] {
            self.appear(table, place, transfer.from, from);
            self.appear(table, place, transfer.to, to);
        }
    }

    fn appear(&self, table: &mut Table, place: &Place, address: Address, relationship: &str) {
        if !self.filter.addresses.is_empty() && !self.filter.addresses.contains(&address) {
            return;
        }
        let mut row = table.row();
        row.u32(self.number);
        row.bytes(self.hash);
        row.bytes(place.hash);
        row.bytes(address);
        row.bytes(relationship);
        row.u64(self.chain_id);
        row.end();
    }
}

/// Return the name that cryo uses for a call kind.
fn call_type(name: &'static str) -> &'static str {
    match name {
        "callcode" => "call_code",
        "delegatecall" => "delegate_call",
        "staticcall" => "static_call",
        other => other,
    }
}

fn address_text(address: &[usize]) -> String {
    address.iter().map(usize::to_string).collect::<Vec<_>>().join("_")
}

//! Converts call events to flat trace entries, by the rules of Besu 21.10.
//!
//! Besu has a stack of open entries. Every RETURN, STOP, REVERT, SELFDESTRUCT and halt closes the topmost entry. If a
//! creation or the code of a new contract was rejected, the topmost entry belongs to another frame. Ophion gives the
//! same output: docs/decisions/0030-besu-compatible-trace-output.md lists these cases.

use alloy_primitives::{Address, Bytes, U256};
use revm::context::TxEnv;
use revm::context_interface::result::ExecutionResult;
use revm::interpreter::InstructionResult;

use super::call_events::{CallEvent, CallEvents, Precompiled, Step};
use super::entries::{Action, Entry, Outcome};
use crate::calls::call_frames::Kind;
use crate::output::text::halt_phrase;
use crate::struct_logs::instruction_cost::CALL_STIPEND;

/// Gas per byte of deployed contract code.
const CODE_DEPOSIT: i64 = 200;

/// A flat trace entry whose call or creation has not ended yet.
struct Open {
    entry: usize,
    is_create_instruction: bool,
}

struct Listing<'a> {
    events: &'a CallEvents,
    entries: Vec<Entry>,
    open: Vec<Open>,
    /// Gas that the transaction has left, including refunds.
    gas_left: u64,
    /// The contract that the transaction itself created; None for a call transaction.
    created: Option<Address>,
}

/// Return the flat trace entries of a finished transaction.
pub fn list(events: &CallEvents, tx: &TxEnv, result: &ExecutionResult) -> Vec<Entry> {
    let created = tx.kind.is_create().then_some(events.root.1);
    let gas_left = tx.gas_limit.saturating_sub(result.tx_gas_used());
    let mut listing = Listing { events, entries: Vec::new(), open: Vec::new(), gas_left, created };
    listing.begin(tx, result);
    for step in &events.steps {
        listing.take(step);
        if listing.open.is_empty() {
            break;
        }
    }
    listing.entries
}

impl Listing<'_> {
    fn begin(&mut self, tx: &TxEnv, result: &ExecutionResult) {
        let mut gas = self.events.root.0;
        let mut outcome = Outcome::default();
        let action = match self.created {
            Some(address) => {
                let code =
                    if result.is_success() { result.output().cloned().unwrap_or_default() } else { Bytes::new() };
                outcome.set_code(code);
                Action::Create { from: tx.caller, init: tx.data.clone(), address, is_create2: self.events.has_create2 }
            }
            None => {
                let to = tx.kind.to().copied().unwrap_or_default();
                Action::Call { kind: Kind::Call, from: tx.caller, to, input: tx.data.clone() }
            }
        };
        if let Some(Precompiled { price, result, .. }) = &self.events.root_precompiled {
            outcome.gas_used = *price as i64;
            // the EVM has not charged the price of a precompiled contract that ran out of gas, so add the price to
            // `gas`
            if *result == InstructionResult::PrecompileOOG {
                gas += price;
            }
        }
        let mut entry = Entry::new(action, gas, tx.value, Vec::new());
        entry.outcome = Some(outcome);
        entry.revert_reason = match result {
            ExecutionResult::Revert { output, .. } => Some(output.clone()),
            _ => None,
        };
        if self.created.is_none() && self.has_reverting_end(0) {
            entry.error = Some("Reverted".into());
        }
        self.push(entry, false);
    }

    fn take(&mut self, step: &Step) {
        match &step.event {
            CallEvent::Call { precompiled: Some(precompiled), kind, to, .. } => {
                self.list_precompiled(step, *kind, *to, precompiled);
                return;
            }
            CallEvent::Call { kind, to, child: Some(child), .. } => {
                let from = self.calling_address();
                let action = Action::Call { kind: *kind, from, to: *to, input: child.input.clone() };
                // start with the value of the caller, as Besu 21.10 does; a CALLDATALOAD of the callee replaces it
                let mut entry = Entry::new(action, child.gas, step.value, self.next_address());
                entry.outcome = Some(Outcome { gas_used: -(step.spent as i64), ..Outcome::default() });
                if self.has_reverting_end(step.depth + 1) {
                    entry.error = Some("Reverted".into());
                }
                self.push(entry, false);
            }
            CallEvent::Create { child, init } if step.halt.is_none() || step.depth == 0 => {
                let from = self.created.unwrap_or_else(|| self.calling_address());
                let has_next =
                    child.is_some() || step.halt.is_none_or(|halt| halt == InstructionResult::CreateCollision);
                let (address, value) = match child {
                    Some(child) => (child.recipient, child.value),
                    None if has_next => (step.recipient, step.value),
                    None => (Address::ZERO, U256::ZERO),
                };
                let left = step.gas.saturating_sub(step.cost);
                let is_create2 = self.events.has_create2;
                let action = Action::Create { from, init: init.clone(), address, is_create2 };
                let mut entry = Entry::new(action, left - left / 64, value, self.next_address());
                entry.outcome = Some(Outcome { gas_used: -(step.spent as i64), ..Outcome::default() });
                self.push(entry, true);
            }
            CallEvent::Load => self.top().value = step.value,
            CallEvent::Return { is_stop, output, code, refund } => {
                self.close_well(step, *is_stop, output, code, *refund)
            }
            CallEvent::SelfDestruct { heir, balance } if step.halt.is_none() => self.destroy(step, *heir, *balance),
            CallEvent::Revert => {
                self.top().error = Some("Reverted".into());
                self.close();
            }
            _ => {}
        }
        if let Some(halt) = step.halt {
            let error = Some(halt_phrase(halt).into());
            if self.open.is_empty() {
                self.entries.last_mut().expect("the outermost entry").error = error;
                return;
            }
            let top = self.top();
            top.error = error;
            top.value = step.value;
            self.close();
        }
    }

    fn close_well(&mut self, step: &Step, is_stop: bool, output: &Bytes, code: &Bytes, refund: i64) {
        let is_root = self.open.len() == 1;
        let is_create_instruction = self.open.last().is_some_and(|open| open.is_create_instruction);
        let (gas_left, root_gas) = (self.gas_left, self.events.root.0);
        let top = self.top();
        top.value = step.value;
        let used = if !is_root {
            top.gas as i64 - step.gas as i64
        } else if gas_left > step.gas {
            root_gas as i64 - step.gas as i64
        } else {
            root_gas as i64 - gas_left as i64 + refund
        };
        let outcome = top.outcome.as_mut().expect("only ends have none");
        outcome.gas_used = used;
        let is_creation = if let Action::Create { init, .. } = &mut top.action {
            *init = code.clone();
            true
        } else {
            false
        };
        if is_creation {
            outcome.set_code(output.clone());
            if is_create_instruction {
                outcome.gas_used += output.len() as i64 * CODE_DEPOSIT;
            }
        } else {
            outcome.output = Some(output.clone());
        }
        if is_stop && used == 0 {
            // subtract the call stipend from `gas_used` of the enclosing entries; the output shows this `gas_used` only
            // for entries that are never closed
            let last = self.open.len() - 1;
            for open in self.open.iter().take(last).skip(1) {
                if let Some(outcome) = &mut self.entries[open.entry].outcome {
                    outcome.gas_used -= CALL_STIPEND as i64;
                }
            }
        }
        self.close();
    }

    fn destroy(&mut self, step: &Step, heir: Address, balance: U256) {
        let address = self.next_address();
        let top = self.top();
        top.subtraces += 1;
        let used = top.gas as i64 - step.gas as i64 + step.cost as i64;
        top.outcome.as_mut().expect("only ends have none").gas_used = used;
        let contract = match &top.action {
            Action::Call { kind: Kind::Call, to, .. } => *to,
            Action::Call { from, .. } => *from,
            _ => step.recipient,
        };
        self.entries.push(Entry::new(Action::End { contract, heir, balance }, 0, U256::ZERO, address));
        self.close();
    }

    /// Add a trace entry for a call of a precompiled contract if the call transfers value.
    fn list_precompiled(&mut self, step: &Step, kind: Kind, to: Address, precompiled: &Precompiled) {
        if precompiled.value.is_zero() {
            return;
        }
        let action = Action::Call { kind, from: step.recipient, to, input: precompiled.input.clone() };
        let mut entry = Entry::new(action, precompiled.gas, precompiled.value, self.next_address());
        entry.outcome = Some(Outcome {
            gas_used: precompiled.price as i64,
            output: Some(precompiled.output.clone()),
            ..Outcome::default()
        });
        entry.error = (!precompiled.result.is_ok()).then(|| halt_phrase(precompiled.result).into());
        self.entries.push(entry);
        self.top().subtraces += 1;
    }

    /// Return whether the first RETURN or REVERT at this call depth is a REVERT.
    fn has_reverting_end(&self, depth: usize) -> bool {
        self.events.first_end_reverts.get(depth).copied().flatten() == Some(true)
    }

    /// Return the address whose code runs in the topmost open trace entry.
    fn calling_address(&self) -> Address {
        match &self.entries[self.open.last().expect("an open entry").entry].action {
            Action::Call { kind: Kind::DelegateCall | Kind::CallCode, from, .. } => *from,
            Action::Call { to, .. } => *to,
            Action::Create { address, .. } => *address,
            Action::End { .. } => Address::ZERO,
        }
    }

    fn next_address(&self) -> Vec<usize> {
        self.open.iter().map(|open| self.entries[open.entry].subtraces).collect()
    }

    fn push(&mut self, entry: Entry, is_create_instruction: bool) {
        self.open.push(Open { entry: self.entries.len(), is_create_instruction });
        self.entries.push(entry);
    }

    fn top(&mut self) -> &mut Entry {
        &mut self.entries[self.open.last().expect("an open entry").entry]
    }

    fn close(&mut self) {
        self.open.pop();
        if let Some(above) = self.open.last() {
            self.entries[above.entry].subtraces += 1;
        }
    }
}

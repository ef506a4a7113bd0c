//! prestateTracer: values of accessed accounts and slots before the transaction, and their changes (json-rpc.md 7.3).
//!
//! As in geth, the trace includes an account or slot when an instruction has it as an operand, not when the EVM loads
//! it. For example, a failed creation still names the address of the contract.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::map::AddressSet;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use ophion_execution::evm::context::{EvmContext, created_address};
use ophion_execution::evm::database::ExecDb;
use ophion_primitives::errors::Result;
use ophion_primitives::json::{data, decimal, raw, wide};
use revm::bytecode::opcode as op;
use revm::context::{Block, ContextTr, JournalTr, TxEnv};
use revm::context_interface::transaction::AuthorizationTr;
use revm::database_interface::Database;
use revm::inspector::Inspector;
use revm::interpreter::interpreter_types::{InputsTr, Jumps, LoopControl};
use revm::interpreter::{
    CallInputs, CallOutcome, CreateInputs, CreateOutcome, InstructionResult, Interpreter, InterpreterAction,
};
use revm::primitives::hardfork::SpecId;
use revm::state::{Account, AccountInfo};

use crate::output::sink::{Sink, halt};
use crate::replay::block::{Ran, Tracer};

#[derive(Clone, Copy)]
pub struct PrestateOptions {
    pub is_diff: bool,
    pub with_code: bool,
    pub with_storage: bool,
    /// Whether to show accounts that were empty or did not exist before the transaction.
    pub with_empty: bool,
}

pub struct PrestateTracer<'s> {
    sink: &'s mut Sink,
    options: PrestateOptions,
    /// Whether EIP-6780 applies: SELFDESTRUCT deletes only contracts created in the same transaction.
    only_new_ones_go: bool,
    /// Accounts that instructions have had as operands, with the slots of each account.
    named: BTreeMap<Address, BTreeSet<U256>>,
    created: AddressSet,
    deleted: AddressSet,
    /// Account or slot that the current instruction has as an operand.
    naming: Option<Naming>,
}

enum Naming {
    Account(Address),
    Callee(Address),
    Heir(Address),
    Slot(U256),
}

impl<'s> PrestateTracer<'s> {
    pub fn new(sink: &'s mut Sink, options: PrestateOptions, spec: SpecId) -> Self {
        PrestateTracer {
            sink,
            options,
            only_new_ones_go: spec.is_enabled_in(SpecId::CANCUN),
            named: BTreeMap::new(),
            created: AddressSet::default(),
            deleted: AddressSet::default(),
            naming: None,
        }
    }

    fn name(&mut self, address: Address) {
        self.named.entry(address).or_default();
    }

    /// Add a called account to the trace. For a delegated account (EIP-7702), also add the account whose code runs.
    fn name_callee(&mut self, address: Address, context: &mut EvmContext) {
        self.name(address);
        let code = context.journal().evm_state().get(&address).and_then(|account| account.info.code.as_ref());
        if let Some(target) = code.and_then(|code| code.eip7702_address()) {
            self.name(target);
        }
    }
}

/// Return whether the instruction halted before it did any work. The trace does not include the account or slot of such
/// an instruction.
fn is_before_work(result: InstructionResult) -> bool {
    let is_in_work = matches!(
        result,
        InstructionResult::StateChangeDuringStaticCall | InstructionResult::CallNotAllowedInsideStatic
    );
    !result.is_ok_or_revert() && !is_in_work
}

impl Inspector<EvmContext> for PrestateTracer<'_> {
    fn step(&mut self, interpreter: &mut Interpreter, _: &mut EvmContext) {
        if self.sink.tick() {
            halt(interpreter);
            return;
        }
        let stack = interpreter.stack.data();
        let address = |at: usize| Address::from_word(stack[stack.len() - at].into());
        self.naming = match interpreter.bytecode.opcode() {
            op::SLOAD | op::SSTORE if !stack.is_empty() => Some(Naming::Slot(stack[stack.len() - 1])),
            op::BALANCE | op::EXTCODESIZE | op::EXTCODECOPY | op::EXTCODEHASH if !stack.is_empty() => {
                Some(Naming::Account(address(1)))
            }
            op::SELFDESTRUCT if !stack.is_empty() => Some(Naming::Heir(address(1))),
            op::CALL | op::CALLCODE | op::DELEGATECALL | op::STATICCALL if stack.len() >= 5 => {
                Some(Naming::Callee(address(2)))
            }
            _ => None,
        };
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        let Some(naming) = self.naming.take() else { return };
        if let Some(InterpreterAction::Return(result)) = interpreter.bytecode.action()
            && is_before_work(result.result)
        {
            return;
        }
        let contract = interpreter.input.target_address();
        match naming {
            Naming::Account(address) => self.name(address),
            Naming::Callee(address) => self.name_callee(address, context),
            Naming::Heir(address) => {
                self.name(address);
                if !self.only_new_ones_go || self.created.contains(&contract) {
                    self.deleted.insert(contract);
                }
            }
            Naming::Slot(slot) => {
                self.named.entry(contract).or_default().insert(slot);
            }
        }
    }

    fn call(&mut self, context: &mut EvmContext, inputs: &mut CallInputs) -> Option<CallOutcome> {
        if context.journal().depth() == 0 {
            self.name(context.block().beneficiary());
            self.name_callee(inputs.target_address, context);
        }
        None
    }

    fn create(&mut self, context: &mut EvmContext, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        let address = created_address(context, inputs);
        self.name(context.block().beneficiary());
        self.name(address);
        self.created.insert(address);
        None
    }
}

impl Tracer for PrestateTracer<'_> {
    fn sink(&mut self) -> &mut Sink {
        self.sink
    }

    fn begin(&mut self, tx: &TxEnv) {
        self.named.clear();
        self.created.clear();
        self.deleted.clear();
        self.name(tx.caller);
        for authority in tx.authorization_list.iter().filter_map(AuthorizationTr::authority) {
            self.name(authority);
        }
    }

    fn finish(&mut self, db: &mut ExecDb, ran: &Ran) -> Result<()> {
        let named = std::mem::take(&mut self.named);
        if self.options.is_diff {
            self.write_diff(db, &named, ran)?;
        } else {
            self.write_pre(db, &named)?;
        }
        self.sink.settle();
        Ok(())
    }
}

/// The fields of an account that the trace shows, before or after the transaction.
#[derive(Default)]
struct Shown {
    balance: Option<U256>,
    nonce: u64,
    code: Option<Bytes>,
    code_hash: Option<B256>,
    storage: BTreeMap<U256, U256>,
}

impl Shown {
    /// Write the account as one entry of a JSON object, keyed by its address.
    fn write(&self, out: &mut Vec<u8>, address: &Address) {
        data(out, if matches!(out.last(), None | Some(b'{')) { "" } else { "," }, address);
        raw(out, ":{");
        let mut comma = "";
        if let Some(balance) = self.balance {
            wide(out, "\"balance\":", balance);
            comma = ",";
        }
        if self.nonce > 0 {
            raw(out, comma);
            decimal(out, "\"nonce\":", self.nonce);
            comma = ",";
        }
        if let Some(code) = &self.code {
            raw(out, comma);
            data(out, "\"code\":", code);
            comma = ",";
        }
        if let Some(hash) = &self.code_hash {
            raw(out, comma);
            data(out, "\"codeHash\":", hash);
            comma = ",";
        }
        if !self.storage.is_empty() {
            raw(out, comma);
            raw(out, "\"storage\":{");
            for (at, (slot, value)) in self.storage.iter().enumerate() {
                data(out, if at > 0 { "," } else { "" }, slot.to_be_bytes::<32>());
                data(out, ":", value.to_be_bytes::<32>());
            }
            out.push(b'}');
        }
        out.push(b'}');
    }
}

impl PrestateTracer<'_> {
    fn shown(&self, db: &mut ExecDb, info: &AccountInfo) -> Result<Shown> {
        let has_code = info.code_hash != KECCAK256_EMPTY;
        Ok(Shown {
            balance: Some(info.balance),
            nonce: info.nonce,
            code: if has_code && self.options.with_code { Some(db.code_of(info)?) } else { None },
            code_hash: has_code.then_some(info.code_hash),
            storage: BTreeMap::new(),
        })
    }

    /// Return whether an account appears in the state before the transaction. Empty accounts appear only on request.
    fn is_shown(&self, before: &AccountInfo) -> bool {
        self.options.with_empty || !before.is_empty()
    }

    fn write_pre(&mut self, db: &mut ExecDb, named: &BTreeMap<Address, BTreeSet<U256>>) -> Result<()> {
        self.sink.out.push(b'{');
        for (address, slots) in named {
            let before = db.info(address)?.unwrap_or_default();
            if !self.is_shown(&before) {
                continue;
            }
            let mut shown = self.shown(db, &before)?;
            for slot in slots.iter().filter(|_| self.options.with_storage) {
                shown.storage.insert(*slot, db.storage(*address, *slot)?);
            }
            shown.write(&mut self.sink.out, address);
        }
        self.sink.out.push(b'}');
        Ok(())
    }

    fn write_diff(&mut self, db: &mut ExecDb, named: &BTreeMap<Address, BTreeSet<U256>>, ran: &Ran) -> Result<()> {
        let (mut pre, mut post) = (Vec::new(), Vec::new());
        for (address, slots) in named {
            let was = db.info(address)?.unwrap_or_default();
            let account = ran.changes.get(address);
            let is_gone = self.deleted.contains(address);
            let mut left = self.shown(db, &was)?;
            let (mut right, mut is_changed) = match is_gone {
                true => (Shown::default(), true),
                false => self.changed(db, &was, &after(&was, account))?,
            };
            for slot in slots.iter().filter(|_| self.options.with_storage) {
                let before = db.storage(*address, *slot)?;
                let now = value_after(before, account, slot);
                // a deleted account has no slots after the transaction, so show all its slots in the state before the
                // transaction
                if is_gone || before != now && !before.is_zero() {
                    left.storage.insert(*slot, before);
                }
                if !is_gone && before != now {
                    is_changed = true;
                    if !now.is_zero() {
                        right.storage.insert(*slot, now);
                    }
                }
            }
            if is_changed && self.is_shown(&was) {
                left.write(&mut pre, address);
            }
            if is_changed && !is_gone {
                right.write(&mut post, address);
            }
        }
        let out = &mut self.sink.out;
        raw(out, "{\"pre\":{");
        out.extend_from_slice(&pre);
        raw(out, "},\"post\":{");
        out.extend_from_slice(&post);
        raw(out, "}}");
        Ok(())
    }

    /// Return the changed fields of an account, and whether any field changed.
    fn changed(&self, db: &mut ExecDb, was: &AccountInfo, now: &AccountInfo) -> Result<(Shown, bool)> {
        // as in geth, a nonexistent account has hash zero, while an account without code has the hash of empty code
        let code_hash = if now.is_empty() { B256::ZERO } else { now.code_hash };
        let shown = Shown {
            balance: (now.balance != was.balance).then_some(now.balance),
            nonce: if now.nonce != was.nonce { now.nonce } else { 0 },
            code: match now.code_hash != was.code_hash && now.code_hash != KECCAK256_EMPTY && self.options.with_code {
                true => Some(db.code_of(now)?),
                false => None,
            },
            code_hash: (code_hash != was.code_hash).then_some(code_hash),
            storage: BTreeMap::new(),
        };
        // An account that is empty before and after the transaction has not changed.
        let is_other_code = shown.code_hash.is_some() && !(was.is_empty() && now.is_empty());
        let is_changed = shown.balance.is_some() || now.nonce != was.nonce || is_other_code;
        Ok((shown, is_changed))
    }
}

/// Return an account as it is after the transaction.
fn after(was: &AccountInfo, account: Option<&Account>) -> AccountInfo {
    match account {
        Some(account) if account.is_selfdestructed() => AccountInfo::default(),
        Some(account) if account.is_touched() => account.info.clone(),
        _ => was.clone(),
    }
}

fn value_after(before: U256, account: Option<&Account>, slot: &U256) -> U256 {
    match account {
        Some(account) if account.is_selfdestructed() => U256::ZERO,
        Some(account) => account.storage.get(slot).map_or(before, |value| value.present_value),
        None => before,
    }
}

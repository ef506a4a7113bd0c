//! eth_simulateV1: one simulated block with overrides and calls as unsigned transactions.
//!
//! A simulated block uses `Run` like a real block, so roots, receipts, requests and system calls have one
//! implementation. Only the calls run in a separate EVM, which collects logs and may move precompiled contracts.

use alloy_consensus::{Signed, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy};
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, B256, Bytes, Log, LogData, Signature, TxKind, U256, address, b256};
use alloy_rlp::{Encodable, Header};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::body::{BodyData, Envelope, Known, Tx};
use ophion_storage::state::StateData;
use revm::bytecode::opcode::SELFDESTRUCT;
use revm::context::{CfgEnv, TxEnv};
use revm::context_interface::either::Either;
use revm::context_interface::result::{EVMError, ExecutionResult, InvalidTransaction};
use revm::database_interface::DatabaseCommit;
use revm::handler::{EthPrecompiles, ExecuteEvm};
use revm::inspector::{InspectEvm, Inspector};
use revm::interpreter::interpreter_types::{Jumps, LoopControl};
use revm::interpreter::{
    CallInputs, CallOutcome, CallScheme, CreateInputs, CreateOutcome, InstructionResult, Interpreter,
    InterpreterAction, InterpreterResult,
};
use revm::primitives::hardfork::SpecId;

use super::call_request::has_fees;
use super::eth_call::{BEYOND_ALL_MONEY, exceeds_any_balance, no_database};
use super::outcome::{refusal_text, settled};
use crate::block::block_execution::{ExecutionData, Run};
use crate::evm::block_environment::BlockEnv;
use crate::evm::context::{EvmContext, created_address, inheritance};
use crate::evm::database::ExecDb;
use crate::evm::evm_builder;
use crate::evm::overrides::{AccountOverride, overridden};
use crate::evm::precompiles::Precompiles;

/// Address that seems to emit the logs of ether transfers. These logs have the form of ERC-20 transfer logs.
const TRANSFER_EMITTER: Address = address!("eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee");
const TRANSFER_TOPIC: B256 = b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

/// A call whose nonce, gas and type may be missing.
pub struct SimulatedCall<'a> {
    pub members: &'a TxEnv,
    pub gas: Option<u64>,
    pub nonce: Option<u64>,
    /// Whether the call has `gasPrice` instead of the fees of EIP-1559.
    pub is_legacy: bool,
}

pub struct Rules<'a> {
    pub overrides: &'a [&'a AccountOverride],
    pub withdrawals: Option<&'a [Withdrawal]>,
    pub rewards: &'a [(Address, U256)],
    pub is_validating: bool,
    pub with_transfers: bool,
    /// Gas left for the whole simulation.
    pub gas_left: u64,
}

/// Result of a simulated call.
pub struct CallResult {
    pub result: ExecutionResult,
    /// Logs of the call, each with its index in the block.
    pub logs: Vec<(u64, Log)>,
}

pub struct SimulatedData {
    pub execution: ExecutionData,
    pub body: BodyData,
    pub calls: Vec<CallResult>,
}

/// Return whether an address is a precompiled contract in this block.
pub fn is_precompile(env: &BlockEnv, address: &Address) -> bool {
    EthPrecompiles::new(env.fork.spec).contains(address)
}

pub fn simulate(
    parent: &StateData,
    env: &BlockEnv,
    rules: &Rules<'_>,
    calls: &[SimulatedCall<'_>],
    is_late: impl Fn() -> bool,
) -> Result<SimulatedData> {
    let mut db = overridden(parent, env, rules.overrides)?;
    for one in rules.overrides {
        // An account without nonce, balance and code counts as nonexistent, even if an override made it empty.
        let is_empty = db.info(&one.address)?.is_some_and(|info| info.is_empty());
        if is_empty && env.fork.has(SpecId::SPURIOUS_DRAGON) {
            db.set_info(&one.address, None)?;
        }
    }
    let mut run = Run::on(db, parent, env, false)?;
    let mut gas_used = 0;
    let mut collector = LogCollector { with_transfers: rules.with_transfers, frames: Vec::new(), ending: None };
    let (mut txs, mut known, mut results, mut next_log) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for call in calls {
        if is_late() {
            return Err(Error::Timeout("the simulation took too long".into()));
        }
        let tx_env = complete(run.db(), env, rules, call, gas_used)?;
        let tx = unsigned(&tx_env, env.rules.chain_id)?;
        known.push(Known { hash: tx.hash(), sender: tx_env.caller });
        collector.frames.clear();
        let db = std::mem::replace(run.db(), no_database());
        let (db, outcome) = run_call(env, db, rules, &mut collector, tx_env);
        *run.db() = db;
        let result = outcome?;
        gas_used += result.tx_gas_used();
        let logs = collector.frames.pop().unwrap_or_default();
        let logs = logs.into_iter().filter(|_| result.is_success());
        let logs: Vec<(u64, Log)> = logs.enumerate().map(|(at, log)| (next_log + at as u64, log)).collect();
        next_log += logs.len() as u64;
        run.accept(&tx, result.clone())?;
        txs.push(tx);
        results.push(CallResult { result, logs });
    }
    let execution = run.finish(rules.withdrawals, rules.rewards)?;
    let withdrawals = rules.withdrawals.map(<[_]>::to_vec);
    let body = BodyData::new(txs, Vec::new(), withdrawals).with_known(known);
    Ok(SimulatedData { execution, body, calls: results })
}

/// Fill in the nonce, gas and type of a simulated call if they are missing.
fn complete(
    db: &mut ExecDb,
    env: &BlockEnv,
    rules: &Rules<'_>,
    call: &SimulatedCall<'_>,
    gas_used: u64,
) -> Result<TxEnv> {
    let mut tx = call.members.clone();
    tx.nonce = match call.nonce {
        Some(nonce) => nonce,
        None => db.info(&tx.caller)?.map_or(0, |info| info.nonce),
    };
    let left = env.gas_limit.saturating_sub(gas_used);
    let gas = call.gas.unwrap_or(left);
    if gas > left {
        return Err(Error::Refused(format!("block-gas: block gas limit reached: {gas_used} >= {}", env.gas_limit)));
    }
    tx.gas_limit = gas.min(rules.gas_left.saturating_sub(gas_used));
    tx.chain_id = Some(env.rules.chain_id);
    tx.tx_type = if !tx.authorization_list.is_empty() {
        4
    } else if !tx.blob_hashes.is_empty() {
        3
    } else if !call.is_legacy && env.fork.has(SpecId::LONDON) {
        2
    } else {
        u8::from(!tx.access_list.is_empty())
    };
    if tx.tx_type >= 2 {
        tx.gas_priority_fee = Some(tx.gas_priority_fee.unwrap_or(0));
    }
    Ok(tx)
}

fn config(env: &BlockEnv, rules: &Rules<'_>, tx: &TxEnv) -> CfgEnv {
    let mut cfg = env.cfg();
    cfg.tx_chain_id_check = false;
    cfg.disable_nonce_check = !rules.is_validating;
    // a simulated transaction may have a contract as sender, and may exceed the gas limit of the block
    cfg.disable_eip3607 = true;
    cfg.disable_block_gas_limit = true;
    cfg.disable_base_fee = !rules.is_validating && !has_fees(tx);
    cfg.tx_gas_limit_cap = Some(u64::MAX);
    cfg
}

fn run_call(
    env: &BlockEnv,
    db: ExecDb,
    rules: &Rules<'_>,
    collector: &mut LogCollector,
    tx: TxEnv,
) -> (ExecDb, Result<ExecutionResult>) {
    let (mut db, mut tx) = (db, tx);
    if exceeds_any_balance(&tx) {
        return (db, Err(Error::Refused(BEYOND_ALL_MONEY.into())));
    }
    if let Err(cause) = settle_last_nonce(&mut db, rules, &mut tx) {
        return (db, Err(cause));
    }
    let precompiles = match Precompiles::overridden(env, rules.overrides) {
        Ok(precompiles) => precompiles,
        Err(cause) => return (db, Err(cause)),
    };
    let mut evm = evm_builder::build(env, db, config(env, rules, &tx), collector);
    evm.precompiles = precompiles;
    let outcome = evm.inspect_one_tx(tx);
    let changes = evm.finalize();
    let mut db = evm.ctx.journaled_state.database;
    let outcome = match outcome {
        Ok(result) => {
            db.commit(changes);
            Ok(settled(result))
        }
        Err(EVMError::Database(cause)) => Err(cause),
        Err(EVMError::Transaction(cause)) => Err(Error::Refused(refusal(&cause))),
        Err(cause) => Err(Error::Refused(format!("other: {cause}"))),
    };
    (db, outcome)
}

/// Handle a transaction with the maximum nonce, which revm rejects before it reads the account. With nonce checks, a
/// lower nonce of the account gives the error "nonce too high"; otherwise revm reports its own error. Without nonce
/// checks, the call runs with the nonce below the maximum.
fn settle_last_nonce(db: &mut ExecDb, rules: &Rules<'_>, tx: &mut TxEnv) -> Result<()> {
    if tx.nonce < u64::MAX {
        return Ok(());
    }
    if !rules.is_validating {
        tx.nonce -= 1;
        return Ok(());
    }
    let state = db.info(&tx.caller)?.map_or(0, |info| info.nonce);
    if state < tx.nonce {
        let cause = InvalidTransaction::NonceTooHigh { tx: tx.nonce, state };
        return Err(Error::Refused(refusal(&cause)));
    }
    Ok(())
}

fn refusal(cause: &InvalidTransaction) -> String {
    use InvalidTransaction as I;
    match cause {
        I::NonceTooLow { .. } => format!("nonce-low: {cause}"),
        I::NonceTooHigh { .. } => format!("nonce-high: {cause}"),
        _ => refusal_text(cause),
    }
}

// --- transactions without a signature ------------------------------------------------------------

fn unsigned(tx: &TxEnv, chain_id: u64) -> Result<Tx> {
    let no_signature = Signature::new(U256::ZERO, U256::ZERO, false);
    let to = match tx.kind {
        TxKind::Call(to) => Some(to),
        TxKind::Create => None,
    };
    let recipient = || to.ok_or_else(|| Error::Refused("other: a transaction of this type needs a recipient".into()));
    let (nonce, gas_limit, value, input) = (tx.nonce, tx.gas_limit, tx.value, tx.data.clone());
    let access_list = tx.access_list.clone();
    let max_priority_fee_per_gas = tx.gas_priority_fee.unwrap_or(0);
    let envelope: Envelope = match tx.tx_type {
        0 => {
            let legacy =
                TxLegacy { chain_id: None, nonce, gas_price: tx.gas_price, gas_limit, to: tx.kind, value, input };
            let raw = unsigned_legacy(&legacy);
            return Ok(Tx { envelope: Envelope::Legacy(Signed::new_unhashed(legacy, no_signature)), raw });
        }
        1 => {
            let listed = TxEip2930 {
                chain_id,
                nonce,
                gas_price: tx.gas_price,
                gas_limit,
                to: tx.kind,
                value,
                access_list,
                input,
            };
            Envelope::Eip2930(Signed::new_unhashed(listed, no_signature))
        }
        3 => {
            let blobs = TxEip4844 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas: tx.gas_price,
                max_priority_fee_per_gas,
                to: recipient()?,
                value,
                access_list,
                blob_versioned_hashes: tx.blob_hashes.clone(),
                max_fee_per_blob_gas: tx.max_fee_per_blob_gas,
                input,
            };
            Envelope::Eip4844(Signed::new_unhashed(blobs, no_signature))
        }
        4 => {
            let authorization_list = tx
                .authorization_list
                .iter()
                .filter_map(|one| match one {
                    Either::Left(signed) => Some(signed.clone()),
                    Either::Right(_) => None,
                })
                .collect();
            let setting = TxEip7702 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas: tx.gas_price,
                max_priority_fee_per_gas,
                to: recipient()?,
                value,
                access_list,
                authorization_list,
                input,
            };
            Envelope::Eip7702(Signed::new_unhashed(setting, no_signature))
        }
        _ => {
            let fee_market = TxEip1559 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas: tx.gas_price,
                max_priority_fee_per_gas,
                to: tx.kind,
                value,
                access_list,
                input,
            };
            Envelope::Eip1559(Signed::new_unhashed(fee_market, no_signature))
        }
    };
    let raw = envelope.encoded_2718().into();
    Ok(Tx { envelope, raw })
}

/// Encode a legacy transaction with v, r and s set to zero.
fn unsigned_legacy(tx: &TxLegacy) -> Bytes {
    let mut payload = Vec::new();
    tx.nonce.encode(&mut payload);
    tx.gas_price.encode(&mut payload);
    tx.gas_limit.encode(&mut payload);
    tx.to.encode(&mut payload);
    tx.value.encode(&mut payload);
    tx.input.encode(&mut payload);
    payload.extend([0x80; 3]);
    let mut out = Vec::with_capacity(payload.len() + 4);
    Header { list: true, payload_length: payload.len() }.encode(&mut out);
    out.extend(payload);
    out.into()
}

// --- logs ----------------------------------------------------------------------------------------

/// Collects the logs and ether transfers of a call, and drops those of failed frames.
struct LogCollector {
    with_transfers: bool,
    frames: Vec<Vec<Log>>,
    ending: Option<(Address, Address, U256)>,
}

impl LogCollector {
    fn transfer(&mut self, from: Address, to: Address, value: U256) {
        if !self.with_transfers || value.is_zero() {
            return;
        }
        let topics = vec![TRANSFER_TOPIC, from.into_word(), to.into_word()];
        let data = LogData::new_unchecked(topics, Bytes::copy_from_slice(&value.to_be_bytes::<32>()));
        if let Some(frame) = self.frames.last_mut() {
            frame.push(Log { address: TRANSFER_EMITTER, data });
        }
    }

    fn leave(&mut self, result: &InterpreterResult) {
        let Some(logs) = self.frames.pop() else { return };
        match self.frames.last_mut() {
            Some(parent) if result.is_ok() => parent.extend(logs),
            Some(_) => {}
            // The outermost frame has no parent, so its logs are the logs of the call.
            None => self.frames.push(logs),
        }
    }
}

impl Inspector<EvmContext> for LogCollector {
    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext) {
        if interpreter.bytecode.opcode() == SELFDESTRUCT && self.with_transfers {
            self.ending = inheritance(interpreter, context);
        }
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, _: &mut EvmContext) {
        let Some((contract, heir, balance)) = self.ending.take() else { return };
        if let Some(InterpreterAction::Return(result)) = interpreter.bytecode.action()
            && result.result == InstructionResult::SelfDestruct
        {
            self.transfer(contract, heir, balance);
        }
    }

    fn log(&mut self, _: &mut EvmContext, log: Log) {
        if let Some(frame) = self.frames.last_mut() {
            frame.push(log);
        }
    }

    fn call(&mut self, _: &mut EvmContext, inputs: &mut CallInputs) -> Option<CallOutcome> {
        self.frames.push(Vec::new());
        if matches!(inputs.scheme, CallScheme::Call | CallScheme::CallCode) {
            self.transfer(inputs.caller, inputs.bytecode_address, inputs.call_value());
        }
        None
    }

    fn call_end(&mut self, _: &mut EvmContext, _: &CallInputs, outcome: &mut CallOutcome) {
        self.leave(&outcome.result);
    }

    fn create(&mut self, context: &mut EvmContext, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        self.frames.push(Vec::new());
        let created = created_address(context, inputs);
        self.transfer(inputs.caller(), created, inputs.value());
        None
    }

    fn create_end(&mut self, _: &mut EvmContext, _: &CreateInputs, outcome: &mut CreateOutcome) {
        self.leave(&outcome.result);
    }
}

//! Executes one private transaction on the state of its group.
//!
//! A private transaction reads the state of its group first, then the public state after the block. It changes only the
//! state of the group. It pays no fees and needs no balance. Its gas limit is part of the signed transaction, so all
//! members get the same result.

use alloy_primitives::{Address, B256, Bytes, Log, TxKind, U256, keccak256};
use ophion_execution::call::outcome::refusal_text;
use ophion_execution::evm::block_environment::BlockEnv;
use ophion_execution::evm::context::EvmContext;
use ophion_execution::evm::database::ExecDb;
use ophion_execution::evm::evm_builder::{self, Evm};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::state::View;
use ophion_storage::trie::{Account, Trie};
use revm::context::{CfgEnv, TxEnv};
use revm::context_interface::CreateScheme;
use revm::context_interface::result::{EVMError, ExecutionResult};
use revm::database_interface::DatabaseCommit;
use revm::handler::ExecuteEvm;
use revm::inspector::{InspectEvm, Inspector};
use revm::interpreter::{CreateInputs, CreateOutcome};
use revm::state::{AccountInfo, Bytecode, EvmState};

use crate::flexible_groups;
use crate::transaction::Unsigned;

/// Maximum gas of a private transaction. The value is a constant, because all members must agree on it.
pub const MAX_PRIVATE_GAS: u64 = 1_000_000_000;

/// Computes the address of a contract that a private transaction creates. Contracts that other contracts create use the
/// standard rule.
#[derive(Default)]
pub struct CreationAddress {
    pub address: Option<Address>,
}

impl Inspector<EvmContext> for CreationAddress {
    fn create(&mut self, _: &mut EvmContext, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        if let Some(address) = self.address.take() {
            inputs.set_scheme(CreateScheme::Custom { address });
        }
        None
    }
}

/// Result of executing a private transaction.
pub struct ExecutionOutcome {
    pub is_success: bool,
    pub output: Bytes,
    pub revert_data: Bytes,
    pub reason: String,
    pub logs: Vec<Log>,
    pub codes: Vec<(B256, Bytecode)>,
}

impl ExecutionOutcome {
    pub fn failed(reason: String) -> Self {
        let (output, revert_data) = (Bytes::new(), Bytes::new());
        ExecutionOutcome { is_success: false, output, revert_data, reason, logs: Vec::new(), codes: Vec::new() }
    }
}

/// An EVM for the private transactions of one block.
pub struct Machine<'a> {
    env: &'a BlockEnv,
    evm: Evm<CreationAddress>,
}

/// Return the EVM configuration of a block, without checks that do not apply to private transactions.
pub fn private_cfg(env: &BlockEnv) -> CfgEnv {
    let mut cfg = env.cfg();
    cfg.tx_chain_id_check = false;
    cfg.disable_eip3607 = true;
    cfg.disable_block_gas_limit = true;
    cfg.disable_base_fee = true;
    cfg.disable_balance_check = true;
    cfg.disable_fee_charge = true;
    cfg.tx_gas_limit_cap = Some(u64::MAX);
    cfg
}

/// Convert a private transaction to revm's transaction type.
pub fn private_tx_env(fields: &Unsigned, sender: Address) -> TxEnv {
    TxEnv {
        caller: sender,
        gas_limit: fields.gas_limit.min(MAX_PRIVATE_GAS),
        // Cap the gas price, because revm's multiplication could overflow. No fees are paid, so only contracts see the
        // price.
        gas_price: fields.gas_price.min(u128::from(u64::MAX)),
        kind: fields.to.map_or(TxKind::Create, TxKind::Call),
        data: fields.data.clone(),
        nonce: fields.nonce,
        ..TxEnv::default()
    }
}

/// Open the state of a group, with an account for the sender. An account has a separate nonce in every group.
pub fn private_db(view: View, env: &BlockEnv, sender: &Address) -> Result<ExecDb> {
    let is_known = view.trie_account(&keccak256(sender))?.is_some();
    let mut db = ExecDb::new(view, env.ancestors());
    if !is_known {
        db.set_info(sender, Some(AccountInfo::default()))?;
    }
    Ok(db)
}

/// Return the nonce of an account in a group.
pub fn private_nonce(view: &View, account: &Address) -> Result<u64> {
    Ok(view.trie_account(&keccak256(account))?.map_or(0, |account| account.nonce))
}

impl<'a> Machine<'a> {
    pub fn new(view: View, env: &'a BlockEnv) -> Self {
        let db = ExecDb::new(view, env.ancestors());
        Machine { env, evm: evm_builder::build(env, db, private_cfg(env), CreationAddress::default()) }
    }

    /// Return the state on which `run` executes. Before each transaction, the caller sets root, trie and layers of the
    /// group.
    pub fn view(&mut self) -> &mut View {
        &mut evm_builder::db(&mut self.evm).view
    }

    /// Run a transaction whose nonce was checked. If the transaction succeeds, update the trie. With `founds`, the
    /// transaction creates a flexible group, whose contracts are installed first.
    pub fn run(
        &mut self,
        trie: &mut Trie<Account>,
        fields: &Unsigned,
        sender: Address,
        created: Option<Address>,
        founds: bool,
    ) -> Result<ExecutionOutcome> {
        let place = std::mem::replace(evm_builder::db(&mut self.evm), ophion_execution::call::eth_call::no_database());
        *evm_builder::db(&mut self.evm) = private_db(place.view, self.env, &sender)?;
        if founds {
            flexible_groups::found(evm_builder::db(&mut self.evm))?;
        }
        let tx = private_tx_env(fields, sender);
        self.evm.inspector.address = created;
        let result = match created {
            Some(_) => self.evm.inspect_one_tx(tx),
            None => self.evm.transact_one(tx),
        };
        let mut changes = self.evm.finalize();
        let ended = match result {
            Ok(result) => result,
            Err(EVMError::Database(cause)) => return Err(cause),
            Err(EVMError::Transaction(cause)) => return Ok(ExecutionOutcome::failed(refusal_text(&cause))),
            Err(cause) => return Ok(ExecutionOutcome::failed(format!("{cause}"))),
        };
        let (output, logs) = match ended {
            ExecutionResult::Success { output, logs, .. } => (output.into_data(), logs),
            ExecutionResult::Revert { output, .. } => {
                return Ok(ExecutionOutcome {
                    revert_data: output,
                    ..ExecutionOutcome::failed("execution reverted".into())
                });
            }
            halted => return Ok(ExecutionOutcome::failed(ophion_execution::call::outcome::summary(halted).2)),
        };
        let db = evm_builder::db(&mut self.evm);
        let own =
            if founds { &[sender, flexible_groups::PROXY, flexible_groups::MANAGEMENT][..] } else { &[sender][..] };
        if let Some(address) = public_change(&db.view, &mut changes, own)? {
            return Ok(ExecutionOutcome::failed(format!("public state cannot be changed: {address}")));
        }
        db.commit(changes);
        db.update_trie(trie)?;
        let codes = db.new_codes().map(|(hash, code)| (*hash, code.clone())).collect();
        Ok(ExecutionOutcome { is_success: true, output, revert_data: Bytes::new(), reason: String::new(), logs, codes })
    }
}

/// Return the first account of the public state that a private transaction would change, although it must not; None if
/// it changes none. A contract that is created at an address with a public balance is private, and gets the balance
/// zero.
fn public_change(view: &View, changes: &mut EvmState, own: &[Address]) -> Result<Option<Address>> {
    let Some(public) = &view.public else { return Err(Error::Storage("the state is not private".into())) };
    for (address, account) in changes.iter_mut() {
        if !account.is_touched() || own.contains(address) {
            continue;
        }
        let hash = keccak256(address);
        if view.trie_account(&hash)?.is_some() {
            continue;
        }
        let Some(before) = public.account(address, &hash)? else { continue };
        if account.is_created() {
            account.info.balance = U256::ZERO;
            continue;
        }
        let info = &account.info;
        let is_same = (info.nonce, info.balance, info.code_hash) == (before.nonce, before.balance, before.code_hash);
        if !is_same || account.is_selfdestructed() || account.storage.values().any(|slot| slot.is_changed()) {
            return Ok(Some(*address));
        }
    }
    Ok(None)
}

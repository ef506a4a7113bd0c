//! The EVM as we use it: revm's mainnet EVM over `ExecDb`, with the storage gas of Constantinople where asked for.

use alloy_consensus::transaction::Transaction as _;
use alloy_primitives::Address;
use revm::bytecode::opcode::SSTORE;
use revm::context::{BlockEnv as EvmBlock, CfgEnv, Context, ContextTr, Journal, TxEnv};
use revm::context_interface::either::Either;
use revm::handler::instructions::EthInstructions;
use revm::handler::{EthFrame, MainBuilder};
use revm::interpreter::instructions::host::sstore_with_gas_accounting;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_types::{InterpreterTypes, RuntimeFlag};
use revm::interpreter::{Host, Instruction, InstructionContext, InstructionExecResult, InstructionResult};

use crate::body::Tx;
use crate::env::BlockEnv;
use crate::exec_db::ExecDb;
use crate::precompiles::Precompiles;

pub type EvmContext = Context<EvmBlock, TxEnv, CfgEnv, ExecDb, Journal<ExecDb>, ()>;
pub type Evm<I = ()> = revm::context::Evm<
    EvmContext,
    I,
    EthInstructions<EthInterpreter, EvmContext>,
    Precompiles,
    EthFrame<EthInterpreter>,
>;

pub fn context(env: &BlockEnv, db: ExecDb, cfg: CfgEnv) -> EvmContext {
    EvmContext::new(db, env.fork.spec).with_cfg(cfg).with_block(env.block())
}

pub fn build<I>(env: &BlockEnv, db: ExecDb, cfg: CfgEnv, inspector: I) -> Evm<I> {
    let mut evm =
        context(env, db, cfg).build_mainnet_with_inspector(inspector).with_precompiles(Precompiles::of(env.fork.spec));
    if env.fork.is_constantinople {
        evm.instruction.insert_instruction(SSTORE, Instruction::new(sstore_eip1283), 0);
    }
    evm
}

pub fn db<I>(evm: &mut Evm<I>) -> &mut ExecDb {
    evm.ctx.db_mut()
}

/// SSTORE with net gas metering (EIP-1283). The prices are in the gas table (env.rs); the rule is the one that
/// Istanbul took up again.
fn sstore_eip1283<W: InterpreterTypes, H: Host + ?Sized>(
    context: InstructionContext<'_, H, W>,
) -> InstructionExecResult {
    sstore_with_gas_accounting(context, |context, _, load| {
        debug_assert!(!context.interpreter.runtime_flag.is_static());
        let cost = context.host.gas_params().sstore_dynamic_gas(true, &load.data, false);
        if !context.interpreter.gas.record_regular_cost(cost) {
            return Err(InstructionResult::OutOfGas);
        }
        let refund = context.host.gas_params().sstore_refund(true, &load.data);
        context.interpreter.gas.record_refund(refund);
        Ok(())
    })
}

/// A transaction as revm wants it.
pub fn tx_env(tx: &Tx, sender: Address) -> TxEnv {
    let envelope = &tx.envelope;
    TxEnv {
        tx_type: envelope.tx_type() as u8,
        caller: sender,
        gas_limit: envelope.gas_limit(),
        gas_price: envelope.max_fee_per_gas(),
        kind: envelope.kind(),
        value: envelope.value(),
        data: envelope.input().clone(),
        nonce: envelope.nonce(),
        chain_id: envelope.chain_id(),
        access_list: envelope.access_list().cloned().unwrap_or_default(),
        gas_priority_fee: envelope.max_priority_fee_per_gas(),
        blob_hashes: envelope.blob_versioned_hashes().map(<[_]>::to_vec).unwrap_or_default(),
        max_fee_per_blob_gas: envelope.max_fee_per_blob_gas().unwrap_or_default(),
        authorization_list: envelope
            .authorization_list()
            .map(|list| list.iter().cloned().map(Either::Left).collect())
            .unwrap_or_default(),
    }
}

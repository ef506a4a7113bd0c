//! Builds EVMs: revm's mainnet EVM over `ExecDb`, with EIP-1283 gas for Constantinople.

use revm::bytecode::opcode::SSTORE;
use revm::context::{CfgEnv, ContextTr};
use revm::handler::instructions::EthInstructions;
use revm::handler::{EthFrame, MainBuilder};
use revm::interpreter::instructions::host::{sstore_default_gas_accounting, sstore_with_gas_accounting};
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_types::{InterpreterTypes, RuntimeFlag};
use revm::interpreter::{
    Host, Instruction, InstructionContext, InstructionExecResult, InstructionResult, SStoreResult, StateLoad,
};

use super::block_environment::BlockEnv;
use super::context::EvmContext;
use super::database::ExecDb;
use super::precompiles::Precompiles;

pub type Evm<I = ()> = revm::context::Evm<
    EvmContext,
    I,
    EthInstructions<EthInterpreter, EvmContext>,
    Precompiles,
    EthFrame<EthInterpreter>,
>;

pub fn build<I>(env: &BlockEnv, db: ExecDb, cfg: CfgEnv, inspector: I) -> Evm<I> {
    unwatched(env, db, cfg).with_inspector(inspector)
}

/// Build an EVM without deadline checks. This function is not generic, so that all instructions are compiled once in
/// this crate.
#[inline(never)]
fn unwatched(env: &BlockEnv, db: ExecDb, cfg: CfgEnv) -> Evm {
    let context = EvmContext::new(db, env.fork.spec).with_cfg(cfg).with_block(env.block());
    let mut evm = context.build_mainnet().with_precompiles(Precompiles::of(env));
    if env.fork.is_constantinople {
        evm.instruction.insert_instruction(SSTORE, Instruction::new(sstore_eip1283), 0);
    }
    evm
}

pub fn db<I>(evm: &mut Evm<I>) -> &mut ExecDb {
    evm.ctx.db_mut()
}

/// Let the EVM run several transactions as one, so that SSTORE gas depends on the slot values before the first of them.
pub fn count_from_start<I>(env: &BlockEnv, evm: &mut Evm<I>) {
    evm.ctx.db_mut().count_from_start();
    let sstore = if env.fork.is_constantinople { sstore_from_start::<true> } else { sstore_from_start::<false> };
    evm.instruction.insert_instruction(SSTORE, Instruction::new(sstore), 0);
}

/// Run SSTORE with net gas metering (EIP-1283). The prices are in block_environment.rs. From Istanbul on, the rule is
/// the same with other prices (EIP-2200).
fn sstore_eip1283<W: InterpreterTypes, H: Host + ?Sized>(
    context: InstructionContext<'_, H, W>,
) -> InstructionExecResult {
    sstore_with_gas_accounting(context, |context, _, load| account_eip1283(context, load))
}

fn sstore_from_start<const IS_EIP1283: bool>(
    context: InstructionContext<'_, EvmContext, EthInterpreter>,
) -> InstructionExecResult {
    let slot = context.interpreter.stack.data().last().copied().unwrap_or_default();
    sstore_with_gas_accounting(context, |context, target, load| {
        let mut load = load.clone();
        if let Some(value) = context.host.db().original_value_of(&target, &slot) {
            load.data.original_value = value;
        }
        if IS_EIP1283 { account_eip1283(context, &load) } else { sstore_default_gas_accounting(context, target, &load) }
    })
}

fn account_eip1283<W: InterpreterTypes, H: Host + ?Sized>(
    context: &mut InstructionContext<'_, H, W>,
    load: &StateLoad<SStoreResult>,
) -> InstructionExecResult {
    debug_assert!(!context.interpreter.runtime_flag.is_static());
    let cost = context.host.gas_params().sstore_dynamic_gas(true, &load.data, false);
    if !context.interpreter.gas.record_regular_cost(cost) {
        return Err(InstructionResult::OutOfGas);
    }
    let refund = context.host.gas_params().sstore_refund(true, &load.data);
    context.interpreter.gas.record_refund(refund);
    Ok(())
}

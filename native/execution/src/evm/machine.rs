//! The EVM as we use it: revm's mainnet EVM over `ExecDb`, with the storage gas of Constantinople where asked for.

use revm::bytecode::opcode::SSTORE;
use revm::context::{CfgEnv, ContextTr};
use revm::handler::instructions::EthInstructions;
use revm::handler::{EthFrame, MainBuilder};
use revm::interpreter::instructions::host::sstore_with_gas_accounting;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_types::{InterpreterTypes, RuntimeFlag};
use revm::interpreter::{Host, Instruction, InstructionContext, InstructionExecResult, InstructionResult};

use super::context::EvmContext;
use super::database::ExecDb;
use super::env::BlockEnv;
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

/// Not generic, so that all instructions are compiled here and once, not again for every crate that builds an EVM.
#[inline(never)]
fn unwatched(env: &BlockEnv, db: ExecDb, cfg: CfgEnv) -> Evm {
    let context = EvmContext::new(db, env.fork.spec).with_cfg(cfg).with_block(env.block());
    let mut evm = context.build_mainnet().with_precompiles(Precompiles::of(env.fork.spec));
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

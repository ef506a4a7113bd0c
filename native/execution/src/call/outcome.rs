//! Outcome of a call.

use alloy_primitives::Bytes;
use revm::context_interface::result::{ExecutionResult, HaltReason, InvalidTransaction, OutOfGasError, Output};

pub struct CallOutcome {
    pub kind: &'static str,
    pub output: Bytes,
    pub gas_used: u64,
    /// Gas used before refunds.
    pub gas_spent: u64,
    pub reason: String,
}

impl CallOutcome {
    pub fn invalid(reason: String) -> Self {
        CallOutcome { kind: "invalid", output: Bytes::new(), gas_used: 0, gas_spent: 0, reason }
    }

    pub fn has_returned(&self) -> bool {
        self.kind == "returned"
    }

    pub fn of(result: ExecutionResult) -> Self {
        let result = settled(result);
        let gas = *result.gas();
        let (kind, output, reason) = summary(result);
        CallOutcome { kind, output, gas_used: gas.tx_gas_used(), gas_spent: gas.total_gas_spent(), reason }
    }
}

/// Correct the result of a contract creation by an account with the maximum nonce. Such a creation fails, although revm
/// reports success.
pub fn settled(result: ExecutionResult) -> ExecutionResult {
    match result {
        ExecutionResult::Success { output: Output::Create(_, None), gas, logs, .. } => {
            ExecutionResult::Halt { reason: HaltReason::NonceOverflow, gas, logs }
        }
        other => other,
    }
}

/// Return the status of a finished call, its output, and the reason of a halt. The reason is empty unless the call
/// halted.
pub fn summary(result: ExecutionResult) -> (&'static str, Bytes, String) {
    match result {
        ExecutionResult::Success { output, .. } => ("returned", output.into_data(), String::new()),
        ExecutionResult::Revert { output, .. } => ("reverted", output, String::new()),
        ExecutionResult::Halt { reason, .. } => ("halted", Bytes::new(), halt_text(&reason)),
    }
}

/// Return the halt reason in the wording that client tools expect.
fn halt_text(reason: &HaltReason) -> String {
    match reason {
        HaltReason::OutOfGas(OutOfGasError::ReentrancySentry) => "not enough gas for reentrancy sentry".into(),
        HaltReason::OutOfGas(_) => "out of gas".into(),
        HaltReason::OpcodeNotFound | HaltReason::InvalidFEOpcode => "invalid opcode".into(),
        HaltReason::InvalidJump => "invalid jump destination".into(),
        HaltReason::StackUnderflow => "stack underflow".into(),
        HaltReason::StackOverflow => "stack limit reached 1024".into(),
        HaltReason::OutOfOffset => "return data out of bounds".into(),
        HaltReason::CreateCollision => "contract address collision".into(),
        HaltReason::CreateContractSizeLimit => "max code size exceeded".into(),
        HaltReason::CreateContractStartingWithEF => "invalid code: must not begin with 0xef".into(),
        HaltReason::CreateInitCodeSizeLimit => "max initcode size exceeded".into(),
        HaltReason::NonceOverflow => "nonce uint64 overflow".into(),
        HaltReason::StateChangeDuringStaticCall | HaltReason::CallNotAllowedInsideStatic => "write protection".into(),
        HaltReason::OutOfFunds => "insufficient balance for transfer".into(),
        HaltReason::CallTooDeep => "max call depth exceeded".into(),
        other => format!("{other:?}"),
    }
}

/// Describe why revm rejects a transaction: a code that Python evaluates, a colon, and the reason as text.
pub fn refusal_text(cause: &InvalidTransaction) -> String {
    use InvalidTransaction as I;
    let code = match cause {
        I::CallGasCostMoreThanGasLimit { .. } | I::GasFloorMoreThanGasLimit { .. } => "intrinsic-gas",
        I::LackOfFundForMaxFee { .. } | I::OverflowPaymentInTransaction => "balance",
        I::GasPriceLessThanBasefee => "fee-below-base",
        I::PriorityFeeGreaterThanMaxFee => "tip-above-fee",
        I::CreateInitCodeSizeLimit => "init-code",
        I::NonceOverflowInTransaction => "nonce",
        I::NonceTooLow { .. } => "nonce-low",
        I::NonceTooHigh { .. } => "nonce-gap",
        I::InvalidChainId => "chain-id",
        _ => "other",
    };
    format!("{code}: {cause}")
}

//! eth_estimateGas: gas that suffices for a call.

use std::time::Instant;

use ophion_primitives::errors::Result;
use ophion_storage::state::StateData;
use revm::context::TxEnv;

use super::call_request::CallRequest;
use super::eth_call::{or_refusal, run_watched, with_evm};
use super::outcome::CallOutcome;
use crate::evm::block_environment::BlockEnv;
use crate::evm::evm_builder::Evm;
use crate::evm::overrides::AccountOverride;

const PLAIN_TRANSFER_GAS: u64 = 21_000;

/// Estimate the gas of a call. Returns the estimate and the outcome of one run of the call: with 21,000 gas if this
/// suffices for a plain transfer, else with the maximum gas. The estimate is 0 if the call fails even with the maximum
/// gas.
pub fn estimate_gas(
    state: &StateData,
    env: &BlockEnv,
    request: &CallRequest,
    overrides: &[&AccountOverride],
    cap: u64,
    deadline: Instant,
) -> Result<(u64, CallOutcome)> {
    let tx = request.transaction(env.fork);
    let found = with_evm(state, env, request.cfg(env), overrides, deadline, |evm| estimate(evm, tx, cap));
    or_refusal(found, |outcome| (0, outcome))
}

/// Search the gas limit by bisection (json-rpc.md 5.5, eth_estimateGas). The search stops within 1.5 percent of the
/// minimum.
fn estimate(evm: &mut Evm, tx: TxEnv, cap: u64) -> Result<(u64, CallOutcome)> {
    let is_plain = tx.data.is_empty();
    let mut try_with = |gas: u64| {
        let mut tx = tx.clone();
        tx.gas_limit = gas;
        run_watched(evm, tx)
    };
    if is_plain && cap >= PLAIN_TRANSFER_GAS {
        let outcome = try_with(PLAIN_TRANSFER_GAS)?;
        if outcome.has_returned() {
            return Ok((PLAIN_TRANSFER_GAS, outcome));
        }
    }
    let with_most = try_with(cap)?;
    if !with_most.has_returned() {
        return Ok((0, with_most));
    }
    let (mut low, mut high) = (with_most.gas_spent - 1, cap);
    // Each call retains 1/64 of the caller's gas (EIP-150), so try slightly more than the used gas first.
    let likely = (with_most.gas_spent + 2300).saturating_mul(64) / 63;
    let mut likely = Some(likely).filter(|gas| *gas < high);
    let is_wide = |low: u64, high: u64| high - low > 1 && (high - low) as f64 / high as f64 >= 0.015;
    while likely.is_some() || is_wide(low, high) {
        let gas = likely.take().unwrap_or(low + (high - low) / 2);
        let outcome = try_with(gas)?;
        match outcome.kind {
            "timeout" => return Ok((0, outcome)),
            "returned" => high = gas,
            _ => low = gas,
        }
    }
    Ok((high, with_most))
}

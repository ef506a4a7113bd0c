//! Access list of a call (eth_createAccessList).

use std::time::Instant;

use alloy_eips::eip2930::AccessList;
use ophion_primitives::deadline::is_over;
use ophion_primitives::errors::Result;
use ophion_storage::state::StateData;
use revm::inspector::InspectEvm;
use revm_inspectors::access_list::AccessListInspector;

use super::call_request::{CallRequest, typed};
use super::eth_call::{BEYOND_ALL_MONEY, concluded, exceeds_any_balance, or_refusal};
use super::outcome::CallOutcome;
use crate::evm::block_environment::BlockEnv;
use crate::evm::deadline_watch;
use crate::evm::evm_builder;
use crate::evm::overrides::{AccountOverride, overridden};
use crate::evm::precompiles::Precompiles;

/// Build the access list of a call. Returns the list and the outcome of the call with that list.
pub fn access_list(
    state: &StateData,
    env: &BlockEnv,
    request: &CallRequest,
    overrides: &[&AccountOverride],
    deadline: Instant,
) -> Result<(AccessList, CallOutcome)> {
    or_refusal(settled(state, env, request, overrides, deadline), |outcome| (AccessList::default(), outcome))
}

/// Maximum number of runs of a call. Code that reads its remaining gas may touch other slots in each run, so its access
/// list may never converge.
const MAX_ROUNDS: u32 = 16;

/// Repeat a call with the access list of the previous run, until a run touches exactly the accounts and slots of the
/// list; at most `MAX_ROUNDS` times, and not after the deadline.
fn settled(
    state: &StateData,
    env: &BlockEnv,
    request: &CallRequest,
    overrides: &[&AccountOverride],
    deadline: Instant,
) -> Result<(AccessList, CallOutcome)> {
    let db = overridden(state, env, overrides)?;
    let mut tx = request.members.clone();
    let mut evm = evm_builder::build(env, db, request.cfg(env), AccessListInspector::default());
    evm.precompiles = Precompiles::overridden(env, overrides)?;
    deadline_watch::install(&mut evm.instruction);
    let _watching = deadline_watch::until(deadline);
    if exceeds_any_balance(&tx) {
        return Ok((tx.access_list, CallOutcome::invalid(BEYOND_ALL_MONEY.into())));
    }
    for round in 1.. {
        evm.inspector = AccessListInspector::new(tx.access_list.clone());
        let result = evm.inspect_one_tx(typed(tx.clone(), env.fork));
        let outcome = concluded(&mut evm, result)?;
        let touched = std::mem::take(&mut evm.inspector).into_access_list();
        let is_final = matches!(outcome.kind, "invalid" | "timeout") || round == MAX_ROUNDS;
        if touched == tx.access_list || is_final || is_over(deadline) {
            return Ok((touched, outcome));
        }
        tx.access_list = touched;
    }
    unreachable!("the last round returns")
}

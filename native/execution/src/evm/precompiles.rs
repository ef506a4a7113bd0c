//! Precompiled contracts, which overrides may move elsewhere or replace (`movePrecompileToAddress`).

use std::time::Duration;

use alloy_primitives::map::{AddressMap, AddressSet};
use alloy_primitives::{Address, Bytes};
use ophion_primitives::errors::{Error, Result};
use revm::handler::{EthPrecompiles, PrecompileProvider};
use revm::interpreter::{CallInputs, Gas, InstructionResult, InterpreterResult};
use revm::primitives::hardfork::SpecId;

use super::context::EvmContext;
use super::deadline_watch;
use super::overrides::AccountOverride;

pub struct Precompiles {
    usual: EthPrecompiles,
    /// By new address.
    moved: AddressMap<Address>,
    removed: AddressSet,
}

impl Precompiles {
    /// Each at its own address.
    pub fn of(spec: SpecId) -> Self {
        Precompiles { usual: EthPrecompiles::new(spec), moved: AddressMap::default(), removed: AddressSet::default() }
    }

    /// As these overrides have it: one that is overridden is none any more, unless it was moved.
    pub fn overridden(spec: SpecId, overrides: &[&AccountOverride]) -> Result<Self> {
        let mut precompiles = Precompiles::of(spec);
        for one in overrides {
            let home = one.address;
            let is_precompile = precompiles.usual.contains(&home);
            if let Some(target) = one.precompile_target {
                if !is_precompile {
                    return Err(Error::Refused(format!("other: account {home} is not a precompile")));
                }
                if overrides.iter().any(|other| other.address == target) {
                    return Err(Error::Refused(format!("other: account {target} is already overridden")));
                }
                precompiles.moved.insert(target, home);
            }
            if is_precompile {
                precompiles.removed.insert(home);
            }
        }
        Ok(precompiles)
    }

    /// The one that lives at this address. None of them can be ended, so one that may take longer than there is time is
    /// not begun.
    fn run_at_home(
        &mut self,
        context: &mut EvmContext,
        inputs: &CallInputs,
    ) -> std::result::Result<Option<InterpreterResult>, String> {
        let home = &inputs.bytecode_address;
        if is_low(home) && self.usual.contains(home) && !deadline_watch::has_time_for(longest(home, inputs.input.len()))
        {
            return Ok(Some(InterpreterResult::new(InstructionResult::PrecompileOOG, Bytes::new(), Gas::new(0))));
        }
        self.usual.run(context, inputs)
    }
}

/// Whether an address is one of those among which the precompiled contracts are.
fn is_low(address: &Address) -> bool {
    address[..18].iter().all(|byte| *byte == 0)
}

/// How long one may take, on a slow machine: a signer, a hash, a copy. For curves, powers and polynomials it is a time
/// that those have who can wait.
fn longest(home: &Address, size: usize) -> Duration {
    let nanoseconds = match u16::from_be_bytes([home[18], home[19]]) {
        1 => 200_000,
        2 | 3 => 20 * size,
        4 => size,
        _ => 3_000_000,
    };
    Duration::from_nanos(nanoseconds as u64)
}

impl PrecompileProvider<EvmContext> for Precompiles {
    type Output = InterpreterResult;

    fn set_spec(&mut self, spec: SpecId) -> bool {
        PrecompileProvider::<EvmContext>::set_spec(&mut self.usual, spec)
    }

    #[inline]
    fn run(
        &mut self,
        context: &mut EvmContext,
        inputs: &CallInputs,
    ) -> std::result::Result<Option<InterpreterResult>, String> {
        // A move also removes, so this is all that usual calls pay.
        if self.removed.is_empty() {
            return self.run_at_home(context, inputs);
        }
        let address = inputs.bytecode_address;
        if let Some(home) = self.moved.get(&address) {
            let inputs = CallInputs { bytecode_address: *home, ..inputs.clone() };
            return self.run_at_home(context, &inputs);
        }
        if self.removed.contains(&address) {
            return Ok(None);
        }
        self.run_at_home(context, inputs)
    }

    /// Moved or not, the addresses of the fork are warm.
    fn warm_addresses(&self) -> &AddressSet {
        self.usual.warm_addresses()
    }
}

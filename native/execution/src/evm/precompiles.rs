//! Precompiled contracts, which overrides may move elsewhere or replace (`movePrecompileToAddress`).

use alloy_primitives::Address;
use alloy_primitives::map::{AddressMap, AddressSet};
use ophion_primitives::errors::{Error, Result};
use revm::handler::{EthPrecompiles, PrecompileProvider};
use revm::interpreter::{CallInputs, InterpreterResult};
use revm::primitives::hardfork::SpecId;

use super::context::EvmContext;
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
            return self.usual.run(context, inputs);
        }
        let address = inputs.bytecode_address;
        if let Some(home) = self.moved.get(&address) {
            let inputs = CallInputs { bytecode_address: *home, ..inputs.clone() };
            return self.usual.run(context, &inputs);
        }
        if self.removed.contains(&address) {
            return Ok(None);
        }
        self.usual.run(context, inputs)
    }

    /// Moved or not, the addresses of the fork are warm.
    fn warm_addresses(&self) -> &AddressSet {
        self.usual.warm_addresses()
    }
}

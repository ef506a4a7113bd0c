//! Precompiled contracts; overrides may move or replace them (`movePrecompileToAddress`).

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::map::{AddressMap, AddressSet};
use alloy_primitives::{Address, Bytes};
use ophion_primitives::errors::{Error, Result};
use revm::handler::{EthPrecompiles, PrecompileProvider};
use revm::interpreter::{CallInputs, Gas, InstructionResult, InterpreterResult};
use revm::primitives::hardfork::SpecId;

use super::block_environment::{BlockEnv, SIGNATURE_BYTES};
use super::context::EvmContext;
use super::deadline_watch;
use super::overrides::AccountOverride;

pub struct Precompiles {
    mainnet: EthPrecompiles,
    /// Original address of each moved precompiled contract, by its new address.
    moved: AddressMap<Address>,
    removed: AddressSet,
    /// On a development chain: signatures and the address that ecrecover returns for each.
    signatures: Arc<[([u8; SIGNATURE_BYTES], Address)]>,
}

const ECRECOVER: Address = Address::with_last_byte(1);
const ECRECOVER_GAS: u64 = 3000;

impl Precompiles {
    /// Return all precompiled contracts of a block, at their original addresses.
    pub fn of(env: &BlockEnv) -> Self {
        Precompiles {
            mainnet: EthPrecompiles::new(env.fork.spec),
            moved: AddressMap::default(),
            removed: AddressSet::default(),
            signatures: env.rules.signatures.clone(),
        }
    }

    /// Use the ecrecover results that `env` sets. Only development chains set such results.
    pub fn use_signatures_of(&mut self, env: &BlockEnv) {
        self.signatures = env.rules.signatures.clone();
    }

    /// Return the precompiled contracts after account overrides. An override of a precompiled contract's account
    /// removes the contract there. With `movePrecompileToAddress`, the contract is available at the new address.
    pub fn overridden(env: &BlockEnv, overrides: &[&AccountOverride]) -> Result<Self> {
        let mut precompiles = Precompiles::of(env);
        for one in overrides {
            let home = one.address;
            let is_precompile = precompiles.mainnet.contains(&home);
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

    /// Run the precompiled contract with the original address `home`. The contract does not start if the remaining time
    /// may be too short, because it cannot be interrupted.
    fn run_at_home(
        &mut self,
        context: &mut EvmContext,
        inputs: &CallInputs,
    ) -> std::result::Result<Option<InterpreterResult>, String> {
        let home = &inputs.bytecode_address;
        if !self.signatures.is_empty()
            && *home == ECRECOVER
            && let Some(result) = self.given_signer(&inputs.input.bytes(context), inputs.gas_limit)
        {
            return Ok(Some(result));
        }
        if is_low(home)
            && self.mainnet.contains(home)
            && !deadline_watch::has_time_for(longest(home, inputs.input.len()))
        {
            return Ok(Some(InterpreterResult::new(InstructionResult::PrecompileOOG, Bytes::new(), Gas::new(0))));
        }
        self.mainnet.run(context, inputs)
    }
}

impl Precompiles {
    /// Return the ecrecover result that a development chain has set for this signature; None if no result is set. The
    /// input is a hash, then `v`, `r` and `s`.
    fn given_signer(&self, input: &[u8], gas_limit: u64) -> Option<InterpreterResult> {
        let mut signature = [0; SIGNATURE_BYTES];
        signature[..64].copy_from_slice(input.get(64..128)?);
        signature[64] = *input.get(63)?;
        let (_, signer) = self.signatures.iter().find(|(known, _)| *known == signature)?;
        let mut gas = Gas::new(gas_limit);
        if !gas.record_regular_cost(ECRECOVER_GAS) {
            return Some(InterpreterResult::new(InstructionResult::PrecompileOOG, Bytes::new(), Gas::new(0)));
        }
        Some(InterpreterResult::new(InstructionResult::Return, signer.into_word().0.into(), gas))
    }
}

/// Return whether the address is in the range of precompiled contracts.
fn is_low(address: &Address) -> bool {
    address[..18].iter().all(|byte| *byte == 0)
}

/// Return an upper bound of a precompiled contract's duration on a slow machine. Only signer recovery, hashes and
/// copies have a realistic bound. The bound of curve, exponentiation and polynomial contracts is so long that only
/// worker threads run them.
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
        PrecompileProvider::<EvmContext>::set_spec(&mut self.mainnet, spec)
    }

    #[inline]
    fn run(
        &mut self,
        context: &mut EvmContext,
        inputs: &CallInputs,
    ) -> std::result::Result<Option<InterpreterResult>, String> {
        // A move also adds the old address to `removed`. So without entries in `removed`, no contract was moved.
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

    /// Return the warm addresses: the original addresses of all precompiled contracts of the fork, even if contracts
    /// were moved.
    fn warm_addresses(&self) -> &AddressSet {
        self.mainnet.warm_addresses()
    }
}

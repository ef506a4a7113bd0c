//! Everything of chain and block that execution may see, and the EVM set up for it.

use std::sync::OnceLock;

use alloy_primitives::{Address, B256, Bytes, U256};
use pyo3::prelude::*;
use revm::context::{BlockEnv as EvmBlock, CfgEnv};
use revm::context_interface::block::BlobExcessGasAndPrice;
use revm::context_interface::cfg::gas_params::{GasId, GasParams};
use revm::primitives::hardfork::SpecId;

use crate::convert::{Addr, Hash, Wide};
use crate::errors::{Error, Result};
use crate::exec_db::Ancestors;

/// A fork as we name it: revm's, and Constantinople with its original storage gas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fork {
    pub spec: SpecId,
    pub is_constantinople: bool,
}

impl Fork {
    pub fn parse(name: &str) -> Result<Self> {
        let spec = match name {
            "frontier" => SpecId::FRONTIER,
            "homestead" => SpecId::HOMESTEAD,
            "tangerine" => SpecId::TANGERINE,
            "spurious" => SpecId::SPURIOUS_DRAGON,
            "byzantium" => SpecId::BYZANTIUM,
            "constantinople" | "petersburg" => SpecId::PETERSBURG,
            "istanbul" => SpecId::ISTANBUL,
            "berlin" => SpecId::BERLIN,
            "london" => SpecId::LONDON,
            "paris" => SpecId::MERGE,
            "shanghai" => SpecId::SHANGHAI,
            "cancun" => SpecId::CANCUN,
            "prague" => SpecId::PRAGUE,
            "osaka" => SpecId::OSAKA,
            _ => return Err(Error::Decode(format!("fork: '{name}' is not known"))),
        };
        Ok(Fork { spec, is_constantinople: name == "constantinople" })
    }

    pub fn has(&self, spec: SpecId) -> bool {
        self.spec.is_enabled_in(spec)
    }
}

/// Storage gas of EIP-1283: the rule of EIP-2200 with these prices and without its sentry.
fn eip1283_prices() -> GasParams {
    let mut params = GasParams::new_spec(SpecId::PETERSBURG);
    params.override_gas([
        (GasId::sstore_static(), 200),
        (GasId::sstore_set_without_load_cost(), 20_000 - 200),
        (GasId::sstore_reset_without_cold_load_cost(), 5_000 - 200),
        (GasId::sstore_set_refund(), 20_000 - 200),
        (GasId::sstore_reset_refund(), 5_000 - 200),
        (GasId::sstore_clearing_slot_refund(), 15_000),
    ]);
    params
}

/// What one chain fixes for the EVM.
#[pyclass(frozen, module = "ophion._native")]
#[derive(Clone)]
pub struct ChainRules {
    pub chain_id: u64,
    pub contract_size_limit: Option<usize>,
    pub deposit_contract: Address,
    pub withdrawal_request_contract: Address,
    pub consolidation_request_contract: Address,
}

impl ChainRules {
    /// The usual rules for a chain id.
    pub fn of(chain_id: u64) -> Self {
        ChainRules::new(chain_id, None, None, None, None)
    }
}

#[pymethods]
impl ChainRules {
    #[new]
    #[pyo3(signature = (*, chain_id, contract_size_limit=None, deposit_contract=None, withdrawal_request_contract=None, consolidation_request_contract=None))]
    fn new(
        chain_id: u64,
        contract_size_limit: Option<usize>,
        deposit_contract: Option<Addr>,
        withdrawal_request_contract: Option<Addr>,
        consolidation_request_contract: Option<Addr>,
    ) -> Self {
        let or = |given: Option<Addr>, usual: Address| given.map_or(usual, |given| given.0);
        ChainRules {
            chain_id,
            contract_size_limit,
            deposit_contract: or(deposit_contract, alloy_eips::eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS),
            withdrawal_request_contract: or(
                withdrawal_request_contract,
                alloy_eips::eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS,
            ),
            consolidation_request_contract: or(
                consolidation_request_contract,
                alloy_eips::eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS,
            ),
        }
    }
}

/// One block's environment.
#[pyclass(frozen, module = "ophion._native")]
#[derive(Clone)]
pub struct BlockEnv {
    pub rules: ChainRules,
    pub fork: Fork,
    pub number: u64,
    pub timestamp: u64,
    pub beneficiary: Address,
    pub gas_limit: u64,
    pub difficulty: U256,
    pub mix_hash: B256,
    pub base_fee: Option<u64>,
    pub excess_blob_gas: Option<u64>,
    pub max_blobs: Option<u64>,
    pub blob_fee_fraction: Option<u64>,
    pub parent_beacon_root: Option<B256>,
    pub parent_hash: B256,
    pub block_hashes: Option<Bytes>,
    /// BLOCKHASH gives the hash of the number's digits, as the public state vectors have it.
    pub hashes_of_numbers: bool,
    pub dao_fork: bool,
    /// What revm is given, worked out once: calls ask for it again and again.
    pub prepared: OnceLock<(CfgEnv, EvmBlock)>,
}

#[pymethods]
impl BlockEnv {
    #[new]
    #[pyo3(signature = (*, rules, fork, number, timestamp, beneficiary, gas_limit, difficulty, mix_hash, base_fee,
        excess_blob_gas=None, max_blobs=None, blob_fee_fraction=None, parent_beacon_root=None, parent_hash,
        block_hashes=None, dao_fork=false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        rules: &Bound<'_, ChainRules>,
        fork: &str,
        number: u64,
        timestamp: u64,
        beneficiary: Addr,
        gas_limit: u64,
        difficulty: Wide,
        mix_hash: Hash,
        base_fee: Option<u64>,
        excess_blob_gas: Option<u64>,
        max_blobs: Option<u64>,
        blob_fee_fraction: Option<u64>,
        parent_beacon_root: Option<Hash>,
        parent_hash: Hash,
        block_hashes: Option<&[u8]>,
        dao_fork: bool,
    ) -> PyResult<Self> {
        let fork = Fork::parse(fork)?;
        check_blob_price(excess_blob_gas.unwrap_or(0), blob_fee_fraction.unwrap_or_else(|| usual_fraction(fork)))?;
        Ok(BlockEnv {
            rules: rules.get().clone(),
            fork,
            number,
            timestamp,
            beneficiary: beneficiary.0,
            gas_limit,
            difficulty: difficulty.0,
            mix_hash: mix_hash.0,
            base_fee,
            excess_blob_gas,
            max_blobs,
            blob_fee_fraction,
            parent_beacon_root: parent_beacon_root.map(|root| root.0),
            parent_hash: parent_hash.0,
            block_hashes: block_hashes.map(Bytes::copy_from_slice),
            hashes_of_numbers: false,
            dao_fork,
            prepared: OnceLock::new(),
        })
    }
}

/// By how much excess gas the price of blobs grows e-fold, where the genesis does not say.
fn usual_fraction(fork: Fork) -> u64 {
    if fork.has(SpecId::PRAGUE) { 5_007_716 } else { 3_338_477 }
}

/// e^88 is just below 2^127: a higher price cannot be computed in the 128 bits that it has.
fn check_blob_price(excess: u64, fraction: u64) -> Result<()> {
    if fraction == 0 {
        return Err(Error::Decode("blob gas: the fraction of its price is 0".into()));
    }
    if excess / fraction >= 88 {
        return Err(Error::Decode(format!("blob gas: an excess of {excess} makes a price beyond all money")));
    }
    Ok(())
}

impl BlockEnv {
    pub fn cfg(&self) -> CfgEnv {
        self.prepared.get_or_init(|| (self.make_cfg(), self.make_block())).0.clone()
    }

    pub fn block(&self) -> EvmBlock {
        self.prepared.get_or_init(|| (self.make_cfg(), self.make_block())).1.clone()
    }

    fn make_cfg(&self) -> CfgEnv {
        let mut cfg = CfgEnv::new_with_spec(self.fork.spec).with_chain_id(self.rules.chain_id);
        if self.fork.is_constantinople {
            cfg.set_gas_params(eip1283_prices());
        }
        cfg.limit_contract_code_size = self.rules.contract_size_limit;
        // The limit for one transaction; the block's own limit is checked over all of them.
        cfg.max_blobs_per_tx = self.max_blobs.map(|max| if self.fork.has(SpecId::OSAKA) { max.min(6) } else { max });
        cfg.blob_base_fee_update_fraction = self.blob_fee_fraction;
        cfg
    }

    fn make_block(&self) -> EvmBlock {
        let merged = self.fork.has(SpecId::MERGE);
        EvmBlock {
            number: U256::from(self.number),
            beneficiary: self.beneficiary,
            timestamp: U256::from(self.timestamp),
            gas_limit: self.gas_limit,
            basefee: self.base_fee.unwrap_or(0),
            difficulty: self.difficulty,
            prevrandao: merged.then_some(self.mix_hash),
            blob_excess_gas_and_price: self.blob_gas_and_price(),
            slot_num: 0,
        }
    }

    fn blob_gas_and_price(&self) -> Option<BlobExcessGasAndPrice> {
        if !self.fork.has(SpecId::CANCUN) {
            return None;
        }
        let fraction = self.blob_fee_fraction.unwrap_or_else(|| usual_fraction(self.fork));
        Some(BlobExcessGasAndPrice::new(self.excess_blob_gas.unwrap_or(0), fraction))
    }

    pub fn blob_price(&self) -> u128 {
        self.blob_gas_and_price().map_or(0, |blob| blob.blob_gasprice)
    }

    pub fn ancestors(&self) -> Ancestors {
        match &self.block_hashes {
            Some(hashes) => Ancestors::Given { number: self.number, hashes: hashes.clone() },
            None if self.hashes_of_numbers => Ancestors::OfNumbers,
            None => Ancestors::Canonical,
        }
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ChainRules>()?;
    module.add_class::<BlockEnv>()
}

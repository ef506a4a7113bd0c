//! Execution environment of a block: fork, chain rules, header fields.

use std::sync::{Arc, OnceLock};

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, Bytes, U256};
use ophion_primitives::errors::{Error, Result};
use revm::context::{BlockEnv as EvmBlock, CfgEnv};
use revm::context_interface::block::BlobExcessGasAndPrice;
use revm::context_interface::cfg::gas_params::{GasId, GasParams};
use revm::primitives::hardfork::SpecId;

use super::database::Ancestors;

/// A fork that revm knows, or Constantinople with EIP-1283 gas.
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

/// Return the storage gas of EIP-1283: the rule of EIP-2200 with other prices and without the 2300 gas check.
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

/// Length in bytes of a signature: `r`, `s` and `v`.
pub const SIGNATURE_BYTES: usize = 65;

/// EVM settings of a chain.
#[derive(Clone)]
pub struct ChainRules {
    pub chain_id: u64,
    pub contract_size_limit: Option<usize>,
    /// Whether this is a development chain with impersonation. There, a sender may have code (contrary to EIP-3607),
    /// and the gas limit of a transaction has no cap (contrary to EIP-7825).
    pub is_relaxed: bool,
    /// On a development chain: signatures (`r`, `s`, `v`) for which ecrecover returns a given address.
    pub signatures: Arc<[([u8; SIGNATURE_BYTES], Address)]>,
    pub deposit_contract: Address,
    pub withdrawal_request_contract: Address,
    pub consolidation_request_contract: Address,
}

impl ChainRules {
    /// Return the default settings of a chain id.
    pub fn of(chain_id: u64) -> Self {
        ChainRules {
            chain_id,
            contract_size_limit: None,
            is_relaxed: false,
            signatures: Arc::default(),
            deposit_contract: alloy_eips::eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS,
            withdrawal_request_contract: alloy_eips::eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS,
            consolidation_request_contract: alloy_eips::eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS,
        }
    }
}

/// Environment of one block.
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
    /// Whether BLOCKHASH returns the Keccak hash of the block number's decimal digits, as the public state tests
    /// expect.
    pub hashes_of_numbers: bool,
    pub dao_fork: bool,
    /// Cached revm configuration of this environment. It is cached because every call needs it.
    pub prepared: OnceLock<(CfgEnv, EvmBlock)>,
}

impl BlockEnv {
    /// Change number, timestamp, parent hash and mix hash to those of a later block. All other values must be the same
    /// in both blocks.
    pub fn follow(&mut self, header: &Header) {
        (self.number, self.timestamp) = (header.number, header.timestamp);
        (self.parent_hash, self.mix_hash) = (header.parent_hash, header.mix_hash);
        let block = self.make_block();
        if let Some(prepared) = self.prepared.get_mut() {
            prepared.1 = block;
        }
    }

    /// Check that the blob gas price fits into 128 bits. The price is about e^(excess / fraction), and e^88 is just
    /// below 2^127.
    pub fn check_blob_price(&self) -> Result<()> {
        let (excess, fraction) = (self.excess_blob_gas.unwrap_or(0), self.fraction());
        if fraction == 0 {
            return Err(Error::Decode("blob gas: the fraction of its price is 0".into()));
        }
        if excess / fraction >= 88 {
            return Err(Error::Decode(format!("blob gas: an excess of {excess} makes a price beyond all money")));
        }
        Ok(())
    }

    /// Return the blob base fee update fraction: the value of the genesis file, or the default of the fork.
    fn fraction(&self) -> u64 {
        let default = if self.fork.has(SpecId::PRAGUE) { 5_007_716 } else { 3_338_477 };
        self.blob_fee_fraction.unwrap_or(default)
    }

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
        // `max_blobs_per_tx` limits one transaction: from Osaka on, to six blobs (EIP-7594).
        cfg.max_blobs_per_tx = self.max_blobs.map(|max| if self.fork.has(SpecId::OSAKA) { max.min(6) } else { max });
        cfg.blob_base_fee_update_fraction = self.blob_fee_fraction;
        if self.rules.is_relaxed {
            cfg.disable_eip3607 = true;
            cfg.tx_gas_limit_cap = Some(u64::MAX);
        }
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
        Some(BlobExcessGasAndPrice::new(self.excess_blob_gas.unwrap_or(0), self.fraction()))
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

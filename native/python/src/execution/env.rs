//! Python bindings of chain rules and block environments.

use std::sync::OnceLock;

use alloy_primitives::Bytes;
use ophion_execution::evm::block_environment::{self, Fork};
use pyo3::prelude::*;

use crate::values::convert::{Addr, Hash, Wide};
use crate::values::errors::Answer;

#[pyclass(frozen, module = "ophion._native")]
pub struct ChainRules {
    rules: block_environment::ChainRules,
}

#[pymethods]
impl ChainRules {
    #[new]
    #[pyo3(signature = (*, chain_id, contract_size_limit=None, deposit_contract=None, withdrawal_request_contract=None, consolidation_request_contract=None, is_relaxed=false, signatures=Vec::new()))]
    fn new(
        chain_id: u64,
        contract_size_limit: Option<usize>,
        deposit_contract: Option<Addr>,
        withdrawal_request_contract: Option<Addr>,
        consolidation_request_contract: Option<Addr>,
        is_relaxed: bool,
        signatures: Vec<([u8; block_environment::SIGNATURE_BYTES], Addr)>,
    ) -> Self {
        let signatures = signatures.into_iter().map(|(signature, signer)| (signature, signer.0)).collect();
        let mut rules = block_environment::ChainRules {
            contract_size_limit,
            is_relaxed,
            signatures,
            ..block_environment::ChainRules::of(chain_id)
        };
        for (contract, given) in [
            (&mut rules.deposit_contract, deposit_contract),
            (&mut rules.withdrawal_request_contract, withdrawal_request_contract),
            (&mut rules.consolidation_request_contract, consolidation_request_contract),
        ] {
            *contract = given.map_or(*contract, |given| given.0);
        }
        ChainRules { rules }
    }
}

#[pyclass(frozen, module = "ophion._native")]
pub struct BlockEnv {
    pub env: block_environment::BlockEnv,
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
    ) -> Answer<Self> {
        let env = block_environment::BlockEnv {
            rules: rules.get().rules.clone(),
            fork: Fork::parse(fork)?,
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
        };
        env.check_blob_price()?;
        Ok(BlockEnv { env })
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ChainRules>()?;
    module.add_class::<BlockEnv>()
}

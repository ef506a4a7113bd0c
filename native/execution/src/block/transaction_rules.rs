//! Stateless transaction rules: transaction types and limits of each fork, intrinsic gas.

use alloy_consensus::crypto::SECP256K1N_HALF;
use alloy_consensus::transaction::Transaction as _;
use alloy_primitives::{B256, U256};
use ophion_storage::chain::body::Envelope;
use revm::context_interface::cfg::gas::InitialAndFloorGas;
use revm::context_interface::cfg::gas_params::GasParams;
use revm::primitives::eip3860::MAX_INITCODE_SIZE;
use revm::primitives::eip4844::VERSIONED_HASH_VERSION_KZG;
use revm::primitives::eip7825::TX_GAS_LIMIT_CAP;
use revm::primitives::hardfork::SpecId;

use crate::evm::block_environment::Fork;

/// The transaction fields that the rules check. Fees have 256 bits here, as in the public tests; a decoded envelope has
/// only 128.
pub struct CheckedFields<'a> {
    pub tx_type: u8,
    /// Chain id of the transaction; None for legacy transactions without replay protection (EIP-155).
    pub chain_id: Option<u64>,
    pub nonce: u64,
    pub gas_limit: u64,
    pub max_fee: U256,
    pub max_priority_fee: U256,
    pub is_create: bool,
    pub input: &'a [u8],
    /// Number of accounts in the access list.
    pub listed_accounts: u64,
    /// Number of storage keys in the access list.
    pub listed_keys: u64,
    pub blob_hashes: &'a [B256],
    pub authorizations: u64,
    /// Value s of the signature.
    pub s: U256,
}

impl<'a> From<&'a Envelope> for CheckedFields<'a> {
    fn from(tx: &'a Envelope) -> Self {
        let access_list = tx.access_list();
        CheckedFields {
            tx_type: tx.tx_type() as u8,
            chain_id: tx.chain_id(),
            nonce: tx.nonce(),
            gas_limit: tx.gas_limit(),
            max_fee: U256::from(tx.max_fee_per_gas()),
            max_priority_fee: U256::from(tx.max_priority_fee_per_gas().unwrap_or_else(|| tx.max_fee_per_gas())),
            is_create: tx.kind().is_create(),
            input: tx.input(),
            listed_accounts: access_list.map_or(0, |list| list.len() as u64),
            listed_keys: access_list.map_or(0, |list| list.storage_keys_count() as u64),
            blob_hashes: tx.blob_versioned_hashes().unwrap_or_default(),
            authorizations: tx.authorization_list().map_or(0, |list| list.len() as u64),
            s: tx.signature().s(),
        }
    }
}

/// Return the minimum gas limit: intrinsic gas and, from Prague on, at least the calldata floor of EIP-7623.
pub fn intrinsic_gas(tx: &CheckedFields<'_>, fork: Fork) -> u64 {
    let gas = initial_gas(tx, fork);
    gas.initial_total_gas().max(gas.floor_gas())
}

/// Return a transaction's intrinsic gas and its calldata floor gas (EIP-7623).
pub fn initial_gas(tx: &CheckedFields<'_>, fork: Fork) -> InitialAndFloorGas {
    let (accounts, keys) = (tx.listed_accounts, tx.listed_keys);
    GasParams::new_spec(fork.spec).initial_tx_gas(tx.input, tx.is_create, accounts, keys, tx.authorizations, None)
}

/// Check all stateless rules of a transaction. The error names the first broken rule.
pub fn check(tx: &CheckedFields<'_>, fork: Fork, chain_id: u64) -> Result<(), String> {
    check_type(tx, fork)?;
    check_signature(tx, fork, chain_id)?;
    if tx.nonce == u64::MAX {
        return Err("the nonce is the last number there is (EIP-2681)".into());
    }
    check_fees(tx)?;
    if tx.is_create && fork.has(SpecId::SHANGHAI) && tx.input.len() > MAX_INITCODE_SIZE {
        return Err(format!("init code of {} bytes is above the limit of {MAX_INITCODE_SIZE}", tx.input.len()));
    }
    let needed = intrinsic_gas(tx, fork);
    if tx.gas_limit < needed {
        return Err(format!("gas limit {} is below the intrinsic gas {needed}", tx.gas_limit));
    }
    if fork.has(SpecId::OSAKA) && tx.gas_limit > TX_GAS_LIMIT_CAP {
        return Err(format!("gas limit {} is above the cap of {TX_GAS_LIMIT_CAP} (EIP-7825)", tx.gas_limit));
    }
    Ok(())
}

fn check_type(tx: &CheckedFields<'_>, fork: Fork) -> Result<(), String> {
    let since = match tx.tx_type {
        0 => SpecId::FRONTIER,
        1 => SpecId::BERLIN,
        2 => SpecId::LONDON,
        3 => SpecId::CANCUN,
        4 => SpecId::PRAGUE,
        other => return Err(format!("transaction type {other} is not known")),
    };
    if !fork.has(since) {
        return Err(format!("transaction type {} does not exist yet", tx.tx_type));
    }
    if tx.tx_type >= 3 && tx.is_create {
        return Err(format!("a transaction of type {} cannot create a contract", tx.tx_type));
    }
    if tx.tx_type == 3 && tx.blob_hashes.is_empty() {
        return Err("a blob transaction has no blobs".into());
    }
    if tx.blob_hashes.iter().any(|hash| hash[0] != VERSIONED_HASH_VERSION_KZG) {
        return Err("a blob hash has an unknown version".into());
    }
    if tx.tx_type == 4 && tx.authorizations == 0 {
        return Err("a set-code transaction has no authorizations".into());
    }
    Ok(())
}

fn check_signature(tx: &CheckedFields<'_>, fork: Fork, chain_id: u64) -> Result<(), String> {
    if tx.tx_type == 0 && tx.chain_id.is_some() && !fork.has(SpecId::SPURIOUS_DRAGON) {
        return Err("replay protection does not exist yet".into());
    }
    if let Some(other) = tx.chain_id.filter(|id| *id != chain_id) {
        return Err(format!("it is signed for chain {other}, not for {chain_id}"));
    }
    if fork.has(SpecId::HOMESTEAD) && tx.s > SECP256K1N_HALF {
        return Err("the signature's s is above half the curve order".into());
    }
    Ok(())
}

fn check_fees(tx: &CheckedFields<'_>) -> Result<(), String> {
    if tx.max_priority_fee > tx.max_fee {
        return Err("the priority fee is above the whole fee".into());
    }
    if tx.max_fee.checked_mul(U256::from(tx.gas_limit)).is_none() {
        return Err("gas limit times price does not fit 256 bits".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fork(name: &str) -> Fork {
        Fork::parse(name).unwrap()
    }

    fn transfer() -> CheckedFields<'static> {
        CheckedFields {
            tx_type: 0,
            chain_id: None,
            nonce: 0,
            gas_limit: 21_000,
            max_fee: U256::ONE,
            max_priority_fee: U256::ONE,
            is_create: false,
            input: &[],
            listed_accounts: 0,
            listed_keys: 0,
            blob_hashes: &[],
            authorizations: 0,
            s: U256::ONE,
        }
    }

    #[test]
    fn intrinsic_gas_follows_the_forks() {
        let input = [&[0u8; 10][..], &[1u8; 30][..]].concat();
        let call = CheckedFields { input: &input, ..transfer() };
        let create = CheckedFields { is_create: true, input: &input, ..transfer() };
        let listed = CheckedFields { tx_type: 1, listed_accounts: 2, listed_keys: 3, ..transfer() };
        let delegating = CheckedFields { tx_type: 4, authorizations: 2, ..transfer() };
        let cases = [
            (&call, "frontier", 21_000 + 40 + 30 * 68),
            (&call, "petersburg", 21_000 + 40 + 30 * 68),
            (&call, "istanbul", 21_000 + 40 + 30 * 16),
            // the EIP-7623 floor price is 10 gas per zero byte and 40 gas per nonzero byte
            (&call, "prague", 21_000 + 100 + 30 * 40),
            (&create, "frontier", 21_000 + 40 + 30 * 68),
            (&create, "homestead", 53_000 + 40 + 30 * 68),
            (&create, "london", 53_000 + 40 + 30 * 16),
            (&create, "shanghai", 53_000 + 40 + 30 * 16 + 2 * 2),
            (&listed, "berlin", 21_000 + 2 * 2400 + 3 * 1900),
            (&delegating, "prague", 21_000 + 2 * 25_000),
        ];
        for (checked_fields, name, expected) in cases {
            assert_eq!(intrinsic_gas(checked_fields, fork(name)), expected, "{name}");
        }
    }

    #[test]
    fn a_plain_transfer_is_accepted_by_every_fork() {
        for name in ["frontier", "homestead", "constantinople", "london", "osaka"] {
            assert_eq!(check(&transfer(), fork(name), 1), Ok(()));
        }
    }

    #[test]
    fn each_rule_is_reported_in_words() {
        let initcode = vec![0u8; MAX_INITCODE_SIZE + 1];
        let cases = [
            (CheckedFields { tx_type: 1, ..transfer() }, "istanbul", "does not exist yet"),
            (CheckedFields { tx_type: 5, ..transfer() }, "osaka", "not known"),
            (CheckedFields { tx_type: 3, is_create: true, ..transfer() }, "cancun", "cannot create"),
            (CheckedFields { tx_type: 3, ..transfer() }, "cancun", "no blobs"),
            (CheckedFields { tx_type: 3, blob_hashes: &[B256::ZERO], ..transfer() }, "cancun", "unknown version"),
            (CheckedFields { tx_type: 4, ..transfer() }, "prague", "no authorizations"),
            (CheckedFields { chain_id: Some(1), ..transfer() }, "homestead", "replay protection"),
            (CheckedFields { chain_id: Some(2), ..transfer() }, "byzantium", "chain 2"),
            (CheckedFields { s: SECP256K1N_HALF + U256::ONE, ..transfer() }, "homestead", "half the curve"),
            (CheckedFields { nonce: u64::MAX, ..transfer() }, "frontier", "nonce"),
            (CheckedFields { max_priority_fee: U256::from(2), ..transfer() }, "london", "priority fee"),
            (CheckedFields { max_fee: U256::MAX, ..transfer() }, "london", "256 bits"),
            (CheckedFields { gas_limit: 20_999, ..transfer() }, "london", "intrinsic gas 21000"),
            (CheckedFields { gas_limit: 1 << 25, ..transfer() }, "osaka", "cap"),
            (
                CheckedFields { gas_limit: 1 << 24, is_create: true, input: &initcode, ..transfer() },
                "shanghai",
                "init code",
            ),
        ];
        for (checked_fields, name, expected) in cases {
            let broken = check(&checked_fields, fork(name), 1).expect_err(expected);
            assert!(broken.contains(expected), "{broken}");
        }
        assert_eq!(check(&CheckedFields { s: SECP256K1N_HALF + U256::ONE, ..transfer() }, fork("frontier"), 1), Ok(()));
    }
}

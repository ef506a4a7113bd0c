//! Public state tests (GeneralStateTests).

use std::collections::BTreeMap;

use alloy_primitives::{B256, Bytes, Log, U256, keccak256};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::body::Tx;
use ophion_storage::state::StateData;
use revm::primitives::hardfork::SpecId;
use serde_json::{Map, Value};

use super::verdict::{Verdict, fork_named};
use crate::block::block_execution::{ExecutionData, Refusal, Run};
use crate::block::genesis::{GenesisAccount, settle};
use crate::evm::block_environment::{BlockEnv, ChainRules, Fork};
use crate::evm::database::{Ancestors, ExecDb};

pub fn run(text: &[u8]) -> Result<Vec<Verdict>> {
    let file: Map<String, Value> = serde_json::from_slice(text).map_err(|cause| Error::decode("state test", cause))?;
    let mut verdicts = Vec::new();
    for (name, case) in &file {
        let posts = case.get("post").and_then(Value::as_object);
        let posts = posts.ok_or_else(|| Error::decode(name, "no member 'post'"))?;
        for (fork_name, list) in posts {
            for post in list.as_array().into_iter().flatten() {
                let label = format!("{fork_name}{}", indexes(post));
                let Some(fork) = fork_named(fork_name) else {
                    verdicts.push((name.clone(), label, None, format!("fork {fork_name} is not supported")));
                    continue;
                };
                let (passed, detail) = match run_one(case, post, fork) {
                    Ok(None) => (true, String::new()),
                    Ok(Some(difference)) => (false, difference),
                    Err(cause) => (false, cause.to_string()),
                };
                verdicts.push((name.clone(), label, Some(passed), detail));
            }
        }
    }
    Ok(verdicts)
}

fn indexes(post: &Value) -> String {
    let at = |key: &str| post.pointer(&format!("/indexes/{key}")).and_then(Value::as_u64).unwrap_or(0);
    format!("[data {}, gas {}, value {}]", at("data"), at("gas"), at("value"))
}

/// Run one case of a public state test. Returns the difference from the expectation; None if the case passes.
fn run_one(case: &Value, post: &Value, fork: Fork) -> Result<Option<String>> {
    let parent = pre_state(member(case, "pre")?)?;
    let env = block_env(member(case, "env")?, fork)?;
    let refused_expected = post.get("expectException").is_some();
    let raw = bytes(member(post, "txbytes")?)?;
    let mut run = Run::start(&parent, &env, false)?;
    let outcome = Tx::decode(raw).and_then(|tx| {
        let sender = tx.recover()?;
        run.transact(&tx, sender).map_err(Refusal::into_error)
    });
    // The tests pay a reward of zero, and even a zero reward touches the miner's account.
    let execution = run.finish(None, &[(env.beneficiary, U256::ZERO)])?;
    if outcome.is_err() != refused_expected {
        let got = outcome.err().map_or("accepted".into(), |cause| format!("refused: {cause}"));
        let expected = post.get("expectException").map_or("accepted".into(), |reason| format!("refused: {reason}"));
        return Ok(Some(format!("expected {expected}, got {got}")));
    }
    compare(post, &execution)
}

fn compare(post: &Value, execution: &ExecutionData) -> Result<Option<String>> {
    let root = hash(member(post, "hash")?)?;
    if root != execution.effects.state_root {
        return Ok(Some(format!("expected state root {root}, got {}", execution.effects.state_root)));
    }
    let logs: Vec<Log> = execution.effects.receipts.iter().flat_map(|receipt| receipt.logs.clone()).collect();
    let got = keccak256(alloy_rlp::encode(&logs));
    let expected = hash(member(post, "logs")?)?;
    Ok((got != expected).then(|| format!("expected logs {expected}, got {got}")))
}

fn pre_state(pre: &Value) -> Result<StateData> {
    let empty = StateData::empty(None);
    let mut db = ExecDb::new(empty.open()?, Ancestors::OfNumbers);
    let accounts = pre.as_object().ok_or_else(|| Error::decode("pre", "an object is expected"))?;
    let accounts = accounts.iter().map(|(address, account)| pre_account(address, account));
    let trie = settle(&mut db, accounts.collect::<Result<Vec<_>>>()?)?;
    let root = trie.hash();
    let layers = db.finish(&trie)?.layers;
    Ok(StateData { store: None, root, trie, weight: 0, layers, public: None })
}

fn pre_account(address: &str, account: &Value) -> Result<GenesisAccount> {
    let storage: BTreeMap<U256, U256> = member(account, "storage")?
        .as_object()
        .into_iter()
        .flatten()
        .map(|(slot, value)| Ok((quantity(&Value::String(slot.clone()))?, quantity(value)?)))
        .collect::<Result<_>>()?;
    Ok(GenesisAccount {
        address: address.parse().map_err(|cause| Error::decode("pre", cause))?,
        nonce: small(member(account, "nonce")?)?,
        balance: quantity(member(account, "balance")?)?,
        code: bytes(member(account, "code")?)?,
        storage: storage.into_iter().collect(),
    })
}

fn block_env(env: &Value, fork: Fork) -> Result<BlockEnv> {
    let optional = |key: &str| env.get(key).map(quantity).transpose();
    let merged = fork.has(SpecId::MERGE);
    let base_fee = optional("currentBaseFee")?.filter(|_| fork.has(SpecId::LONDON));
    Ok(BlockEnv {
        rules: ChainRules::of(1),
        fork,
        number: small(member(env, "currentNumber")?)?,
        timestamp: small(member(env, "currentTimestamp")?)?,
        beneficiary: text(member(env, "currentCoinbase")?)?.parse().map_err(|cause| Error::decode("env", cause))?,
        gas_limit: small(member(env, "currentGasLimit")?)?,
        difficulty: if merged { U256::ZERO } else { quantity(member(env, "currentDifficulty")?)? },
        mix_hash: optional("currentRandom")?.unwrap_or_default().into(),
        base_fee: base_fee.map(|fee| fee.saturating_to()),
        excess_blob_gas: optional("currentExcessBlobGas")?.map(|gas| gas.saturating_to()),
        max_blobs: fork.has(SpecId::CANCUN).then_some(if fork.has(SpecId::PRAGUE) { 9 } else { 6 }),
        blob_fee_fraction: None,
        parent_beacon_root: None,
        parent_hash: B256::ZERO,
        block_hashes: None,
        hashes_of_numbers: true,
        dao_fork: false,
        prepared: std::sync::OnceLock::new(),
    })
}

fn member<'a>(value: &'a Value, key: &str) -> Result<&'a Value> {
    value.get(key).ok_or_else(|| Error::decode("state test", format!("no member '{key}'")))
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(|| Error::decode("state test", format!("a string is expected, got {value}")))
}

fn quantity(value: &Value) -> Result<U256> {
    let text = text(value)?;
    let parsed = match text.strip_prefix("0x") {
        Some("") => Ok(U256::ZERO),
        Some(hex) => U256::from_str_radix(hex, 16),
        None => U256::from_str_radix(text, 10),
    };
    parsed.map_err(|cause| Error::decode("state test", format!("'{text}' is not a number: {cause}")))
}

fn small(value: &Value) -> Result<u64> {
    let wide = quantity(value)?;
    u64::try_from(wide).map_err(|_| Error::decode("state test", format!("{wide} does not fit 64 bits")))
}

fn bytes(value: &Value) -> Result<Bytes> {
    text(value)?.parse().map_err(|cause| Error::decode("state test", cause))
}

fn hash(value: &Value) -> Result<B256> {
    text(value)?.parse().map_err(|cause| Error::decode("state test", cause))
}

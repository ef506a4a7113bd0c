//! Compares JSON-RPC objects with the public JSON-RPC test cases, if their files are present.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, Bytes, Log, hex};
use ophion_storage::chain::body::{BodyData, decode_block};
use ophion_storage::chain::receipts::{Outcome, ReceiptData};
use ophion_storage::store::decode_header;
use serde_json::Value;

use super::tests::parsed;
use super::*;

struct Block {
    header: Header,
    hash: B256,
    size: u64,
    body: BodyData,
}

fn fixtures() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    if !path.is_dir() {
        eprintln!("skipped: {} is not there", path.display());
    }
    path.is_dir().then_some(path)
}

fn chain(file: &Path) -> Vec<Block> {
    let bytes = std::fs::read(file).unwrap();
    let mut rest = &bytes[..];
    let mut blocks = Vec::new();
    while !rest.is_empty() {
        let start = rest;
        alloy_rlp::Header::decode_bytes(&mut rest, true).unwrap();
        let block = &start[..start.len() - rest.len()];
        let (raw_header, body) = decode_block(block).unwrap();
        let hash = alloy_primitives::keccak256(&raw_header);
        blocks.push(Block { header: decode_header(&raw_header).unwrap(), hash, size: block.len() as u64, body });
    }
    blocks
}

impl Block {
    fn place(&self, index: usize) -> Place {
        Place::new(self.hash, &self.header, index)
    }

    fn transaction(&self, index: usize) -> Value {
        let known = &self.body.known().unwrap()[index];
        parsed(|out| write_transaction(out, &self.body.txs[index].envelope, known, Some(&self.place(index))))
    }

    fn object(&self, full: bool) -> Value {
        let uncles: Vec<B256> = self.body.ommers.iter().map(alloy_primitives::keccak256).collect();
        let parts = BlockParts {
            header: &self.header,
            hash: self.hash,
            size: self.size,
            total_difficulty: None,
            uncles: &uncles,
            withdrawals: self.body.withdrawals.as_deref(),
        };
        let hashes = self.body.hashes();
        let transactions = if full {
            Transactions::Full { txs: &self.body.txs, known: self.body.known().unwrap() }
        } else {
            Transactions::Hashes(&hashes)
        };
        parsed(|out| write_block(out, &parts, transactions))
    }
}

/// Return parameters and expected result of every public test case of a method.
fn cases(folder: &Path, method: &str) -> Vec<(Value, Value)> {
    let Ok(files) = std::fs::read_dir(folder.join(method)) else { return Vec::new() };
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let line = |mark: &str| text.lines().find_map(|line| line.strip_prefix(mark)).map(str::to_string);
        let request: Value = serde_json::from_str(&line(">> ").unwrap()).unwrap();
        let response: Value = serde_json::from_str(&line("<< ").unwrap()).unwrap();
        if response["result"].is_object() || response["result"].is_array() {
            found.push((request["params"].clone(), response["result"].clone()));
        }
    }
    found
}

fn number(value: &Value) -> usize {
    usize::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

#[test]
fn blocks_and_transactions_equal_the_public_answers() {
    let Some(fixtures) = fixtures() else { return };
    let folder = fixtures.join("rpc-standard");
    let blocks = chain(&folder.join("chain.rlp"));
    let by_hash: HashMap<String, &Block> = blocks.iter().map(|block| (block.hash.to_string(), block)).collect();
    let mut compared = 0;
    for method in ["eth_getBlockByNumber", "eth_getBlockByHash"] {
        for (params, expected) in cases(&folder, method) {
            // Cases about the genesis block are skipped, because chain.rlp does not contain it.
            if let Some(block) = by_hash.get(expected["hash"].as_str().unwrap()) {
                assert_eq!(block.object(params[1] == true), expected);
                compared += 1;
            }
        }
    }
    let methods = [
        "eth_getTransactionByHash",
        "eth_getTransactionByBlockHashAndIndex",
        "eth_getTransactionByBlockNumberAndIndex",
    ];
    for method in methods {
        for (_, expected) in cases(&folder, method) {
            let block = by_hash[expected["blockHash"].as_str().unwrap()];
            assert_eq!(block.transaction(number(&expected["transactionIndex"])), expected);
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared}");
}

/// Rebuild a receipt from its JSON-RPC object.
fn receipt_of(answer: &Value) -> ReceiptData {
    let bytes = |value: &Value| Bytes::from(hex::decode(value.as_str().unwrap()).unwrap());
    let outcome = match answer.get("root") {
        Some(root) => Outcome::Root(B256::from_slice(&bytes(root))),
        None if answer["status"] == "0x1" => Outcome::Succeeded,
        None => Outcome::Failed,
    };
    let log = |log: &Value| {
        let topics = log["topics"].as_array().unwrap().iter().map(|topic| B256::from_slice(&bytes(topic))).collect();
        Log::new_unchecked(Address::from_slice(&bytes(&log["address"])), topics, bytes(&log["data"]))
    };
    ReceiptData {
        tx_type: number(&answer["type"]) as u8,
        outcome,
        cumulative_gas: number(&answer["cumulativeGasUsed"]) as u64,
        logs: answer["logs"].as_array().unwrap().iter().map(log).collect(),
        revert_data: Bytes::new(),
    }
}

#[test]
fn receipts_equal_the_public_answers() {
    let Some(fixtures) = fixtures() else { return };
    let folder = fixtures.join("rpc-standard");
    let blocks = chain(&folder.join("chain.rlp"));
    let by_hash: HashMap<String, &Block> = blocks.iter().map(|block| (block.hash.to_string(), block)).collect();
    let mut compared = 0;
    for (_, expected) in cases(&folder, "eth_getBlockReceipts") {
        let answers = expected.as_array().unwrap();
        let Some(block) = answers.first().map(|answer| by_hash[answer["blockHash"].as_str().unwrap()]) else {
            continue;
        };
        let receipts: Vec<ReceiptData> = answers.iter().map(receipt_of).collect();
        let known = block.body.known().unwrap();
        let all = BlockReceipts {
            header: &block.header,
            hash: block.hash,
            txs: &block.body.txs,
            known,
            receipts: &receipts,
            blob_price: Some(1),
        };
        assert_eq!(parsed(|out| all.write(out, true)), expected);
        compared += 1;
    }
    for (_, expected) in cases(&folder, "eth_getTransactionReceipt") {
        let block = by_hash[expected["blockHash"].as_str().unwrap()];
        let index = number(&expected["transactionIndex"]);
        let parts = ReceiptParts {
            tx: &block.body.txs[index].envelope,
            known: &block.body.known().unwrap()[index],
            receipt: &receipt_of(&expected),
            gas_before: (number(&expected["cumulativeGasUsed"]) - number(&expected["gasUsed"])) as u64,
            logs_before: expected["logs"].get(0).map_or(0, |log| number(&log["logIndex"])) as u64,
            blob_price: Some(1),
        };
        assert_eq!(parsed(|out| write_receipt(out, &parts, &block.place(index), false)), expected);
        compared += 1;
    }
    assert!(compared > 5, "{compared}");
}

//! Compares the JSON text of every kind of object with expected literals.

use alloy_consensus::{Header, Signed, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip4895::Withdrawal;
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{Address, B256, Bytes, Log, Signature, TxKind, U256, address, b256};
use ophion_storage::chain::body::{Envelope, Known, Tx};
use ophion_storage::chain::receipts::{Outcome, ReceiptData, StoredLog};
use serde_json::{Value, json};

use super::*;

const SENDER: Address = address!("a94f5374fce5edbc8e2a8697c15331677e6ebf0b");
const TO: Address = address!("6295ee1b4f6dd65047762f924ecd367c17eabf8f");
const HASH: B256 = b256!("1111111111111111111111111111111111111111111111111111111111111111");
const BLOCK: B256 = b256!("2222222222222222222222222222222222222222222222222222222222222222");
const KEY: B256 = b256!("3333333333333333333333333333333333333333333333333333333333333333");

pub fn parsed(write: impl FnOnce(&mut Vec<u8>)) -> Value {
    let mut out = Vec::new();
    write(&mut out);
    serde_json::from_slice(&out).unwrap_or_else(|cause| panic!("{cause}: {}", String::from_utf8_lossy(&out)))
}

/// Return the names of the outermost JSON keys in order.
fn order(write: impl FnOnce(&mut Vec<u8>)) -> Vec<String> {
    let mut out = Vec::new();
    write(&mut out);
    let text = String::from_utf8(out).unwrap();
    let (mut depth, mut names) = (0, Vec::new());
    let mut parts = text.split('"');
    let mut outside = parts.next().unwrap();
    while let Some(quoted) = parts.next() {
        depth += outside.matches(['{', '[']).count();
        depth -= outside.matches(['}', ']']).count();
        outside = parts.next().unwrap();
        if depth == 1 && outside.starts_with(':') {
            names.push(quoted.to_string());
        }
    }
    names
}

fn signature() -> Signature {
    Signature::new(U256::from(0x0a), U256::from(0xb0b), true)
}

fn known() -> Known {
    Known { hash: HASH, sender: SENDER }
}

fn access_list() -> AccessList {
    AccessList(vec![AccessListItem { address: TO, storage_keys: vec![KEY] }])
}

fn tx(envelope: impl Into<Envelope>) -> Tx {
    let envelope = envelope.into();
    let raw = envelope.encoded_2718().into();
    Tx { envelope, raw }
}

fn legacy(chain_id: Option<u64>, to: TxKind) -> Tx {
    let unsigned = TxLegacy {
        chain_id,
        nonce: 5,
        gas_price: 1_000_000_000,
        gas_limit: 21_000,
        to,
        value: U256::from(255),
        input: Bytes::from_static(&[0xca, 0xfe]),
    };
    tx(Signed::new_unchecked(unsigned, signature(), HASH))
}

fn header() -> Header {
    Header { number: 16, timestamp: 0x5bbb, base_fee_per_gas: Some(7), ..Header::default() }
}

fn place() -> Place {
    Place::new(BLOCK, &header(), 2)
}

#[test]
fn a_legacy_transaction_has_the_members_of_the_original() {
    let protected = legacy(Some(2018), TO.into());
    let write = |out: &mut Vec<u8>| write_transaction(out, &protected.envelope, &known(), Some(&place()));
    let expected = json!({
        "blockHash": BLOCK, "blockNumber": "0x10", "blockTimestamp": "0x5bbb", "from": SENDER, "gas": "0x5208",
        "gasPrice": "0x3b9aca00", "hash": HASH, "input": "0xcafe", "nonce": "0x5", "to": TO, "transactionIndex": "0x2",
        "value": "0xff", "type": "0x0", "chainId": "0x7e2", "v": "0xfe8", "r": "0xa", "s": "0xb0b"
    });
    assert_eq!(lower(parsed(write)), lower(expected));
    let names = [
        "blockHash",
        "blockNumber",
        "blockTimestamp",
        "from",
        "gas",
        "gasPrice",
        "hash",
        "input",
        "nonce",
        "to",
        "transactionIndex",
        "value",
        "type",
        "chainId",
        "v",
        "r",
        "s",
    ];
    assert_eq!(order(write), names);
}

#[test]
fn a_pending_creation_without_replay_protection_shows_nulls() {
    let creation = legacy(None, TxKind::Create);
    let object = parsed(|out| write_transaction(out, &creation.envelope, &known(), None));
    for member in ["blockHash", "blockNumber", "blockTimestamp", "transactionIndex", "to"] {
        assert_eq!(object[member], Value::Null, "{member}");
    }
    assert_eq!(object["v"], "0x1c");
    assert!(object.get("chainId").is_none() && object.get("yParity").is_none() && object.get("accessList").is_none());
}

#[test]
fn typed_transactions_show_what_their_type_defines() {
    let list = json!([{"address": TO, "storageKeys": [KEY]}]);
    let access =
        TxEip2930 { chain_id: 1, gas_price: 9, access_list: access_list(), to: TO.into(), ..Default::default() };
    let object = mined(&tx(Signed::new_unchecked(access, signature(), HASH)));
    assert_eq!(object["accessList"], lower(list));
    assert_eq!((&object["type"], &object["v"], &object["yParity"]), (&json!("0x1"), &json!("0x1"), &json!("0x1")));
    assert_eq!(object["gasPrice"], "0x9");
    assert!(object.get("maxFeePerGas").is_none());

    let dynamic = TxEip1559 {
        chain_id: 1,
        max_fee_per_gas: 100,
        max_priority_fee_per_gas: 2,
        to: TO.into(),
        ..Default::default()
    };
    let dynamic = tx(Signed::new_unchecked(dynamic, signature(), HASH));
    let object = mined(&dynamic);
    assert_eq!((&object["gasPrice"], &object["maxFeePerGas"]), (&json!("0x9"), &json!("0x64")));
    assert_eq!((&object["maxPriorityFeePerGas"], &object["accessList"]), (&json!("0x2"), &json!([])));
    let pending = parsed(|out| write_transaction(out, &dynamic.envelope, &known(), None));
    assert_eq!(pending["gasPrice"], "0x64");

    let blob = TxEip4844 {
        chain_id: 1,
        max_fee_per_gas: 100,
        max_fee_per_blob_gas: 17,
        blob_versioned_hashes: vec![KEY],
        ..Default::default()
    };
    let object = mined(&tx(Signed::new_unchecked(blob, signature(), HASH)));
    assert_eq!(object["maxFeePerBlobGas"], "0x11");
    assert_eq!(object["blobVersionedHashes"], json!([KEY]));

    let authorization = Authorization { chain_id: U256::ZERO, address: TO, nonce: 8 };
    let authorization = SignedAuthorization::new_unchecked(authorization, 1, U256::from(2), U256::from(3));
    let delegating = TxEip7702 { chain_id: 1, authorization_list: vec![authorization], ..Default::default() };
    let object = mined(&tx(Signed::new_unchecked(delegating, signature(), HASH)));
    let expected = json!([
        {"chainId": "0x0", "address": TO, "nonce": "0x8", "yParity": "0x1", "r": "0x2", "s": "0x3"}
    ]);
    assert_eq!(object["authorizationList"], lower(expected));
    assert_eq!(object["type"], "0x4");
}

fn mined(tx: &Tx) -> Value {
    parsed(|out| write_transaction(out, &tx.envelope, &known(), Some(&place())))
}

/// Convert the addresses to lower case, because the crate for expected values writes checksummed addresses.
fn lower(value: Value) -> Value {
    serde_json::from_str(
        &value
            .to_string()
            .replace(&TO.to_string(), &format!("{TO:#x}"))
            .replace(&SENDER.to_string(), &format!("{SENDER:#x}")),
    )
    .unwrap()
}

fn log() -> Log {
    Log::new_unchecked(TO, vec![KEY], Bytes::from_static(&[1, 2]))
}

fn receipt(outcome: Outcome) -> ReceiptData {
    ReceiptData {
        tx_type: 0,
        outcome,
        cumulative_gas: 50_000,
        logs: vec![log()],
        revert_data: Bytes::from_static(&[8, 0xc3]),
    }
}

#[test]
fn a_receipt_has_status_or_root_and_the_logs_of_its_place() {
    let creation = legacy(None, TxKind::Create);
    let data = receipt(Outcome::Failed);
    let known = known();
    let parts = |receipt| ReceiptParts {
        tx: &creation.envelope,
        known: &known,
        receipt,
        gas_before: 21_000,
        logs_before: 4,
        blob_price: None,
    };
    let object = parsed(|out| write_receipt(out, &parts(&data), &place(), true));
    assert_eq!((&object["status"], &object["revertReason"]), (&json!("0x0"), &json!("0x08c3")));
    assert_eq!(object["contractAddress"], format!("{:#x}", SENDER.create(5)));
    assert_eq!((&object["gasUsed"], &object["cumulativeGasUsed"]), (&json!("0x7148"), &json!("0xc350")));
    assert_eq!((&object["effectiveGasPrice"], &object["type"]), (&json!("0x3b9aca00"), &json!("0x0")));
    let expected = json!([{
        "address": TO, "topics": [KEY], "data": "0x0102", "blockNumber": "0x10", "transactionHash": HASH,
        "transactionIndex": "0x2", "blockHash": BLOCK, "blockTimestamp": "0x5bbb", "logIndex": "0x4", "removed": false
    }]);
    assert_eq!(object["logs"], lower(expected));

    let names = order(|out| write_receipt(out, &parts(&data), &place(), false));
    let expected = [
        "blockHash",
        "blockNumber",
        "contractAddress",
        "cumulativeGasUsed",
        "effectiveGasPrice",
        "from",
        "gasUsed",
        "logs",
        "logsBloom",
        "status",
        "to",
        "transactionHash",
        "transactionIndex",
        "type",
    ];
    assert_eq!(names, expected);

    let data = receipt(Outcome::Root(KEY));
    let object = parsed(|out| write_receipt(out, &parts(&data), &place(), false));
    assert_eq!(object["root"], json!(KEY));
    assert!(object.get("status").is_none());
}

fn block_receipts(txs: &[Tx], receipts: &[ReceiptData]) -> Value {
    let known = vec![known(); txs.len()];
    let all = BlockReceipts { header: &header(), hash: BLOCK, txs, known: &known, receipts, blob_price: Some(3) };
    parsed(|out| all.write(out, false))
}

#[test]
fn the_receipt_of_a_blob_transaction_shows_blob_gas() {
    let blob = TxEip4844 { blob_versioned_hashes: vec![KEY, KEY], ..Default::default() };
    let blob = tx(Signed::new_unchecked(blob, signature(), HASH));
    let receipts = [receipt(Outcome::Succeeded)];
    let object = block_receipts(&[blob], &receipts);
    assert_eq!((&object[0]["blobGasUsed"], &object[0]["blobGasPrice"]), (&json!("0x40000"), &json!("0x3")));
    assert_eq!(object[0]["status"], "0x1");
}

#[test]
fn receipts_of_a_block_count_gas_and_logs_on() {
    let txs = [legacy(None, TO.into()), legacy(None, TO.into())];
    let mut receipts = [receipt(Outcome::Succeeded), receipt(Outcome::Succeeded)];
    receipts[1].cumulative_gas = 71_000;
    let object = block_receipts(&txs, &receipts);
    assert_eq!((&object[0]["gasUsed"], &object[1]["gasUsed"]), (&json!("0xc350"), &json!("0x5208")));
    assert_eq!(object[1]["logs"][0]["logIndex"], "0x1");
    assert_eq!(object[1]["transactionIndex"], "0x1");
}

#[test]
fn a_log_says_whether_it_was_removed() {
    let removed = LogPlace { block: &place(), transaction: &HASH, index: 4, removed: true };
    let object = parsed(|out| write_log(out, &log(), removed));
    let expected = json!({
        "logIndex": "0x4", "removed": true, "blockNumber": "0x10", "blockHash": BLOCK, "blockTimestamp": "0x5bbb",
        "transactionHash": HASH, "transactionIndex": "0x2", "address": TO, "data": "0x0102", "topics": [KEY]
    });
    assert_eq!(object, lower(expected));
    let log = log();
    let topics: Vec<u8> = log.data.topics().iter().flat_map(|topic| topic.0).collect();
    let (address, data) = (log.address.as_slice(), &log.data.data[..]);
    let stored = StoredLog { transaction: 2, index: 4, address, topics: &topics, data };
    assert_eq!(parsed(|out| write_stored_log(out, &stored, removed)), object);
}

#[test]
fn a_block_has_the_members_of_its_fork_in_the_documented_order() {
    let old = Header { extra_data: Bytes::from_static(b"hi"), ..Header::default() };
    let parts = BlockParts {
        header: &old,
        hash: BLOCK,
        size: 0x205,
        total_difficulty: Some(U256::from(0x10023)),
        uncles: &[KEY],
        withdrawals: None,
    };
    let names = [
        "number",
        "hash",
        "mixHash",
        "parentHash",
        "nonce",
        "sha3Uncles",
        "logsBloom",
        "transactionsRoot",
        "stateRoot",
        "receiptsRoot",
        "miner",
        "difficulty",
        "totalDifficulty",
        "extraData",
        "size",
        "gasLimit",
        "gasUsed",
        "timestamp",
        "uncles",
        "transactions",
    ];
    assert_eq!(order(|out| write_block(out, &parts, Transactions::Hashes(&[HASH]))), names);
    let object = parsed(|out| write_block(out, &parts, Transactions::Hashes(&[HASH])));
    assert_eq!((&object["nonce"], &object["extraData"]), (&json!("0x0000000000000000"), &json!("0x6869")));
    assert_eq!((&object["uncles"], &object["transactions"]), (&json!([KEY]), &json!([HASH])));
    assert_eq!(object["logsBloom"].as_str().unwrap().len(), 514);

    let new = Header {
        base_fee_per_gas: Some(0),
        withdrawals_root: Some(KEY),
        blob_gas_used: Some(0),
        excess_blob_gas: Some(1),
        parent_beacon_block_root: Some(KEY),
        requests_hash: Some(KEY),
        ..Header::default()
    };
    let withdrawal = Withdrawal { index: 1, validator_index: 2, address: TO, amount: 100 };
    let parts =
        BlockParts { header: &new, total_difficulty: None, withdrawals: Some(&[withdrawal]), uncles: &[], ..parts };
    let object = parsed(|out| write_block(out, &parts, Transactions::Hashes(&[])));
    assert_eq!((&object["baseFeePerGas"], &object["excessBlobGas"]), (&json!("0x0"), &json!("0x1")));
    let expected = json!([{"index": "0x1", "validatorIndex": "0x2", "address": TO, "amount": "0x64"}]);
    assert_eq!(object["withdrawals"], lower(expected));
    assert_eq!((&object["parentBeaconBlockRoot"], object.get("totalDifficulty")), (&json!(KEY), None));
}

/// Print the time to render a block of 4,000 transactions: `cargo test --release -- --ignored --nocapture full_block`.
#[test]
#[ignore = "a measurement"]
fn time_of_a_full_block() {
    let wide = Signature::new(U256::MAX >> 1_usize, U256::MAX >> 2_usize, true);
    let unsigned = TxEip1559 {
        chain_id: 2018,
        nonce: 70_000,
        gas_limit: 60_000,
        max_fee_per_gas: 2_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        to: TO.into(),
        value: U256::from(10_u64.pow(18)),
        access_list: AccessList::default(),
        input: Bytes::from(vec![0xab; 68]),
    };
    let txs: Vec<Tx> = (0..4000).map(|_| tx(Signed::new_unchecked(unsigned.clone(), wide, HASH))).collect();
    let known = vec![known(); txs.len()];
    let header = header();
    let parts = BlockParts {
        header: &header,
        hash: BLOCK,
        size: 1,
        total_difficulty: Some(U256::ONE),
        uncles: &[],
        withdrawals: None,
    };
    let mut best = std::time::Duration::MAX;
    let mut length = 0;
    for _ in 0..50 {
        let start = std::time::Instant::now();
        let mut out = Vec::new();
        write_block(&mut out, &parts, Transactions::Full { txs: &txs, known: &known });
        best = best.min(start.elapsed());
        length = out.len();
    }
    println!("{} transactions, {length} bytes: {best:?}", txs.len());
}

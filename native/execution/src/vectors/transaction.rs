//! Public transaction tests (TransactionTests): valid and invalid encodings.
//!
//! The tests contain fees of up to 256 bits, which the node's transaction type cannot hold. So this module has its own
//! decoder.

use std::str::FromStr;

use alloy_eips::eip2930::AccessList;
use alloy_eips::eip7702::SignedAuthorization;
use alloy_primitives::{Address, B256, Bytes, TxKind, U64, U256, keccak256};
use alloy_rlp::{Decodable, Encodable, Header};
use ophion_primitives::errors::{Error, Result};
use ophion_primitives::keys::recover_signer;
use serde_json::{Map, Value};

use super::verdict::{Verdict, fork_named};
use crate::block::transaction_rules::{CheckedFields, check, initial_gas};
use crate::evm::block_environment::Fork;

/// Chain id that the tests are signed for.
const CHAIN_ID: u64 = 1;

/// A value, or the reason why the bytes are not a valid transaction.
type Checked<T> = std::result::Result<T, String>;

pub fn run(text: &[u8]) -> Result<Vec<Verdict>> {
    let file: Map<String, Value> =
        serde_json::from_slice(text).map_err(|cause| Error::decode("transaction test", cause))?;
    let mut verdicts = Vec::new();
    for (name, case) in &file {
        let raw: Bytes = member(case, "txbytes").map_err(|cause| Error::decode(name, cause))?;
        let results = case.get("result").and_then(Value::as_object);
        let decoded = WideTx::decode(&raw);
        for (fork_name, expected) in results.ok_or_else(|| Error::decode(name, "no member 'result'"))? {
            let Some(fork) = fork_named(fork_name) else {
                let skipped = format!("fork {fork_name} is not supported");
                verdicts.push((name.clone(), fork_name.clone(), None, skipped));
                continue;
            };
            let got = decoded.as_ref().map_err(Clone::clone).and_then(|tx| tx.validate(fork));
            let difference = compare(expected, keccak256(&raw), got)
                .map_err(|cause| Error::decode(format_args!("{name}.{fork_name}"), cause))?;
            verdicts.push((
                name.clone(),
                fork_name.clone(),
                Some(difference.is_none()),
                difference.unwrap_or_default(),
            ));
        }
    }
    Ok(verdicts)
}

/// Parse the `0x` hex string at a key of a JSON object.
fn member<T: FromStr>(value: &Value, key: &str) -> Checked<T> {
    let text = value.get(key).and_then(Value::as_str).ok_or_else(|| format!("no text named '{key}'"))?;
    text.parse().map_err(|_| format!("'{key}' is not what it should be"))
}

/// Sender and intrinsic gas of a transaction that passed all checks.
struct Valid {
    sender: Address,
    gas: u64,
}

/// Compare the result of decoding a transaction with the expectation of the test. Returns None if both are equal, else
/// the difference. An error means that the test file cannot be read.
fn compare(expected: &Value, hash: B256, got: Checked<Valid>) -> Checked<Option<String>> {
    if let Some(exception) = expected.get("exception") {
        let unexpected = |valid: Valid| format!("expected refused: {exception}, got accepted from {}", valid.sender);
        return Ok(got.ok().map(unexpected));
    }
    let expected_hash: B256 = member(expected, "hash")?;
    let expected_sender: Address = member(expected, "sender")?;
    let expected_gas = member::<U64>(expected, "intrinsicGas")?.to::<u64>();
    Ok(match got {
        Err(reason) => Some(format!("expected accepted from {expected_sender}, got refused: {reason}")),
        Ok(_) if hash != expected_hash => Some(format!("expected hash {expected_hash}, got {hash}")),
        Ok(Valid { sender, .. }) if sender != expected_sender => {
            Some(format!("expected sender {expected_sender}, got {sender}"))
        }
        Ok(Valid { gas, .. }) => {
            (gas != expected_gas).then(|| format!("expected intrinsic gas {expected_gas}, got {gas}"))
        }
    })
}

/// A decoded transaction of any type, with 256-bit fees.
#[derive(Default)]
struct WideTx {
    tx_type: u8,
    chain_id: Option<u64>,
    nonce: u64,
    max_priority_fee: U256,
    max_fee: U256,
    gas_limit: u64,
    to: TxKind,
    input: Bytes,
    access_list: AccessList,
    blob_hashes: Vec<B256>,
    authorizations: Vec<SignedAuthorization>,
    parity: bool,
    r: U256,
    s: U256,
    signing_hash: B256,
}

/// Reads items from an RLP payload; errors name the item.
struct Items<'a>(&'a [u8]);

impl Items<'_> {
    fn next<T: Decodable>(&mut self, what: &str) -> Checked<T> {
        T::decode(&mut self.0).map_err(|cause| format!("{what}: {cause}"))
    }
}

impl WideTx {
    fn decode(raw: &[u8]) -> Checked<Self> {
        let tx_type = match raw.first() {
            None => return Err("there are no bytes".into()),
            Some(0xc0..) => 0,
            Some(known @ 1..=4) => *known,
            Some(other) => return Err(format!("transaction type {other} is not known")),
        };
        let mut rest = if tx_type == 0 { raw } else { &raw[1..] };
        let payload = Header::decode_bytes(&mut rest, true).map_err(|cause| cause.to_string())?;
        if !rest.is_empty() {
            return Err(format!("{} bytes too many", rest.len()));
        }
        let mut items = Items(payload);
        let mut tx = WideTx { tx_type, ..WideTx::default() };
        tx.read_unsigned(&mut items)?;
        let unsigned = &payload[..payload.len() - items.0.len()];
        let v: U256 = items.next("v")?;
        tx.r = items.next("r")?;
        tx.s = items.next("s")?;
        if !items.0.is_empty() {
            return Err("the list has too many items".into());
        }
        tx.read_v(v)?;
        tx.signing_hash = tx.signing_hash_of(unsigned);
        Ok(tx)
    }

    /// Read all fields before the signature.
    fn read_unsigned(&mut self, items: &mut Items<'_>) -> Checked<()> {
        if self.tx_type > 0 {
            self.chain_id = Some(items.next("chain id")?);
        }
        self.nonce = items.next("nonce")?;
        self.max_priority_fee = items.next(if self.tx_type < 2 { "gas price" } else { "priority fee" })?;
        self.max_fee = if self.tx_type < 2 { self.max_priority_fee } else { items.next("fee")? };
        self.gas_limit = items.next("gas limit")?;
        self.to = items.next("to")?;
        let _value: U256 = items.next("value")?;
        self.input = items.next("input")?;
        if self.tx_type > 0 {
            self.access_list = items.next("access list")?;
        }
        if self.tx_type == 3 {
            let _blob_fee: U256 = items.next("blob fee")?;
            self.blob_hashes = items.next("blob hashes")?;
        }
        if self.tx_type == 4 {
            self.authorizations = items.next("authorizations")?;
        }
        Ok(())
    }

    /// Read v. Legacy transactions encode the chain id in it (EIP-155).
    fn read_v(&mut self, v: U256) -> Checked<()> {
        let odd = v.bit(0);
        if self.tx_type > 0 {
            self.parity = odd;
            return if v > U256::ONE { Err(format!("y parity {v} is neither 0 nor 1")) } else { Ok(()) };
        }
        if v == U256::from(27) || v == U256::from(28) {
            self.parity = !odd;
            return Ok(());
        }
        let doubled = v.checked_sub(U256::from(35)).ok_or_else(|| format!("v {v} is not possible"))?;
        let chain_id: U256 = doubled >> 1;
        self.parity = !odd;
        self.chain_id = Some(u64::try_from(chain_id).map_err(|_| format!("chain id {chain_id} is too large"))?);
        Ok(())
    }

    fn signing_hash_of(&self, unsigned: &[u8]) -> B256 {
        let mut payload = unsigned.to_vec();
        if let Some(chain_id) = self.chain_id.filter(|_| self.tx_type == 0) {
            chain_id.encode(&mut payload);
            payload.extend_from_slice(&[0x80, 0x80]);
        }
        let mut out = Vec::with_capacity(payload.len() + 10);
        if self.tx_type > 0 {
            out.push(self.tx_type);
        }
        Header { list: true, payload_length: payload.len() }.encode(&mut out);
        out.extend_from_slice(&payload);
        keccak256(out)
    }

    fn checked_fields(&self) -> CheckedFields<'_> {
        CheckedFields {
            tx_type: self.tx_type,
            chain_id: self.chain_id,
            nonce: self.nonce,
            gas_limit: self.gas_limit,
            max_fee: self.max_fee,
            max_priority_fee: self.max_priority_fee,
            is_create: self.to.is_create(),
            input: &self.input,
            listed_accounts: self.access_list.len() as u64,
            listed_keys: self.access_list.storage_keys_count() as u64,
            blob_hashes: &self.blob_hashes,
            authorizations: self.authorizations.len() as u64,
            s: self.s,
        }
    }

    fn validate(&self, fork: Fork) -> Checked<Valid> {
        let checked_fields = self.checked_fields();
        check(&checked_fields, fork, CHAIN_ID)?;
        let mut r_s = [0u8; 64];
        r_s[..32].copy_from_slice(&self.r.to_be_bytes::<32>());
        r_s[32..].copy_from_slice(&self.s.to_be_bytes::<32>());
        let sender = recover_signer(&self.signing_hash, &r_s, self.parity).map_err(|cause| cause.to_string())?;
        Ok(Valid { sender, gas: initial_gas(&checked_fields, fork).initial_total_gas() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transfer with replay protection for chain 1 (v = 37). This form is valid from Spurious Dragon on.
    const PROTECTED: &str = "0xf865808698852840a46f82d6d894095e7baea6a6c7c4c2dfeb977efac326af552d87808025a098ff921201554726367d2be8c804a7ff89ccf285ebc57dff8ae4c44b9c19ac4aa01887321be575c8095f789dd4c743dfe42c1820f9231f98a962b210e3ac2452a3";
    const VALID: &str = r#""Byzantium": {"hash": "0x4782cb5edcaeda1f0aef204b161214f124cefade9e146245183abbb9ca01bca5",
        "sender": "0x2ea991808ba979ba103147edfd72304ebd95c028", "intrinsicGas": "0x5208"}"#;

    fn verdict(result: &str) -> Verdict {
        let text = format!(r#"{{"transfer": {{"txbytes": "{PROTECTED}", "result": {{{result}}}}}}}"#);
        run(text.as_bytes()).unwrap().remove(0)
    }

    #[test]
    fn a_valid_transaction_must_give_hash_sender_and_gas() {
        let (case, fork, passed, detail) = verdict(VALID);
        assert_eq!((case.as_str(), fork.as_str(), passed, detail.as_str()), ("transfer", "Byzantium", Some(true), ""));
        let (_, _, passed, detail) = verdict(&VALID.replace("0x5208", "0x5209"));
        assert_eq!((passed, detail.as_str()), (Some(false), "expected intrinsic gas 21001, got 21000"));
        let (_, _, passed, detail) = verdict(&VALID.replace("Byzantium", "Homestead"));
        assert_eq!(passed, Some(false));
        assert!(detail.ends_with("replay protection does not exist yet"), "{detail}");
    }

    #[test]
    fn an_invalid_transaction_must_be_refused() {
        assert_eq!(verdict(r#""EIP150": {"exception": "INVALID_SIGNATURE_VRS"}"#).2, Some(true));
        assert_eq!(verdict(r#""EIP158": {"exception": "INVALID_SIGNATURE_VRS"}"#).2, Some(false));
        assert_eq!(verdict(r#""Verkle": {"exception": "INVALID_SIGNATURE_VRS"}"#).2, None);
    }

    #[test]
    fn a_file_that_is_no_vector_names_the_place() {
        for (text, place) in [
            ("[]", "transaction test"),
            (r#"{"a": {}}"#, "a: no text named 'txbytes'"),
            (r#"{"a": {"txbytes": "0x1"}}"#, "a: 'txbytes'"),
            (r#"{"a": {"txbytes": "0x"}}"#, "a: no member 'result'"),
            (r#"{"a": {"txbytes": "PROT", "result": {"Berlin": {}}}}"#, "a.Berlin: no text named 'hash'"),
        ] {
            let cause = run(text.replace("PROT", PROTECTED).as_bytes()).unwrap_err().to_string();
            assert!(cause.starts_with(place), "{cause}");
        }
    }

    #[test]
    fn any_truncation_or_change_of_a_byte_is_decoded_or_refused_without_panic() {
        let raw: Bytes = PROTECTED.parse().unwrap();
        for at in 0..raw.len() {
            assert!(WideTx::decode(&raw[..at]).is_err());
            for flipped in 0..=255 {
                let mut changed = raw.to_vec();
                changed[at] = flipped;
                let _ = WideTx::decode(&changed).and_then(|tx| tx.validate(fork_named("Cancun").unwrap()));
            }
        }
    }

    #[test]
    fn the_public_vectors_pass() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/fixtures/ethereum-tests/TransactionTests");
        let Ok(folders) = std::fs::read_dir(path) else {
            eprintln!("skipped: {path} is not there");
            return;
        };
        let mut count = 0;
        for folder in folders {
            for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                for verdict in run(&std::fs::read(&path).unwrap()).unwrap() {
                    assert_eq!(verdict.2, Some(true), "{}: {verdict:?}", path.display());
                    count += 1;
                }
            }
        }
        assert!(count > 2000);
    }
}

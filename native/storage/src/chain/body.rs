//! Transactions and block bodies. The node decodes each transaction once and recovers each sender once.

use std::borrow::Borrow;
use std::fmt::Display;
use std::sync::OnceLock;

use alloy_consensus::transaction::{RlpEcdsaDecodableTx, Transaction as _};
use alloy_consensus::{EthereumTxEnvelope, SignableTransaction, TxEip4844, TxEip4844Variant, TxEnvelope, TxLegacy};
use alloy_eips::eip2718::{Decodable2718, Eip2718Error};
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, B256, Bytes, Signature, U256, keccak256};
use alloy_rlp::{Decodable, Encodable, Header};
use ophion_primitives::errors::{Error, Result};
use ophion_primitives::keccak::keccak256_many;
use ophion_primitives::keys::Signed;
use ophion_primitives::signers::{TASK, recover_with_hints};
use rayon::prelude::*;

use crate::chain::ordered_root::OrderedRoot;
use crate::chain::sender_cache::senders_of;

pub type Envelope = EthereumTxEnvelope<TxEip4844>;

/// A decoded transaction. Blob sidecars are verified on arrival and not stored.
pub struct Tx {
    pub envelope: Envelope,
    /// EIP-2718 encoding of the transaction.
    pub raw: Bytes,
}

/// Transaction type of EIP-4844.
pub const BLOB_TYPE: u8 = 3;

/// Maximum s of a signature from Homestead on (EIP-2).
const HALF_ORDER: U256 =
    U256::from_limbs([0xdfe92f46681b20a0, 0x5d576e7357a4501d, 0xffffffffffffffff, 0x7fffffffffffffff]);

impl Tx {
    /// Decode the EIP-2718 encoding used in blocks.
    pub fn decode(raw: Bytes) -> Result<Self> {
        let mut rest = &raw[..];
        let envelope = match raw.first() {
            None => return Err(Error::Decode("there are no bytes".into())),
            // decode legacy transactions here, because the generic decoder would report their errors as a wrong type
            // byte
            Some(0xc0..) => TxLegacy::rlp_decode_signed(&mut rest).map(Envelope::Legacy).map_err(Eip2718Error::from),
            Some(_) => Envelope::decode_2718(&mut rest),
        }
        .map_err(|cause| Error::Decode(cause.to_string()))?;
        if !rest.is_empty() {
            return Err(Error::Decode(format!("{} bytes too many", rest.len())));
        }
        Ok(Tx { envelope, raw })
    }

    pub fn signature(&self) -> &Signature {
        self.envelope.signature()
    }

    pub fn is_low_s(&self) -> bool {
        self.signature().s() <= HALF_ORDER
    }

    pub fn hash(&self) -> B256 {
        keccak256(&self.raw)
    }

    pub fn recover(&self) -> Result<Address> {
        self.signed().signer()
    }

    /// Return the transaction's signature and the digest it signs.
    pub fn signed(&self) -> Signed {
        self.signed_over(self.envelope.signature_hash())
    }

    /// Append the bytes whose hash the sender signs.
    fn put_signed_bytes(&self, out: &mut Vec<u8>) {
        match &self.envelope {
            Envelope::Legacy(tx) => tx.tx().encode_for_signing(out),
            Envelope::Eip2930(tx) => tx.tx().encode_for_signing(out),
            Envelope::Eip1559(tx) => tx.tx().encode_for_signing(out),
            Envelope::Eip4844(tx) => tx.tx().encode_for_signing(out),
            Envelope::Eip7702(tx) => tx.tx().encode_for_signing(out),
        }
    }

    fn signed_over(&self, digest: B256) -> Signed {
        let signature = self.signature();
        let mut r_s = [0u8; 64];
        r_s[..32].copy_from_slice(&signature.r().to_be_bytes::<32>());
        r_s[32..].copy_from_slice(&signature.s().to_be_bytes::<32>());
        Signed { digest, r_s, parity: signature.v() }
    }

    /// Return the maximum cost of the transaction for its sender in wei: value, gas and blobs.
    pub fn cost(&self) -> U256 {
        let envelope = &self.envelope;
        let gas = U256::from(envelope.gas_limit()) * U256::from(envelope.max_fee_per_gas());
        let blobs = U256::from(self.blob_count() * DATA_GAS_PER_BLOB)
            * U256::from(envelope.max_fee_per_blob_gas().unwrap_or_default());
        gas.saturating_add(blobs).saturating_add(envelope.value())
    }

    pub fn blob_count(&self) -> u64 {
        self.envelope.blob_versioned_hashes().map_or(0, |hashes| hashes.len() as u64)
    }
}

/// Hash and sender of a transaction.
#[derive(Clone, Copy)]
pub struct Known {
    pub hash: B256,
    pub sender: Address,
}

impl Known {
    /// Compute hashes and senders of many transactions, in order.
    pub fn of(txs: &[impl Borrow<Tx>]) -> Vec<Result<Self>> {
        Self::with_hints(txs, &[])
    }

    /// Compute hashes and senders of many transactions, in order. `hints` has the expected sender of each transaction,
    /// or is empty. Checking a right hint takes less time than recovering the sender.
    pub fn with_hints(txs: &[impl Borrow<Tx>], hints: &[Option<Address>]) -> Vec<Result<Self>> {
        let raws: Vec<&[u8]> = txs.iter().map(|tx| &tx.borrow().raw[..]).collect();
        let mut hashes = Vec::with_capacity(txs.len());
        keccak256_many(&raws, &mut hashes);
        let recover = |unknown: &[usize]| {
            let signed = signed_of(unknown.iter().map(|place| txs[*place].borrow()));
            let expected: Vec<Option<Address>> =
                unknown.iter().map(|place| hints.get(*place).copied().flatten()).collect();
            recover_with_hints(&signed, &expected)
        };
        let senders = senders_of(&hashes, recover);
        hashes.iter().zip(senders).map(|(hash, sender)| Ok(Known { hash: *hash, sender: sender? })).collect()
    }
}

/// Return the signatures of transactions, and the digests that they sign. The digests are computed together.
fn signed_of<'a>(txs: impl ExactSizeIterator<Item = &'a Tx> + Clone) -> Vec<Signed> {
    let mut bytes = Vec::new();
    let mut ends = Vec::with_capacity(txs.len());
    for tx in txs.clone() {
        tx.put_signed_bytes(&mut bytes);
        ends.push(bytes.len());
    }
    let mut start = 0;
    let inputs: Vec<&[u8]> = ends.iter().map(|end| &bytes[std::mem::replace(&mut start, *end)..*end]).collect();
    let mut digests = Vec::with_capacity(inputs.len());
    keccak256_many(&inputs, &mut digests);
    txs.zip(digests).map(|(tx, digest)| tx.signed_over(digest)).collect()
}

pub struct BodyData {
    pub txs: Vec<Tx>,
    pub ommers: Vec<Bytes>,
    pub withdrawals: Option<Vec<Withdrawal>>,
    known: OnceLock<Vec<Known>>,
    root: OnceLock<B256>,
}

impl BodyData {
    pub fn new(txs: Vec<Tx>, ommers: Vec<Bytes>, withdrawals: Option<Vec<Withdrawal>>) -> Self {
        BodyData { txs, ommers, withdrawals, known: OnceLock::new(), root: OnceLock::new() }
    }

    pub fn with_known(self, known: Vec<Known>) -> Self {
        let _ = self.known.set(known);
        self
    }

    pub fn with_root(self, transactions_root: B256) -> Self {
        let _ = self.root.set(transactions_root);
        self
    }

    /// Return hash and sender of each transaction. The first call computes them on all cores.
    pub fn known(&self) -> Result<&[Known]> {
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        let known: Vec<Result<Known>> = if self.txs.len() <= TASK {
            Known::of(&self.txs)
        } else {
            self.txs.par_chunks(TASK).flat_map_iter(Known::of).collect()
        };
        let located = |(index, one): (usize, Result<Known>)| {
            one.map_err(|cause| Error::InvalidBody(format!("transaction {index}: {cause}")))
        };
        let known = known.into_iter().enumerate().map(located).collect::<Result<Vec<_>>>()?;
        Ok(self.known.get_or_init(|| known))
    }

    /// Compute hashes and senders of several bodies together, on all cores. Recovering many signatures together takes
    /// less time per signature. If a signature is invalid, `known` of its body reports the error.
    pub fn recover_all(bodies: &[&Self]) {
        let unknown: Vec<&Self> = bodies.iter().copied().filter(|body| body.known.get().is_none()).collect();
        let txs: Vec<&Tx> = unknown.iter().flat_map(|body| &body.txs).collect();
        let mut found = txs.par_chunks(TASK).flat_map_iter(Known::of).collect::<Vec<_>>().into_iter();
        for body in unknown {
            let known: Result<Vec<Known>> =
                found.by_ref().take(body.txs.len()).collect::<Vec<_>>().into_iter().collect();
            if let Ok(known) = known {
                let _ = body.known.set(known);
            }
        }
    }

    /// Return the transaction hashes without recovering the senders.
    pub fn hashes(&self) -> Vec<B256> {
        match self.known.get() {
            Some(known) => known.iter().map(|one| one.hash).collect(),
            None => self.txs.iter().map(Tx::hash).collect(),
        }
    }

    /// Encode the body as RLP: the items of a block after the header, without a list around them.
    pub fn encode(&self) -> Vec<u8> {
        let mut transactions = Vec::new();
        for tx in &self.txs {
            if tx.raw[0] >= 0xc0 {
                transactions.extend_from_slice(&tx.raw);
            } else {
                tx.raw.as_ref().encode(&mut transactions);
            }
        }
        let mut out = Vec::with_capacity(transactions.len() + 16);
        put_list(&transactions, &mut out);
        put_list(&self.ommers.concat(), &mut out);
        if let Some(withdrawals) = &self.withdrawals {
            withdrawals.encode(&mut out);
        }
        out
    }

    pub fn transactions_root(&self) -> B256 {
        *self.root.get_or_init(|| {
            let mut root = OrderedRoot::default();
            self.txs.iter().for_each(|tx| root.push(&tx.raw));
            root.finish()
        })
    }

    pub fn ommers_hash(&self) -> B256 {
        let mut out = Vec::new();
        put_list(&self.ommers.concat(), &mut out);
        keccak256(out)
    }

    pub fn withdrawals_root(&self) -> Option<B256> {
        self.withdrawals.as_ref().map(|all| alloy_consensus::proofs::calculate_withdrawals_root(all))
    }
}

fn put_list(payload: &[u8], out: &mut Vec<u8>) {
    Header { list: true, payload_length: payload.len() }.encode(out);
    out.extend_from_slice(payload);
}

pub fn encode_block(header: &[u8], body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(header.len() + body.len() + 9);
    Header { list: true, payload_length: header.len() + body.len() }.encode(&mut out);
    out.extend_from_slice(header);
    out.extend_from_slice(body);
    out
}

/// Split one RLP item off the front of the buffer. Returns the item with its header, and the payload of the item.
fn item<'a>(buffer: &mut &'a [u8], what: impl Display, list: bool) -> Result<(&'a [u8], &'a [u8])> {
    let start = *buffer;
    let header = Header::decode(buffer).map_err(|cause| Error::decode(&what, cause))?;
    if header.list != list {
        return Err(Error::decode(what, if list { "a list is expected" } else { "a string is expected" }));
    }
    if header.payload_length > buffer.len() {
        return Err(Error::decode(what, "it ends too early"));
    }
    let (payload, rest) = buffer.split_at(header.payload_length);
    *buffer = rest;
    Ok((&start[..start.len() - rest.len()], payload))
}

/// Decode an RLP block into the header's RLP and the body.
pub fn decode_block(block: &[u8]) -> Result<(Bytes, BodyData)> {
    let mut rest = block;
    let (_, mut payload) = item(&mut rest, "block", true)?;
    if !rest.is_empty() {
        return Err(Error::decode("block", format!("{} bytes follow it", rest.len())));
    }
    let (header, _) = item(&mut payload, "block header", true)?;
    Ok((Bytes::copy_from_slice(header), decode_body(payload)?))
}

/// Lower bound of the average transaction size, in bytes. The two numbers of a signature alone take almost 64 bytes.
const MIN_TRANSACTION_BYTES: usize = 56;

/// Up to this number of transactions, a body is not checked against `MIN_TRANSACTION_BYTES`. With both limits, the wire
/// size of a body bounds its memory after decoding.
const FEW_TRANSACTIONS: usize = 4096;

/// Maximum number of decoded ommers. Every fork allows at most two.
const MAX_OMMERS: usize = 16;

/// Decode the items of a block after the header.
pub fn decode_body(payload: &[u8]) -> Result<BodyData> {
    decode_body_with(payload, 0, Tx::decode)
}

/// Decode the items of a block after the header with a decoder of transactions. `count` is the number of transactions
/// if it is known, else 0.
pub(super) fn decode_body_with(payload: &[u8], count: usize, decode: impl Fn(Bytes) -> Result<Tx>) -> Result<BodyData> {
    let mut rest = payload;
    let (_, mut list) = item(&mut rest, "transactions", true)?;
    let shared = Bytes::copy_from_slice(list);
    let mut txs = Vec::with_capacity(count);
    while !list.is_empty() {
        let (start, end) = transaction_bounds(&shared, &mut list, txs.len())?;
        if txs.len() >= FEW_TRANSACTIONS && end < txs.len() * MIN_TRANSACTION_BYTES {
            return Err(Error::decode("transactions", "more of them than signed transactions have bytes"));
        }
        let tx = decode(shared.slice(start..end));
        txs.push(tx.map_err(|cause| Error::decode(format_args!("transaction {}", txs.len()), cause))?);
    }
    let (ommers, withdrawals) = decode_rest(payload)?;
    Ok(BodyData::new(txs, ommers, withdrawals))
}

/// Return the range of the next transaction's EIP-2718 encoding, and advance `list`.
fn transaction_bounds(whole: &[u8], list: &mut &[u8], index: usize) -> Result<(usize, usize)> {
    let is_list = list[0] >= 0xc0;
    let at = whole.len() - list.len();
    let (encoded, inner) = item(list, format_args!("transaction {index}"), is_list)?;
    if is_list {
        return Ok((at, at + encoded.len()));
    }
    if inner.is_empty() || inner[0] >= 0xc0 {
        return Err(Error::decode(format_args!("transaction {index}"), "a typed transaction must begin with its type"));
    }
    Ok((at + encoded.len() - inner.len(), at + encoded.len()))
}

/// Decode one transaction of a body. The other transactions are skipped.
pub fn decode_transaction_at(mut payload: &[u8], index: usize) -> Result<Option<Tx>> {
    let (_, whole) = item(&mut payload, "transactions", true)?;
    let mut list = whole;
    let mut at = 0;
    while !list.is_empty() {
        let (start, end) = transaction_bounds(whole, &mut list, at)?;
        if at == index {
            return Tx::decode(Bytes::copy_from_slice(&whole[start..end])).map(Some);
        }
        at += 1;
    }
    Ok(None)
}

type OmmersAndWithdrawals = (Vec<Bytes>, Option<Vec<Withdrawal>>);

/// Decode ommers and withdrawals. The transactions are skipped.
pub fn decode_rest(mut payload: &[u8]) -> Result<OmmersAndWithdrawals> {
    item(&mut payload, "transactions", true)?;
    let (_, mut list) = item(&mut payload, "ommers", true)?;
    let mut ommers = Vec::new();
    while !list.is_empty() {
        if ommers.len() == MAX_OMMERS {
            return Err(Error::decode("ommers", format_args!("more than {MAX_OMMERS}")));
        }
        let (whole, _) = item(&mut list, format_args!("ommer {}", ommers.len()), true)?;
        ommers.push(Bytes::copy_from_slice(whole));
    }
    let withdrawals = if payload.is_empty() {
        None
    } else {
        Some(Vec::<Withdrawal>::decode(&mut payload).map_err(|cause| Error::decode("withdrawals", cause))?)
    };
    if !payload.is_empty() {
        return Err(Error::decode("block", format!("{} bytes follow its last member", payload.len())));
    }
    Ok((ommers, withdrawals))
}

/// Decode a submitted transaction, and verify the sidecar of a blob transaction.
pub fn decode_submitted(raw: &[u8]) -> Result<Tx> {
    if raw.first() != Some(&BLOB_TYPE) {
        return Tx::decode(Bytes::copy_from_slice(raw));
    }
    let mut rest = raw;
    let pooled = TxEnvelope::decode_2718(&mut rest).map_err(|cause| Error::Decode(cause.to_string()))?;
    if !rest.is_empty() {
        return Err(Error::Decode(format!("{} bytes too many", rest.len())));
    }
    let TxEnvelope::Eip4844(signed) = pooled else { return Err(Error::Decode("not a blob transaction".into())) };
    let (variant, signature, _) = signed.into_parts();
    let tx = match variant {
        TxEip4844Variant::TxEip4844(tx) => tx,
        TxEip4844Variant::TxEip4844WithSidecar(with) => {
            with.validate_blob(c_kzg::ethereum_kzg_settings(0))
                .map_err(|cause| Error::Decode(format!("blob side-car: {cause}")))?;
            with.into_parts().0
        }
    };
    let envelope = Envelope::Eip4844(alloy_consensus::Signed::new_unhashed(tx, signature));
    let mut raw = Vec::new();
    alloy_eips::eip2718::Encodable2718::encode_2718(&envelope, &mut raw);
    Ok(Tx { envelope, raw: raw.into() })
}

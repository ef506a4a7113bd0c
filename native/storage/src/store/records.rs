//! Headers, bodies, receipts and trie nodes as their tables hold them.

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, U256};
use alloy_rlp::Decodable;
use heed::RoTxn;
use ophion_primitives::errors::{Error, Result};

use super::tables::{Table, Tables};
use crate::chain::body::{BodyData, Known, decode_body};
use crate::chain::receipts::{self, ReceiptData};
use crate::trie::Source;

/// Where the trie reads its nodes in the database.
pub struct Nodes<'t> {
    pub table: Table,
    pub txn: &'t RoTxn<'t>,
}

impl Source for Nodes<'_> {
    fn load<T>(&self, id: u64, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        match self.table.get(self.txn, &id.to_be_bytes())? {
            Some(bytes) => read(bytes),
            None => Err(Error::damaged(format!("trie node {id} is missing"))),
        }
    }
}

pub fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}

pub fn decode_header(rlp: &[u8]) -> Result<Header> {
    let decoded = match split_gapped(rlp) {
        Some((classic, tail)) => decode_gapped(classic, tail),
        None => Header::decode(&mut &rlp[..]),
    };
    decoded.map_err(|cause| Error::decode("header", cause))
}

const FIELDS_UP_TO_BASE_FEE: usize = 16;
const GAPPED_FIELDS: usize = 18;

/// Some versions of Besu write Cancun headers of 18 fields: blob gas used and excess blob gas right after the base fee,
/// without the withdrawals root between them. Gives the fields up to the base fee, and the two.
fn split_gapped(mut rlp: &[u8]) -> Option<(&[u8], &[u8])> {
    let payload = alloy_rlp::Header::decode_bytes(&mut rlp, true).ok()?;
    let mut rest = payload;
    let mut split = 0;
    for index in 0..GAPPED_FIELDS {
        if index == FIELDS_UP_TO_BASE_FEE {
            split = payload.len() - rest.len();
            if alloy_rlp::Header::decode(&mut &*rest).ok()?.payload_length == B256::len_bytes() {
                return None;
            }
        }
        alloy_rlp::Header::decode_bytes(&mut rest, false).ok()?;
    }
    rest.is_empty().then(|| payload.split_at(split))
}

fn decode_gapped(fields: &[u8], mut tail: &[u8]) -> alloy_rlp::Result<Header> {
    let mut whole = Vec::with_capacity(fields.len() + 4);
    alloy_rlp::Header { list: true, payload_length: fields.len() }.encode(&mut whole);
    whole.extend_from_slice(fields);
    let mut header = Header::decode(&mut &whole[..])?;
    header.blob_gas_used = Some(u64::decode(&mut tail)?);
    header.excess_blob_gas = Some(u64::decode(&mut tail)?);
    Ok(header)
}

/// Where the RLP begins in a record of the table `headers`.
pub const HEADER_AT: usize = 8 + 32 + 16;

/// Number, total difficulty and RLP of a header.
pub fn read_header<'t>(tables: &Tables, txn: &'t RoTxn<'_>, hash: &B256) -> Result<Option<(u64, U256, &'t [u8])>> {
    match tables.headers.get(txn, hash.as_slice())? {
        Some(record) if record.len() > HEADER_AT => {
            Ok(Some((number(&record[..8]), U256::from_be_slice(&record[8..40]), &record[HEADER_AT..])))
        }
        Some(_) => Err(Error::damaged(format!("the header of block {hash} is too short"))),
        None => Ok(None),
    }
}

pub fn read_body(tables: &Tables, txn: &RoTxn<'_>, hash: &B256) -> Result<Option<BodyData>> {
    let Some(record) = tables.bodies.get(txn, hash.as_slice())? else { return Ok(None) };
    let (known, payload) = split_body(record, hash)?;
    let body = decode_body(payload).map_err(|cause| Error::damaged(format!("body of block {hash}: {cause}")))?;
    if known.len() != body.txs.len() {
        return Err(Error::damaged(format!("the body of block {hash} names {} senders", known.len())));
    }
    Ok(Some(body.with_known(known)))
}

/// Senders and hashes of a stored body's transactions, and its RLP.
pub fn split_body<'t>(record: &'t [u8], hash: &B256) -> Result<(Vec<Known>, &'t [u8])> {
    let damaged = || Error::damaged(format!("the body of block {hash} is too short"));
    let count = record.get(..4).ok_or_else(damaged)?;
    let count = u32::from_be_bytes(count.try_into().expect("four bytes")) as usize;
    let (known, payload) = record[4..].split_at_checked(count * KNOWN_LENGTH).ok_or_else(damaged)?;
    let one = |entry: &[u8]| Known { sender: Address::from_slice(&entry[..20]), hash: B256::from_slice(&entry[20..]) };
    Ok((known.chunks_exact(KNOWN_LENGTH).map(one).collect(), payload))
}

/// Sender and hash of one transaction in a stored body.
const KNOWN_LENGTH: usize = 20 + 32;

pub fn read_receipts(tables: &Tables, txn: &RoTxn<'_>, hash: &B256) -> Result<Option<Vec<ReceiptData>>> {
    tables.receipts.get(txn, hash.as_slice())?.map(receipts::restore).transpose()
}

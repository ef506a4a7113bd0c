//! Records of headers, bodies, receipts and trie nodes.

use alloy_consensus::Header;
use alloy_primitives::map::AddressMap;
use alloy_primitives::{Address, B256, U256};
use alloy_rlp::Decodable;
use heed::{RoTxn, RwTxn};
use ophion_primitives::bytes::{Reader, put_varint};
use ophion_primitives::errors::{Error, Result};

use super::known_rows::KnownRows;
use super::missing_bodies::{body_row, receipts_row};
use super::packed_nodes::NodeTable;
use super::tables::{Tables, meta};
use crate::chain::body::{BodyData, Known};
use crate::chain::receipts::{self, ReceiptData};
use crate::chain::stored_decoding::decode_stored_body;
use crate::trie::{Source, load};

/// Source of trie nodes in the database.
pub struct Nodes<'t> {
    pub table: NodeTable,
    pub txn: &'t RoTxn<'t>,
    /// Rows of this table that were read before in the same snapshot.
    pub known: Option<&'t KnownRows>,
}

impl<'t> Nodes<'t> {
    pub fn new(table: NodeTable, txn: &'t RoTxn<'t>) -> Self {
        Nodes { table, txn, known: None }
    }

    pub fn row(&self, id: u64) -> Result<&'t [u8]> {
        let Some(known) = self.known else { return self.lookup(id) };
        // SAFETY: the rows were read in the read transaction of this snapshot, which is open for `'t`.
        if let Some(row) = unsafe { known.get(id) } {
            return Ok(row);
        }
        let row = self.lookup(id)?;
        known.keep(id, row);
        Ok(row)
    }

    fn lookup(&self, id: u64) -> Result<&'t [u8]> {
        let found = self.table.get(self.txn, id)?;
        found.ok_or_else(|| Error::damaged(format!("trie node {id} is missing")))
    }

    /// Load a trie node like `load`. If the node is stored as a delta, also call `earlier` with the id of each earlier
    /// row that the delta needs.
    pub fn load_all<T>(&self, id: u64, earlier: impl FnMut(u64), read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        load(id, |id| self.row(id), earlier, |whole, _| read(whole))
    }
}

impl Nodes<'_> {
    /// Load a trie node like `load`. `read` also receives the number of deltas that were applied to build the node.
    pub fn load_counted<T>(&self, id: u64, read: impl FnOnce(&[u8], u8) -> Result<T>) -> Result<T> {
        load(id, |id| self.row(id), |_| (), read)
    }
}

impl Source for Nodes<'_> {
    fn load<T>(&self, id: u64, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        self.load_all(id, |_| (), read)
    }
}

pub fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}

/// Return hash and number of the head; None in an empty database.
pub fn head(tables: &Tables, txn: &RoTxn<'_>) -> Result<Option<(B256, u64)>> {
    let head = tables.meta.get(txn, meta::HEAD)?;
    Ok(head.map(|head| (B256::from_slice(&head[..32]), number(&head[32..]))))
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

/// Split a Cancun header of 18 fields that some versions of Besu write. It has no withdrawals root, and the two blob
/// gas fields follow the base fee directly. Returns the fields up to the base fee, and the two blob gas fields.
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

/// Offset of the header's RLP in a `headers` record.
pub const HEADER_AT: usize = 8 + 32 + 16;

/// Return number, total difficulty and RLP of a stored header.
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
    let Some(record) = body_row(tables, txn, hash)? else { return Ok(None) };
    let (known, payload) = split_body(record, hash)?;
    let body = decode_stored_body(payload, known.len())
        .map_err(|cause| Error::damaged(format!("body of block {hash}: {cause}")))?;
    if known.len() != body.txs.len() {
        return Err(Error::damaged(format!("the body of block {hash} names {} senders", known.len())));
    }
    Ok(Some(body.with_known(known)))
}

/// Return hash and sender of each transaction of a stored body, and the body's RLP.
pub fn split_body<'t>(record: &'t [u8], hash: &B256) -> Result<(Vec<Known>, &'t [u8])> {
    let count = record.first_chunk().map_or(0, |count| u32::from_be_bytes(*count) & !SENDERS_ONCE);
    // the record has at least the hash of each transaction
    let mut known = Vec::with_capacity((count as usize).min(record.len() / 32));
    let rest = visit_known(record, |_, hash, sender| known.push(one_known(hash, sender)));
    Ok((known, rest.map_err(|_| Error::damaged(format!("the body of block {hash} is too short")))?))
}

/// Return hash and sender of one transaction of a stored body, and the body's RLP; None if the index is out of range.
pub fn known_at(record: &[u8], index: usize) -> Result<Option<(Known, &[u8])>> {
    let mut found = None;
    let rest = visit_known(record, |place, hash, sender| {
        if place == index {
            found = Some(one_known(hash, sender));
        }
    })?;
    Ok(found.map(|known| (known, rest)))
}

/// Return the number of transactions of a stored body, and the body's RLP.
pub fn counted(record: &[u8]) -> Result<(usize, &[u8])> {
    let mut count = 0;
    let rest = visit_known(record, |_, _, _| count += 1)?;
    Ok((count, rest))
}

fn one_known(hash: &[u8], sender: &[u8]) -> Known {
    Known { hash: B256::from_slice(hash), sender: Address::from_slice(sender) }
}

/// Flag in the count field of a body record. A record with this flag lists each sender only once.
const SENDERS_ONCE: u32 = 1 << 31;

/// Call `see` with index, hash and sender of each transaction. Returns the body's RLP.
pub fn visit_known(record: &[u8], mut see: impl FnMut(usize, &[u8], &[u8])) -> Result<&[u8]> {
    let mut reader = Reader(record);
    let count = u32::from_be_bytes(reader.take(4)?.try_into().expect("four bytes"));
    if count & SENDERS_ONCE == 0 {
        // The record has the older layout 1, which stores the sender and the hash of each transaction.
        let known = reader.take(count as usize * (20 + 32))?.chunks_exact(20 + 32);
        known.enumerate().for_each(|(place, one)| see(place, &one[20..], &one[..20]));
        return Ok(reader.rest());
    }
    let hashes = reader.take((count & !SENDERS_ONCE) as usize * 32)?.chunks_exact(32);
    let senders = reader.varint()? as usize;
    let (senders, _) = reader.take(senders.saturating_mul(20))?.as_chunks::<20>();
    for (place, hash) in hashes.enumerate() {
        let whose = if senders.len() == 1 { 0 } else { reader.varint()? as usize };
        see(place, hash, senders.get(whose).ok_or_else(|| Error::damaged("a transaction has no sender"))?);
    }
    Ok(reader.rest())
}

/// Append the prefix of a stored body. The prefix has the count (4 bytes), the hash of each transaction (32 bytes
/// each), the number of senders, the sender addresses (20 bytes each) and the sender index of each transaction. The
/// indexes are missing if all transactions have the same sender.
pub fn append_body_prefix(known: &[Known], out: &mut Vec<u8>) {
    out.extend_from_slice(&(known.len() as u32 | SENDERS_ONCE).to_be_bytes());
    let mut numbers: AddressMap<u64> = AddressMap::default();
    let (mut senders, mut whose) = (Vec::new(), Vec::with_capacity(known.len()));
    for one in known {
        out.extend_from_slice(one.hash.as_slice());
        let next = numbers.len() as u64;
        whose.push(*numbers.entry(one.sender).or_insert_with(|| {
            senders.extend_from_slice(one.sender.as_slice());
            next
        }));
    }
    put_varint(numbers.len() as u64, out);
    out.extend_from_slice(&senders);
    if numbers.len() > 1 {
        whose.into_iter().for_each(|number| put_varint(number, out));
    }
}

/// Return the hash of one transaction of a stored body; None if the index is out of range.
pub fn stored_hash(record: &[u8], index: usize) -> Option<&[u8]> {
    let count = u32::from_be_bytes(*record.first_chunk()?);
    if index >= (count & !SENDERS_ONCE) as usize {
        return None;
    }
    let at = if count & SENDERS_ONCE == 0 { 4 + index * (20 + 32) + 20 } else { 4 + index * 32 };
    record.get(at..at + 32)
}

pub fn read_receipts(tables: &Tables, txn: &RoTxn<'_>, hash: &B256) -> Result<Option<Vec<ReceiptData>>> {
    receipts_row(tables, txn, hash)?.map(receipts::restore).transpose()
}

/// Delete the entries of the canonical chain above a block.
pub(super) fn remove_above(tables: &Tables, txn: &mut RwTxn<'_>, last: u64) -> Result<()> {
    let mut above = last + 1;
    while tables.canonical.delete(txn, &above.to_be_bytes())? {
        above += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloy_primitives::keccak256;

    use super::*;

    fn known(count: u64, senders: u64) -> Vec<Known> {
        let one = |number: u64| Known {
            hash: keccak256(number.to_be_bytes()),
            sender: Address::left_padding_from(&(number * number % senders).to_be_bytes()),
        };
        (0..count).map(one).collect()
    }

    fn pairs(known: &[Known]) -> Vec<(B256, Address)> {
        known.iter().map(|one| (one.hash, one.sender)).collect()
    }

    #[test]
    fn both_forms_of_a_body_are_read() {
        for (count, senders) in [(0, 1), (1, 1), (7, 1), (300, 2), (900, 700)] {
            let expected = known(count, senders);
            let (mut new, mut old) = (Vec::new(), (count as u32).to_be_bytes().to_vec());
            append_body_prefix(&expected, &mut new);
            for one in &expected {
                old.extend_from_slice(one.sender.as_slice());
                old.extend_from_slice(one.hash.as_slice());
            }
            for mut record in [new, old] {
                let length = record.len();
                record.extend_from_slice(b"rlp");
                let (found, rest) = split_body(&record, &B256::ZERO).unwrap();
                assert_eq!((pairs(&found), rest), (pairs(&expected), &b"rlp"[..]));
                for (index, one) in expected.iter().enumerate() {
                    assert_eq!(stored_hash(&record, index), Some(one.hash.as_slice()));
                    let (found, rest) = known_at(&record, index).unwrap().unwrap();
                    assert_eq!((found.hash, found.sender, rest), (one.hash, one.sender, &b"rlp"[..]));
                }
                assert_eq!(stored_hash(&record, expected.len()), None);
                assert!(known_at(&record, expected.len()).unwrap().is_none());
                assert_eq!(counted(&record).unwrap(), (expected.len(), &b"rlp"[..]));
                for cut in 0..length {
                    assert!(split_body(&record[..cut], &B256::ZERO).is_err());
                    assert!(!matches!(known_at(&record[..cut], 0), Ok(Some(_))));
                }
            }
        }
    }
}

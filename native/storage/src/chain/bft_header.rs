//! Fast path for the block hash of an IBFT 2.0 or QBFT header.
//!
//! The block hash covers the header without round and seals (consensus.md 2.3). `BftEngine.hashed` is the slow path.
//! The test `test_the_fast_path_of_header_hashes` compares both.

use alloy_primitives::{B256, keccak256};
use alloy_rlp::Header;

const EXTRA_DATA: usize = 12;
const VANITY_BYTES: usize = 32;
const ADDRESS_BYTES: usize = 20;

/// Return the encoded items of a list; None if the RLP is not one canonical list.
fn items(mut rlp: &[u8]) -> Option<Vec<&[u8]>> {
    let mut payload = Header::decode_bytes(&mut rlp, true).ok()?;
    let mut found = Vec::with_capacity(24);
    while !payload.is_empty() {
        let before = payload;
        let head = Header::decode(&mut payload).ok()?;
        payload = payload.get(head.payload_length..)?;
        found.push(&before[..before.len() - payload.len()]);
    }
    rlp.is_empty().then_some(found)
}

fn string(mut item: &[u8]) -> Option<&[u8]> {
    Header::decode_bytes(&mut item, false).ok()
}

/// Return the block hash of a header without a vote; None if the slow path must decide.
pub fn bft_block_hash(header: &[u8], is_qbft: bool) -> Option<B256> {
    let fields = items(header)?;
    let extra = items(string(fields.get(EXTRA_DATA)?)?)?;
    let [vanity, validators, vote, _round, _seals] = extra[..] else { return None };
    let no_vote: u8 = if is_qbft { 0xc0 } else { 0x80 };
    let mut addresses = items(validators)?.into_iter().map(string);
    if string(vanity)?.len() != VANITY_BYTES
        || vote != [no_vote]
        || !addresses.all(|address| address.is_some_and(|address| address.len() == ADDRESS_BYTES))
    {
        return None;
    }
    let rest: &[u8] = if is_qbft { &[0xc0, 0x80, 0xc0] } else { &[0x80] };
    let extra = list(&[vanity, validators, rest]);
    let mut encoded = Vec::with_capacity(extra.len() + 4);
    Header { list: false, payload_length: extra.len() }.encode(&mut encoded);
    encoded.extend_from_slice(&extra);
    let before = fields[..EXTRA_DATA].concat();
    let after = fields[EXTRA_DATA + 1..].concat();
    Some(keccak256(list(&[&before, &encoded, &after])))
}

fn list(parts: &[&[u8]]) -> Vec<u8> {
    let payload_length = parts.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(payload_length + 4);
    Header { list: true, payload_length }.encode(&mut out);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// The fields of a header: byte strings and numbers.
pub enum Field<'a> {
    Bytes(&'a [u8]),
    Number(&'a [u8]),
}

/// Size in bytes of each field that is a byte string.
const SIZES: [(usize, usize); 13] = [
    (0, 32),
    (1, 32),
    (2, 20),
    (3, 32),
    (4, 32),
    (5, 32),
    (6, 256),
    (13, 32),
    (14, 8),
    (16, 32),
    (19, 32),
    (20, 32),
    (21, 32),
];
/// Maximum size in bytes of each number.
const WIDTHS: [(usize, usize); 8] = [(7, 32), (8, 8), (9, 8), (10, 8), (11, 8), (15, 32), (17, 8), (18, 8)];
const MIN_FIELDS: usize = 15;
const MAX_FIELDS: usize = 22;

/// Decode a header. Returns None if the slow path, `Header.decode`, must decide; its error names the wrong field.
pub fn header_fields(header: &[u8]) -> Option<Vec<Field<'_>>> {
    let items = items(header)?;
    if !(MIN_FIELDS..=MAX_FIELDS).contains(&items.len()) {
        return None;
    }
    items.into_iter().enumerate().map(|(index, item)| one(index, item)).collect()
}

fn one(index: usize, item: &[u8]) -> Option<Field<'_>> {
    let value = string(item)?;
    if let Some((_, width)) = WIDTHS.iter().find(|(at, _)| *at == index) {
        return (value.len() <= *width && value.first() != Some(&0)).then_some(Field::Number(value));
    }
    let size = SIZES.iter().find(|(at, _)| *at == index).map_or(value.len(), |(_, size)| *size);
    (value.len() == size).then_some(Field::Bytes(value))
}

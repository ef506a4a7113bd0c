//! Splits RLP lists into their items, one level deep and without copies.

use std::ops::Range;

use alloy_rlp::{Encodable, Header};

use crate::{Error, Result};

/// Split one RLP item off the front of `rest`. Returns whether the item is a list, the encoded item, and its payload.
pub fn item<'a>(rest: &mut &'a [u8], place: impl Fn() -> String) -> Result<(bool, &'a [u8], &'a [u8])> {
    let start = *rest;
    let head = Header::decode(rest).map_err(|cause| Error::at(place(), cause))?;
    if head.payload_length > rest.len() {
        return Err(Error::at(place(), "it ends too early"));
    }
    let (payload, after) = rest.split_at(head.payload_length);
    *rest = after;
    Ok((head.list, &start[..start.len() - after.len()], payload))
}

/// Split off the RLP list at the front. Returns (payload of the list, bytes after the list).
pub fn list_at_front<'a>(place: &str, data: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
    let mut rest = data;
    match item(&mut rest, || place.to_owned())? {
        (true, _, payload) => Ok((payload, rest)),
        (false, ..) => Err(Error::at(place, "a list is expected")),
    }
}

/// Return the payload of an RLP list that spans all of `data`.
fn whole_list<'a>(place: &str, data: &'a [u8]) -> Result<&'a [u8]> {
    match list_at_front(place, data)? {
        (payload, []) => Ok(payload),
        (_, rest) => Err(Error::at(place, format!("{} bytes follow it", rest.len()))),
    }
}

fn positions(
    place: &str,
    data: &[u8],
    limit: usize,
    mut suffix_size: impl FnMut(bool, &[u8], &[u8]) -> std::result::Result<usize, &'static str>,
) -> Result<Vec<Range<usize>>> {
    let mut rest = whole_list(place, data)?;
    let mut found = Vec::new();
    while !rest.is_empty() {
        if found.len() == limit {
            return Err(Error::at(place, format!("more than {limit} items")));
        }
        let name = || format!("{place}: item {}", found.len());
        let (is_list, encoded, payload) = item(&mut rest, name)?;
        let size = suffix_size(is_list, encoded, payload).map_err(|problem| Error::at(name(), problem))?;
        let end = data.len() - rest.len();
        found.push(end - size..end);
    }
    Ok(found)
}

/// Return the ranges of the items of an RLP list, including their headers. The list must span all of `data`.
pub fn split_list(data: &[u8], limit: usize) -> Result<Vec<Range<usize>>> {
    positions("list", data, limit, |_, encoded, _| Ok(encoded.len()))
}

/// Return the ranges of the EIP-2718 encodings in a list of transactions. A typed transaction is an RLP string in this
/// list.
pub fn split_transactions(data: &[u8], limit: usize) -> Result<Vec<Range<usize>>> {
    positions("transactions", data, limit, |is_list, encoded, payload| match payload.first() {
        _ if is_list => Ok(encoded.len()),
        Some(..0x80) => Ok(payload.len()),
        _ => Err("a typed transaction must begin with its type"),
    })
}

/// Encodes a list of transactions. This is the inverse of `split_transactions`.
pub fn join_transactions<'a>(raws: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut payload = Vec::new();
    for raw in raws {
        match raw.first() {
            Some(0xc0..) => payload.extend_from_slice(raw),
            _ => raw.encode(&mut payload),
        }
    }
    list_of(&payload)
}

pub fn list_of(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 9);
    Header { list: true, payload_length: payload.len() }.encode(&mut out);
    out.extend_from_slice(payload);
    out
}

/// Encodes the body `[transactions, ommers, withdrawals?]` of a block `[header, transactions, ommers, withdrawals?]`.
pub fn body_of_block(block: &[u8]) -> Result<Vec<u8>> {
    let mut rest = whole_list("block", block)?;
    match item(&mut rest, || "block: header".to_owned())? {
        (true, ..) => Ok(list_of(rest)),
        (false, ..) => Err(Error::at("block: header", "a list is expected")),
    }
}

#[cfg(test)]
mod tests;

//! Checks that the sender (privateFrom) and the group in a private transaction match the sealed record that contains
//! the transaction.
//!
//! The key of a payload covers only the ciphertext, so a member could forward another member's transaction under its
//! own name or in another group. The sender's signature covers sender and group. A record that contradicts the
//! signature is refused, so that it cannot replace the correct record.

use alloy_rlp::Header;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::group_ids::group_id;
use crate::sealed_payload::{Key, Sealed};

/// First byte of a private transaction with EIP-1559 fees.
const DYNAMIC_FEE_TYPE: u8 = 0x02;

/// Item count of a private transaction's RLP list, and the indexes of some items in it.
struct Layout {
    items: usize,
    gas_limit: usize,
    private_from: usize,
    private_for: usize,
}

const LEGACY: Layout = Layout { items: 12, gas_limit: 2, private_from: 9, private_for: 10 };
const DYNAMIC_FEE: Layout = Layout { items: 14, gas_limit: 4, private_from: 11, private_for: 12 };

/// Return whether the sender and the group in a private transaction equal those of its sealed record. Payloads that are
/// not private transactions always pass.
pub fn agrees(payload: &[u8], sealed: &Sealed<'_>) -> bool {
    let Ok(rlp) = STANDARD.decode(payload) else { return true };
    match claims(&rlp) {
        Some((from, group)) => from == sealed.sender && group == sealed.group,
        None => true,
    }
}

/// Return the gas limit of the private transaction in an opened payload; None if the payload is not a private
/// transaction.
pub fn payload_gas_limit(payload: &[u8]) -> Option<u64> {
    gas_limit(&STANDARD.decode(payload).ok()?)
}

/// Return the gas limit of an RLP-encoded private transaction. For a flexible group, `rlp` is a list of the transaction
/// and the version of the member list. Returns None for other bytes.
pub fn gas_limit(rlp: &[u8]) -> Option<u64> {
    if let Some((items, layout)) = transaction(rlp) {
        return number(items[layout.gas_limit]);
    }
    let versioned = split(rlp).filter(|items| items.len() == 2)?;
    let (items, layout) = transaction(versioned[0]).or_else(|| transaction(content(versioned[0])?))?;
    number(items[layout.gas_limit])
}

/// Split the RLP list of a private transaction. Returns its items and their layout; None for other bytes.
fn transaction(rlp: &[u8]) -> Option<(Vec<&[u8]>, Layout)> {
    let (list, layout) = match rlp.split_first() {
        Some((&DYNAMIC_FEE_TYPE, rest)) => (rest, DYNAMIC_FEE),
        _ => (rlp, LEGACY),
    };
    let items = split(list)?;
    (items.len() == layout.items).then_some((items, layout))
}

/// Return the privateFrom and the group of a private transaction; None for other bytes.
fn claims(rlp: &[u8]) -> Option<(Key, Key)> {
    let (items, layout) = transaction(rlp)?;
    let from = string(items[layout.private_from])?;
    let group = match string(items[layout.private_for]) {
        Some(group) => group,
        None => {
            let recipients = split(items[layout.private_for])?;
            let members: Option<Vec<Key>> =
                recipients.into_iter().chain([items[layout.private_from]]).map(string).collect();
            group_id(&members?, None)
        }
    };
    Some((from, group))
}

/// Split an RLP list into its encoded items; None for other bytes, and if bytes follow the list.
fn split(encoded: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = encoded;
    let header = Header::decode(&mut rest).ok()?;
    if !header.list || header.payload_length != rest.len() {
        return None;
    }
    let mut items = Vec::new();
    while !rest.is_empty() {
        let start = rest;
        let header = Header::decode(&mut rest).ok()?;
        rest = rest.get(header.payload_length..)?;
        items.push(&start[..start.len() - rest.len()]);
    }
    Some(items)
}

/// Return the content of an RLP string; None if `encoded` is not a string.
fn content(encoded: &[u8]) -> Option<&[u8]> {
    let mut rest = encoded;
    let header = Header::decode(&mut rest).ok()?;
    (!header.list).then_some(rest)
}

fn string(encoded: &[u8]) -> Option<Key> {
    content(encoded)?.try_into().ok()
}

/// Decode an RLP number; None for a list. A number above 64 bits becomes `u64::MAX`.
fn number(encoded: &[u8]) -> Option<u64> {
    let bytes = content(encoded)?;
    if bytes.len() > 8 {
        return Some(u64::MAX);
    }
    Some(bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Return a transaction with nine dummy items, then privateFrom and the recipients.
    fn transaction(from: &Key, to: &[u8]) -> Vec<u8> {
        let mut items = vec![0x80; 9];
        items.push(0xa0);
        items.extend_from_slice(from);
        items.extend_from_slice(to);
        items.push(0x80);
        let mut rlp = Vec::new();
        Header { list: true, payload_length: items.len() }.encode(&mut rlp);
        rlp.extend(items);
        STANDARD.encode(rlp).into_bytes()
    }

    fn sealed(sender: Key, group: Key) -> Sealed<'static> {
        Sealed { sender, box_nonce: [0; 24], nonce: [0; 24], group, members: 1, boxes: vec![], ciphertext: &[] }
    }

    #[test]
    fn a_transaction_belongs_to_its_sender_and_its_group() {
        let mut to = vec![0xe1, 0xa0];
        to.extend([2; 32]);
        let payload = transaction(&[1; 32], &to);
        let group = group_id(&[[2; 32], [1; 32]], None);
        assert!(agrees(&payload, &sealed([1; 32], group)));
        assert!(!agrees(&payload, &sealed([2; 32], group)));
        assert!(!agrees(&payload, &sealed([1; 32], [9; 32])));
    }

    #[test]
    fn a_named_group_is_the_one_of_the_record() {
        let mut to = vec![0xa0];
        to.extend([7; 32]);
        let payload = transaction(&[1; 32], &to);
        assert!(agrees(&payload, &sealed([1; 32], [7; 32])));
        assert!(!agrees(&payload, &sealed([1; 32], [8; 32])));
    }

    #[test]
    fn the_gas_limit_is_found_in_every_form() {
        let list = |items: &[&[u8]]| {
            let content = items.concat();
            let mut out = Vec::new();
            Header { list: true, payload_length: content.len() }.encode(&mut out);
            out.extend(content);
            out
        };
        let (empty, gas) = (&[0x80][..], &[0x82, 0x10, 0x00][..]);
        let mut legacy = vec![empty; 12];
        legacy[2] = gas;
        let legacy = list(&legacy);
        let mut dynamic = vec![empty; 14];
        dynamic[4] = gas;
        let dynamic = [&[DYNAMIC_FEE_TYPE][..], &list(&dynamic)].concat();
        let mut text = Vec::new();
        alloy_rlp::Encodable::encode(&dynamic[..], &mut text);
        for rlp in [&legacy, &dynamic, &list(&[&legacy, empty]), &list(&[&text, empty])] {
            assert_eq!(gas_limit(rlp), Some(4096));
        }
        assert_eq!(gas_limit(&list(&[empty, empty])), None);
    }

    #[test]
    fn whatever_is_no_transaction_says_nothing() {
        for payload in [&b"hello"[..], b"", b"!!!", b"wIA=", &[0xff; 40]] {
            assert!(agrees(payload, &sealed([1; 32], [7; 32])));
        }
    }
}

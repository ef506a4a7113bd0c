//! What a payload says of itself, where it is a private transaction: its privateFrom and its group.
//!
//! The key of a payload covers its ciphertext alone, so a member could hand a transaction of another member on under its
//! own name, or under another group. The sender's signature covers both: a record that says otherwise is refused before
//! it takes the place of the right one.

use alloy_rlp::Header;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::groups::group_id;
use crate::record::{Key, Sealed};

const ITEMS: usize = 12;
const PRIVATE_FROM: usize = 9;
const PRIVATE_FOR: usize = 10;

/// Whether a payload is no private transaction, or one of this sender in this group.
pub fn agrees(payload: &[u8], sealed: &Sealed<'_>) -> bool {
    let Ok(rlp) = STANDARD.decode(payload) else { return true };
    match claims(&rlp) {
        Some((from, group)) => from == sealed.sender && group == sealed.group,
        None => true,
    }
}

/// privateFrom and the group of a private transaction.
fn claims(rlp: &[u8]) -> Option<(Key, Key)> {
    let items = split(rlp)?;
    if items.len() != ITEMS {
        return None;
    }
    let from = string(items[PRIVATE_FROM])?;
    let group = match string(items[PRIVATE_FOR]) {
        Some(group) => group,
        None => {
            let recipients = split(items[PRIVATE_FOR])?;
            let members: Option<Vec<Key>> = recipients.into_iter().chain([items[PRIVATE_FROM]]).map(string).collect();
            group_id(&members?, None)
        }
    };
    Some((from, group))
}

/// The items of a list that is all there is, each still encoded.
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

fn string(encoded: &[u8]) -> Option<Key> {
    let mut rest = encoded;
    let header = Header::decode(&mut rest).ok()?;
    if header.list {
        return None;
    }
    rest.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nine items without meaning, then who it is from and for whom.
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
    fn whatever_is_no_transaction_says_nothing() {
        for payload in [&b"hello"[..], b"", b"!!!", b"wIA=", &[0xff; 40]] {
            assert!(agrees(payload, &sealed([1; 32], [7; 32])));
        }
    }
}

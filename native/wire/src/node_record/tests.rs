use super::*;
use crate::vectors::{Numbers, array, vector};

const PAIRS: [Pair<'static>; 2] = [(b"udp", &[0x82, 0x76, 0x5f]), (b"ip", &[0x84, 127, 0, 0, 1])];

#[test]
fn the_record_of_the_specification() {
    let record = vector("record");
    let read = read(&record).unwrap();
    assert_eq!(read.id.to_vec(), vector("recipient_id"));
    assert_eq!(keccak256(read.id), array::<32>("record_address"));
    assert_eq!(read.sequence, 1);
    let keys: Vec<&[u8]> = read.pairs.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, [&b"id"[..], b"ip", b"secp256k1", b"udp"]);
    assert_eq!(read.pairs[1].1, PAIRS[1].1);
    assert_eq!(sign(&vector("recipient_key"), 1, &PAIRS).unwrap(), record);
    assert_eq!(sign(&vector("recipient_key"), 1, &read.pairs).unwrap(), record, "its own pairs may be among them");
}

/// Make a record with the given pairs in their order and a valid signature.
fn signed(pairs: &[Pair<'_>]) -> Vec<u8> {
    let secret = keys::secret(&vector("recipient_key")).unwrap();
    let mut content = Vec::new();
    7u64.encode(&mut content);
    for (key, value) in pairs {
        key.encode(&mut content);
        content.extend_from_slice(value);
    }
    let signature = keys::sign(&secret, keccak256(rlp::list_of(&content)).0);
    let mut payload = Vec::new();
    signature[..64].encode(&mut payload);
    payload.extend_from_slice(&content);
    rlp::list_of(&payload)
}

#[test]
fn records_that_break_a_rule() {
    let key = [&[0xa1][..], &keys::public_of(&keys::secret(&vector("recipient_key")).unwrap()).serialize()].concat();
    let other = [&[0xa1][..], &keys::public_of(&keys::secret(&vector("initiator_key")).unwrap()).serialize()].concat();
    let sound: [Pair<'_>; 3] = [(b"id", SCHEME), (b"secp256k1", &key), (b"x", &[0x80])];
    assert!(read(&signed(&sound)).is_ok());
    let broken: [&[Pair<'_>]; 8] = [
        &[(b"secp256k1", &key), (b"id", SCHEME)],
        &[(b"id", SCHEME), (b"id", SCHEME), (b"secp256k1", &key)],
        &[(b"id", b"\x82v5"), (b"secp256k1", &key)],
        &[(b"secp256k1", &key)],
        &[(b"id", SCHEME)],
        &[(b"id", SCHEME), (b"secp256k1", &[0x80])],
        &[(b"id", SCHEME), (b"secp256k1", &other)],
        &[(b"id", SCHEME), (b"secp256k1", &key), (b"x", &[])],
    ];
    for (number, pairs) in broken.into_iter().enumerate() {
        assert!(read(&signed(pairs)).is_err(), "{number}");
    }
}

#[test]
fn sizes() {
    let mut filler = vec![0xb8, 0];
    let mut fits = 0;
    for size in 56..200u8 {
        filler[1] = size;
        filler.push(1);
        filler.resize(2 + usize::from(size), 1);
        match sign(&vector("recipient_key"), 1, &[(b"z", &filler)]) {
            Ok(record) => fits = record.len(),
            Err(error) => {
                assert_eq!((fits, error.to_string()), (300, "record: 301 bytes, more than 300".into()));
                return;
            }
        }
    }
    panic!("no record was too large");
}

#[test]
fn pairs_must_be_single_values_and_named_once() {
    let key = vector("recipient_key");
    for pairs in [&[(&b"a"[..], &[][..])][..], &[(b"a", &[1, 2])], &[(b"a", &[1]), (b"a", &[2])], &[(b"id", &[1])]] {
        assert!(sign(&key, 1, pairs).is_err());
    }
}

#[test]
fn spoiled_records_are_errors() {
    let mut numbers = Numbers::new(1);
    let record = vector("record");
    for _ in 0..2_000 {
        let spoiled = numbers.spoiled(&record);
        assert!(spoiled == record || read(&spoiled).is_err());
    }
}

use super::*;
use crate::vectors::{Numbers, vector};

const PACKETS: [(&str, u8); 6] = [
    ("ping_packet", 1),
    ("ping_with_more_packet", 1),
    ("ping_of_later_version_packet", 1),
    ("pong_packet", 2),
    ("find_node_packet", 3),
    ("neighbors_packet", 4),
];

#[test]
fn packets_of_the_specification_open() {
    for (name, kind) in PACKETS {
        let datagram = vector(name);
        let packet = open(&datagram).unwrap();
        assert_eq!(packet.kind, kind, "{name}");
        assert_eq!(packet.signer.to_vec(), vector("recipient_id"), "{name}");
        assert_eq!(packet.hash, datagram[..32], "{name}");
        assert_eq!(rlp::list_at_front("", packet.data).unwrap().1, [], "{name}: one list and nothing else");
    }
}

#[test]
fn what_is_sealed_opens() {
    for (name, kind) in PACKETS {
        let datagram = vector(name);
        let data = open(&datagram).unwrap().data;
        let again = seal(&vector("initiator_key"), kind, data).unwrap();
        let packet = open(&again).unwrap();
        assert_eq!((packet.kind, packet.data), (kind, data));
        assert_eq!(packet.signer.to_vec(), vector("initiator_id"));
    }
}

#[test]
fn limits() {
    let key = vector("recipient_key");
    assert_eq!(seal(&key, 1, &[0; MAX_SIZE - 98]).unwrap().len(), MAX_SIZE);
    assert!(seal(&key, 1, &[0; MAX_SIZE - 97]).is_err());
    assert!(seal(&[0; 32], 1, &[0xc0]).is_err());
    assert!(open(&seal(&key, 9, &[0xc0]).unwrap()).is_ok());
    assert!(open(&seal(&key, 9, &[]).unwrap()).is_err(), "no data");
    assert!(open(&seal(&key, 9, &[0x80]).unwrap()).is_err(), "not a list");
    assert!(open(&[0; MAX_SIZE + 1]).is_err());
    assert!(open(&[]).is_err());
}

#[test]
fn spoiled_packets_are_errors() {
    let mut numbers = Numbers::new(1);
    for (name, _) in PACKETS {
        let datagram = vector(name);
        for _ in 0..300 {
            let spoiled = numbers.spoiled(&datagram);
            assert!(spoiled == datagram || open(&spoiled).is_err());
            // correct the hash, so that `open` reads the changed signature, which must not cause a panic
            if spoiled.len() > 32 {
                let hash = keccak256(&spoiled[32..]);
                let _ = open(&[hash.as_slice(), &spoiled[32..]].concat());
            }
        }
    }
}

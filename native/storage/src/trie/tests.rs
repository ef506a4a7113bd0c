//! The trie against alloy's hash builder, through saving and loading, with random histories.

use std::collections::{BTreeMap, HashMap};

use alloy_primitives::{B256, Bytes, U256, keccak256};
use alloy_trie::proof::verify_proof;
use alloy_trie::{HashBuilder, Nibbles};
use ophion_primitives::errors::{Error, Result};

use super::*;

#[derive(Default)]
struct Memory {
    nodes: HashMap<u64, Vec<u8>>,
}

impl Saver for Memory {
    fn put(&mut self, stored: &[u8]) -> Result<u64> {
        let id = self.nodes.len() as u64 + 1;
        self.nodes.insert(id, stored.to_vec());
        Ok(id)
    }
}

impl Source for Memory {
    fn load<T>(&self, id: u64, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        read(self.nodes.get(&id).ok_or_else(|| Error::damaged(format!("no node {id}")))?)
    }
}

/// A small deterministic source of numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }
}

fn expected_root(entries: &BTreeMap<B256, U256>) -> B256 {
    let mut builder = HashBuilder::default();
    for (key, value) in entries {
        builder.add_leaf(Nibbles::unpack(key), &alloy_rlp::encode(value));
    }
    builder.root()
}

/// Keys that share long prefixes now and then, so that every kind of node comes up, inline ones too.
fn key(dice: &mut Dice) -> B256 {
    let mut key = [0u8; 32];
    key[0] = (dice.roll(3) << 4) as u8;
    key[15] = dice.roll(4) as u8;
    key[31] = dice.roll(64) as u8;
    B256::from(key)
}

fn save(trie: &Trie<Slot>, memory: &mut Memory) -> Trie<Slot> {
    let root =
        trie.root.as_ref().map(|root| Child::Stored { hash: root.root_hash(), id: save_root(root, memory).unwrap() });
    Trie { root }
}

#[test]
fn random_histories_give_the_roots_of_the_hash_builder() {
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let mut memory = Memory::default();
        let mut trie: Trie<Slot> = Trie::default();
        let mut entries = BTreeMap::new();
        for step in 0..300 {
            let key = key(&mut dice);
            if dice.roll(3) == 0 {
                let was_there = trie.remove(&Nibbles::unpack(key), &memory).unwrap();
                assert_eq!(was_there, entries.remove(&key).is_some());
            } else {
                let value = U256::from(dice.roll(1 << 20) + 1) << (dice.roll(2) * 200) as usize;
                trie.insert(Nibbles::unpack(key), Slot(value), &memory).unwrap();
                entries.insert(key, value);
            }
            if dice.roll(10) == 0 {
                assert_eq!(trie.hash(), expected_root(&entries), "seed {seed}, step {step}");
                trie = save(&trie, &mut memory);
            }
        }
        assert_eq!(trie.hash(), expected_root(&entries));
    }
}

#[test]
fn a_version_stays_as_it_was_when_another_is_changed() {
    let mut dice = Dice(7);
    let memory = Memory::default();
    let mut first: Trie<Slot> = Trie::default();
    for _ in 0..100 {
        first.insert(Nibbles::unpack(key(&mut dice)), Slot(U256::from(1)), &memory).unwrap();
    }
    let root = first.hash();
    let mut second = first.clone();
    for _ in 0..50 {
        second.insert(Nibbles::unpack(key(&mut dice)), Slot(U256::from(2)), &memory).unwrap();
        second.remove(&Nibbles::unpack(key(&mut dice)), &memory).unwrap();
    }
    assert_ne!(second.hash(), root);
    assert_eq!(first.hash(), root);
}

#[test]
fn proofs_verify_for_present_and_absent_keys() {
    let mut memory = Memory::default();
    let mut trie: Trie<Slot> = Trie::default();
    let mut entries = BTreeMap::new();
    for number in 0..200u64 {
        let key = keccak256(number.to_be_bytes());
        trie.insert(Nibbles::unpack(key), Slot(U256::from(number + 1)), &memory).unwrap();
        entries.insert(key, U256::from(number + 1));
    }
    let trie = save(&trie, &mut memory);
    for number in 0..400u64 {
        let key = keccak256(number.to_be_bytes());
        let nodes: Vec<Bytes> =
            proof(&trie, &Nibbles::unpack(key), &memory).unwrap().into_iter().map(Bytes::from).collect();
        let value = entries.get(&key).map(alloy_rlp::encode);
        verify_proof(trie.hash(), Nibbles::unpack(key), value, &nodes).unwrap();
    }
}

#[test]
fn a_walk_visits_every_key_from_its_start_in_order() {
    let mut dice = Dice(11);
    let memory = Memory::default();
    let mut trie: Trie<Slot> = Trie::default();
    let mut entries = BTreeMap::new();
    for _ in 0..150 {
        let key = key(&mut dice);
        trie.insert(Nibbles::unpack(key), Slot(U256::from(9)), &memory).unwrap();
        entries.insert(key, U256::from(9));
    }
    for _ in 0..40 {
        let start = key(&mut dice);
        let mut seen = Vec::new();
        let mut visit = |path: Nibbles, _: &Slot| {
            seen.push(B256::from_slice(&path.pack()));
            Ok(true)
        };
        trie.walk(&Nibbles::unpack(start), &memory, &mut visit).unwrap();
        assert_eq!(seen, entries.range(start..).map(|(key, _)| *key).collect::<Vec<_>>());
    }
}

#[test]
fn the_difference_of_two_versions_leads_from_one_to_the_other() {
    for seed in 0..40 {
        let mut dice = Dice(seed + 1000);
        let mut memory = Memory::default();
        let mut before: Trie<Slot> = Trie::default();
        for _ in 0..dice.roll(80) {
            before.insert(Nibbles::unpack(key(&mut dice)), Slot(U256::from(dice.roll(5) + 1)), &memory).unwrap();
        }
        let before = save(&before, &mut memory);
        let mut after = before.clone();
        for _ in 0..dice.roll(40) {
            let key = Nibbles::unpack(key(&mut dice));
            if dice.roll(2) == 0 {
                after.remove(&key, &memory).unwrap();
            } else {
                after.insert(key, Slot(U256::from(dice.roll(5) + 1)), &memory).unwrap();
            }
        }
        let mut rebuilt = before.clone();
        for (key, _, value) in before.difference(&after, &memory).unwrap() {
            match value {
                Some(value) => rebuilt.insert(key, value, &memory).unwrap(),
                None => assert!(rebuilt.remove(&key, &memory).unwrap()),
            }
        }
        assert_eq!(rebuilt.hash(), after.hash(), "seed {seed}");
    }
}

#[test]
fn damaged_nodes_are_errors() {
    let mut memory = Memory::default();
    let mut trie: Trie<Slot> = Trie::default();
    for number in 0..50u64 {
        trie.insert(Nibbles::unpack(keccak256(number.to_be_bytes())), Slot(U256::from(number + 1)), &memory).unwrap();
    }
    let trie = save(&trie, &mut memory);
    for id in 1..=memory.nodes.len() as u64 {
        let whole = memory.nodes[&id].clone();
        for length in 0..whole.len().min(40) {
            memory.nodes.insert(id, whole[..length].to_vec());
            let _ = trie.walk(&Nibbles::new(), &memory, &mut |_, _| Ok(true));
        }
        memory.nodes.insert(id, whole);
    }
}

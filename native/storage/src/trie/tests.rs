//! Tests that compare the trie with alloy's hash builder, for random histories and after saving and loading.

use std::collections::{BTreeMap, HashMap};

use alloy_primitives::{B256, Bytes, U256, keccak256};
use alloy_trie::proof::verify_proof;
use alloy_trie::{HashBuilder, Nibbles};
use ophion_primitives::errors::{Error, Result};

use super::*;

#[derive(Default)]
struct Memory {
    nodes: HashMap<u64, Vec<u8>>,
    out: Vec<u8>,
}

impl Saver for Memory {
    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn put(&mut self) -> Result<()> {
        let stored = std::mem::take(&mut self.out);
        self.nodes.insert(self.next(), stored);
        Ok(())
    }

    fn next(&self) -> u64 {
        self.nodes.len() as u64 + 1
    }

    fn version(&self, id: u64) -> Result<Version> {
        version(id, |id| self.row(id))
    }
}

impl Memory {
    fn row(&self, id: u64) -> Result<&[u8]> {
        self.nodes.get(&id).map(Vec::as_slice).ok_or_else(|| Error::damaged(format!("no node {id}")))
    }
}

impl Source for Memory {
    fn load<T>(&self, id: u64, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        load(id, |id| self.row(id), |_| (), |whole, _| read(whole))
    }
}

/// A deterministic random number generator.
struct Random(u64);

impl Random {
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

/// Make a key with a long common prefix, so that every kind of node occurs.
fn key(random: &mut Random) -> B256 {
    let mut key = [0u8; 32];
    key[0] = (random.roll(3) << 4) as u8;
    key[15] = random.roll(4) as u8;
    key[31] = random.roll(64) as u8;
    B256::from(key)
}

fn save(trie: &Trie<Slot>, memory: &mut Memory) -> Trie<Slot> {
    save_on(None, trie, memory)
}

/// Save a trie. If `before` is given, branches are saved as deltas of that version.
fn save_on(before: Option<&Trie<Slot>>, trie: &Trie<Slot>, memory: &mut Memory) -> Trie<Slot> {
    let before = before.and_then(|trie| match trie.root {
        Some(Child::Stored { id, .. }) => Some(id),
        _ => None,
    });
    let stored =
        |root: &Child<Slot>| Child::Stored { hash: root.root_hash(), id: save_root(root, before, memory).unwrap() };
    Trie { root: trie.root.as_ref().map(stored) }
}

#[test]
fn random_histories_give_the_roots_of_the_hash_builder() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut memory = Memory::default();
        let mut trie: Trie<Slot> = Trie::default();
        let mut entries = BTreeMap::new();
        let mut saved: Option<Trie<Slot>> = None;
        for step in 0..300 {
            let key = key(&mut random);
            if random.roll(3) == 0 {
                let was_there = trie.remove(&Nibbles::unpack(key), &memory).unwrap();
                assert_eq!(was_there, entries.remove(&key).is_some());
            } else {
                let value = U256::from(random.roll(1 << 20) + 1) << (random.roll(2) * 200) as usize;
                trie.insert(Nibbles::unpack(key), Slot(value), &memory).unwrap();
                entries.insert(key, value);
            }
            if random.roll(10) == 0 {
                assert_eq!(trie.hash(), expected_root(&entries), "seed {seed}, step {step}");
                trie = save_on(saved.as_ref(), &trie, &mut memory);
                for _ in 0..20 {
                    let asked = self::key(&mut random);
                    let found = trie.get(&Nibbles::unpack(asked), &memory).unwrap();
                    assert_eq!(found.map(|slot| slot.0), entries.get(&asked).copied(), "seed {seed}, step {step}");
                }
                saved = (seed % 2 == 1).then(|| trie.clone());
            }
        }
        assert_eq!(trie.hash(), expected_root(&entries));
    }
}

#[test]
fn a_version_stays_as_it_was_when_another_is_changed() {
    let mut random = Random(7);
    let memory = Memory::default();
    let mut first: Trie<Slot> = Trie::default();
    for _ in 0..100 {
        first.insert(Nibbles::unpack(key(&mut random)), Slot(U256::from(1)), &memory).unwrap();
    }
    let root = first.hash();
    let mut second = first.clone();
    for _ in 0..50 {
        second.insert(Nibbles::unpack(key(&mut random)), Slot(U256::from(2)), &memory).unwrap();
        second.remove(&Nibbles::unpack(key(&mut random)), &memory).unwrap();
    }
    assert_ne!(second.hash(), root);
    assert_eq!(first.hash(), root);
}

/// A snapshot of the database, taken before the last nodes were written.
struct Seen<'a>(&'a Memory, u64);

impl Source for Seen<'_> {
    fn load<T>(&self, id: u64, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        assert!(id <= self.1, "node {id} is not there yet");
        self.0.load(id, read)
    }
}

#[test]
fn tries_that_grow_upon_each_other_let_go_of_what_is_written() {
    for seed in 0..60 {
        let mut random = Random(seed + 500);
        let mut memory = Memory::default();
        let mut trie: Trie<Slot> = Trie::default();
        let mut entries = BTreeMap::new();
        // `parent` is the trie of the previous block, which is changed but possibly not written yet
        let mut parent: Trie<Slot> = Trie::default();
        for step in 0..200 {
            // the random number decides whether the parent is written before, during or after the opening of the
            // snapshot
            let writing = random.roll(3);
            if writing == 0 {
                save(&parent, &mut memory);
            }
            let seen = memory.next() - 1;
            if writing == 1 {
                save(&parent, &mut memory);
            }
            for _ in 0..5 {
                let key =
                    if random.roll(2) == 0 { key(&mut random) } else { keccak256(random.roll(4000).to_be_bytes()) };
                if random.roll(4) == 0 {
                    trie.remove(&Nibbles::unpack(key), &Seen(&memory, seen)).unwrap();
                    entries.remove(&key);
                } else {
                    let value = U256::from(random.roll(1 << 20) + 1);
                    trie.insert(Nibbles::unpack(key), Slot(value), &Seen(&memory, seen)).unwrap();
                    entries.insert(key, value);
                }
            }
            assert_eq!(trie.hash(), expected_root(&entries), "seed {seed}, step {step}");
            if random.roll(4) == 0 {
                trie.evict(seen);
                assert_eq!(trie.hash(), expected_root(&entries), "seed {seed}, step {step}");
                for (key, value) in &entries {
                    let found = trie.get(&Nibbles::unpack(key), &Seen(&memory, seen)).unwrap();
                    assert_eq!(found.map(|slot| slot.0), Some(*value), "seed {seed}, step {step}");
                }
                if writing == 0 {
                    // this step has changed five keys, so after the eviction at most the paths to these keys are in
                    // memory, with leaves that their branches contain
                    let live = trie.root.as_ref().map_or(0, Child::live);
                    assert!(live <= 5 * 3 * 17, "seed {seed}, step {step}: {live} nodes of {} entries", entries.len());
                }
            }
            if writing == 2 {
                save(&parent, &mut memory);
            }
            parent = trie.clone();
        }
        save(&trie, &mut memory);
        drop(parent);
        trie.evict(memory.next() - 1);
        assert_eq!(trie.root.as_ref().map_or(0, Child::live), 0);
        assert_eq!(trie.hash(), expected_root(&entries));
    }
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
    let mut random = Random(11);
    let memory = Memory::default();
    let mut trie: Trie<Slot> = Trie::default();
    let mut entries = BTreeMap::new();
    for _ in 0..150 {
        let key = key(&mut random);
        trie.insert(Nibbles::unpack(key), Slot(U256::from(9)), &memory).unwrap();
        entries.insert(key, U256::from(9));
    }
    for _ in 0..40 {
        let start = key(&mut random);
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
fn small_leaves_take_no_nodes_of_their_own_and_large_ones_do() {
    let account = |number: u64, code_hash: B256| Account {
        nonce: number,
        balance: U256::from(number) << 20,
        code_hash,
        storage: Trie::default(),
    };
    let code = keccak256(b"code");
    for (code_hash, own) in [(alloy_primitives::KECCAK256_EMPTY, 0), (code, 300)] {
        let mut memory = Memory::default();
        let mut trie: Trie<Account> = Trie::default();
        for number in 0..300u64 {
            let key = Nibbles::unpack(keccak256(number.to_be_bytes()));
            trie.insert(key, account(number, code_hash), &memory).unwrap();
        }
        let root = trie.root.as_ref().unwrap();
        let stored =
            Trie { root: Some(Child::Stored { hash: trie.hash(), id: save_root(root, None, &mut memory).unwrap() }) };
        let leaves = memory.nodes.values().filter(|bytes| bytes[0] == 0).count();
        assert_eq!(leaves, own);
        for number in 0..300u64 {
            let found = stored.get(&Nibbles::unpack(keccak256(number.to_be_bytes())), &memory).unwrap().unwrap();
            assert_eq!(FlatAccount::from(&found), FlatAccount::from(&account(number, code_hash)));
        }
        for (id, bytes) in &memory.nodes {
            let (rlp, children) = stored_children::<Account>(bytes).unwrap();
            assert!(*id != memory.nodes.len() as u64 || keccak256(rlp) == trie.hash());
            let (mut own, mut below) = (Vec::new(), Vec::new());
            references::<Account>(bytes, &mut own, &mut below).unwrap();
            assert_eq!(own, children.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
            for length in 0..bytes.len() {
                let _ = references::<Account>(&bytes[..length], &mut own, &mut below);
            }
        }
    }
}

#[test]
fn the_length_of_a_stored_value_is_known_without_storing_it() {
    let mut random = Random(3);
    for _ in 0..2_000 {
        let wide = |random: &mut Random| U256::from(random.roll(1 << 31)) << random.roll(226) as usize;
        let value = Slot(wide(&mut random));
        let mut account = Account {
            nonce: random.roll(1 << 31) << random.roll(34),
            balance: wide(&mut random),
            ..Account::default()
        };
        if random.roll(2) == 0 {
            account.code_hash = B256::ZERO;
        }
        if random.roll(2) == 0 {
            account.storage.root = Some(Child::Stored { hash: B256::ZERO, id: 9 });
        }
        let (mut slot, mut whole) = (Vec::new(), Vec::new());
        value.store(&mut slot);
        account.store(&mut whole);
        assert_eq!((value.stored_length(), account.stored_length()), (slot.len(), whole.len()));
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
            for number in 0..50u64 {
                let _ = trie.get(&Nibbles::unpack(keccak256(number.to_be_bytes())), &memory);
            }
        }
        memory.nodes.insert(id, whole);
    }
}

/// Make states of a trie with many wide branches, each saved as deltas of the previous state.
fn versions(memory: &mut Memory) -> Vec<(Trie<Slot>, BTreeMap<B256, U256>)> {
    let mut random = Random(5);
    let (mut trie, mut entries) = (Trie::default(), BTreeMap::new());
    let mut found: Vec<(Trie<Slot>, BTreeMap<B256, U256>)> = Vec::new();
    for version in 0..40u64 {
        for _ in 0..if version == 0 { 2_000 } else { 5 } {
            let key = keccak256(random.roll(2_500).to_be_bytes());
            if random.roll(5) == 0 {
                trie.remove(&Nibbles::unpack(key), memory).unwrap();
                entries.remove(&key);
            } else {
                let value = U256::from(random.roll(1 << 30) + 1) << 200;
                trie.insert(Nibbles::unpack(key), Slot(value), memory).unwrap();
                entries.insert(key, value);
            }
        }
        trie = save_on(found.last().map(|(trie, _)| trie), &trie, memory);
        found.push((trie.clone(), entries.clone()));
    }
    found
}

#[test]
fn a_branch_may_be_stored_as_what_has_changed_in_it() {
    let mut memory = Memory::default();
    let versions = versions(&mut memory);
    for (trie, entries) in &versions {
        let mut seen = BTreeMap::new();
        let mut visit = |path: Nibbles, value: &Slot| {
            seen.insert(B256::from_slice(&path.pack()), value.0);
            Ok(true)
        };
        trie.walk(&Nibbles::new(), &memory, &mut visit).unwrap();
        assert_eq!(seen, *entries);
        assert_eq!(trie.hash(), expected_root(entries));
    }
    let changes: Vec<u64> = memory.nodes.iter().filter(|(_, row)| row[0] == 3).map(|(id, _)| *id).collect();
    assert!(changes.len() > 300, "{} changes", changes.len());
    for id in changes {
        let mut earlier = Vec::new();
        let mut rlp = Vec::new();
        load(
            id,
            |id| memory.row(id),
            |id| earlier.push(id),
            |whole, steps| {
                rlp = stored_children::<Slot>(whole)?.0;
                assert!(memory.nodes[&id].len() * 2 < whole.len());
                assert_eq!(memory.nodes[&id][1], steps);
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(earlier.len(), usize::from(memory.nodes[&id][1]));
        assert!(earlier.len() <= 16 && earlier.is_sorted_by(|a, b| a > b) && earlier[0] < id);
        // loading needs every byte of the row, so a truncated or changed row gives an error
        let whole = memory.nodes[&id].clone();
        for length in 1..whole.len() {
            memory.nodes.insert(id, whole[..length].to_vec());
            assert!(memory.load(id, |_| Ok(())).is_err());
        }
        let mut circle = whole.clone();
        circle[2] = 0; // distance zero makes the row refer to itself as the earlier version
        memory.nodes.insert(id, circle);
        assert!(memory.load(id, |_| Ok(())).is_err());
        memory.nodes.insert(id, whole);
        for other in earlier {
            let row = memory.nodes.remove(&other).unwrap();
            assert!(memory.load(id, |_| Ok(())).is_err());
            memory.nodes.insert(other, row);
        }
    }
}

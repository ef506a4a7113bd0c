//! Writes a state that is downloaded from other nodes in parts (snap/1). Every part is verified before it is written.
//!
//! ```text
//! AccountRange ─▶ AccountBatch ─▶ storages and codes of its accounts ─▶ put_accounts
//! ```
//! An account is written after its storage and its code, so every stored account is complete. The state trie grows with
//! each batch. Named values, such as the next key to request, are written in the same transaction. A process that was
//! killed at any moment continues after the last written batch.
//!
//! The ids of complete storage tries are in memory, up to a limit. After a restart, the storages of accounts that are
//! not written yet are downloaded again.
//!
//! | key in `meta`       | value                                                                               |
//! |---------------------|-------------------------------------------------------------------------------------|
//! | snap:accounts       | id (8) and hash (32) of the root node of the accounts so far                        |
//! | snap:storage:<root> | id (8) of the root node of a complete storage trie above the limit in memory        |
//! | snap:slots:<root>   | next key to request (32), id (8) and hash (32) of the root node of the slots so far |
//!
//! Numbers in parentheses are sizes in bytes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::map::{B256Map, B256Set};
use alloy_primitives::{B256, KECCAK256_EMPTY, U256, keccak256};
use alloy_rlp::Encodable;
use alloy_trie::Nibbles;
use heed::{RoTxn, RwTxn};
use ophion_primitives::errors::{Error, Result};

use super::database::Database;
use super::node_writer::NodeWriter;
use super::records::{Nodes, number, remove_above};
use super::state_roots::note_root;
use super::tables::{Tables, meta};
use crate::trie::{
    Account, Child, Difference, EMPTY_ROOT, FlatAccount, NoSource, Slot, Source, Trie, Value, rlp_hash, rlp_list,
    rlp_string, save_root, verify_range,
};

const ACCOUNTS: &[u8] = b"snap:accounts";
const WHOLE_STORAGE: &[u8] = b"snap:storage:";
const STORAGE_PART: &[u8] = b"snap:slots:";
/// Prefix of the keys of a state download in `meta`.
const ALL: &[u8] = b"snap:";
/// Maximum number of complete storage tries whose ids are in memory. They take about 64 MiB.
const MAX_STORAGES: usize = 1 << 20;
/// Maximum number of items in one list of a response. The size limit of a message is stricter for most lists.
const MAX_ITEMS: usize = 1 << 17;

/// Ids of the root nodes of complete storage tries, by storage root.
pub type WholeStorages = Mutex<B256Map<u64>>;

/// Key and value of a row in `meta`, written in one transaction with a part of the state.
pub type Named = (String, Vec<u8>);

/// Verified accounts of one AccountRange response.
pub struct AccountBatch {
    pub accounts: Vec<(B256, FlatAccount)>,
    /// Whether the state has more accounts after the last account of the response.
    pub has_more: bool,
}

impl AccountBatch {
    /// Verify an AccountRange response, which holds the accounts from `origin` on. Returns None if the peer does not
    /// have the state.
    pub fn verified(response: &[u8], root: B256, origin: B256) -> Result<Option<Self>> {
        let [_, accounts, proof] = parts(response)?;
        let encoded = rlp_list(accounts, MAX_ITEMS)?;
        let proof = strings(proof)?;
        if encoded.is_empty() && proof.is_empty() {
            return Ok(None);
        }
        let accounts = encoded.into_iter().map(account_entry).collect::<Result<Vec<_>>>()?;
        let values: Vec<(B256, Vec<u8>)> = accounts.iter().map(|(key, account)| (*key, full_rlp(account))).collect();
        let entries: Vec<(B256, &[u8])> = values.iter().map(|(key, value)| (*key, &value[..])).collect();
        // a response without a proof must hold all accounts of the state
        let has_more = verify_range(root, origin, &entries, &proof)?;
        Ok(Some(AccountBatch { accounts, has_more }))
    }
}

/// Id and hash of the root node of a trie that is downloaded in parts.
#[derive(Clone, Copy)]
struct Link {
    id: u64,
    hash: B256,
}

impl Link {
    fn read(bytes: &[u8]) -> Result<Self> {
        match bytes.len() {
            40 => Ok(Link { id: number(&bytes[..8]), hash: B256::from_slice(&bytes[8..]) }),
            _ => Err(Error::damaged("the root of a state download is malformed")),
        }
    }

    fn stored(&self) -> Vec<u8> {
        [&self.id.to_be_bytes()[..], self.hash.as_slice()].concat()
    }

    fn trie<V>(&self) -> Trie<V> {
        Trie { root: Some(Child::Stored { hash: self.hash, id: self.id }) }
    }
}

impl Database {
    /// Write the storage tries of a StorageRanges response. `roots` are the storage roots in the order of the request.
    /// `origin` is the first requested key of the first storage. Returns the number of written slots; None if the peer
    /// does not have the state.
    pub fn put_storages(&self, response: &[u8], roots: &[B256], origin: B256) -> Result<Option<usize>> {
        let [_, storages, proof] = parts(response)?;
        let (storages, proof) = (rlp_list(storages, roots.len())?, strings(proof)?);
        if storages.is_empty() {
            let is_absent = proof.is_empty();
            return if is_absent {
                Ok(None)
            } else {
                Err(Error::Decode("storage ranges: a proof without slots".into()))
            };
        }
        let (mut whole, mut part, mut count) = (Vec::new(), None, 0);
        for (index, encoded) in storages.iter().enumerate() {
            let (root, slots) = (roots[index], slot_entries(encoded)?);
            let origin = if index == 0 { origin } else { B256::ZERO };
            let proof = if index + 1 == storages.len() { &proof[..] } else { &[] };
            count += slots.len();
            if proof.is_empty() && origin == B256::ZERO {
                whole.push((root, whole_storage(root, &slots)?));
                continue;
            }
            if proof.is_empty() {
                return Err(Error::Decode("storage ranges: a part of a storage without a proof".into()));
            }
            let entries: Vec<(B256, &[u8])> = slots.iter().map(|(key, rlp, _)| (*key, *rlp)).collect();
            let has_more = verify_range(root, origin, &entries, proof)?;
            if has_more || origin != B256::ZERO {
                part = Some((root, slots, origin, has_more));
            } else {
                whole.push((root, whole_storage(root, &slots)?));
            }
        }
        self.write_parts(whole, part)?;
        Ok(Some(count))
    }

    fn write_parts(
        &self,
        whole: Vec<(B256, Trie<Slot>)>,
        part: Option<(B256, Vec<SlotEntry<'_>>, B256, bool)>,
    ) -> Result<()> {
        let mut ids = Vec::with_capacity(whole.len());
        let fits_in_memory = locked(&self.whole_storages).len() < MAX_STORAGES;
        self.write_nodes(|txn, tables, writer| {
            for (root, trie) in whole {
                let link = saved(&trie, writer, txn)?;
                if fits_in_memory {
                    ids.push((root, link.id));
                } else {
                    tables.meta.put(txn, &storage_key(WHOLE_STORAGE, root), &link.id.to_be_bytes())?;
                }
            }
            writer.flush(txn)?;
            let Some((root, slots, origin, has_more)) = part else { return Ok(()) };
            if self.whole_storage(tables, txn, &root)?.is_some() {
                return Ok(());
            }
            let key = storage_key(STORAGE_PART, root);
            let before = match tables.meta.get(txn, &key)? {
                Some(record) if record.len() == 72 => {
                    Some((B256::from_slice(&record[..32]), Link::read(&record[32..])?))
                }
                Some(_) => return Err(Error::damaged("a part of a storage is malformed")),
                None => None,
            };
            let base = match before {
                Some((next, link)) if next == origin => link.trie(),
                None if origin == B256::ZERO => Trie::default(),
                // another response has already written this part of the storage
                Some(_) => return Ok(()),
                None => return Err(Error::Storage("a part of a storage has no beginning".into())),
            };
            let trie = with_slots(base, &slots, &Nodes::new(tables.state_nodes(), txn))?;
            let link = grown(&trie, writer, txn)?;
            if has_more {
                let next = slots.last().map(|(key, ..)| following(*key)).expect("more slots follow a slot");
                return tables.meta.put(txn, &key, &[next.as_slice(), &link.stored()].concat());
            }
            if link.hash != root {
                return Err(Error::Storage(format!("the slots of storage {root} have the root {}", link.hash)));
            }
            tables.meta.delete(txn, &key)?;
            tables.meta.put(txn, &storage_key(WHOLE_STORAGE, root), &link.id.to_be_bytes())
        })?;
        locked(&self.whole_storages).extend(ids);
        Ok(())
    }

    /// Return the id of the root node of a complete storage trie.
    fn whole_storage(&self, tables: &Tables, txn: &RoTxn<'_>, root: &B256) -> Result<Option<u64>> {
        if let Some(id) = locked(&self.whole_storages).get(root) {
            return Ok(Some(*id));
        }
        Ok(tables.meta.get(txn, &storage_key(WHOLE_STORAGE, *root))?.map(number))
    }

    /// Return the storage roots whose tries are incomplete, each with the next key to request. The key is zero if no
    /// slot is stored yet.
    pub fn missing_storages(&self, roots: &[B256]) -> Result<Vec<(B256, B256)>> {
        let txn = self.read_txn()?;
        let mut found = Vec::new();
        for root in roots {
            if *root == EMPTY_ROOT || self.whole_storage(&self.tables, &txn, root)?.is_some() {
                continue;
            }
            let part = self.tables.meta.get(&txn, &storage_key(STORAGE_PART, *root))?;
            found.push((*root, part.and_then(|part| part.get(..32)).map_or(B256::ZERO, B256::from_slice)));
        }
        Ok(found)
    }

    /// Return the code hashes whose code is not stored.
    pub fn missing_codes(&self, hashes: &[B256]) -> Result<Vec<B256>> {
        let txn = self.read_txn()?;
        let mut found = Vec::new();
        for hash in hashes {
            if *hash != KECCAK256_EMPTY && self.tables.code.get(&txn, hash.as_slice())?.is_none() {
                found.push(*hash);
            }
        }
        Ok(found)
    }

    /// Write the codes of a ByteCodes response. Fails if a code was not requested. Returns the number of codes.
    pub fn put_codes(&self, response: &[u8], requested: &[B256]) -> Result<usize> {
        let [_, codes] = parts(response)?;
        let codes: Vec<(B256, &[u8])> = strings(codes)?.into_iter().map(|code| (keccak256(code), code)).collect();
        if codes.len() > requested.len() || codes.iter().any(|(hash, _)| !requested.contains(hash)) {
            return Err(Error::Decode("byte codes: a code that was not requested".into()));
        }
        self.write_alone(|txn, tables| {
            codes.iter().try_for_each(|(hash, code)| tables.code.put(txn, hash.as_slice(), code))
        })?;
        Ok(codes.len())
    }

    /// Insert and remove accounts of the downloaded state, and write named values. The storage and the code of each
    /// inserted account must be stored already.
    pub fn put_accounts(&self, accounts: &[(B256, FlatAccount)], removed: &[B256], named: &[Named]) -> Result<()> {
        self.write_nodes(|txn, tables, writer| {
            let mut trie = accounts_trie(tables, txn)?;
            let nodes = Nodes::new(tables.state_nodes(), txn);
            for key in removed {
                trie.remove(&Nibbles::unpack(key), &nodes)?;
            }
            let mut codes = B256Set::default();
            for (key, account) in accounts {
                let account = self.with_storage(account, tables, txn, &mut codes)?;
                trie.insert(Nibbles::unpack(key), account, &nodes)?;
            }
            if trie.root.is_some() {
                let link = grown(&trie, writer, txn)?;
                tables.meta.put(txn, ACCOUNTS, &link.stored())?;
            } else {
                tables.meta.delete(txn, ACCOUNTS)?;
            }
            for (key, value) in named {
                tables.meta.put(txn, &meta::own(key), value)?;
            }
            Ok(())
        })
    }

    /// Return the state root of the accounts downloaded so far.
    pub fn downloaded_root(&self) -> Result<B256> {
        let txn = self.read_txn()?;
        Ok(accounts_trie(&self.tables, &txn)?.hash())
    }

    /// Pass the trie nodes of a TrieNodes response to a search for differences. Returns the number of accepted nodes.
    pub fn receive_nodes(&self, difference: &mut Difference, response: &[u8]) -> Result<usize> {
        let [_, nodes] = parts(response)?;
        let mut nodes = strings(nodes)?;
        // an empty string stands for a trie node that the peer does not have
        nodes.truncate(nodes.iter().position(|node| node.is_empty()).unwrap_or(nodes.len()));
        let txn = self.read_txn()?;
        let source = Nodes::new(self.tables.state_nodes(), &txn);
        difference.receive(&nodes, &accounts_trie(&self.tables, &txn)?, &source)
    }

    /// Record the downloaded accounts as the state of a canonical block, and make this block the head. Deletes all data
    /// that only the download needs, and named values whose key begins with "snap ". Fails if the state is incomplete.
    pub fn finish_state(&self, root: B256, hash: B256, block_number: u64, named: &[Named]) -> Result<()> {
        self.write_alone(|txn, tables| {
            if tables.canonical.get(txn, &block_number.to_be_bytes())? != Some(hash.as_slice()) {
                return Err(Error::Storage(format!("block {hash} is not in the canonical chain")));
            }
            if root != EMPTY_ROOT {
                let record = tables.meta.get(txn, ACCOUNTS)?;
                let link = record.map(Link::read).transpose()?.filter(|link| link.hash == root);
                let link = link.ok_or_else(|| Error::Storage(format!("the state {root} is not whole")))?;
                note_root(tables, txn, &root, link.id, block_number)?;
            }
            remove_above(tables, txn, block_number)?;
            tables.meta.put(txn, meta::HEAD, &[hash.as_slice(), &block_number.to_be_bytes()].concat())?;
            tables.meta.put(txn, meta::HEAD_ROOT, root.as_slice())?;
            tables.meta.delete_prefix(txn, ALL)?;
            tables.meta.delete_prefix(txn, &meta::own("snap "))?;
            named.iter().try_for_each(|(key, value)| tables.meta.put(txn, &meta::own(key), value))
        })?;
        *locked(&self.whole_storages) = B256Map::default();
        Ok(())
    }

    /// Return an account with its storage trie. Fails if its storage or its code is not stored. `codes` holds the
    /// hashes of codes that are known to be stored.
    fn with_storage(
        &self,
        account: &FlatAccount,
        tables: &Tables,
        txn: &RoTxn<'_>,
        codes: &mut B256Set,
    ) -> Result<Account> {
        let FlatAccount { nonce, balance, code_hash, storage_root } = *account;
        let missing = |what: &str, hash: B256| Error::Storage(format!("the {what} {hash} of an account is missing"));
        let root = match storage_root {
            EMPTY_ROOT => None,
            hash => {
                let id = self.whole_storage(tables, txn, &hash)?;
                Some(Child::Stored { hash, id: id.ok_or_else(|| missing("storage", hash))? })
            }
        };
        if code_hash != KECCAK256_EMPTY && !codes.contains(&code_hash) {
            if tables.code.get(txn, code_hash.as_slice())?.is_none() {
                return Err(missing("code", code_hash));
            }
            codes.insert(code_hash);
        }
        Ok(Account { nonce, balance, code_hash, storage: Trie { root } })
    }

    /// Run a database transaction that adds trie nodes.
    fn write_nodes(&self, write: impl FnOnce(&mut RwTxn<'_>, &Tables, &mut NodeWriter) -> Result<()>) -> Result<()> {
        self.write_alone(|txn, tables| {
            let next = tables.meta.get(txn, meta::NEXT_NODE)?.map_or(1, number);
            let mut writer = NodeWriter::new(tables.state_nodes(), next);
            write(txn, tables, &mut writer)?;
            tables.meta.put(txn, meta::NEXT_NODE, &writer.next.to_be_bytes())
        })
    }
}

/// Decode the value of a leaf of the state trie to an account.
pub fn account_of(rlp: &[u8]) -> Result<FlatAccount> {
    account(rlp, B256::ZERO)
}

fn accounts_trie(tables: &Tables, txn: &RoTxn<'_>) -> Result<Trie<Account>> {
    let record = tables.meta.get(txn, ACCOUNTS)?;
    Ok(record.map(Link::read).transpose()?.map_or_else(Trie::default, |link| link.trie()))
}

/// Write the new nodes of a trie, which must not be empty. Returns id and hash of the trie's root node.
fn grown<V: Value>(trie: &Trie<V>, writer: &mut NodeWriter, txn: &mut RwTxn<'_>) -> Result<Link> {
    let link = saved(trie, writer, txn)?;
    writer.flush(txn)?;
    Ok(link)
}

/// Pass the new nodes of a trie, which must not be empty, to the writer. Returns id and hash of the trie's root node.
fn saved<V: Value>(trie: &Trie<V>, writer: &mut NodeWriter, txn: &mut RwTxn<'_>) -> Result<Link> {
    let hash = trie.hash();
    let root = trie.root.as_ref().ok_or_else(|| Error::Storage("a trie without entries".into()))?;
    let id = save_root(root, None, &mut writer.beside(txn))?;
    Ok(Link { id, hash })
}

fn locked(whole: &WholeStorages) -> MutexGuard<'_, B256Map<u64>> {
    whole.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hashed key, RLP and value of a storage slot.
type SlotEntry<'a> = (B256, &'a [u8], U256);

fn with_slots(mut trie: Trie<Slot>, slots: &[SlotEntry<'_>], source: &impl Source) -> Result<Trie<Slot>> {
    for (key, _, value) in slots {
        trie.insert(Nibbles::unpack(key), Slot(*value), source)?;
    }
    Ok(trie)
}

/// Build a storage trie from all of its slots. Fails if its root differs from `root`.
fn whole_storage(root: B256, slots: &[SlotEntry<'_>]) -> Result<Trie<Slot>> {
    let trie = with_slots(Trie::default(), slots, &NoSource)?;
    let is_right = trie.hash() == root && !slots.is_empty();
    if is_right { Ok(trie) } else { Err(Error::Decode("storage ranges: the slots have another root".into())) }
}

fn storage_key(prefix: &[u8], root: B256) -> Vec<u8> {
    [prefix, root.as_slice()].concat()
}

/// Return `key` plus one. The greatest key is returned unchanged.
pub fn following(key: B256) -> B256 {
    U256::from_be_bytes(key.0).checked_add(U256::ONE).map_or(key, B256::from)
}

/// Split a response into its COUNT encoded items.
fn parts<const COUNT: usize>(response: &[u8]) -> Result<[&[u8]; COUNT]> {
    rlp_list(response, COUNT)?.try_into().map_err(|_| Error::Decode(format!("response: not a list of {COUNT} items")))
}

fn strings(encoded: &[u8]) -> Result<Vec<&[u8]>> {
    rlp_list(encoded, MAX_ITEMS)?.into_iter().map(rlp_string).collect()
}

/// Decode a list of a hash and an account in slim form (an empty string replaces an empty storage root or code hash).
fn account_entry(encoded: &[u8]) -> Result<(B256, FlatAccount)> {
    let items = rlp_list(encoded, 2)?;
    let [key, body] = items[..] else { return Err(Error::Decode("account range: not a hash and an account".into())) };
    Ok((rlp_hash(key)?, account(body, EMPTY_ROOT)?))
}

/// Decode an account. An empty string in place of a hash means an empty storage, whose root is `empty_storage`, or
/// empty code. If `empty_storage` is zero, empty strings are errors.
fn account(encoded: &[u8], empty_storage: B256) -> Result<FlatAccount> {
    let is_slim = empty_storage != B256::ZERO;
    let items = rlp_list(encoded, 4)?;
    let [nonce, balance, storage_root, code_hash] = items[..] else {
        return Err(Error::Decode("account: not four items".into()));
    };
    let scalar = |item: &[u8]| -> Result<U256> {
        let bytes = rlp_string(item)?;
        let value = U256::try_from_be_slice(bytes).filter(|_| bytes.first() != Some(&0));
        value.ok_or_else(|| Error::Decode("account: not a number".into()))
    };
    let hash = |item: &[u8], empty: B256| -> Result<B256> {
        if is_slim && rlp_string(item)?.is_empty() { Ok(empty) } else { rlp_hash(item) }
    };
    Ok(FlatAccount {
        nonce: u64::try_from(scalar(nonce)?).map_err(|_| Error::Decode("account: the nonce is too high".into()))?,
        balance: scalar(balance)?,
        code_hash: hash(code_hash, KECCAK256_EMPTY)?,
        storage_root: hash(storage_root, EMPTY_ROOT)?,
    })
}

fn full_rlp(account: &FlatAccount) -> Vec<u8> {
    let mut payload = Vec::with_capacity(112);
    account.nonce.encode(&mut payload);
    account.balance.encode(&mut payload);
    account.storage_root.encode(&mut payload);
    account.code_hash.encode(&mut payload);
    let mut out = Vec::with_capacity(payload.len() + 3);
    alloy_rlp::Header { list: true, payload_length: payload.len() }.encode(&mut out);
    out.extend_from_slice(&payload);
    out
}

fn slot_entries(encoded: &[u8]) -> Result<Vec<SlotEntry<'_>>> {
    rlp_list(encoded, MAX_ITEMS)?.into_iter().map(slot_entry).collect()
}

fn slot_entry(encoded: &[u8]) -> Result<SlotEntry<'_>> {
    let items = rlp_list(encoded, 2)?;
    let [key, value] = items[..] else { return Err(Error::Decode("storage ranges: not a hash and a value".into())) };
    let rlp = rlp_string(value)?;
    let bytes = rlp_string(rlp)?;
    let wrong = || Error::Decode("storage ranges: not a value of a slot".into());
    let number = U256::try_from_be_slice(bytes).filter(|_| !bytes.is_empty() && bytes[0] != 0).ok_or_else(wrong)?;
    Ok((rlp_hash(key)?, rlp, number))
}

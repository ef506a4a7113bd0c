//! Read access to the state of one root: accounts, slots and code.
//!
//! ```text
//! root of an uncommitted block  -> the layers of changes, then the trie
//! any other root                -> the trie
//! a private state               -> its own trie, then the public state below it
//! ```

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::map::{AddressMap, B256Map, HashMap};
use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256, keccak256};
use alloy_trie::Nibbles;
use ophion_primitives::errors::{Error, Result};
use revm_state::Bytecode;

use crate::store::forked_state::{Fork, LOCAL_STORAGE_KEY};
use crate::store::{Database, MAX_CACHED_DEPTH, Snapshot, decode_header};
use crate::trie::{Account, EMPTY_ROOT, FlatAccount, NoSource, Slot, Source, Trie, proof};

/// Maximum number of trie nodes in the cache `CombinedNodes`, of at most 640 bytes each.
const MAX_COMBINED_NODES: usize = 16_384;

/// State changes of one uncommitted block, by unhashed keys.
pub struct Layer {
    pub accounts: AddressMap<LayerAccount>,
    pub codes: B256Map<Bytecode>,
    /// State root of the state below this layer.
    pub base: B256,
}

/// Layers of uncommitted blocks, top first. Opening a state drops the layers of committed blocks, so that they do not
/// accumulate on a chain that runs ahead of its commits.
pub type Layers = Arc<[Arc<Layer>]>;

#[derive(Clone)]
pub struct LayerAccount {
    pub account: Option<FlatAccount>,
    /// Whether the account's old storage was deleted. If so, slots that this layer does not list are zero.
    pub wiped: bool,
    pub storage: HashMap<U256, U256>,
}

/// A state, by its root, that can be opened for reading any number of times.
#[derive(Clone)]
pub struct StateData {
    /// The database; None for states that exist only in memory (test vectors).
    pub store: Option<Arc<Database>>,
    pub root: B256,
    pub trie: Trie<Account>,
    /// Estimated memory of the state's trie nodes, in bytes.
    pub weight: usize,
    pub layers: Layers,
    /// The public state below a private state; None for public states.
    pub public: Option<Arc<StateData>>,
}

impl StateData {
    /// Return the state with this root from the database.
    pub fn at(snapshot: &Snapshot, root: B256) -> Result<Self> {
        let (trie, weight) = snapshot.trie(root)?;
        let store = Some(snapshot.inner.clone());
        Ok(StateData { store, root, trie, weight, layers: Layers::default(), public: None })
    }

    /// Return the state after the head block.
    pub fn latest(snapshot: &Snapshot) -> Result<Self> {
        let (hash, _) = snapshot.head()?.ok_or_else(|| Error::Storage("the database is empty".into()))?;
        let (_, _, header) = snapshot.header(&hash)?.ok_or_else(|| Error::damaged("the head has no header"))?;
        StateData::at(snapshot, decode_header(header)?.state_root)
    }

    /// Return an empty state, with a database or in memory only.
    pub fn empty(store: Option<Arc<Database>>) -> Self {
        StateData { store, root: EMPTY_ROOT, trie: Trie::default(), weight: 0, layers: Layers::default(), public: None }
    }

    /// Return the state of a privacy group on top of a public state.
    pub fn private(public: StateData, root: B256, trie: Trie<Account>) -> Self {
        let (store, layers) = (public.store.clone(), Layers::default());
        StateData { store, root, trie, weight: 0, layers, public: Some(Arc::new(public)) }
    }

    pub fn open(&self) -> Result<View> {
        let snapshot = self.store.as_ref().map(Database::snapshot).transpose()?;
        if let Some(public) = &self.public {
            let public = Some(Box::new(public.open()?));
            let (trie, layers) = (self.trie.clone(), self.layers.clone());
            return Ok(View {
                root: self.root,
                trie,
                snapshot,
                layers,
                public,
                fork: None,
                nodes_read: AtomicUsize::new(0),
                storage_tries: StorageTries::default(),
                combined: CombinedNodes::default(),
            });
        }
        let head_root = snapshot.as_ref().map(Snapshot::head_root).transpose()?;
        let is_head = head_root == Some(self.root);
        // drop the layers of committed blocks, because the trie of the head contains their changes
        let layers = match self.layers.iter().position(|layer| head_root == Some(layer.base)) {
            _ if is_head => Layers::default(),
            Some(lowest) if lowest + 1 < self.layers.len() => self.layers[..=lowest].into(),
            _ => self.layers.clone(),
        };
        // without layers, this state is read from stored trie nodes: fail now if pruning has deleted these nodes
        if let Some(snapshot) = &snapshot
            && !is_head
            && layers.is_empty()
            && self.root != EMPTY_ROOT
        {
            snapshot.expect_state(&self.root)?;
        }
        let fork = self.store.as_ref().and_then(|store| store.fork());
        Ok(View {
            root: self.root,
            trie: self.trie.clone(),
            snapshot,
            layers,
            public: None,
            fork,
            nodes_read: AtomicUsize::new(0),
            storage_tries: StorageTries::default(),
            combined: CombinedNodes::default(),
        })
    }
}

/// One page of entries by hashed key, and the hashed key of the next page; None if no entries are left.
pub type Page<T> = (Vec<(B256, T)>, Option<B256>);

/// Hashed key, preimage of the key if it is known, and entry.
pub type WithPreimage<T> = (B256, Option<Vec<u8>>, T);

/// A state open for reading in one database snapshot.
pub struct View {
    pub root: B256,
    /// Trie of this state. Use `set_trie` to change it.
    pub trie: Trie<Account>,
    pub snapshot: Option<Snapshot>,
    pub layers: Layers,
    /// The public state below a private state.
    pub public: Option<Box<View>>,
    /// On a development node that forks another chain: the state of that chain, below the local state.
    pub fork: Option<Arc<Fork>>,
    /// Number of bytes of trie nodes read so far.
    pub nodes_read: AtomicUsize,
    /// Cache of storage tries by account hash. A read of a slot in a cached trie does not read the account.
    pub storage_tries: StorageTries,
    pub combined: CombinedNodes,
}

pub type StorageTries = Mutex<B256Map<Trie<Slot>>>;

/// Loads trie nodes and counts their bytes, because tries keep the nodes in memory. Reads of single values are not
/// counted.
impl Source for View {
    fn load<T>(&self, id: u64, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        Stored(self).load(id, |bytes| {
            self.nodes_read.fetch_add(bytes.len(), Ordering::Relaxed);
            read(bytes)
        })
    }
}

/// Loads the stored trie nodes of a view without counting their bytes.
struct Stored<'a>(&'a View);

impl Source for Stored<'_> {
    fn load<T>(&self, id: u64, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let nodes = match &self.0.snapshot {
            Some(snapshot) if self.0.public.is_some() => snapshot.private_nodes(),
            Some(snapshot) => snapshot.remembered_nodes(),
            None => return NoSource.load(id, read),
        };
        if let Some(whole) = self.0.combined.get(id) {
            return read(&whole);
        }
        nodes.load_counted(id, |whole, deltas| {
            if deltas > 0 {
                self.0.combined.keep(id, whole);
            }
            read(whole)
        })
    }

    fn load_at<T>(&self, id: u64, depth: usize, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let (Some(snapshot), None, true) = (&self.0.snapshot, &self.0.public, depth < MAX_CACHED_DEPTH) else {
            return self.load(id, read);
        };
        let mut read = Some(read);
        let mut once = |whole: &[u8]| read.take().expect("a node is read once")(whole);
        if let Some(found) = snapshot.inner.node_cache.read(id, &mut once) {
            return found;
        }
        snapshot.nodes().load(id, |whole| {
            snapshot.inner.node_cache.keep(id, whole);
            once(whole)
        })
    }
}

/// Full forms of trie nodes that are stored as deltas, by id. An execution needs the full form twice: to read a node
/// and to change it.
#[derive(Default)]
pub struct CombinedNodes {
    nodes: Mutex<HashMap<u64, Arc<[u8]>>>,
    is_used: AtomicBool,
}

impl CombinedNodes {
    fn get(&self, id: u64) -> Option<Arc<[u8]>> {
        if !self.is_used.load(Ordering::Relaxed) {
            return None;
        }
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    fn keep(&self, id: u64, whole: &[u8]) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if nodes.len() < MAX_COMBINED_NODES {
            nodes.insert(id, whole.into());
            self.is_used.store(true, Ordering::Relaxed);
        }
    }
}

impl View {
    /// Read an account. `hash` is keccak(address), which callers have computed already.
    pub fn account(&self, address: &Address, hash: &B256) -> Result<Option<FlatAccount>> {
        for layer in self.layers.iter() {
            if let Some(change) = layer.accounts.get(address) {
                return Ok(change.account);
            }
        }
        match (self.trie_account(hash)?, &self.public, &self.fork) {
            (Some(account), ..) => Ok(Some(FlatAccount::from(&account))),
            (None, Some(public), _) => public.account(address, hash),
            (None, None, Some(fork)) => fork.account(address),
            (None, None, None) => Ok(None),
        }
    }

    pub fn trie_account(&self, hash: &B256) -> Result<Option<Account>> {
        self.trie.get(&Nibbles::unpack(hash), &Stored(self))
    }

    /// Replace the trie, after a private transaction has changed it.
    pub fn set_trie(&mut self, trie: Trie<Account>) {
        self.trie = trie;
        self.storage_tries.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Return the storage trie of an account; None if the state trie lacks the account.
    fn storage_trie(&self, hash: &B256) -> Result<Option<Trie<Slot>>> {
        let read = |tries: &StorageTries| tries.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned();
        if let Some(found) = read(&self.storage_tries) {
            return Ok(Some(found));
        }
        let found = self.trie_account(hash)?.map(|account| account.storage);
        if let Some(storage) = &found {
            self.storage_tries.lock().unwrap_or_else(PoisonError::into_inner).insert(*hash, storage.clone());
        }
        Ok(found)
    }

    pub fn storage(&self, address: &Address, hash: &B256, slot: &U256, slot_hash: &B256) -> Result<U256> {
        for layer in self.layers.iter() {
            if let Some(change) = layer.accounts.get(address) {
                if let Some(value) = change.storage.get(slot) {
                    return Ok(*value);
                }
                if change.wiped || change.account.is_none() {
                    return Ok(U256::ZERO);
                }
            }
        }
        let Some(storage) = self.storage_trie(hash)? else {
            return match (&self.public, &self.fork) {
                (Some(public), _) => public.storage(address, hash, slot, slot_hash),
                (None, Some(fork)) => fork.storage(address, slot),
                (None, None) => Ok(U256::ZERO),
            };
        };
        let value = storage.get(&Nibbles::unpack(slot_hash), &Stored(self))?;
        if let (None, Some(fork)) = (&value, &self.fork)
            && storage.get(&Nibbles::unpack(LOCAL_STORAGE_KEY), &Stored(self))?.is_none()
        {
            return fork.storage(address, slot);
        }
        Ok(value.map_or(U256::ZERO, |value| value.0))
    }

    pub fn code(&self, hash: &B256) -> Result<Bytecode> {
        if *hash == KECCAK256_EMPTY {
            return Ok(Bytecode::default());
        }
        for layer in self.layers.iter() {
            if let Some(code) = layer.codes.get(hash) {
                return Ok(code.clone());
            }
        }
        let missing = || Error::damaged(format!("contract code {hash} is missing"));
        let snapshot = self.snapshot.as_ref().ok_or_else(missing)?;
        if let Some(code) = snapshot.inner.cached_code(hash) {
            return Ok(code);
        }
        if let Some(code) = self.fork.as_ref().and_then(|fork| fork.code(hash)) {
            return Ok(code);
        }
        let raw = match &self.public {
            Some(public) => match snapshot.private_code(hash)? {
                Some(raw) => raw,
                None => return public.code(hash),
            },
            None => snapshot.tables().code.get(snapshot.txn(), hash.as_slice())?.ok_or_else(missing)?,
        };
        let code = Bytecode::new_raw(alloy_primitives::Bytes::copy_from_slice(raw));
        snapshot.inner.keep_code(*hash, &code);
        Ok(code)
    }

    /// Return the account proof, and value and proof of each slot.
    #[allow(clippy::type_complexity)]
    pub fn proof(&self, address: &Address, slots: &[U256]) -> Result<(Vec<Vec<u8>>, Vec<(U256, Vec<Vec<u8>>)>)> {
        let hash = keccak256(address);
        let key = Nibbles::unpack(hash);
        let account_proof = proof(&self.trie, &key, self)?;
        let storage = self.trie.get(&key, self)?.map_or_else(Trie::default, |account| account.storage);
        let slots = slots
            .iter()
            .map(|slot| {
                let key = Nibbles::unpack(keccak256(slot.to_be_bytes::<32>()));
                let value = storage.get(&key, self)?.map_or(U256::ZERO, |value| value.0);
                Ok((value, proof(&storage, &key, self)?))
            })
            .collect::<Result<_>>()?;
        Ok((account_proof, slots))
    }

    /// Return the entries of a page with the preimages of their hashed keys, as far as they are known.
    pub fn with_preimages<T>(&self, entries: Vec<(B256, T)>) -> Result<Vec<WithPreimage<T>>> {
        let mut preimages = self.snapshot.as_ref().map(Snapshot::preimages).transpose()?;
        let mut preimage = |hash: &B256| preimages.as_mut().map_or(Ok(None), |preimages| preimages.get(hash));
        entries.into_iter().map(|(hash, entry)| Ok((hash, preimage(&hash)?, entry))).collect()
    }

    /// Return up to `limit` accounts from a hashed key on, and the hashed key after them.
    pub fn accounts_from(&self, start: &B256, limit: usize) -> Result<Page<FlatAccount>> {
        let mut found = Vec::new();
        let mut next = None;
        self.trie.walk(&Nibbles::unpack(start), self, &mut |key, account| {
            let hash = B256::from_slice(&key.pack());
            if found.len() == limit {
                next = Some(hash);
                return Ok(false);
            }
            found.push((hash, FlatAccount::from(account)));
            Ok(true)
        })?;
        Ok((found, next))
    }

    pub fn slots_from(&self, address: &Address, start: &B256, limit: usize) -> Result<Page<U256>> {
        let storage = self.trie_account(&keccak256(address))?.map_or_else(Trie::default, |account| account.storage);
        let mut found = Vec::new();
        let mut next = None;
        storage.walk(&Nibbles::unpack(start), self, &mut |key, value: &Slot| {
            let hash = B256::from_slice(&key.pack());
            if found.len() == limit {
                next = Some(hash);
                return Ok(false);
            }
            found.push((hash, value.0));
            Ok(true)
        })?;
        Ok((found, next))
    }

    /// Return the hash of the canonical block with this number, in this snapshot.
    pub fn canonical_hash(&self, number: u64) -> Result<Option<B256>> {
        let found = self.snapshot.as_ref().map_or(Ok(None), |snapshot| snapshot.canonical_hash(number))?;
        match &self.fork {
            Some(fork) if found.is_none() || number < fork.number => fork.block_hash(number),
            _ => Ok(found),
        }
    }
}

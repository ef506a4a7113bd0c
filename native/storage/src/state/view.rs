//! Read access to the state of one root: accounts, slots and code.
//!
//! ```text
//! root of the flat tables                -> one keyed lookup
//! root of an uncommitted block above it  -> the layers of changes, then the flat tables
//! any other root                         -> the trie
//! a private state                        -> its own trie, then the public state below it
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alloy_primitives::map::{AddressMap, B256Map, HashMap};
use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256, keccak256};
use alloy_trie::Nibbles;
use ophion_primitives::errors::{Error, Result};
use revm_state::Bytecode;

use crate::store::fork::{Fork, LOCAL_STORAGE, LOCAL_STORAGE_KEY};
use crate::store::{Database, Snapshot, address_of, decode_header, storage_key};
use crate::trie::{Account, EMPTY_ROOT, FlatAccount, NoSource, Slot, Source, Trie, proof};

/// Changes of one uncommitted block, by unhashed keys.
pub struct Layer {
    pub accounts: AddressMap<LayerAccount>,
    pub codes: B256Map<Bytecode>,
    /// Root of the state below this layer.
    pub base: B256,
}

impl Layer {
    /// Return whether all slots of this account are local, so that no slot is read from the forked chain.
    fn has_local_storage(&self, address: &Address) -> bool {
        self.accounts.get(address).is_some_and(|change| change.wiped || change.storage.contains_key(&LOCAL_STORAGE))
    }
}

/// Layers of uncommitted blocks, top first. Opening a state removes layers that the flat tables have reached. So a
/// chain that runs ahead of its commits does not accumulate layers.
pub type Layers = Arc<[Arc<Layer>]>;

#[derive(Clone)]
pub struct LayerAccount {
    pub account: Option<FlatAccount>,
    /// Whether the old storage was deleted. If so, slots that are not listed are zero.
    pub wiped: bool,
    pub storage: HashMap<U256, U256>,
}

/// A state that can be opened for reading any number of times.
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
    /// Return a state of the database.
    pub fn at(snapshot: &Snapshot, root: B256) -> Result<Self> {
        let (trie, weight) = snapshot.trie(root)?;
        let store = Some(snapshot.inner.clone());
        Ok(StateData { store, root, trie, weight, layers: Layers::default(), public: None })
    }

    /// Return the state after the head.
    pub fn latest(snapshot: &Snapshot) -> Result<Self> {
        let (hash, _) = snapshot.head()?.ok_or_else(|| Error::Storage("the database is empty".into()))?;
        let (_, _, header) = snapshot.header(&hash)?.ok_or_else(|| Error::damaged("the head has no header"))?;
        StateData::at(snapshot, decode_header(header)?.state_root)
    }

    /// Return an empty state, in a database or in memory only.
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
                flat: false,
                layers,
                public,
                fork: None,
                nodes_read: AtomicUsize::new(0),
            });
        }
        let flat_root = snapshot.as_ref().map(Snapshot::flat_root).transpose()?;
        let (flat, layers) = if flat_root == Some(self.root) {
            (true, Layers::default())
        } else {
            // keep only the state layers above the flat tables, because the flat tables hold all other keys
            match self.layers.iter().position(|layer| flat_root == Some(layer.base)) {
                Some(lowest) if lowest + 1 < self.layers.len() => (true, self.layers[..=lowest].into()),
                found => (found.is_some(), self.layers.clone()),
            }
        };
        // without layers and flat tables, the state is read from trie nodes, which pruning may have deleted
        if let Some(snapshot) = &snapshot
            && !flat
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
            flat,
            layers,
            public: None,
            fork,
            nodes_read: AtomicUsize::new(0),
        })
    }
}

/// Entries by hashed key, and the next key if there are more entries.
pub type Page<T> = (Vec<(B256, T)>, Option<B256>);

/// A state open for reading in one database snapshot.
pub struct View {
    pub root: B256,
    pub trie: Trie<Account>,
    pub snapshot: Option<Snapshot>,
    /// Whether the flat tables are valid for all keys that the layers do not have.
    pub flat: bool,
    pub layers: Layers,
    /// The public state below a private state.
    pub public: Option<Box<View>>,
    /// On a development node that forks another chain: the state of that chain, below the local state.
    pub fork: Option<Arc<Fork>>,
    /// Bytes of trie nodes read so far.
    pub nodes_read: AtomicUsize,
}

impl Source for View {
    fn load<T>(&self, id: u64, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let read = |bytes: &[u8]| {
            self.nodes_read.fetch_add(bytes.len(), Ordering::Relaxed);
            read(bytes)
        };
        match &self.snapshot {
            Some(snapshot) if self.public.is_some() => snapshot.private_nodes().load(id, read),
            Some(snapshot) => snapshot.nodes().load(id, read),
            None => NoSource.load(id, read),
        }
    }
}

impl View {
    /// Read an account. `hash` is keccak(address), which callers have computed already.
    pub fn account(&self, address: &Address, hash: &B256) -> Result<Option<FlatAccount>> {
        if self.flat {
            for layer in self.layers.iter() {
                if let Some(change) = layer.accounts.get(address) {
                    return Ok(change.account);
                }
            }
            let snapshot = self.snapshot.as_ref().expect("flat tables are in a database");
            let found = snapshot.tables().accounts.get(snapshot.txn(), hash.as_slice())?;
            return match (found.map(FlatAccount::restore).transpose()?, &self.fork) {
                (None, Some(fork)) => fork.account(address),
                (found, _) => Ok(found),
            };
        }
        match (self.trie_account(hash)?, &self.public, &self.fork) {
            (Some(account), ..) => Ok(Some(FlatAccount::from(&account))),
            (None, Some(public), _) => public.account(address, hash),
            (None, None, Some(fork)) => fork.account(address),
            (None, None, None) => Ok(None),
        }
    }

    pub fn trie_account(&self, hash: &B256) -> Result<Option<Account>> {
        self.trie.get(&Nibbles::unpack(hash), self)
    }

    pub fn storage(&self, address: &Address, hash: &B256, slot: &U256, slot_hash: &B256) -> Result<U256> {
        if self.flat {
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
            let snapshot = self.snapshot.as_ref().expect("flat tables are in a database");
            let (storage, txn) = (&snapshot.tables().storage, snapshot.txn());
            let found = storage.get(txn, &storage_key(hash, slot_hash))?;
            if let (None, Some(fork)) = (found, &self.fork)
                && storage.get(txn, &storage_key(hash, &LOCAL_STORAGE_KEY))?.is_none()
                && !self.layers.iter().any(|layer| layer.has_local_storage(address))
            {
                return fork.storage(address, slot);
            }
            return Ok(found.map_or(U256::ZERO, |bytes| U256::try_from_be_slice(bytes).unwrap_or_default()));
        }
        let Some(account) = self.trie_account(hash)? else {
            return match (&self.public, &self.fork) {
                (Some(public), _) => public.storage(address, hash, slot, slot_hash),
                (None, Some(fork)) => fork.storage(address, slot),
                (None, None) => Ok(U256::ZERO),
            };
        };
        let value: Option<Slot> = account.storage.get(&Nibbles::unpack(slot_hash), self)?;
        if let (None, Some(fork)) = (&value, &self.fork)
            && account.storage.get(&Nibbles::unpack(LOCAL_STORAGE_KEY), self)?.is_none()
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

    /// Return the preimage of a hashed key, if known.
    pub fn preimage(&self, hash: &B256) -> Result<Option<Vec<u8>>> {
        let Some(snapshot) = &self.snapshot else { return Ok(None) };
        if let Some(address) = address_of(snapshot.tables(), snapshot.txn(), hash)? {
            return Ok(Some(address.to_vec()));
        }
        Ok(snapshot.tables().preimages.get(snapshot.txn(), hash.as_slice())?.map(<[u8]>::to_vec))
    }

    /// Return up to `limit` accounts from a hashed key on, and the next key.
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

    /// Return the canonical block hash in this snapshot.
    pub fn canonical_hash(&self, number: u64) -> Result<Option<B256>> {
        let found = self.snapshot.as_ref().map_or(Ok(None), |snapshot| snapshot.canonical_hash(number))?;
        match &self.fork {
            Some(fork) if found.is_none() || number < fork.number => fork.block_hash(number),
            _ => Ok(found),
        }
    }
}

//! The state of another chain that a development node forks. It lies below the local state.
//!
//! `View` reads local changes first. Keys without a local change are read here. `fetch` requests unknown keys from the
//! source, an RPC endpoint of the forked chain. `Known` holds only fetched values, never local changes. Two kinds of
//! records distinguish a local deletion from a key that was never changed:
//!
//! - A slot that was set to zero stays in the storage trie, with the value zero.
//! - An account that was deleted or created has the slot `LOCAL_STORAGE`. Its other slots do not come from the source.

use std::cell::RefCell;
use std::sync::RwLock;

use alloy_primitives::map::{AddressMap, B256Map, HashMap};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, b256, keccak256};
use ophion_primitives::errors::{Error, Result};
use revm_state::Bytecode;

use crate::trie::{EMPTY_ROOT, FlatAccount};

/// keccak256("ophion fork: local storage"), a slot that no contract reaches.
pub const LOCAL_STORAGE: U256 = U256::from_be_bytes(LOCAL_STORAGE_WORD.0);
const LOCAL_STORAGE_WORD: B256 = b256!("f04dbdd918f3b6dbd855ec909da6ae7799d1c5457b6f45fb9eb16e2c5d564e5a");
/// Hashed key of `LOCAL_STORAGE`.
pub const LOCAL_STORAGE_KEY: B256 = b256!("60085536d65a621f2ad818bc11862103c7b7abcf24362eb758179f140537f171");

/// A key of the forked state whose value must be requested from the chain's RPC endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Missing {
    Account(Address),
    Slot(Address, U256),
    BlockHash(u64),
}

/// What a read in this thread does with a key of the forked state that is not known.
enum Mode {
    /// Fetch the value of the key and continue.
    Fetch,
    /// Return zero as the value of the key.
    Zero,
    /// Return zero as the value of the key, and add the key to this list.
    Collect(Vec<Missing>),
}

thread_local! {
    static MODE: RefCell<Mode> = const { RefCell::new(Mode::Fetch) };
}

#[derive(Default)]
struct Known {
    accounts: AddressMap<Option<FlatAccount>>,
    storage: HashMap<(Address, U256), U256>,
    codes: B256Map<Bytecode>,
    block_hashes: HashMap<u64, B256>,
}

/// Function that requests the value of a missing key from the forked chain and adds it to the `Fork` (`add_account`,
/// `add_slot`, `add_block_hash`).
pub type Fetch = Box<dyn Fn(Missing) -> Result<()> + Send + Sync>;

pub struct Fork {
    /// Number of the block at which the chain was forked.
    pub number: u64,
    known: RwLock<Known>,
    fetch: Fetch,
}

impl Fork {
    pub fn new(number: u64, fetch: Fetch) -> Self {
        Fork { number, known: RwLock::default(), fetch }
    }

    pub fn account(&self, address: &Address) -> Result<Option<FlatAccount>> {
        let known = |known: &Known| known.accounts.get(address).copied();
        self.read(Missing::Account(*address), known).map(Option::flatten)
    }

    pub fn storage(&self, address: &Address, slot: &U256) -> Result<U256> {
        let known = |known: &Known| known.storage.get(&(*address, *slot)).copied();
        self.read(Missing::Slot(*address, *slot), known).map(Option::unwrap_or_default)
    }

    /// Return contract code by hash, if it was fetched before.
    pub fn code(&self, hash: &B256) -> Option<Bytecode> {
        self.known.read().expect("no panic while locked").codes.get(hash).cloned()
    }

    /// Return the hash of a block of the forked chain, up to the block at which it was forked.
    pub fn block_hash(&self, number: u64) -> Result<Option<B256>> {
        if number > self.number {
            return Ok(None);
        }
        self.read(Missing::BlockHash(number), |known| known.block_hashes.get(&number).copied())
    }

    /// Read a key of the forked state. Returns None if the key is unknown and this thread does not fetch keys.
    fn read<T>(&self, key: Missing, find: impl Fn(&Known) -> Option<T>) -> Result<Option<T>> {
        if let Some(found) = find(&self.known.read().expect("no panic while locked")) {
            return Ok(Some(found));
        }
        let is_fetched = MODE.with_borrow_mut(|mode| match mode {
            Mode::Fetch => true,
            Mode::Zero => false,
            Mode::Collect(keys) => {
                keys.push(key);
                false
            }
        });
        if !is_fetched {
            return Ok(None);
        }
        (self.fetch)(key)?;
        let found = find(&self.known.read().expect("no panic while locked"));
        found.map(Some).ok_or_else(|| Error::Source("the source of the fork did not answer for a key".into()))
    }

    pub fn add_account(&self, address: Address, account: Option<(u64, U256, B256)>) {
        let account = account.map(|(nonce, balance, code_hash)| FlatAccount {
            nonce,
            balance,
            code_hash,
            storage_root: EMPTY_ROOT,
        });
        self.known.write().expect("no panic while locked").accounts.insert(address, account);
    }

    pub fn add_slot(&self, address: Address, slot: U256, value: U256) {
        self.known.write().expect("no panic while locked").storage.insert((address, slot), value);
    }

    /// Add contract code to the known state of the fork. Returns the hash of the code.
    pub fn add_code(&self, code: Bytes) -> B256 {
        if code.is_empty() {
            return KECCAK256_EMPTY;
        }
        let hash = keccak256(&code);
        self.known.write().expect("no panic while locked").codes.insert(hash, Bytecode::new_raw(code));
        hash
    }

    pub fn add_block_hash(&self, number: u64, hash: B256) {
        self.known.write().expect("no panic while locked").block_hashes.insert(number, hash);
    }

    pub fn knows(&self, key: &Missing) -> bool {
        let known = self.known.read().expect("no panic while locked");
        match key {
            Missing::Account(address) => known.accounts.contains_key(address),
            Missing::Slot(address, slot) => known.storage.contains_key(&(*address, *slot)),
            Missing::BlockHash(number) => known.block_hashes.contains_key(number),
        }
    }

    pub fn knows_code(&self, hash: &B256) -> bool {
        self.known.read().expect("no panic while locked").codes.contains_key(hash)
    }
}

fn within<T>(mode: Mode, work: impl FnOnce() -> T) -> (T, Mode) {
    let before = MODE.replace(mode);
    let done = work();
    (done, MODE.replace(before))
}

/// Run `work`. Until it ends, unknown keys have the value zero. System contracts use this, because they overwrite slots
/// of a ring buffer without reading the old values.
pub fn without_fetching<T>(work: impl FnOnce() -> T) -> T {
    if MODE.with_borrow(|mode| matches!(mode, Mode::Collect(_))) {
        return work();
    }
    within(Mode::Zero, work).0
}

/// Run `work`. Until it ends, unknown keys have the value zero. Returns the result of `work`, and the unknown keys.
pub fn collecting<T>(work: impl FnOnce() -> T) -> (T, Vec<Missing>) {
    match within(Mode::Collect(Vec::new()), work) {
        (done, Mode::Collect(keys)) => (done, keys),
        (done, _) => (done, Vec::new()),
    }
}

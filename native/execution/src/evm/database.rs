//! revm's database during a block: a view of the parent state plus the changes so far.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use alloy_primitives::map::{self, AddressMap, B256Map, HashMap};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use alloy_trie::Nibbles;
use ophion_primitives::errors::{Error, Result};
use ophion_storage::state::{Layer, LayerAccount, Layers, View};
use ophion_storage::store::Snapshot;
use ophion_storage::store::forked_state::{LOCAL_STORAGE, LOCAL_STORAGE_KEY};
use ophion_storage::trie::{Account, EMPTY_ROOT, FlatAccount, Slot, Trie};
use revm::database_interface::{Database, DatabaseCommit};
use revm::state::{Account as EvmAccount, AccountInfo, Bytecode};

use super::console_log;
use super::unread_accounts::{AccountChange, UnreadAccounts};

#[derive(Clone)]
pub struct Entry {
    /// Keccak hash of the address.
    hash: B256,
    info: Option<AccountInfo>,
    /// Whether the account existed before this block.
    existed: bool,
    storage_root: B256,
    /// Whether the account changed during the block.
    dirty: bool,
    /// Whether the account changed since the trie was last updated (`update_trie`).
    stale: bool,
    /// Whether the account's storage was deleted during this block.
    wiped: bool,
    storage: HashMap<U256, SlotEntry>,
}

#[derive(Clone)]
struct SlotEntry {
    /// Keccak hash of the slot's key. Computed when it is needed: replays do not hash new slots.
    hash: Option<B256>,
    /// Value of the slot before the block.
    before: U256,
    /// Value of the slot when the trie was last updated (`update_trie`).
    synced: U256,
    /// Current value of the slot.
    now: U256,
}

impl SlotEntry {
    fn new(hash: Option<B256>, value: U256) -> Self {
        SlotEntry { hash, before: value, synced: value, now: value }
    }

    /// Return the Keccak hash of the slot's key.
    fn hash(&mut self, key: &U256) -> B256 {
        *self.hash.get_or_insert_with(|| slot_hash(key))
    }
}

/// Source of ancestor hashes for BLOCKHASH.
#[derive(Clone)]
pub enum Ancestors {
    /// Hashes of 32 bytes each, latest first, starting with the parent of the running block.
    Given {
        number: u64,
        hashes: Bytes,
    },
    Canonical,
    /// BLOCKHASH returns the Keccak hash of the block number's decimal digits, as the public state tests expect.
    OfNumbers,
}

pub struct ExecDb {
    pub view: View,
    pub ancestors: Ancestors,
    entries: AddressMap<Entry>,
    codes: B256Map<Bytecode>,
    /// Changes of accounts that are not in `entries` yet.
    unread: UnreadAccounts,
    /// Whether an account with storage but without code and nonce was read (create_collision.rs).
    storage_only_account: bool,
    /// Whether several transactions count as one. If so, SSTORE gas depends on the slot values before the first of
    /// them.
    counts_from_start: bool,
    reads: usize,
    /// Whether an execution has called `console.log` (console_log.rs).
    read_console: bool,
}

/// A copy of the state changes and of the read cache of an `ExecDb`.
pub struct SavedEntries {
    entries: AddressMap<Entry>,
    codes: B256Map<Bytecode>,
}

impl ExecDb {
    pub fn new(view: View, ancestors: Ancestors) -> Self {
        ExecDb {
            view,
            ancestors,
            entries: AddressMap::default(),
            codes: B256Map::default(),
            unread: UnreadAccounts::default(),
            storage_only_account: false,
            counts_from_start: false,
            reads: 0,
            read_console: false,
        }
    }

    /// Return whether an execution has called `console.log`.
    pub fn has_read_console(&self) -> bool {
        self.read_console
    }

    /// Continue with the database on which the parent block was executed, so that its accounts and codes are not read
    /// again. `is_changed` selects accounts that the parent block may have changed after its transactions.
    pub fn follow(&mut self, parent: ExecDb, is_changed: impl Fn(&Address) -> bool) {
        let ExecDb { mut entries, codes, storage_only_account, .. } = parent;
        entries.retain(|address, _| !is_changed(address));
        (self.entries, self.codes) = (entries, codes);
        self.storage_only_account |= storage_only_account;
    }

    /// Return a copy of all state changes and of the read cache.
    pub fn saved_entries(&self) -> SavedEntries {
        SavedEntries { entries: self.entries.clone(), codes: self.codes.clone() }
    }

    /// Restore the state changes and the read cache that `saved_entries` returned.
    pub fn restore_entries(&mut self, saved: SavedEntries) {
        self.entries = saved.entries;
        self.codes = saved.codes;
    }

    /// Return the number of accounts and slots in this database's read cache.
    pub fn reads(&self) -> usize {
        self.reads
    }

    /// Return the number of trie nodes in the database when this state was opened.
    pub fn nodes_written(&self) -> Result<u64> {
        self.view.snapshot.as_ref().map_or(Ok(0), Snapshot::nodes_written)
    }

    /// Return the number of bytes of trie nodes read so far.
    pub fn nodes_read(&self) -> usize {
        self.view.nodes_read.load(Ordering::Relaxed)
    }

    /// Begin several transactions that count as one. From now on, `original_value_of` returns the slot values before
    /// the first of them (`evm_builder::count_from_start`).
    pub(super) fn count_from_start(&mut self) {
        self.counts_from_start = true;
    }

    /// Return the value that a slot had before the first of several transactions that run as one. Returns None unless
    /// `count_from_start` was called and the slot was read.
    pub fn original_value_of(&self, address: &Address, slot: &U256) -> Option<U256> {
        let known = self.entries.get(address).filter(|_| self.counts_from_start)?.storage.get(slot)?;
        Some(known.before)
    }

    pub fn has_storage_only_account(&self) -> bool {
        self.storage_only_account
    }

    /// Return whether the account has storage but neither code nor nonce.
    pub fn holds_storage_alone(&mut self, address: &Address) -> bool {
        self.entry(address).is_ok_and(|entry| {
            let bare = entry.info.as_ref().is_some_and(|info| info.nonce == 0 && info.is_empty_code_hash());
            bare && !entry.wiped && entry.storage_root != EMPTY_ROOT
        })
    }

    fn entry(&mut self, address: &Address) -> Result<&mut Entry> {
        let ExecDb { view, entries, unread, storage_only_account, reads, read_console, .. } = self;
        match entries.entry(*address) {
            map::Entry::Occupied(known) => Ok(known.into_mut()),
            map::Entry::Vacant(free) => {
                let hash = keccak256(address);
                let account = view.account(address, &hash)?;
                *storage_only_account |= account.is_some_and(|account| {
                    account.storage_root != EMPTY_ROOT && account.nonce == 0 && account.code_hash == KECCAK256_EMPTY
                });
                let mut entry = Entry {
                    hash,
                    info: account.as_ref().map(info_of),
                    existed: account.is_some(),
                    storage_root: account.map_or(EMPTY_ROOT, |account| account.storage_root),
                    dirty: false,
                    stale: false,
                    wiped: false,
                    storage: HashMap::default(),
                };
                if let Some(change) = unread.take(address) {
                    entry.add(&change)?;
                }
                *reads += 1;
                if *address == console_log::CONSOLE {
                    console_log::note_read();
                    *read_console = true;
                }
                Ok(free.insert(entry))
            }
        }
    }

    pub fn info(&mut self, address: &Address) -> Result<Option<AccountInfo>> {
        Ok(self.entry(address)?.info.clone())
    }

    /// Return the new contract codes by hash.
    pub fn new_codes(&self) -> impl Iterator<Item = (&B256, &Bytecode)> {
        self.codes.iter()
    }

    /// Return the code of an account, from the account info or by its code hash.
    pub fn code_of(&mut self, info: &AccountInfo) -> Result<Bytes> {
        match &info.code {
            Some(code) => Ok(code.original_bytes()),
            None => Ok(self.code_by_hash(info.code_hash)?.original_bytes()),
        }
    }

    /// Replace an account, or delete it if `info` is None.
    pub fn set_info(&mut self, address: &Address, info: Option<AccountInfo>) -> Result<()> {
        if let Some(AccountInfo { code: Some(code), code_hash, .. }) = &info
            && !code.is_empty()
        {
            self.codes.insert(*code_hash, code.clone());
        }
        let is_fork = self.view.fork.is_some();
        let entry = self.entry(address)?;
        if info.is_none() {
            entry.wipe(is_fork);
        }
        entry.info = info;
        entry.mark_changed();
        Ok(())
    }

    /// Replace balance and nonce of a touched account, like the commit of a transaction. With None, delete an account
    /// without code and storage.
    pub fn touch(&mut self, address: &Address, info: Option<AccountInfo>) -> Result<()> {
        let entry = self.entry(address)?;
        if entry.info != info {
            entry.info = info;
            entry.mark_changed();
        }
        Ok(())
    }

    /// Change balance and nonce of an account that a plain transfer touches, without reading it. Only for replays:
    /// `update_trie` and `finish` do not see changes of accounts that nothing reads.
    pub fn add(&mut self, address: &Address, change: &AccountChange) -> Result<()> {
        match self.entries.get_mut(address) {
            Some(entry) => entry.add(change),
            None => {
                self.unread.add(address, change);
                Ok(())
            }
        }
    }

    pub fn set_storage(&mut self, address: &Address, slot: U256, value: U256) -> Result<()> {
        let before = Database::storage(self, *address, slot)?;
        let entry = self.entry(address)?;
        let known = entry.storage.entry(slot);
        known.or_insert_with(|| SlotEntry::new(None, before)).now = value;
        entry.mark_changed();
        Ok(())
    }

    /// Delete an account's storage, because the `state` override of a call replaces it.
    pub fn wipe_storage(&mut self, address: &Address) -> Result<()> {
        let is_fork = self.view.fork.is_some();
        let entry = self.entry(address)?;
        entry.wipe(is_fork);
        entry.mark_changed();
        Ok(())
    }

    /// Add an amount in wei to a balance outside of transactions. Does not create an account that would stay empty.
    pub fn credit(&mut self, address: &Address, amount: U256) -> Result<()> {
        let entry = self.entry(address)?;
        let mut info = entry.info.clone().unwrap_or_default();
        info.balance = info.balance.saturating_add(amount);
        entry.mark_changed();
        entry.info = if info.is_empty() { None } else { Some(info) };
        Ok(())
    }

    /// Add an amount in wei to a balance, and create the account even if it stays empty. Rewards before Spurious Dragon
    /// need this.
    pub fn credit_touching(&mut self, address: &Address, amount: U256) -> Result<()> {
        let entry = self.entry(address)?;
        let mut info = entry.info.clone().unwrap_or_default();
        info.balance = info.balance.saturating_add(amount);
        entry.mark_changed();
        entry.info = Some(info);
        Ok(())
    }

    /// Apply all transactions that an EVM has run since its last `finalize`. None of them may have created or deleted
    /// a contract.
    pub fn commit_several(&mut self, changes: AddressMap<EvmAccount>) -> Result<()> {
        changes.into_iter().try_for_each(|(address, account)| self.apply(address, account, true))
    }

    /// Apply the changes of an account. revm reports a slot as changed only if the last transaction that used the slot
    /// changed it. After `several` transactions, an earlier transaction may have changed the slot. So also compare the
    /// slot with its value in this database.
    fn apply(&mut self, address: Address, account: EvmAccount, several: bool) -> Result<()> {
        if !account.is_touched() {
            return Ok(());
        }
        let created = account.is_created();
        let is_fork = self.view.fork.is_some();
        let entry = self.entry(&address)?;
        if account.is_selfdestructed() {
            entry.wipe(is_fork);
            entry.mark_changed();
            entry.info = None;
            return Ok(());
        }
        if created {
            entry.wipe(is_fork);
        }
        let new_code = entry.info.as_ref().is_none_or(|info| info.code_hash != account.info.code_hash);
        let code = account.info.code.as_ref().filter(|code| new_code && !code.is_empty()).cloned();
        let code_hash = account.info.code_hash;
        // From Spurious Dragon on, a touched account that is empty is deleted (EIP-161). Before Spurious Dragon, empty
        // accounts stay: revm marks a new empty account as created, and does not return an existing one as touched.
        let info = if account.info.is_empty() && !created { None } else { Some(account.info.without_code()) };
        if created || info != entry.info {
            entry.mark_changed();
        }
        entry.info = info;
        for (slot, value) in account.storage {
            let now = value.present_value;
            let differs = || entry.storage.get(&slot).map_or(!now.is_zero(), |known| known.now != now);
            if value.is_changed() || (several && differs()) {
                let before = if entry.wiped { U256::ZERO } else { value.original_value };
                entry.storage.entry(slot).or_insert_with(|| SlotEntry::new(None, before)).now = now;
                entry.mark_changed();
            }
        }
        if let Some(code) = code {
            self.codes.entry(code_hash).or_insert(code);
        }
        Ok(())
    }

    /// Apply all state changes so far to the state trie; may be called repeatedly.
    pub fn update_trie(&mut self, trie: &mut Trie<Account>) -> Result<()> {
        let ExecDb { entries, view, .. } = self;
        let mut stale: Vec<&mut Entry> = entries.values_mut().filter(|entry| entry.stale).collect();
        stale.sort_unstable_by_key(|entry| entry.hash);
        for entry in stale {
            entry.stale = false;
            let key = Nibbles::unpack(entry.hash);
            let deleted = AccountInfo::default();
            let info = match (&entry.info, &view.fork) {
                (Some(info), _) => info,
                // Write an empty account instead of removing the entry. Without an entry, later reads would return the
                // account of the forked chain.
                (None, Some(_)) => &deleted,
                (None, None) => {
                    trie.remove(&key, view)?;
                    continue;
                }
            };
            let wiped = entry.wiped;
            let storage = &mut entry.storage;
            trie.upsert(key, view, |old| {
                let mut account = old.unwrap_or_default();
                if wiped {
                    account.storage = Trie::default();
                }
                account.nonce = info.nonce;
                account.balance = info.balance;
                account.code_hash = info.code_hash;
                let changed = storage.iter_mut().filter(|(_, slot)| slot.now != slot.synced || wiped);
                let mut slots: Vec<_> = changed.map(|(key, slot)| (slot.hash(key), slot)).collect();
                slots.sort_unstable_by_key(|(hash, _)| *hash);
                for (hash, slot) in slots {
                    slot.synced = slot.now;
                    let key = Nibbles::unpack(hash);
                    if slot.now.is_zero() && view.fork.is_none() {
                        account.storage.remove(&key, view)?;
                    } else {
                        account.storage.insert(key, Slot(slot.now), view)?;
                    }
                }
                Ok(account)
            })?;
        }
        Ok(())
    }

    fn changed(&self) -> Vec<(&Address, &Entry)> {
        let mut changed: Vec<_> = self.entries.iter().filter(|(_, entry)| entry.dirty).collect();
        changed.sort_unstable_by_key(|(_, entry)| entry.hash);
        changed
    }

    /// Return everything that a commit of the block needs besides the trie, and the state layers on which child blocks
    /// build.
    pub fn finish(self, trie: &Trie<Account>) -> Result<Changes> {
        let mut preimages = Vec::new();
        let mut changed_entries = 0;
        let mut accounts = AddressMap::default();
        let is_fork = self.view.fork.is_some();
        let deleted = is_fork.then(AccountInfo::default);
        for (address, entry) in self.changed() {
            let mut storage = HashMap::default();
            let mut storage_changed = entry.wiped;
            for (slot, value) in &entry.storage {
                storage.insert(*slot, value.now);
                if value.now != value.before || entry.wiped {
                    storage_changed = true;
                    changed_entries += 1;
                }
                if !value.now.is_zero() && (value.before.is_zero() || entry.wiped) {
                    let hash = value.hash.unwrap_or_else(|| slot_hash(slot));
                    preimages.push((hash, slot.to_be_bytes::<32>().to_vec()));
                }
            }
            let account = match entry.info.as_ref().or(deleted.as_ref()) {
                None => None,
                Some(info) => {
                    let storage_root = if storage_changed {
                        let found = trie.get(&Nibbles::unpack(entry.hash), &self.view)?;
                        found.map_or(EMPTY_ROOT, |account| account.storage.hash())
                    } else {
                        entry.storage_root
                    };
                    Some(FlatAccount {
                        nonce: info.nonce,
                        balance: info.balance,
                        code_hash: info.code_hash,
                        storage_root,
                    })
                }
            };
            changed_entries += 1;
            // on a fork, also store the addresses of accounts that exist on the forked chain, because the local
            // database lacks them
            if account.is_some() && (!entry.existed || is_fork) {
                preimages.push((entry.hash, address.to_vec()));
            }
            accounts.insert(*address, LayerAccount { account, wiped: entry.wiped, storage });
        }
        preimages.sort_unstable();
        let codes = self.codes.iter().map(|(hash, code)| (*hash, code.original_bytes())).collect();
        let base = self.view.root;
        let top = Arc::new(Layer { accounts, codes: self.codes, base });
        let layers = std::iter::once(top).chain(self.view.layers.iter().cloned()).collect();
        Ok(Changes { changed_entries, preimages, codes, layers })
    }
}

/// Results of executing a block, without the trie and the receipts.
pub struct Changes {
    /// Number of accounts and slots that the block has changed.
    pub changed_entries: usize,
    /// Preimages of hashed keys: addresses of new accounts and keys of new slots.
    pub preimages: Vec<(B256, Vec<u8>)>,
    pub codes: Vec<(B256, Bytes)>,
    /// The layer with the state changes of this block, on top of the layers of its uncommitted ancestors.
    pub layers: Layers,
}

impl Entry {
    fn mark_changed(&mut self) {
        self.dirty = true;
        self.stale = true;
    }

    fn add(&mut self, change: &AccountChange) -> Result<()> {
        change.apply(&mut self.info)?;
        self.mark_changed();
        Ok(())
    }

    /// Delete the account's storage. On a fork, a marker slot prevents later reads from falling through to the forked
    /// chain.
    fn wipe(&mut self, is_fork: bool) {
        self.wiped = true;
        self.storage.clear();
        if is_fork {
            let marker = SlotEntry { now: U256::ONE, ..SlotEntry::new(Some(LOCAL_STORAGE_KEY), U256::ZERO) };
            self.storage.insert(LOCAL_STORAGE, marker);
        }
    }
}

fn slot_hash(key: &U256) -> B256 {
    keccak256(key.to_be_bytes::<32>())
}

/// Return the hash of contract code, and the code with its jump destinations; None for empty code.
pub fn coded(code: Bytes) -> (B256, Option<Bytecode>) {
    match code.is_empty() {
        true => (KECCAK256_EMPTY, None),
        false => (keccak256(&code), Some(Bytecode::new_raw(code))),
    }
}

pub fn info_of(account: &FlatAccount) -> AccountInfo {
    AccountInfo {
        balance: account.balance,
        nonce: account.nonce,
        code_hash: account.code_hash,
        account_id: None,
        code: None,
    }
}

impl Database for ExecDb {
    type Error = Error;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>> {
        self.info(&address)
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<Bytecode> {
        match self.codes.get(&hash) {
            Some(code) => Ok(code.clone()),
            None => self.view.code(&hash),
        }
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256> {
        let entry = self.entry(&address)?;
        if let Some(value) = entry.storage.get(&slot) {
            return Ok(value.now);
        }
        if entry.wiped || entry.info.is_none() {
            return Ok(U256::ZERO);
        }
        let account = entry.hash;
        let hash = slot_hash(&slot);
        let value = self.view.storage(&address, &account, &slot, &hash)?;
        let entry = self.entries.get_mut(&address).expect("made above");
        entry.storage.insert(slot, SlotEntry::new(Some(hash), value));
        self.reads += 1;
        Ok(value)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256> {
        match &self.ancestors {
            Ancestors::Given { number: current, hashes } => {
                let back = current.saturating_sub(number) as usize;
                let found = back.checked_sub(1).and_then(|at| hashes.get(at * 32..at * 32 + 32));
                Ok(found.map_or(B256::ZERO, B256::from_slice))
            }
            Ancestors::OfNumbers => Ok(keccak256(number.to_string())),
            Ancestors::Canonical => Ok(self.view.canonical_hash(number)?.unwrap_or_default()),
        }
    }
}

impl DatabaseCommit for ExecDb {
    fn commit(&mut self, changes: AddressMap<EvmAccount>) {
        for (address, account) in changes {
            // revm has already read these accounts, so `apply` does not read the database
            self.apply(address, account, false).expect("an account that was read can be written");
        }
    }
}

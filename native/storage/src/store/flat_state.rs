//! Flat state: accounts and storage of the head's state, one lookup each.
//!
//! An account record holds its address, because the trie has only the hash of the address. When the account is deleted,
//! the address moves to the preimages table, because older states need it.

use alloy_primitives::map::{B256Map, HashMap};
use alloy_primitives::{Address, B256, U256};
use heed::{RoTxn, RwTxn};
use ophion_primitives::errors::Result;

use super::records::Nodes;
use super::tables::Tables;
use crate::trie::{Account, FlatAccount, Slot, Trie};

/// New value of an account in the flat tables.
#[derive(Clone, Copy)]
pub struct AccountChange {
    /// Address of the account; None if only the hash is known.
    pub address: Option<Address>,
    pub account: Option<FlatAccount>,
}

/// Changes of one block to the flat tables, by hashed keys.
#[derive(Default)]
pub struct FlatChanges {
    pub accounts: B256Map<AccountChange>,
    /// Accounts whose storage is deleted before the changes in `storage` apply.
    pub wiped: Vec<B256>,
    /// None deletes a slot. A zero is stored only on a development node that forks a chain, to hide the slot of that
    /// chain.
    pub storage: HashMap<(B256, B256), Option<U256>>,
}

impl FlatChanges {
    /// Append the changes of the next block.
    pub fn follow(&mut self, next: &FlatChanges) {
        for wiped in &next.wiped {
            self.storage.retain(|(account, _), _| account != wiped);
            self.wiped.push(*wiped);
        }
        self.accounts.extend(next.accounts.iter().map(|(hash, account)| (*hash, *account)));
        self.storage.extend(next.storage.iter().map(|(key, value)| (*key, *value)));
    }

    pub fn between(before: &Trie<Account>, after: &Trie<Account>, nodes: &Nodes<'_>) -> Result<Self> {
        let mut changes = FlatChanges::default();
        for (key, old, new) in before.difference(after, nodes)? {
            let account = B256::from_slice(&key.pack());
            let change = AccountChange { address: None, account: new.as_ref().map(FlatAccount::from) };
            changes.accounts.insert(account, change);
            let Some(new) = new else {
                changes.wiped.push(account);
                continue;
            };
            let old_storage = old.map_or_else(Trie::default, |old| old.storage);
            for (slot, _, value) in old_storage.difference(&new.storage, nodes)? {
                let value: Option<Slot> = value;
                changes.storage.insert((account, B256::from_slice(&slot.pack())), value.map(|slot| slot.0));
            }
        }
        Ok(changes)
    }

    /// Store the addresses of created accounts, because these changes may be applied later.
    pub fn note_addresses(&self, txn: &mut RwTxn<'_>, tables: &Tables) -> Result<()> {
        for (hash, change) in &self.accounts {
            if let AccountChange { address: Some(address), account: Some(_) } = change
                && address_of(tables, txn, hash)?.is_none()
            {
                tables.preimages.put(txn, hash.as_slice(), address.as_slice())?;
            }
        }
        Ok(())
    }

    pub fn write(self, txn: &mut RwTxn<'_>, tables: &Tables) -> Result<()> {
        for account in &self.wiped {
            tables.storage.delete_prefix(txn, account.as_slice())?;
        }
        let mut accounts: Vec<_> = self.accounts.into_iter().collect();
        accounts.sort_unstable_by_key(|(hash, _)| *hash);
        for (hash, AccountChange { address, account }) in accounts {
            let address = match address {
                Some(address) => Some(address),
                None => address_of(tables, txn, &hash)?,
            };
            if let Some(account) = account {
                tables.accounts.put(txn, hash.as_slice(), &account.store(address.as_ref()))?;
                continue;
            }
            tables.accounts.delete(txn, hash.as_slice())?;
            if let Some(address) = address {
                tables.preimages.put_new(txn, hash.as_slice(), address.as_slice())?;
            }
        }
        let mut storage: Vec<_> = self.storage.into_iter().collect();
        storage.sort_unstable_by_key(|(key, _)| *key);
        for ((account, slot), value) in storage {
            let key = storage_key(&account, &slot);
            match value {
                None => drop(tables.storage.delete(txn, &key)?),
                Some(value) => tables.storage.put(txn, &key, &value.to_be_bytes_trimmed_vec())?,
            }
        }
        Ok(())
    }
}

/// Return the address of an account hash, if known.
pub fn address_of(tables: &Tables, txn: &RoTxn<'_>, hash: &B256) -> Result<Option<Address>> {
    if let Some(row) = tables.accounts.get(txn, hash.as_slice())?
        && let (_, Some(address)) = FlatAccount::restore_whole(row)?
    {
        return Ok(Some(address));
    }
    let preimage = tables.preimages.get(txn, hash.as_slice())?;
    Ok(preimage.filter(|bytes| bytes.len() == Address::len_bytes()).map(Address::from_slice))
}

pub fn storage_key(account: &B256, slot: &B256) -> [u8; 64] {
    let mut key = [0u8; 64];
    key[..32].copy_from_slice(account.as_slice());
    key[32..].copy_from_slice(slot.as_slice());
    key
}

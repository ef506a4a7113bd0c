//! The flat tables: accounts and storage of the head's state, one keyed lookup each.

use alloy_primitives::map::{B256Map, HashMap};
use alloy_primitives::{B256, U256};
use heed::RwTxn;
use ophion_primitives::errors::Result;

use super::records::Nodes;
use super::tables::Tables;
use crate::trie::{Account, FlatAccount, Slot, Trie};

/// Changes of one block to the flat tables, by hashed keys.
#[derive(Default)]
pub struct FlatChanges {
    pub accounts: B256Map<Option<FlatAccount>>,
    /// Accounts whose whole storage went away before `storage` applies.
    pub wiped: Vec<B256>,
    pub storage: HashMap<(B256, B256), U256>,
}

impl FlatChanges {
    /// Put the changes of the next block on top of these.
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
            changes.accounts.insert(account, new.as_ref().map(FlatAccount::from));
            let Some(new) = new else {
                changes.wiped.push(account);
                continue;
            };
            let old_storage = old.map_or_else(Trie::default, |old| old.storage);
            for (slot, _, value) in old_storage.difference(&new.storage, nodes)? {
                let value: Option<Slot> = value;
                changes
                    .storage
                    .insert((account, B256::from_slice(&slot.pack())), value.map_or(U256::ZERO, |slot| slot.0));
            }
        }
        Ok(changes)
    }

    pub fn write(self, txn: &mut RwTxn<'_>, tables: &Tables) -> Result<()> {
        for account in &self.wiped {
            tables.storage.delete_prefix(txn, account.as_slice())?;
        }
        let mut accounts: Vec<_> = self.accounts.into_iter().collect();
        accounts.sort_unstable_by_key(|(hash, _)| *hash);
        for (hash, account) in accounts {
            match account {
                Some(account) => tables.accounts.put(txn, hash.as_slice(), &account.store())?,
                None => {
                    tables.accounts.delete(txn, hash.as_slice())?;
                }
            }
        }
        let mut storage: Vec<_> = self.storage.into_iter().collect();
        storage.sort_unstable_by_key(|(key, _)| *key);
        for ((account, slot), value) in storage {
            let key = storage_key(&account, &slot);
            if value.is_zero() {
                tables.storage.delete(txn, &key)?;
            } else {
                tables.storage.put(txn, &key, &value.to_be_bytes_trimmed_vec())?;
            }
        }
        Ok(())
    }
}

pub fn storage_key(account: &B256, slot: &B256) -> [u8; 64] {
    let mut key = [0u8; 64];
    key[..32].copy_from_slice(account.as_slice());
    key[32..].copy_from_slice(slot.as_slice());
    key
}

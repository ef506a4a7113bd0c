//! Tables of public keys that signed several transactions, by address.
//!
//! A block producer tells other producers who signed the transactions that it passes on. With a table of the key,
//! checking such a hint takes less time than recovering the key. Building a table costs about five recoveries, so a key
//! gets its table after `BUILD_AFTER` right hints. The number of keys is bounded; the keys that were used least
//! recently are dropped.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use alloy_primitives::Address;
use ophion_secp256k1_simd::KeyTable;

/// Number of right hints after which a key gets a table.
const BUILD_AFTER: u32 = 8;
/// Maximum number of keys in one of two generations. A table takes 9 KB.
const MAX_KEYS: usize = 512;

#[derive(Clone, Default)]
struct Signer {
    hints: u32,
    table: Option<Arc<KeyTable>>,
}

/// Keys by address in two generations. When the younger one is full, the older one is dropped.
#[derive(Default)]
pub struct SignerKeys {
    younger: HashMap<Address, Signer>,
    older: HashMap<Address, Signer>,
}

static KEYS: LazyLock<Mutex<SignerKeys>> = LazyLock::new(Mutex::default);

/// Lock the tables of this process.
pub fn signer_keys() -> MutexGuard<'static, SignerKeys> {
    KEYS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SignerKeys {
    /// Return the table of the key with this address.
    pub fn table(&mut self, address: &Address) -> Option<Arc<KeyTable>> {
        if let Some(signer) = self.younger.get(address) {
            return signer.table.clone();
        }
        let signer = self.older.remove(address)?;
        let table = signer.table.clone();
        self.put(*address, signer);
        table
    }

    /// Note that a hint was right. Returns whether the key needs a table now; the caller builds the table without the
    /// lock.
    pub fn needs_table(&mut self, address: &Address) -> bool {
        let mut signer = self.younger.remove(address).or_else(|| self.older.remove(address)).unwrap_or_default();
        signer.hints += 1;
        let needs_table = signer.hints == BUILD_AFTER;
        self.put(*address, signer);
        needs_table
    }

    /// Add a table.
    pub fn add(&mut self, address: Address, table: KeyTable) {
        self.put(address, Signer { hints: BUILD_AFTER, table: Some(Arc::new(table)) });
    }

    fn put(&mut self, address: Address, signer: Signer) {
        if self.younger.len() >= MAX_KEYS {
            self.older = std::mem::take(&mut self.younger);
        }
        self.younger.insert(address, signer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u64) -> Address {
        Address::left_padding_from(&number.to_be_bytes())
    }

    #[test]
    fn a_key_needs_one_table_after_some_right_hints() {
        let mut keys = SignerKeys::default();
        let needed: Vec<u32> = (1..=3 * BUILD_AFTER).filter(|_| keys.needs_table(&address(1))).collect();
        assert_eq!(needed, [BUILD_AFTER]);
        assert!(keys.table(&address(1)).is_none(), "the caller adds it");
    }

    #[test]
    fn the_number_of_keys_is_bounded_and_used_keys_stay() {
        let mut keys = SignerKeys::default();
        for number in 0..10 * MAX_KEYS as u64 {
            keys.needs_table(&address(1_000_000));
            keys.needs_table(&address(number));
        }
        assert!(keys.younger.len() + keys.older.len() <= 2 * MAX_KEYS);
        assert!(keys.younger.get(&address(1_000_000)).is_some_and(|signer| signer.hints > BUILD_AFTER));
        assert!(!keys.younger.contains_key(&address(0)) && !keys.older.contains_key(&address(0)));
    }
}

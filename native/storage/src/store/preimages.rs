//! Preimages: addresses and slots by hash. Tries hold only the hashes.

use alloy_primitives::{Address, B256};
use heed::RoTxn;
use ophion_primitives::errors::Result;

use super::tables::Tables;
use crate::trie::FlatAccount;

/// Return the address of an account hash, if known. For accounts from before layout 5, the table `accounts` holds the
/// address.
pub fn address_of(tables: &Tables, txn: &RoTxn<'_>, hash: &B256) -> Result<Option<Address>> {
    let preimage = tables.preimages.get(txn, hash.as_slice())?;
    if let Some(address) = preimage.filter(|bytes| bytes.len() == Address::len_bytes()) {
        return Ok(Some(Address::from_slice(address)));
    }
    match tables.accounts.get(txn, hash.as_slice())? {
        Some(row) => Ok(FlatAccount::restore_address(row)?),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::keccak256;

    use super::*;
    use crate::store::opening;

    #[test]
    fn addresses_are_found_in_both_tables() {
        let path = std::env::temp_dir().join(format!("ophion-preimages-{}", std::process::id()));
        let (env, tables, _) = opening::open(&path, true, false, false).unwrap();
        let mut txn = env.write_txn().unwrap();
        let [new, old, contract, nameless, slot] = [1, 2, 3, 4, 5].map(Address::repeat_byte);
        tables.preimages.put(&mut txn, keccak256(new).as_slice(), new.as_slice()).unwrap();
        tables.preimages.put(&mut txn, keccak256(slot).as_slice(), &[5; 32]).unwrap();
        // an account record: nonce, length and bytes of the balance, flags (1 code, 2 storage, 4 address), then the
        // flagged fields
        let row = |flags: u8, hashes: usize, address: &[u8]| {
            [&[7, 1, 9, flags][..], &vec![8; 32 * hashes][..], address].concat()
        };
        for (address, row) in
            [(old, row(4, 0, old.as_slice())), (contract, row(7, 2, contract.as_slice())), (nameless, row(0, 0, &[]))]
        {
            tables.accounts.put(&mut txn, keccak256(address).as_slice(), &row).unwrap();
        }
        for (address, is_known) in [(new, true), (old, true), (contract, true), (nameless, false), (slot, false)] {
            let found = address_of(&tables, &txn, &keccak256(address)).unwrap();
            assert_eq!(found, is_known.then_some(address));
        }
        drop(txn);
        std::fs::remove_dir_all(&path).unwrap();
    }
}

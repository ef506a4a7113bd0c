//! Merges the state changes (layers) of uncommitted blocks, so that reads stay fast on a state with many layers.

use std::sync::Arc;

use super::view::{Layer, LayerAccount, Layers};

/// Maximum number of layers that a state keeps without merging. On a node that commits blocks promptly, states have
/// fewer layers.
const MAX_LAYERS: usize = 8;

/// If there are more than `MAX_LAYERS` layers, merge layers until each layer is more than twice as large as the layer
/// above it.
///
/// A merged layer has the base root of the lowest layer in it.
pub fn merge_layers(layers: &Layers) -> Layers {
    if layers.len() <= MAX_LAYERS {
        return layers.clone();
    }
    let mut merged: Vec<Arc<Layer>> = Vec::new();
    let mut rest = layers.iter().cloned();
    let Some(mut top) = rest.next() else { return layers.clone() };
    for below in rest {
        if 2 * size(&top) >= size(&below) {
            top = Arc::new(merge(&top, &below));
        } else {
            merged.push(std::mem::replace(&mut top, below));
        }
    }
    merged.push(top);
    merged.into()
}

fn size(layer: &Layer) -> usize {
    layer.accounts.values().map(|change| 1 + change.storage.len()).sum::<usize>() + layer.codes.len()
}

fn merge(top: &Layer, below: &Layer) -> Layer {
    let mut accounts = below.accounts.clone();
    for (address, change) in &top.accounts {
        accounts.entry(*address).and_modify(|old| *old = merge_account(change, old)).or_insert_with(|| change.clone());
    }
    let mut codes = below.codes.clone();
    codes.extend(top.codes.iter().map(|(hash, code)| (*hash, code.clone())));
    Layer { accounts, codes, base: below.base }
}

fn merge_account(top: &LayerAccount, below: &LayerAccount) -> LayerAccount {
    if top.wiped || top.account.is_none() {
        return LayerAccount { wiped: true, ..top.clone() };
    }
    let mut storage = below.storage.clone();
    storage.extend(&top.storage);
    LayerAccount { account: top.account, wiped: below.wiped || below.account.is_none(), storage }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::map::{AddressMap, HashMap};
    use alloy_primitives::{Address, B256, U256};

    use super::*;
    use crate::trie::{EMPTY_ROOT, FlatAccount};

    fn account(nonce: u64) -> Option<FlatAccount> {
        let (balance, code_hash) = (U256::ZERO, alloy_primitives::KECCAK256_EMPTY);
        Some(FlatAccount { nonce, balance, code_hash, storage_root: EMPTY_ROOT })
    }

    /// Address, account, whether the account's storage is wiped, and the changed slots.
    type Change<'a> = (u8, Option<FlatAccount>, bool, &'a [(u64, u64)]);

    fn layer(base: u8, changes: &[Change]) -> Arc<Layer> {
        let accounts: AddressMap<LayerAccount> = changes
            .iter()
            .map(|(address, account, wiped, slots)| {
                let storage: HashMap<U256, U256> =
                    slots.iter().map(|(slot, value)| (U256::from(*slot), U256::from(*value))).collect();
                (Address::repeat_byte(*address), LayerAccount { account: *account, wiped: *wiped, storage })
            })
            .collect();
        Arc::new(Layer { accounts, codes: Default::default(), base: B256::repeat_byte(base) })
    }

    fn nonce(layers: &Layers, address: u8) -> Option<Option<u64>> {
        let found = layers.iter().find_map(|layer| layer.accounts.get(&Address::repeat_byte(address)));
        found.map(|change| change.account.map(|account| account.nonce))
    }

    /// Return the value of a slot as `View::storage` reads it; None if no layer has the slot.
    fn slot(layers: &Layers, address: u8, slot: u64) -> Option<u64> {
        for change in layers.iter().filter_map(|layer| layer.accounts.get(&Address::repeat_byte(address))) {
            if let Some(value) = change.storage.get(&U256::from(slot)) {
                return Some(value.to());
            }
            if change.wiped || change.account.is_none() {
                return Some(0);
            }
        }
        None
    }

    #[test]
    fn few_layers_stay_as_they_are() {
        let layers: Layers = (0..MAX_LAYERS as u8).map(|base| layer(base, &[(1, account(1), false, &[])])).collect();
        assert_eq!(merge_layers(&layers).len(), MAX_LAYERS);
    }

    #[test]
    fn merged_layers_give_the_same_values() {
        let mut layers: Layers = Layers::default();
        let mut plain: Layers = Layers::default();
        for step in 0..200u64 {
            let address = (step % 7) as u8;
            let deleted = step % 11 == 10;
            let wiped = deleted || step % 13 == 12;
            let now = if deleted { None } else { account(step) };
            let slots: &[(u64, u64)] = if deleted { &[] } else { &[(step % 5, step + 1)] };
            let added = layer(step as u8, &[(address, now, wiped, slots)]);
            plain = std::iter::once(added.clone()).chain(plain.iter().cloned()).collect();
            layers = merge_layers(&std::iter::once(added).chain(layers.iter().cloned()).collect());
            for address in 0..8 {
                assert_eq!(nonce(&layers, address), nonce(&plain, address), "step {step}");
                for number in 0..6 {
                    assert_eq!(slot(&layers, address, number), slot(&plain, address, number), "step {step}");
                }
            }
            assert!(layers.len() <= MAX_LAYERS + 1, "{} layers", layers.len());
            assert_eq!(layers.last().expect("not empty").base, B256::ZERO);
        }
    }
}

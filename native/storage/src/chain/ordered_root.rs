//! Computes the root of a list (transactions, receipts) item by item.
//!
//! The key of an item is the RLP of its index. The trie builder needs keys in ascending order, and the key of index 0
//! (0x80) comes after the keys of 1 to 127. So the first 128 items are buffered, and later items are added directly.

use alloy_primitives::B256;
use alloy_trie::{EMPTY_ROOT_HASH, HashBuilder, Nibbles};

/// Number of list indexes whose RLP is a single byte.
const SHORT: usize = 128;

#[derive(Default)]
pub struct OrderedRoot {
    builder: HashBuilder,
    first_items: Vec<Vec<u8>>,
    count: usize,
}

impl OrderedRoot {
    /// Add the next encoded item of the list.
    pub fn push(&mut self, item: &[u8]) {
        if self.count < SHORT {
            self.first_items.push(item.to_vec());
        } else {
            add(&mut self.builder, self.count, item);
        }
        self.count += 1;
        if self.count == SHORT {
            self.release();
        }
    }

    fn release(&mut self) {
        let first_items = std::mem::take(&mut self.first_items);
        for (position, item) in first_items.iter().enumerate().skip(1).chain(first_items.iter().enumerate().take(1)) {
            add(&mut self.builder, position, item);
        }
    }

    pub fn finish(mut self) -> B256 {
        if self.count == 0 {
            return EMPTY_ROOT_HASH;
        }
        self.release();
        self.builder.root()
    }
}

fn add(builder: &mut HashBuilder, position: usize, item: &[u8]) {
    builder.add_leaf(Nibbles::unpack(alloy_rlp::encode_fixed_size(&position)), item);
}

#[cfg(test)]
mod tests {
    use alloy_trie::root::ordered_trie_root_encoded;

    use super::OrderedRoot;

    #[test]
    fn grows_to_the_root_of_the_whole_list() {
        for count in [0, 1, 2, 127, 128, 129, 255, 256, 257, 1000] {
            let items: Vec<Vec<u8>> = (0..count).map(|index: usize| vec![index as u8 | 1; 1 + index % 70]).collect();
            let mut root = OrderedRoot::default();
            items.iter().for_each(|item| root.push(item));
            assert_eq!(root.finish(), ordered_trie_root_encoded(&items), "{count}");
        }
    }
}

//! Computes the root of a list (transactions, receipts) item by item.
//!
//! The key of an item is the RLP of its index. From index 128 on, an item and its neighbour differ in the last nibble
//! only, so the leaf of the item has an empty path and does not depend on later items. These leaves are hashed several
//! at a time while the list grows (`keccak256_many`). The other leaves and the branches above are hashed at the end.
//! The slow path is the trie builder of alloy; the test compares both.

use alloy_primitives::{B256, keccak256};
use alloy_rlp::{Encodable, Header};
use alloy_trie::EMPTY_ROOT_HASH;
use ophion_primitives::keccak::keccak256_many;

/// Number of list indexes whose RLP is a single byte.
const SHORT: usize = 128;
/// Number of leaves that are hashed together. The number of children of a branch divides it.
const CHUNK: usize = 64;
const CHILDREN: usize = 16;
/// First byte of the path of a leaf with an even number of nibbles; of an odd number, the first nibble is added.
const EVEN_LEAF: u8 = 0x20;

#[derive(Default)]
pub struct OrderedRoot {
    /// The first `SHORT` items.
    first_items: Vec<Vec<u8>>,
    /// RLP of the latest leaves that are not hashed yet, one after the other, and the end of each.
    rlp: Vec<u8>,
    ends: Vec<usize>,
    /// The latest item, if it is the first below its branch.
    latest: Vec<u8>,
    /// References to the leaves after the first `SHORT` items.
    leaves: Vec<Reference>,
    count: usize,
}

impl OrderedRoot {
    /// Add the next encoded item of the list.
    pub fn push(&mut self, item: &[u8]) {
        let index = self.count;
        self.count += 1;
        if index < SHORT {
            self.first_items.push(item.to_vec());
            return;
        }
        put_leaf(&[], item, &mut self.rlp);
        self.ends.push(self.rlp.len());
        if index.is_multiple_of(CHILDREN) {
            self.latest.clear();
            self.latest.extend_from_slice(item);
        } else if self.ends.len() == CHUNK {
            self.hash_leaves();
        }
    }

    fn hash_leaves(&mut self) {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let parts: Vec<&[u8]> = starts.zip(&self.ends).map(|(start, end)| &self.rlp[start..*end]).collect();
        let mut hashes = Vec::with_capacity(parts.len());
        keccak256_many(&parts, &mut hashes);
        self.leaves.extend(parts.iter().zip(hashes).map(|(rlp, hash)| Reference::of(rlp, || hash)));
        self.rlp.clear();
        self.ends.clear();
    }

    pub fn finish(mut self) -> B256 {
        if self.count == 0 {
            return EMPTY_ROOT_HASH;
        }
        self.hash_leaves();
        // index 0 comes after 1 to 127, because its key is 0x80
        let short = self.count.min(SHORT);
        let keys: Vec<Key> = (1..short).chain(0..1).chain(short..self.count).map(Key::of).collect();
        keccak256(self.node(&keys, 0))
    }

    /// Return the RLP of the node above these keys, which share the first `depth` nibbles.
    fn node(&self, keys: &[Key], depth: usize) -> Vec<u8> {
        let mut rlp = Vec::new();
        let (first, last) = (&keys[0], &keys[keys.len() - 1]);
        if keys.len() == 1 {
            put_leaf(&first.nibbles()[depth..], self.item(first.index), &mut rlp);
            return rlp;
        }
        let shared = first.nibbles().iter().zip(last.nibbles()).take_while(|(one, other)| one == other).count();
        let mut payload = Vec::new();
        if shared > depth {
            path(&first.nibbles()[depth..shared], 0)[..].encode(&mut payload);
            payload.extend_from_slice(self.reference(keys, shared).bytes());
        } else {
            let mut rest = keys;
            for nibble in 0..CHILDREN as u8 {
                let below = rest.partition_point(|key| key.nibbles()[depth] <= nibble);
                let (child, others) = rest.split_at(below);
                if child.is_empty() {
                    payload.push(alloy_rlp::EMPTY_STRING_CODE);
                } else {
                    payload.extend_from_slice(self.reference(child, depth + 1).bytes());
                }
                rest = others;
            }
            payload.push(alloy_rlp::EMPTY_STRING_CODE); // no key ends at a branch
        }
        Header { list: true, payload_length: payload.len() }.encode(&mut rlp);
        rlp.extend_from_slice(&payload);
        rlp
    }

    fn reference(&self, keys: &[Key], depth: usize) -> Reference {
        match keys {
            [key] if key.index >= SHORT && depth == key.nibbles().len() => self.leaves[key.index - SHORT],
            _ => {
                let rlp = self.node(keys, depth);
                Reference::of(&rlp, || keccak256(&rlp))
            }
        }
    }

    /// Return an item that does not have an empty path: one of the first, or the last one if it is the only one below
    /// its branch.
    fn item(&self, index: usize) -> &[u8] {
        self.first_items.get(index).unwrap_or(&self.latest)
    }
}

/// The key of an item: the nibbles of the RLP of its index.
struct Key {
    index: usize,
    nibbles: [u8; 2 * (1 + size_of::<usize>())],
    count: usize,
}

impl Key {
    fn of(index: usize) -> Self {
        let rlp = alloy_rlp::encode_fixed_size(&index);
        let mut nibbles = [0; 2 * (1 + size_of::<usize>())];
        for (pair, byte) in nibbles.chunks_exact_mut(2).zip(&rlp) {
            pair.copy_from_slice(&[byte >> 4, byte & 15]);
        }
        Key { index, nibbles, count: 2 * rlp.len() }
    }

    fn nibbles(&self) -> &[u8] {
        &self.nibbles[..self.count]
    }
}

/// What a node contains for a child: the hash of the child, or its RLP if that is shorter.
#[derive(Clone, Copy)]
struct Reference {
    bytes: [u8; 33],
    length: usize,
}

impl Reference {
    fn of(rlp: &[u8], hash: impl FnOnce() -> B256) -> Self {
        let mut bytes = [0; 33];
        if rlp.len() < B256::len_bytes() {
            bytes[..rlp.len()].copy_from_slice(rlp);
            return Reference { bytes, length: rlp.len() };
        }
        bytes[0] = alloy_rlp::EMPTY_STRING_CODE + B256::len_bytes() as u8;
        bytes[1..].copy_from_slice(hash().as_slice());
        Reference { bytes, length: bytes.len() }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Append the RLP of a leaf.
fn put_leaf(nibbles: &[u8], item: &[u8], out: &mut Vec<u8>) {
    let path = path(nibbles, EVEN_LEAF);
    Header { list: true, payload_length: path[..].length() + item.length() }.encode(out);
    path[..].encode(out);
    item.encode(out);
}

/// Return a path in hex-prefix encoding. `flag` is `EVEN_LEAF` for a leaf and 0 for an extension.
fn path(nibbles: &[u8], flag: u8) -> Vec<u8> {
    let (odd, pairs) = nibbles.split_at(nibbles.len() % 2);
    let first = odd.first().map_or(flag, |nibble| flag + 0x10 + nibble);
    std::iter::once(first).chain(pairs.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use alloy_trie::root::ordered_trie_root_encoded;

    use super::OrderedRoot;

    #[test]
    fn grows_to_the_root_of_the_whole_list() {
        let around = |number: usize| number - 1..=number + 2;
        let counts = (0..300).chain([512, 1000, 4096, 65_536, 65_552, 65_600].into_iter().flat_map(around));
        for count in counts {
            // leaves of items of one byte are shorter than a hash, so their branches hold them
            for sizes in [70, 1] {
                let items: Vec<Vec<u8>> =
                    (0..count).map(|index: usize| vec![index as u8 | 1; 1 + index % sizes]).collect();
                let mut root = OrderedRoot::default();
                items.iter().for_each(|item| root.push(item));
                assert_eq!(root.finish(), ordered_trie_root_encoded(&items), "{count}, {sizes}");
            }
        }
    }
}

//! Nodes, references between them, and their hashes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use alloy_primitives::{B256, b256, keccak256};
use alloy_rlp::{EMPTY_STRING_CODE, Encodable, Header};
use alloy_trie::Nibbles;
use ophion_primitives::errors::Result;

use super::node_storage::Saver;

/// Root of a trie without entries: keccak(rlp("")).
pub const EMPTY_ROOT: B256 = b256!("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421");

/// Value in a leaf of a trie: an account, a slot or bytes.
pub trait Value: Clone {
    /// Append the RLP of the value, from which Ethereum computes the hash of the leaf.
    fn encode(&self, out: &mut Vec<u8>);
    /// Append the stored form of the value, from which the value can be restored. It may contain more than the RLP,
    /// such as the id of the storage trie's root.
    fn store(&self, out: &mut Vec<u8>);
    /// Return the length of the value's stored form.
    fn stored_length(&self) -> usize;
    fn restore(bytes: &[u8]) -> Result<Self>;
    /// Write the storage trie of an account, before the account itself is written. `before` is the root of the previous
    /// version of this trie.
    fn save(&self, before: Option<u64>, saver: &mut dyn Saver) -> Result<()>;
    /// Evict nodes with an id up to `_last` from the storage trie of an account. Other values have no trie.
    fn evict(&mut self, _last: u64) {}
    /// Return the id of the root node of an account's storage trie. Returns None before the trie is stored, and for
    /// other values.
    fn below(&self) -> Option<u64> {
        None
    }
}

/// A trie: empty, or a root node.
#[derive(Clone)]
pub struct Trie<V> {
    pub root: Option<Child<V>>,
}

impl<V> Default for Trie<V> {
    fn default() -> Self {
        Trie { root: None }
    }
}

pub enum Node<V> {
    Leaf {
        path: Nibbles,
        value: V,
    },
    Extension {
        path: Nibbles,
        child: Child<V>,
    },
    /// Bit n of `mask` is set if child n exists. `children` holds only existing children, in order.
    Branch {
        mask: u16,
        children: Vec<Child<V>>,
        value: Option<V>,
    },
}

impl<V: Clone> Clone for Node<V> {
    fn clone(&self) -> Self {
        match self {
            Node::Leaf { path, value } => Node::Leaf { path: *path, value: value.clone() },
            Node::Extension { path, child } => Node::Extension { path: *path, child: child.clone() },
            Node::Branch { mask, children, value } => {
                Node::Branch { mask: *mask, children: children.clone(), value: value.clone() }
            }
        }
    }
}

/// Reference to a node in its parent: the hash of the node, or its RLP if the RLP is shorter than a hash.
pub enum Reference {
    Hash(B256),
    Inline(Box<[u8]>),
}

/// A trie node with its cached hash and its database id.
pub struct Cell<V> {
    pub node: Node<V>,
    reference: OnceLock<Reference>,
    /// Id of the node in the database; zero before the node is written.
    id: AtomicU64,
}

pub enum Child<V> {
    Stored { hash: B256, id: u64 },
    Live(Arc<Cell<V>>),
}

impl<V> Clone for Child<V> {
    fn clone(&self) -> Self {
        match self {
            Child::Stored { hash, id } => Child::Stored { hash: *hash, id: *id },
            Child::Live(cell) => Child::Live(cell.clone()),
        }
    }
}

/// Return the position of the child for `nibble` in the list of existing children. `mask` has one bit for each existing
/// child.
pub fn rank(mask: u16, nibble: u8) -> usize {
    (mask & ((1u16 << nibble) - 1)).count_ones() as usize
}

impl<V> Cell<V> {
    pub fn new(node: Node<V>) -> Self {
        Cell { node, reference: OnceLock::new(), id: AtomicU64::new(0) }
    }

    /// Make a node that was loaded from the database, with its known hash and id.
    pub fn loaded(node: Node<V>, hash: B256, id: u64) -> Self {
        Cell { node, reference: OnceLock::from(Reference::Hash(hash)), id: AtomicU64::new(id) }
    }

    pub fn id(&self) -> u64 {
        self.id.load(Ordering::Acquire)
    }

    pub fn set_id(&self, id: u64) {
        self.id.store(id, Ordering::Release);
    }

    /// Clear the cached hash and id of a node before a change.
    pub fn invalidate(&mut self) {
        self.reference = OnceLock::new();
        *self.id.get_mut() = 0;
    }
}

impl<V: Value> Cell<V> {
    pub fn reference(&self) -> &Reference {
        self.reference.get_or_init(|| {
            let mut rlp = Vec::with_capacity(160);
            self.encode(&mut rlp);
            if rlp.len() < 32 { Reference::Inline(rlp.into()) } else { Reference::Hash(keccak256(&rlp)) }
        })
    }

    /// Store the reference of a node whose RLP and hash are known (hashing.rs).
    pub(super) fn set_reference(&self, rlp: &[u8], hash: B256) {
        let _ = self.reference.set(if rlp.len() < 32 { Reference::Inline(rlp.into()) } else { Reference::Hash(hash) });
    }

    pub(super) fn is_hashed(&self) -> bool {
        self.reference.get().is_some()
    }

    /// Return the hash of this node as the root of a trie. A root is hashed even if its RLP is short.
    pub fn root_hash(&self) -> B256 {
        match self.reference() {
            Reference::Hash(hash) => *hash,
            Reference::Inline(rlp) => keccak256(rlp),
        }
    }

    /// Append the node's RLP.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_with(out, &mut Vec::new());
    }

    /// Append the node's RLP like `encode`. Calls share the buffer `scratch`.
    pub(super) fn encode_with(&self, out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
        scratch.clear();
        match &self.node {
            Node::Leaf { path, value } => {
                let (path, length) = hex_prefix(path, true);
                let path = &path[..length];
                value.encode(scratch);
                list_header(path.length() + scratch.as_slice().length(), out);
                path.encode(out);
                scratch.as_slice().encode(out);
            }
            Node::Extension { path, child } => {
                let (path, length) = hex_prefix(path, false);
                let path = &path[..length];
                list_header(path.length() + child.reference_length(), out);
                path.encode(out);
                child.encode_reference(out);
            }
            Node::Branch { mask, children, value } => {
                if let Some(value) = value {
                    value.encode(scratch);
                }
                let references: usize = children.iter().map(Child::reference_length).sum();
                // an absent child or value takes one byte of the list
                list_header(16 - children.len() + references + scratch.as_slice().length(), out);
                let mut next = children.iter();
                for nibble in 0..16 {
                    if mask & (1 << nibble) == 0 {
                        out.push(EMPTY_STRING_CODE);
                    } else {
                        next.next().expect("one child for each bit of the mask").encode_reference(out);
                    }
                }
                scratch.as_slice().encode(out);
            }
        }
    }
}

impl<V: Value> Child<V> {
    fn encode_reference(&self, out: &mut Vec<u8>) {
        match self {
            Child::Stored { hash, .. } => hash.encode(out),
            Child::Live(cell) => match cell.reference() {
                Reference::Hash(hash) => hash.encode(out),
                Reference::Inline(rlp) => out.extend_from_slice(rlp),
            },
        }
    }

    /// Return the number of bytes that `encode_reference` appends.
    fn reference_length(&self) -> usize {
        match self {
            Child::Stored { .. } => 1 + B256::len_bytes(),
            Child::Live(cell) => match cell.reference() {
                Reference::Hash(_) => 1 + B256::len_bytes(),
                Reference::Inline(rlp) => rlp.len(),
            },
        }
    }

    pub fn root_hash(&self) -> B256 {
        match self {
            Child::Stored { hash, .. } => *hash,
            Child::Live(cell) => cell.root_hash(),
        }
    }
}

fn list_header(payload_length: usize, out: &mut Vec<u8>) {
    Header { list: true, payload_length }.encode(out);
}

/// Return the hex-prefix encoding of a path (Yellow Paper, appendix C), and its length.
fn hex_prefix(path: &Nibbles, leaf: bool) -> ([u8; 33], usize) {
    let mut out = [0; 33];
    let odd = path.len() % 2;
    out[0] = if leaf { 0x20 } else { 0 } | if odd == 1 { 0x10 | path.get_unchecked(0) } else { 0 };
    let packed = path.slice(odd..).pack();
    out[1..1 + packed.len()].copy_from_slice(&packed);
    (out, 1 + packed.len())
}

/// Return the hex-prefix encoding of a path, for a request for trie nodes (snap/1).
pub fn encoded_path(path: &Nibbles) -> Vec<u8> {
    let (encoded, length) = hex_prefix(path, false);
    encoded[..length].to_vec()
}

//! Nodes, references between them, and their hashes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use alloy_primitives::{B256, b256, keccak256};
use alloy_rlp::{EMPTY_STRING_CODE, Encodable, Header};
use alloy_trie::Nibbles;
use ophion_primitives::bytes::Reader;
use ophion_primitives::errors::Result;

use super::node_parts::decode_path;
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

impl<V> Node<V> {
    /// Load the reference counts of all children, before a copy of this node increments the counts. The processor loads
    /// several counts at the same time, but increments them one after the other.
    pub(super) fn touch(&self) {
        if let Node::Branch { children, .. } = self {
            let counts = children.iter().map(|child| match child {
                Child::Live(cell) => Arc::strong_count(cell),
                _ => 0,
            });
            std::hint::black_box(counts.fold(0, usize::wrapping_add));
        }
    }
}

/// Reference to a node in its parent: the hash of the node, or its RLP if the RLP is shorter than a hash.
pub enum Reference {
    Hash(B256),
    Inline(Box<[u8]>),
}

impl Reference {
    pub(super) fn of(rlp: &[u8], hash: impl FnOnce() -> B256) -> Self {
        if rlp.len() < 32 { Reference::Inline(rlp.into()) } else { Reference::Hash(hash()) }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Reference::Hash(hash) => hash.encode(out),
            Reference::Inline(rlp) => out.extend_from_slice(rlp),
        }
    }

    /// Return the number of bytes that `encode` appends.
    fn length(&self) -> usize {
        match self {
            Reference::Hash(_) => 1 + B256::len_bytes(),
            Reference::Inline(rlp) => rlp.len(),
        }
    }
}

/// A trie node with its cached hash and its database id.
pub struct Cell<V> {
    pub node: Node<V>,
    reference: OnceLock<Reference>,
    /// Id of the node in the database; zero before the node is written.
    id: AtomicU64,
}

pub enum Child<V> {
    Stored {
        hash: B256,
        id: u64,
    },
    /// A small leaf that was read with its parent and has not changed. It takes no memory of its own.
    Held(HeldLeaf),
    Live(Arc<Cell<V>>),
}

/// Maximum length in bytes of a leaf that is stored in its parent. A reference takes 39 bytes, and a separate node
/// takes at least four more.
pub(super) const MAX_INLINE_BYTES: usize = 48;

/// Maximum length in bytes of a `HeldLeaf`. With this limit, `Child` has the same size as without the variant `Held`.
const MAX_HELD_BYTES: usize = 46;

/// The stored form of a small leaf. `codec.rs` checks the form when it reads the parent.
#[derive(Clone, Copy)]
pub struct HeldLeaf {
    length: u8,
    bytes: [u8; MAX_HELD_BYTES],
}

impl HeldLeaf {
    /// Keep the stored form of a leaf; None if it is too long.
    pub(super) fn new(stored: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_HELD_BYTES];
        bytes.get_mut(..stored.len())?.copy_from_slice(stored);
        Some(HeldLeaf { length: stored.len() as u8, bytes })
    }

    pub(super) fn stored(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl<V> Clone for Child<V> {
    fn clone(&self) -> Self {
        match self {
            Child::Stored { hash, id } => Child::Stored { hash: *hash, id: *id },
            Child::Held(leaf) => Child::Held(*leaf),
            Child::Live(cell) => Child::Live(cell.clone()),
        }
    }
}

impl<V> Child<V> {
    /// Return the id of the node in the database; zero for a node in the row of its parent, and before the node is
    /// written.
    pub fn id(&self) -> u64 {
        match self {
            Child::Stored { id, .. } => *id,
            Child::Held(_) => 0,
            Child::Live(cell) => cell.id(),
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
            Reference::of(&rlp, || keccak256(&rlp))
        })
    }

    /// Store the reference of a node whose RLP and hash are known (hashing.rs).
    pub(super) fn set_reference(&self, rlp: &[u8], hash: B256) {
        let _ = self.reference.set(Reference::of(rlp, || hash));
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
        let mut scratch = Vec::new();
        let mut rlp = Vec::new();
        let held = self.held_leaves().map(|leaf| {
            rlp.clear();
            encode_held::<V>(leaf, &mut rlp, &mut scratch);
            Reference::of(&rlp, || keccak256(&rlp))
        });
        let held: Vec<Reference> = held.collect();
        self.encode_with(&held, out, &mut scratch);
    }

    /// Return the leaves among the children that are in their stored form.
    pub(super) fn held_leaves(&self) -> impl Iterator<Item = &HeldLeaf> {
        let children: &[Child<V>] = match &self.node {
            Node::Leaf { .. } => &[],
            Node::Extension { child, .. } => std::slice::from_ref(child),
            Node::Branch { children, .. } => &children[..],
        };
        children.iter().filter_map(|child| match child {
            Child::Held(leaf) => Some(leaf),
            _ => None,
        })
    }

    /// Append the node's RLP like `encode`. `held` has the references of `held_leaves`. Calls share the buffer
    /// `scratch`.
    pub(super) fn encode_with(&self, held: &[Reference], out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
        scratch.clear();
        let (mut lengths, mut held) = (held.iter(), held.iter());
        match &self.node {
            Node::Leaf { path, value } => encode_leaf(path, value, out, scratch),
            Node::Extension { path, child } => {
                let (path, length) = hex_prefix(path, false);
                let path = &path[..length];
                list_header(path.length() + child.reference_length(&mut lengths), out);
                path.encode(out);
                child.encode_reference(&mut held, out);
            }
            Node::Branch { mask, children, value } => {
                if let Some(value) = value {
                    value.encode(scratch);
                }
                let references: usize = children.iter().map(|child| child.reference_length(&mut lengths)).sum();
                // an absent child or value takes one byte of the list
                list_header(16 - children.len() + references + scratch.as_slice().length(), out);
                let mut next = children.iter();
                for nibble in 0..16 {
                    if mask & (1 << nibble) == 0 {
                        out.push(EMPTY_STRING_CODE);
                    } else {
                        next.next().expect("one child for each bit of the mask").encode_reference(&mut held, out);
                    }
                }
                scratch.as_slice().encode(out);
            }
        }
    }
}

impl<V: Value> Child<V> {
    /// Append the reference of this child to the RLP of its parent. `held` has the references of the leaves in their
    /// stored form from this child on.
    fn encode_reference<'r>(&self, held: &mut impl Iterator<Item = &'r Reference>, out: &mut Vec<u8>) {
        match self {
            Child::Stored { hash, .. } => hash.encode(out),
            Child::Held(_) => held.next().expect("one for each leaf").encode(out),
            Child::Live(cell) => cell.reference().encode(out),
        }
    }

    /// Return the number of bytes that `encode_reference` appends.
    fn reference_length<'r>(&self, held: &mut impl Iterator<Item = &'r Reference>) -> usize {
        match self {
            Child::Stored { .. } => 1 + B256::len_bytes(),
            Child::Held(_) => held.next().expect("one for each leaf").length(),
            Child::Live(cell) => cell.reference().length(),
        }
    }

    pub fn root_hash(&self) -> B256 {
        match self {
            Child::Stored { hash, .. } => *hash,
            Child::Held(leaf) => {
                let mut rlp = Vec::new();
                encode_held::<V>(leaf, &mut rlp, &mut Vec::new());
                keccak256(&rlp)
            }
            Child::Live(cell) => cell.root_hash(),
        }
    }
}

/// Append the RLP of a leaf that is in its stored form.
pub(super) fn encode_held<V: Value>(leaf: &HeldLeaf, out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
    const CHECKED: &str = "it was checked when it was read";
    let mut reader = Reader(&leaf.stored()[1..]);
    let path = decode_path(&mut reader).expect(CHECKED);
    encode_leaf(&path, &V::restore(reader.rest()).expect(CHECKED), out, scratch);
}

fn encode_leaf<V: Value>(path: &Nibbles, value: &V, out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
    let (path, length) = hex_prefix(path, true);
    let path = &path[..length];
    scratch.clear();
    value.encode(scratch);
    list_header(path.length() + scratch.as_slice().length(), out);
    path.encode(out);
    scratch.as_slice().encode(out);
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

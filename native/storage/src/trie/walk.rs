//! Proofs, iteration in key order, and differences of two versions.

use std::collections::BTreeMap;

use alloy_trie::Nibbles;
use ophion_primitives::errors::Result;

use super::node::{Child, Node, Reference, Trie, Value, rank};
use super::source::Source;

/// Return the RLP of the nodes from the root towards `key`. The last node shows the value or its absence. Nodes shorter
/// than a hash are part of their parent and not listed.
pub fn proof<V: Value>(trie: &Trie<V>, key: &Nibbles, source: &impl Source) -> Result<Vec<Vec<u8>>> {
    let mut nodes = Vec::new();
    let Some(root) = &trie.root else { return Ok(nodes) };
    let mut cell = root.open(source)?;
    let mut at = 0;
    loop {
        if nodes.is_empty() || matches!(cell.reference(), Reference::Hash(_)) {
            let mut rlp = Vec::new();
            cell.encode(&mut rlp);
            nodes.push(rlp);
        }
        let next = match &cell.node {
            Node::Leaf { .. } => return Ok(nodes),
            Node::Extension { path, child } => {
                if !key.slice(at..).starts_with(path) {
                    return Ok(nodes);
                }
                at += path.len();
                child.open(source)?
            }
            Node::Branch { mask, children, .. } => {
                if at == key.len() {
                    return Ok(nodes);
                }
                let nibble = key.get_unchecked(at);
                if mask & (1 << nibble) == 0 {
                    return Ok(nodes);
                }
                at += 1;
                children[rank(*mask, nibble)].open(source)?
            }
        };
        cell = next;
    }
}

impl<V: Value> Trie<V> {
    /// Visit trie entries with keys from `start` on, in order, until `visit` returns false.
    pub fn walk(
        &self,
        start: &Nibbles,
        source: &impl Source,
        visit: &mut dyn FnMut(Nibbles, &V) -> Result<bool>,
    ) -> Result<()> {
        match &self.root {
            None => Ok(()),
            Some(root) => walk(root, Nibbles::new(), start, source, visit).map(drop),
        }
    }
}

/// Visit the trie entries below a child. Returns false when the walk stops.
fn walk<V: Value>(
    child: &Child<V>,
    prefix: Nibbles,
    start: &Nibbles,
    source: &impl Source,
    visit: &mut dyn FnMut(Nibbles, &V) -> Result<bool>,
) -> Result<bool> {
    let cell = child.open(source)?;
    match &cell.node {
        Node::Leaf { path, value } => {
            let key = prefix.join(path);
            if key < *start { Ok(true) } else { visit(key, value) }
        }
        Node::Extension { path, child } => {
            let prefix = prefix.join(path);
            if ends_before(&prefix, start) { Ok(true) } else { walk(child, prefix, start, source, visit) }
        }
        Node::Branch { mask, children, value } => {
            if let Some(value) = value
                && prefix >= *start
                && !visit(prefix, value)?
            {
                return Ok(false);
            }
            let mut next = children.iter();
            for nibble in (0..16u8).filter(|nibble| mask & (1 << nibble) != 0) {
                let child = next.next().expect("one child for each bit of the mask");
                let mut below = prefix;
                below.push(nibble);
                if !ends_before(&below, start) && !walk(child, below, start, source, visit)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Return whether every key below `prefix` is smaller than `start`.
fn ends_before(prefix: &Nibbles, start: &Nibbles) -> bool {
    let length = prefix.len().min(start.len());
    prefix.slice(..length) < start.slice(..length)
}

/// Key, value before and value after of each differing entry.
pub type Difference<V> = Vec<(Nibbles, Option<V>, Option<V>)>;

impl<V: Value> Trie<V> {
    /// Return the changes from `self` to `other`. Subtrees with equal hashes are skipped.
    pub fn difference(&self, other: &Trie<V>, source: &impl Source) -> Result<Difference<V>> {
        let mut out = Vec::new();
        difference(self.root.as_ref(), other.root.as_ref(), Nibbles::new(), source, &mut out)?;
        Ok(out)
    }
}

fn difference<V: Value>(
    before: Option<&Child<V>>,
    after: Option<&Child<V>>,
    prefix: Nibbles,
    source: &impl Source,
    out: &mut Difference<V>,
) -> Result<()> {
    let (a, b) = match (before, after) {
        (None, None) => return Ok(()),
        (Some(a), Some(b)) if a.same_as(b) => return Ok(()),
        (Some(a), Some(b)) => (a.open(source)?, b.open(source)?),
        (a, b) => return spread(a, b, prefix, source, out),
    };
    match (&a.node, &b.node) {
        (
            Node::Branch { mask: mask_a, children: children_a, value: None },
            Node::Branch { mask: mask_b, children: children_b, value: None },
        ) => {
            for nibble in 0..16u8 {
                let pick = |mask: u16, children: &'_ [Child<V>]| {
                    (mask & (1 << nibble) != 0).then(|| children[rank(mask, nibble)].clone())
                };
                let (child_a, child_b) = (pick(*mask_a, children_a), pick(*mask_b, children_b));
                let mut below = prefix;
                below.push(nibble);
                difference(child_a.as_ref(), child_b.as_ref(), below, source, out)?;
            }
            Ok(())
        }
        (Node::Extension { path: path_a, child: child_a }, Node::Extension { path: path_b, child: child_b })
            if path_a == path_b =>
        {
            difference(Some(child_a), Some(child_b), prefix.join(path_a), source, out)
        }
        // the subtrees have different shapes: list the entries of both and compare the lists, because such subtrees are
        // small
        _ => spread(before, after, prefix, source, out),
    }
}

fn spread<V: Value>(
    before: Option<&Child<V>>,
    after: Option<&Child<V>>,
    prefix: Nibbles,
    source: &impl Source,
    out: &mut Difference<V>,
) -> Result<()> {
    let mut entries: BTreeMap<Nibbles, (Option<V>, Option<V>)> = BTreeMap::new();
    let start = Nibbles::new();
    if let Some(child) = before {
        walk(child, prefix, &start, source, &mut |key, value| {
            entries.entry(key).or_default().0 = Some(value.clone());
            Ok(true)
        })?;
    }
    if let Some(child) = after {
        walk(child, prefix, &start, source, &mut |key, value| {
            entries.entry(key).or_default().1 = Some(value.clone());
            Ok(true)
        })?;
    }
    for (key, (before, after)) in entries {
        let same = match (&before, &after) {
            (Some(a), Some(b)) => {
                let (mut x, mut y) = (Vec::new(), Vec::new());
                a.encode(&mut x);
                b.encode(&mut y);
                x == y
            }
            _ => false,
        };
        if !same {
            out.push((key, before, after));
        }
    }
    Ok(())
}

//! A branch stored as a delta of an earlier version (docs/decisions/0111-delta-encoded-trie-branches.md).
//!
//! ```text
//! delta      03 | steps (1) | distance to the earlier version | mask (2) | changed (2) | changed children ...
//! child      00 | distance to the node | hash (32)
//!            01 | length (2) | stored form
//! ```
//! A *distance* is the id of this row minus the other id. It takes few bytes, because children are written right before
//! their parents.
//!
//! Without deltas, a block that changes one child writes all sixteen references of a branch again. A delta takes a
//! tenth of these bytes. A reader applies the delta to the earlier version. The earlier version may be a delta too,
//! with at most `MAX_STEPS` deltas in a row. The earlier version belongs to the parent state, so it exists. Pruning
//! keeps it while a delta needs it.

use ophion_primitives::bytes::{Reader, put_varint};
use ophion_primitives::errors::{Error, Result};

use super::node_parts::{child_id, mask, put_reference, skip_child};

/// Maximum number of deltas that must be applied to a full row to build a node.
pub const MAX_STEPS: u8 = 16;
const BRANCH: u8 = 2;
const CHANGE: u8 = 3;

type Children<T> = [Option<T>; 16];

/// Return the children of a full branch by nibble; None for other nodes and for branches with a value.
pub fn children(whole: &[u8]) -> Result<Option<Children<&[u8]>>> {
    if whole.first() != Some(&BRANCH) {
        return Ok(None);
    }
    let mut reader = Reader(&whole[1..]);
    let (mask, mut found) = (mask(&mut reader)?, [None; 16]);
    for nibble in nibbles(mask) {
        let start = reader.0;
        skip_child(&mut reader)?;
        found[nibble] = Some(&start[..start.len() - reader.0.len()]);
    }
    Ok(reader.0.is_empty().then_some(found))
}

fn nibbles(mask: u16) -> impl Iterator<Item = usize> {
    (0..16).filter(move |nibble| mask & 1 << nibble != 0)
}

/// A stored version of a branch, from which a delta can be made.
pub struct Version {
    id: u64,
    steps: u8,
    pub whole: Vec<u8>,
}

impl Version {
    /// Encode the delta from this version of a branch to its new version `whole`, whose node id is `id`. Returns None
    /// if the node must be stored in full. This is necessary if the delta takes at least half of the bytes, if too many
    /// deltas precede it, or if a version has a value or is no branch.
    pub fn change_to(&self, whole: &[u8], id: u64) -> Result<Option<Vec<u8>>> {
        if self.steps == MAX_STEPS {
            return Ok(None);
        }
        let (Some(before), Some(after)) = (children(&self.whole)?, children(whole)?) else { return Ok(None) };
        let (mut present, mut changed, mut bytes) = (0u16, 0u16, Vec::new());
        for (nibble, child) in after.iter().enumerate() {
            let Some(child) = child else { continue };
            present |= 1 << nibble;
            if before[nibble] != Some(*child) {
                changed |= 1 << nibble;
                shorten(child, id, &mut bytes)?;
            }
        }
        let mut out = vec![CHANGE, self.steps + 1];
        put_varint(id - self.id, &mut out);
        out.extend_from_slice(&present.to_be_bytes());
        out.extend_from_slice(&changed.to_be_bytes());
        out.extend_from_slice(&bytes);
        Ok((out.len() * 2 < whole.len()).then_some(out))
    }
}

/// Append the reference of a changed child to a delta. `id` is the id of the node that the delta describes. The
/// reference holds the distance to the child's id, which takes fewer bytes than the id.
fn shorten(child: &[u8], id: u64, out: &mut Vec<u8>) -> Result<()> {
    let mut reader = Reader(child);
    if reader.byte()? != 0 {
        out.extend_from_slice(child);
        return Ok(());
    }
    out.push(0);
    let below = child_id(&mut reader)?;
    put_varint(id.checked_sub(below).ok_or_else(|| later(id))?, out);
    out.extend_from_slice(reader.rest());
    Ok(())
}

/// A child that a delta changes in its branch.
#[derive(Clone, Copy)]
enum Changed<'a> {
    Node { id: u64, hash: &'a [u8] },
    Held(&'a [u8]),
}

/// A delta row (the stored change of a branch), decoded.
struct Change<'a> {
    steps: u8,
    base: u64,
    mask: u16,
    children: Children<Changed<'a>>,
}

impl<'a> Change<'a> {
    fn of(stored: &'a [u8], id: u64) -> Result<Option<Self>> {
        if stored.first() != Some(&CHANGE) {
            return Ok(None);
        }
        let mut reader = Reader(&stored[1..]);
        let steps = reader.byte()?;
        let base = before(id, &mut reader)?;
        let (whole, changed, mut children) = (mask(&mut reader)?, mask(&mut reader)?, [None; 16]);
        for nibble in nibbles(changed) {
            children[nibble] = Some(match reader.0.first() {
                Some(0) => {
                    reader.byte()?;
                    Changed::Node { id: before(id, &mut reader)?, hash: reader.take(32)? }
                }
                _ => {
                    let start = reader.0;
                    skip_child(&mut reader)?;
                    Changed::Held(&start[..start.len() - reader.0.len()])
                }
            });
        }
        if changed & !whole != 0 || steps == 0 || steps > MAX_STEPS || !reader.0.is_empty() {
            return Err(Error::damaged(format!("trie node {id} is no proper change of another")));
        }
        Ok(Some(Change { steps, base, mask: whole, children }))
    }
}

/// Read a distance and return the id of the earlier row, which is `id` minus the distance.
fn before(id: u64, reader: &mut Reader<'_>) -> Result<u64> {
    match reader.varint()? {
        back if back > 0 && back < id => Ok(id - back),
        _ => Err(later(id)),
    }
}

fn later(id: u64) -> Error {
    Error::damaged(format!("trie node {id} refers to a later one"))
}

/// Build the full form of a node from its deltas. Calls `read` with this form and the number of deltas. `row` loads a
/// database row by id. `earlier` is called with the id of every earlier row that the deltas need.
pub fn load<'t, T>(
    id: u64,
    row: impl Fn(u64) -> Result<&'t [u8]>,
    mut earlier: impl FnMut(u64),
    read: impl FnOnce(&[u8], u8) -> Result<T>,
) -> Result<T> {
    let stored = row(id)?;
    let Some(latest) = Change::of(stored, id)? else { return read(stored, 0) };
    let (mask, steps) = (latest.mask, latest.steps);
    let (mut found, mut step) = ([None; 16], latest);
    let base = loop {
        for (place, child) in found.iter_mut().zip(step.children) {
            *place = place.or(child);
        }
        let at = step.base;
        earlier(at);
        let stored = row(at)?;
        match Change::of(stored, at)? {
            Some(next) if next.steps + 1 == step.steps => step = next,
            None if step.steps == 1 => break stored,
            _ => return Err(Error::damaged(format!("trie node {at} is not the version that was changed"))),
        }
    };
    let base = children(base)?.ok_or_else(|| Error::damaged(format!("trie node {id} is a change of no branch")))?;
    let mut whole = Vec::with_capacity(3 + 16 * 39);
    whole.push(BRANCH);
    whole.extend_from_slice(&mask.to_be_bytes());
    for nibble in nibbles(mask) {
        match (found[nibble], base[nibble]) {
            (Some(Changed::Node { id, hash }), _) => put_reference(id, hash, &mut whole),
            (Some(Changed::Held(child)), _) | (None, Some(child)) => whole.extend_from_slice(child),
            (None, None) => return Err(Error::damaged(format!("trie node {id} lacks a child"))),
        }
    }
    read(&whole, steps)
}

/// Load a stored node as the base of a new delta.
pub fn version<'t>(id: u64, row: impl Fn(u64) -> Result<&'t [u8]>) -> Result<Version> {
    load(id, row, |_| (), |whole, steps| Ok(Version { id, steps, whole: whole.to_vec() }))
}

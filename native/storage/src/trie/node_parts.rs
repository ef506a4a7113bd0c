//! Parts of stored nodes: masks, paths and child references.

use alloy_trie::Nibbles;
use ophion_primitives::bytes::Reader;
use ophion_primitives::errors::{Error, Result};

/// Read a mask of two bytes, with a bit for each child.
pub(super) fn mask(reader: &mut Reader<'_>) -> Result<u16> {
    Ok(u16::from_be_bytes(reader.take(2)?.try_into().expect("two bytes")))
}

pub(super) fn decode_path(reader: &mut Reader<'_>) -> Result<Nibbles> {
    let (length, packed) = skip_path(reader)?;
    let mut path = Nibbles::unpack(packed);
    path.truncate(length);
    Ok(path)
}

/// Return the number of nibbles of a path, and the bytes of the path.
pub(super) fn skip_path<'a>(reader: &mut Reader<'a>) -> Result<(usize, &'a [u8])> {
    let length = reader.byte()? as usize;
    if length > 64 {
        return Err(Error::damaged("a trie path is too long"));
    }
    Ok((length, reader.take(length.div_ceil(2))?))
}

/// Skip a child reference of a stored branch.
pub(super) fn skip_child(reader: &mut Reader<'_>) -> Result<()> {
    match reader.byte()? {
        0 => reader.take(6 + 32).map(drop),
        1 => held(reader).map(drop),
        tag => Err(Error::damaged(format!("unknown trie reference kind {tag}"))),
    }
}

/// Read a child that is stored in its parent's row. Returns its stored form. The tag of the child is read already.
pub(super) fn held<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let length = u16::from_be_bytes(reader.take(2)?.try_into().expect("two bytes"));
    reader.take(length.into())
}

pub(super) fn child_id(reader: &mut Reader<'_>) -> Result<u64> {
    let mut id = [0u8; 8];
    id[2..].copy_from_slice(reader.take(6)?);
    Ok(u64::from_be_bytes(id))
}

/// Return the id of a child that has its own row; None if the row of the parent contains the child.
pub(super) fn stored_id(child: &[u8]) -> Option<u64> {
    let mut reader = Reader(child);
    if reader.byte().ok()? == 0 { child_id(&mut reader).ok() } else { None }
}

/// Append a reference to a separately stored child.
pub(super) fn put_reference(id: u64, hash: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    out.extend_from_slice(&id.to_be_bytes()[2..]);
    out.extend_from_slice(hash);
}

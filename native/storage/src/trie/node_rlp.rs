//! Trie nodes in RLP, as other nodes send them.

use alloy_primitives::B256;
use alloy_rlp::Header;
use alloy_trie::Nibbles;
use ophion_primitives::errors::{Error, Result};

/// Number of nibbles of a key. Each key is a 32-byte hash.
pub const KEY_NIBBLES: usize = 64;

/// Reference to a child: by hash, or the RLP of a node shorter than a hash.
#[derive(Clone)]
pub enum RlpChild {
    Hash(B256),
    Inline(Vec<u8>),
}

/// A trie node, decoded from RLP.
#[expect(clippy::large_enum_variant, reason = "most nodes are branches, and few are in memory at a time")]
pub enum RlpNode {
    Leaf { path: Nibbles, value: Vec<u8> },
    Extension { path: Nibbles, child: RlpChild },
    Branch { children: [Option<RlpChild>; 16] },
}

impl RlpNode {
    /// Decode a trie node. All keys of the trie must have the same length, so a branch with a value is an error.
    pub fn decode(rlp: &[u8]) -> Result<Self> {
        let items = list(rlp, 17)?;
        match items.as_slice() {
            [path, value] => {
                let (path, is_leaf) = hex_prefix(string(path)?)?;
                if is_leaf {
                    return Ok(RlpNode::Leaf { path, value: string(value)?.to_vec() });
                }
                if path.is_empty() {
                    return Err(wrong("an extension without a path"));
                }
                let child = child(value)?.ok_or_else(|| wrong("an extension without a child"))?;
                Ok(RlpNode::Extension { path, child })
            }
            [children @ .., value] if children.len() == 16 => {
                if !string(value)?.is_empty() {
                    return Err(wrong("a branch with a value"));
                }
                let mut found = [const { None }; 16];
                for (place, item) in found.iter_mut().zip(children) {
                    *place = child(item)?;
                }
                Ok(RlpNode::Branch { children: found })
            }
            _ => Err(wrong("neither 2 nor 17 items")),
        }
    }
}

fn wrong(why: &str) -> Error {
    Error::Decode(format!("trie node: {why}"))
}

/// Split an RLP list into its encoded items. Fails if bytes follow the list.
pub fn list(mut rlp: &[u8], max_items: usize) -> Result<Vec<&[u8]>> {
    let payload = Header::decode_bytes(&mut rlp, true).map_err(|cause| Error::decode("list", cause))?;
    if !rlp.is_empty() {
        return Err(Error::Decode("list: bytes after its end".into()));
    }
    items(payload, max_items)
}

/// Split the payload of an RLP list into its encoded items.
fn items(mut payload: &[u8], max_items: usize) -> Result<Vec<&[u8]>> {
    let mut found = Vec::new();
    while !payload.is_empty() {
        if found.len() == max_items {
            return Err(Error::Decode(format!("list: more than {max_items} items")));
        }
        let start = payload;
        let header = Header::decode(&mut payload).map_err(|cause| Error::decode("list item", cause))?;
        payload = &payload[header.payload_length..];
        found.push(&start[..start.len() - payload.len()]);
    }
    Ok(found)
}

/// Decode an RLP string. Fails if bytes follow the string.
pub fn string(mut rlp: &[u8]) -> Result<&[u8]> {
    let content = Header::decode_bytes(&mut rlp, false).map_err(|cause| Error::decode("string", cause))?;
    if rlp.is_empty() { Ok(content) } else { Err(Error::Decode("string: bytes after its end".into())) }
}

/// Decode an RLP string of exactly 32 bytes.
pub fn hash(rlp: &[u8]) -> Result<B256> {
    B256::try_from(string(rlp)?).map_err(|_| Error::Decode("a hash has not 32 bytes".into()))
}

fn child(item: &[u8]) -> Result<Option<RlpChild>> {
    if item.first().is_some_and(|first| *first >= 0xc0) {
        // a parent refers to a node of 32 bytes or more by hash, so a longer inline node is an error
        return if item.len() < 32 { Ok(Some(RlpChild::Inline(item.to_vec()))) } else { Err(wrong("a long child")) };
    }
    match string(item)? {
        [] => Ok(None),
        bytes => B256::try_from(bytes).map(|hash| Some(RlpChild::Hash(hash))).map_err(|_| wrong("a short hash")),
    }
}

/// Decode a hex-prefix path. Returns the path, and whether its node is a leaf (otherwise an extension).
fn hex_prefix(encoded: &[u8]) -> Result<(Nibbles, bool)> {
    let (first, rest) = encoded.split_first().ok_or_else(|| wrong("an empty path"))?;
    let is_odd = first & 0x10 != 0;
    if first & 0xc0 != 0 || (!is_odd && first & 0x0f != 0) || 2 * rest.len() + usize::from(is_odd) > KEY_NIBBLES {
        return Err(wrong("a malformed path"));
    }
    let mut path = Nibbles::new();
    if is_odd {
        path.push(first & 0x0f);
    }
    rest.iter().for_each(|byte| {
        path.push(byte >> 4);
        path.push(byte & 0x0f);
    });
    Ok((path, first & 0x20 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_has_a_path() {
        // an attacker could chain extensions with empty paths and so make the decoder recurse without limit
        let node = |path: u8| [&[0xc2 + 32, path][..], &[0xa0], &[7; 32]].concat();
        assert!(RlpNode::decode(&node(0x11)).is_ok());
        assert!(RlpNode::decode(&node(0x00)).is_err());
    }
}

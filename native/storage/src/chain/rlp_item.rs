//! Reads RLP items of stored transactions, which were checked before they were stored.

use alloy_primitives::U256;
use alloy_rlp::Header;
use ophion_primitives::errors::{Error, Result};

/// Return a number of at most eight bytes.
#[inline]
pub fn small(payload: &[u8]) -> u64 {
    payload.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Return a number; None above 16 bytes.
#[inline]
pub fn medium(payload: &[u8]) -> Option<u128> {
    match payload.len() {
        ..=8 => Some(u128::from(small(payload))),
        9..=16 => Some(payload.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))),
        _ => None,
    }
}

#[inline]
pub fn wide(payload: &[u8]) -> Option<U256> {
    match payload.len() {
        ..=8 => Some(U256::from(small(payload))),
        32 => payload.first_chunk().map(|whole| U256::from_be_bytes::<32>(*whole)),
        _ => U256::try_from_be_slice(payload),
    }
}

#[cold]
pub fn damaged() -> Error {
    Error::damaged("a stored transaction does not decode")
}

pub struct Item<'a> {
    pub is_list: bool,
    pub payload: &'a [u8],
    /// Size of the item with its header.
    pub size: usize,
}

impl<'a> Item<'a> {
    /// Read an item. Fast path for a byte string below 56 bytes; the slow path is `alloy_rlp::Header::decode`. Tests of
    /// stored transactions compare both.
    #[inline(always)]
    pub fn read(bytes: &mut &'a [u8]) -> Result<Self> {
        let start = match bytes.first() {
            Some(0..=0x7f) => 0,
            Some(first @ (0x80 | 0x82..=0xb7)) => usize::from(*first - 0x80) + 1,
            _ => return Self::read_any(bytes),
        };
        // a single byte is its own payload
        let (from, size) = if start == 0 { (0, 1) } else { (1, start) };
        let (item, rest) = bytes.split_at_checked(size).ok_or_else(damaged)?;
        *bytes = rest;
        Ok(Item { is_list: false, payload: &item[from..], size })
    }

    #[cold]
    fn read_any(bytes: &mut &'a [u8]) -> Result<Self> {
        let before = bytes.len();
        let header = Header::decode(bytes).map_err(|_| damaged())?;
        let (payload, rest) = bytes.split_at_checked(header.payload_length).ok_or_else(damaged)?;
        *bytes = rest;
        Ok(Item { is_list: header.list, payload, size: before - rest.len() })
    }
}

#[inline]
pub fn number(bytes: &mut &[u8]) -> Result<u128> {
    medium(Item::read(bytes)?.payload).ok_or_else(damaged)
}

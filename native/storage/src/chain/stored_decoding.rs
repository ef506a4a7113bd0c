//! Fast path that decodes the transactions of a stored body.
//!
//! This path decodes legacy and dynamic fee transactions without access list. Their inputs share the bytes of the body.
//! The slow path is `Tx::decode`, which checked each transaction before it was stored. The test below compares both.

use alloy_consensus::{Signed, TxEip1559, TxLegacy};
use alloy_primitives::{Address, Bytes, Signature, TxKind, U256};

use ophion_primitives::errors::Result;

use super::body::{BodyData, Envelope, Tx, decode_body_with};
use super::rlp_item::{Item, medium, small, wide};

/// Transaction type of EIP-1559.
const DYNAMIC_FEE_TYPE: u8 = 2;

/// Decode the body of a stored block, which has `count` transactions.
pub fn decode_stored_body(payload: &[u8], count: usize) -> Result<BodyData> {
    decode_body_with(payload, count, |raw| match decode_stored(&raw) {
        Some(envelope) => Ok(Tx { envelope, raw }),
        None => Tx::decode(raw),
    })
}

/// Decode a stored transaction from the transactions of its body; None if it needs the slow path.
#[inline]
fn decode_stored(raw: &Bytes) -> Option<Envelope> {
    let mut bytes = &raw[..];
    let envelope = match bytes.first()? {
        0xc0.. => legacy(raw, Item::read(&mut bytes).ok()?.payload)?,
        &DYNAMIC_FEE_TYPE => {
            bytes = &bytes[1..];
            dynamic_fee(raw, Item::read(&mut bytes).ok().filter(|list| list.is_list)?.payload)?
        }
        _ => return None,
    };
    bytes.is_empty().then_some(envelope)
}

#[inline]
fn legacy(raw: &Bytes, mut fields: &[u8]) -> Option<Envelope> {
    let fields = &mut fields;
    let (nonce, gas_price, gas_limit) = (narrow(fields)?, price(fields)?, narrow(fields)?);
    let (to, value, input) = (recipient(fields)?, word(fields)?, shared(raw, fields)?);
    let (chain_id, parity) = match narrow(fields)? {
        v @ (27 | 28) => (None, v == 28),
        v @ 35.. => (Some((v - 35) / 2), v % 2 == 0),
        _ => return None,
    };
    let tx = TxLegacy { chain_id, nonce, gas_price, gas_limit, to, value, input };
    Some(Envelope::Legacy(Signed::new_unhashed(tx, signature(fields, parity)?)))
}

#[inline]
fn dynamic_fee(raw: &Bytes, mut fields: &[u8]) -> Option<Envelope> {
    let fields = &mut fields;
    let (chain_id, nonce) = (narrow(fields)?, narrow(fields)?);
    let (max_priority_fee_per_gas, max_fee_per_gas) = (price(fields)?, price(fields)?);
    let gas_limit = narrow(fields)?;
    let (to, value, input) = (recipient(fields)?, word(fields)?, shared(raw, fields)?);
    let access_list = Item::read(fields).ok().filter(|list| list.is_list && list.payload.is_empty());
    let parity = access_list.and_then(|_| narrow(fields)).filter(|parity| *parity < 2)? == 1;
    let tx = TxEip1559 {
        chain_id,
        nonce,
        gas_limit,
        max_fee_per_gas,
        max_priority_fee_per_gas,
        to,
        value,
        access_list: Default::default(),
        input,
    };
    Some(Envelope::Eip1559(Signed::new_unhashed(tx, signature(fields, parity)?)))
}

/// Read the last two fields, r and s; None if one is invalid or another field follows.
#[inline]
fn signature(fields: &mut &[u8], parity: bool) -> Option<Signature> {
    let signature = Signature::new(word(fields)?, word(fields)?, parity);
    fields.is_empty().then_some(signature)
}

/// Read a byte string; None for a list.
#[inline]
fn bytes<'a>(fields: &mut &'a [u8]) -> Option<&'a [u8]> {
    Item::read(fields).ok().filter(|item| !item.is_list).map(|item| item.payload)
}

/// Read a number as bytes; None for a list, and for leading zeros, which the slow path refuses.
#[inline]
fn digits<'a>(fields: &mut &'a [u8]) -> Option<&'a [u8]> {
    bytes(fields).filter(|payload| payload.first() != Some(&0))
}

#[inline]
fn narrow(fields: &mut &[u8]) -> Option<u64> {
    digits(fields).filter(|payload| payload.len() <= 8).map(small)
}

#[inline]
fn price(fields: &mut &[u8]) -> Option<u128> {
    digits(fields).and_then(medium)
}

#[inline]
fn word(fields: &mut &[u8]) -> Option<U256> {
    digits(fields).and_then(wide)
}

#[inline]
fn recipient(fields: &mut &[u8]) -> Option<TxKind> {
    match bytes(fields)? {
        [] => Some(TxKind::Create),
        to => Address::try_from(to).ok().map(TxKind::Call),
    }
}

#[inline]
fn shared(raw: &Bytes, fields: &mut &[u8]) -> Option<Bytes> {
    let payload = bytes(fields)?;
    Some(if payload.is_empty() { Bytes::new() } else { raw.slice_ref(payload) })
}

#[cfg(test)]
mod tests {
    use alloy_consensus::{SignableTransaction, TxEip2930};
    use alloy_eips::eip2718::Encodable2718;
    use alloy_eips::eip2930::{AccessList, AccessListItem};

    use super::*;

    fn bytes_of(number: u64) -> Bytes {
        let word = U256::from(number + 1) << ((number * 53 % 240) as usize);
        let signature = Signature::new(word, U256::from(number * 7 + 1), number.is_multiple_of(2));
        let to = Address::left_padding_from(&number.to_be_bytes());
        let to = if number.is_multiple_of(5) { TxKind::Create } else { TxKind::Call(to) };
        let (value, price) = (U256::from(number) << ((number * 37 % 250) as usize), 1u128 << (number % 120));
        let input = Bytes::from(vec![(number % 200) as u8; (number * number % 300) as usize]);
        let (nonce, gas_limit) = (number * 31 % 1000, 21_000 << (number % 30));
        let chain_id = number.is_multiple_of(3).then_some(number * 1_000_003);
        let slots = AccessListItem { address: Address::ZERO, storage_keys: Vec::new() };
        let list = AccessList(if number.is_multiple_of(7) { vec![slots] } else { Vec::new() });
        let envelope: Envelope = match number % 4 {
            0 => {
                TxEip2930 { chain_id: number, nonce, gas_price: price, gas_limit, to, value, access_list: list, input }
                    .into_signed(signature)
                    .into()
            }
            1 => {
                let (max_fee_per_gas, max_priority_fee_per_gas) = (price, price / (1 + u128::from(number % 3)));
                let (chain_id, access_list) = (number, list);
                TxEip1559 {
                    chain_id,
                    nonce,
                    gas_limit,
                    max_fee_per_gas,
                    max_priority_fee_per_gas,
                    to,
                    value,
                    access_list,
                    input,
                }
                .into_signed(signature)
                .into()
            }
            _ => TxLegacy { chain_id, nonce, gas_price: price, gas_limit, to, value, input }
                .into_signed(signature)
                .into(),
        };
        let mut raw = Vec::new();
        envelope.encode_2718(&mut raw);
        raw.into()
    }

    #[test]
    fn both_paths_decode_the_same_transaction() {
        let mut fast = 0;
        for number in 0..2000 {
            let raw = bytes_of(number);
            let Some(envelope) = decode_stored(&raw) else { continue };
            let found = Tx { envelope, raw: raw.clone() };
            let expected = Tx::decode(raw).unwrap();
            assert_eq!(found.envelope, expected.envelope, "{number}");
            assert_eq!(found.signed().digest, expected.signed().digest);
            fast += 1;
        }
        assert!(fast > 1400, "{fast}");
    }

    #[test]
    fn the_fast_path_decodes_no_changed_bytes_that_the_slow_path_refuses() {
        let mut seed = 1u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % below
        };
        let mut both = 0;
        for number in 0..40_000 {
            let mut raw = bytes_of(number % 2000).to_vec();
            for _ in 0..=random(3) {
                let at = random(raw.len().min(80));
                match random(4) {
                    0 => raw[at] = random(256) as u8,
                    1 => raw[at] ^= 1 << random(8),
                    2 => raw[at] ^= 0xc0,
                    _ => drop(raw.remove(at)),
                }
            }
            let raw = Bytes::from(raw);
            let Some(envelope) = decode_stored(&raw) else { continue };
            let expected = Tx::decode(raw.clone()).unwrap_or_else(|cause| panic!("{cause}: {raw}"));
            assert_eq!(envelope, expected.envelope, "{raw}");
            both += 1;
        }
        assert!(both > 1000, "{both}");
    }

    #[test]
    fn damaged_bytes_need_the_slow_path() {
        for number in [1, 2, 3] {
            let raw = bytes_of(number + 40);
            for cut in 0..raw.len() {
                assert!(decode_stored(&raw.slice(..cut)).is_none(), "{number} {cut}");
            }
            let longer = [&raw[..], &[0]].concat();
            assert!(decode_stored(&longer.into()).is_none());
        }
    }
}

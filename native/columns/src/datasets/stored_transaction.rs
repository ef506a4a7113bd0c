//! Fast path that reads the columns of a stored transaction from its bytes, without decoding the other fields.
//!
//! The slow path is `Tx::decode` (chain/body.rs in storage), which checked the transaction before it was stored. The
//! test below compares both.

use alloy_primitives::{Address, U256};
use ophion_primitives::errors::Result;
use ophion_storage::chain::rlp_item::{Item, damaged, number, wide};

/// Fields of a transaction that borrow the bytes of a stored body.
pub struct StoredTransaction<'a> {
    pub kind: u8,
    pub nonce: u64,
    pub gas_limit: u64,
    /// Maximum price of a dynamic fee transaction; the price of any other transaction.
    pub max_fee: u128,
    /// Maximum tip; None unless the transaction has a dynamic fee.
    pub max_tip: Option<u128>,
    /// Recipient; None for a creation.
    pub to: Option<Address>,
    pub value: U256,
    pub input: &'a [u8],
    /// Size of the EIP-2718 encoding in bytes.
    pub size: usize,
}

impl StoredTransaction<'_> {
    pub fn effective_price(&self, base_fee: Option<u64>) -> u128 {
        match (self.max_tip, base_fee) {
            (Some(tip), Some(base)) => self.max_fee.min(tip.saturating_add(u128::from(base))),
            _ => self.max_fee,
        }
    }
}

/// Reads the transactions of a stored body, in order.
pub struct StoredTransactions<'a>(&'a [u8]);

impl<'a> StoredTransactions<'a> {
    /// Take the RLP of a body.
    pub fn of(mut body: &'a [u8]) -> Result<Self> {
        Ok(StoredTransactions(Item::read(&mut body)?.payload))
    }

    /// Return the next transaction; None after the last one.
    pub fn next(&mut self) -> Result<Option<StoredTransaction<'a>>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let item = Item::read(&mut self.0)?;
        if item.is_list {
            return read(0, item.payload, item.size).map(Some);
        }
        let (kind, mut rest) = item.payload.split_first().ok_or_else(damaged)?;
        if !(1..=4).contains(kind) {
            return Err(damaged());
        }
        read(*kind, Item::read(&mut rest)?.payload, item.payload.len()).map(Some)
    }
}

fn read(kind: u8, mut fields: &[u8], size: usize) -> Result<StoredTransaction<'_>> {
    if kind > 0 {
        Item::read(&mut fields)?;
    }
    let nonce = number(&mut fields)?;
    let (max_tip, max_fee) = if kind < 2 {
        (None, number(&mut fields)?)
    } else {
        let tip = number(&mut fields)?;
        (Some(tip), number(&mut fields)?)
    };
    let narrow = |number: u128| u64::try_from(number).map_err(|_| damaged());
    let gas_limit = narrow(number(&mut fields)?)?;
    let to = Item::read(&mut fields)?.payload;
    let to = if to.is_empty() { None } else { Some(Address::try_from(to).map_err(|_| damaged())?) };
    let value = wide(Item::read(&mut fields)?.payload).ok_or_else(damaged)?;
    let input = Item::read(&mut fields)?.payload;
    Ok(StoredTransaction { kind, nonce: narrow(nonce)?, gas_limit, max_fee, max_tip, to, value, input, size })
}

#[cfg(test)]
mod tests {
    use alloy_consensus::transaction::Transaction as _;
    use alloy_consensus::{SignableTransaction, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxLegacy};
    use alloy_eips::eip2718::Encodable2718;
    use alloy_primitives::{Bytes, Signature, TxKind};
    use ophion_storage::chain::body::{BodyData, Envelope, Tx};

    use super::*;

    fn encoded(number: u64) -> Tx {
        let signature = Signature::new(U256::from(number + 5), U256::from(7), number.is_multiple_of(2));
        let to = Address::left_padding_from(&number.to_be_bytes());
        let kind = if number.is_multiple_of(4) { TxKind::Create } else { TxKind::Call(to) };
        let value = U256::from(number) << ((number * 37 % 250) as usize);
        let input = Bytes::from(vec![(number % 3) as u8; (number * number % 400) as usize]);
        let price = (1u128 << (number % 80)) - u128::from(number % 2);
        let (nonce, gas_limit) = (number * 31, 21_000 + number);
        let (max_fee_per_gas, max_priority_fee_per_gas) = (price, price / (1 + u128::from(number % 3)));
        let envelope: Envelope = match number % 5 {
            0 => TxLegacy { chain_id: Some(9), nonce, gas_price: price, gas_limit, to: kind, value, input }
                .into_signed(signature)
                .into(),
            1 => TxEip2930 { nonce, gas_price: price, gas_limit, to: kind, value, input, ..Default::default() }
                .into_signed(signature)
                .into(),
            2 => TxEip1559 {
                nonce,
                max_fee_per_gas,
                max_priority_fee_per_gas,
                gas_limit,
                to: kind,
                value,
                input,
                ..Default::default()
            }
            .into_signed(signature)
            .into(),
            3 => TxEip4844 {
                nonce,
                max_fee_per_gas,
                max_priority_fee_per_gas,
                gas_limit,
                to,
                value,
                input,
                ..Default::default()
            }
            .into_signed(signature)
            .into(),
            _ => TxEip7702 {
                nonce,
                max_fee_per_gas,
                max_priority_fee_per_gas,
                gas_limit,
                to,
                value,
                input,
                ..Default::default()
            }
            .into_signed(signature)
            .into(),
        };
        let mut raw = Vec::new();
        envelope.encode_2718(&mut raw);
        Tx::decode(raw.into()).unwrap()
    }

    #[test]
    fn fields_are_those_of_the_decoded_transaction() {
        let body = BodyData::new((0..200).map(encoded).collect(), Vec::new(), None);
        let bytes = body.encode();
        let mut stored = StoredTransactions::of(&bytes).unwrap();
        for tx in &body.txs {
            let (one, envelope) = (stored.next().unwrap().unwrap(), &tx.envelope);
            assert_eq!((one.kind, one.nonce), (envelope.tx_type() as u8, envelope.nonce()));
            assert_eq!((one.gas_limit, one.size), (envelope.gas_limit(), tx.raw.len()));
            assert_eq!((one.to, one.value), (envelope.to(), envelope.value()));
            assert_eq!((one.input, one.max_fee), (&envelope.input()[..], envelope.max_fee_per_gas()));
            assert_eq!(one.max_tip, envelope.max_priority_fee_per_gas());
            for base_fee in [None, Some(0), Some(7), Some(1 << 40), Some(u64::MAX)] {
                assert_eq!(one.effective_price(base_fee), envelope.effective_gas_price(base_fee));
            }
        }
        assert!(stored.next().unwrap().is_none());
        for cut in 0..bytes.len() {
            let Ok(mut stored) = StoredTransactions::of(&bytes[..cut]) else { continue };
            while let Ok(Some(_)) = stored.next() {}
        }
    }
}
